"""A box to pick one of a few things; its words give way where there is little room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QWidget,
)

from app import texts

SIDES = 48  # pixels that padding and arrow take of the width, as the style sheet has them


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to pick."""

    id: str
    words: str
    short: str = ""  # for a narrow box; "" where the words are short enough
    tip: str = ""


class Picker(QComboBox):
    """Shows what is in force, until its owner says otherwise; `picked` is what the user wants."""

    picked = Signal(str)  # an item's id

    def __init__(self, name: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items: tuple[Item, ...] = ()
        self._current = ""
        self._narrow = False
        self._least = 0
        self._tip = tip
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.activated.connect(self._pick)

    def offer(self, items: Sequence[Item], current: str) -> None:
        """Show these items, the current one in the box."""
        if tuple(items) != self._items:
            self._items = tuple(items)
            self.clear()
            for i, item in enumerate(self._items):
                self.addItem(item.words)
                self.setItemData(i, texts.in_lines(item.tip), Qt.ItemDataRole.ToolTipRole)
            self.updateGeometry()
        self.show_current(current)

    def show_current(self, id: str) -> None:
        """Show another item as the one in force."""
        self._current = id
        ids = [item.id for item in self._items]
        self.setCurrentIndex(ids.index(id) if id in ids else -1)
        item = self._item
        said = f"{item.words}\n{item.tip}".strip() if item else ""
        self.setToolTip(texts.in_lines(f"{said}\n{self._tip}".strip()))

    def make_narrow(self, narrow: bool, *, least: int = 0) -> None:
        """Use the short words, and let the box become as narrow as `least` pixels of words."""
        if (narrow, least) != (self._narrow, self._least):
            self._narrow, self._least = narrow, least
            self.updateGeometry()
            self.update()

    @property
    def shown(self) -> str:
        """The words in the box."""
        return self._words(self._item) if self._item else ""

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        widths = (metrics.horizontalAdvance(self._words(item)) for item in self._items)
        return QSize(max(widths, default=0) + SIDES, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        hint = self.sizeHint()
        if self._least:
            hint.setWidth(min(hint.width(), self._least + SIDES))
        return hint

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        field = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, self)
        room, elide = field.width() - 2, Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(self.shown, elide, room)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # a wheel that passes over must not load another model

    def _words(self, item: Item) -> str:
        return item.short if self._narrow and item.short else item.words

    @property
    def _item(self) -> Item | None:
        i = self.currentIndex()
        return self._items[i] if 0 <= i < len(self._items) else None

    @Slot(int)
    def _pick(self, i: int) -> None:
        wanted = self._items[i].id
        if wanted != self._current:
            self.show_current(self._current)
            self.picked.emit(wanted)
