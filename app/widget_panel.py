"""A panel that is made of widgets, where others are painted."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import texts
from app.panels.base import PADDING
from app.selection import Scene
from app.store import Store
from app.theme import Theme


class WidgetPanel(QObject):
    """To the window a panel like any other; it shows itself."""

    id: ClassVar[str]  # its title is panel.<id>.title, its page texts/en/panels/<id>.md
    retitled = Signal()  # the line or the figure in the title row is another

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.store = store
        self.theme = theme
        self.canvas = Body()
        self.canvas.setObjectName(f"canvas.{self.id}")

    @property
    def title(self) -> str:
        return texts.text(f"panel.{self.id}.title")

    def show(self, scene: Scene) -> None:
        """Take a scene."""
        raise NotImplementedError

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        raise NotImplementedError

    def subtitle(self) -> str:
        """The one line beside the title."""
        return ""

    def figure(self) -> str:
        """The one figure at the right of the title row."""
        return ""

    def actions(self) -> list[QAction]:
        """The entries of its own in its menu."""
        return []


def column(canvas: QWidget) -> QVBoxLayout:
    """A column of widgets with the padding that panels have."""
    rows = QVBoxLayout(canvas)
    rows.setContentsMargins(*(round(side) for side in PADDING))
    rows.setSpacing(0)
    return rows


class Body(QWidget):
    """What a dock holds; says when its size is another."""

    resized = Signal()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()
