"""A number to set by sliding or by typing: label, track, number box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPalette, QPen, QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSlider, QWidget

from app.widgets.number_box import STEPS, Number, NumberBox, step_by_wheel

Mapping = Literal["linear", "log"]

LABEL_WIDTH, BOX_WIDTH, BOX_HEIGHT = 84, 56, 22
TRACK, KNOB = 4, 7  # thickness of the line, radius of the knob
PLACES = 1000  # on a track


class Slider(QWidget):
    """One number: the track covers a part of what the box takes.

    Whole numbers stay Python ints of any size; `changed` carries an int or a float.
    """

    changed = Signal(object)  # the new value, set by the user

    def __init__(
        self,
        label: str,
        *,
        limits: tuple[Number, Number],
        default: Number,
        track: tuple[Number, Number] | None = None,
        mapping: Mapping = "linear",
        decimals: int = 0,
        off: tuple[Number, str] | None = None,
        tip: str = "",
        parent: QWidget | None = None,
    ) -> None:
        """`decimals` 0 means whole numbers; `off` is a value and the word shown for it."""
        super().__init__(parent)
        self._default = default
        self._value = default
        self._range = _Range(limits, track or limits, mapping, decimals)
        self._label = QLabel(label)
        self._label.setProperty("tone", "muted")
        self._track = _Track()
        self._box = NumberBox(decimals, off)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._label)
        row.addWidget(self._track, 1)
        row.addWidget(self._box)
        for part in (self._track, self._box):
            part.setAccessibleName(label)
        self.setFocusProxy(self._track)
        self.setToolTip(tip)
        self._track.slid.connect(self._slide)
        self._track.stepped.connect(self._step)
        self._track.reset_asked.connect(self.reset)
        self._box.typed.connect(self._take)
        self._box.stepped.connect(self._step_finely)
        self._fit_font()
        self._show()

    @property
    def value(self) -> Number:
        return self._value

    def set_value(self, value: Number) -> None:
        """Show another value; `changed` is for what the user does."""
        self._value = self._range.fitted(value)
        self._show()

    @Slot()
    def reset(self) -> None:
        """Back to the default, as a double click does."""
        self._take(self._default)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.reset()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit_font()

    @Slot(float)
    def _slide(self, share: float) -> None:
        self._take(self._range.at(share))

    @Slot(int)
    def _step(self, n: int) -> None:
        self._take(self._range.stepped(self._value, n))

    @Slot(int)
    def _step_finely(self, n: int) -> None:
        self._take(self._range.rounded(self._value + n * self._range.finest))

    @Slot(object)
    def _take(self, value: Number) -> None:
        value = self._range.fitted(value)
        changed = value != self._value
        self._value = value
        self._show()  # also when nothing changed: the box may hold what could not be
        if changed:
            self.changed.emit(value)

    def _show(self) -> None:
        words = self._box.show_value(self._value)
        self._track.show_share(self._range.share(self._value))
        self._track.setAccessibleDescription(words)

    def _fit_font(self) -> None:
        scale = self.fontMetrics().height() / 15.0  # the designed widths go with 12 pixel text
        self._label.setMinimumWidth(round(LABEL_WIDTH * scale))
        self._box.setFixedSize(round(BOX_WIDTH * scale), round(BOX_HEIGHT * scale))


@dataclass(frozen=True, slots=True)
class _Range:
    """Numbers and their places on a track."""

    limits: tuple[Number, Number]
    track: tuple[Number, Number]
    mapping: Mapping
    decimals: int

    @property
    def finest(self) -> Number:
        return 1 if self.decimals == 0 else 10.0**-self.decimals

    def fitted(self, value: Number) -> Number:
        """The nearest number that is allowed."""
        value = min(max(value, self.limits[0]), self.limits[1])
        return round(value) if self.decimals == 0 else float(value)

    def rounded(self, value: Number) -> Number:
        return round(value) if self.decimals == 0 else round(value, self.decimals)

    def share(self, value: Number) -> float:
        """Where a number lies on the track, 0 to 1; the ends stand for what lies beyond."""
        least, most = self.track
        along, span = min(max(value, least), most) - least, most - least
        if self.mapping == "log":
            return math.log1p(along) / math.log1p(span)
        return along / span

    def at(self, share: float) -> Number:
        """The number at a place of the track."""
        least, most = self.track
        share = min(max(share, 0.0), 1.0)
        if self.mapping == "log":
            return self.rounded(least + math.expm1(share * math.log1p(most - least)))
        return self.rounded(least + share * (most - least))

    def stepped(self, value: Number, n: int) -> Number:
        """The number n hundredths of the track further, at least n of the finest steps."""
        there = self.at(self.share(value) + n / 100)
        least = self.rounded(value + n * self.finest)
        return max(there, least) if n > 0 else min(there, least)


class _Track(QSlider):
    """The line and the knob. A click goes there; arrows and wheel step."""

    slid = Signal(float)  # to this share of the track
    stepped = Signal(int)
    reset_asked = Signal()

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setRange(0, PLACES)
        self._share = 0.0

    def show_share(self, share: float) -> None:
        self._share = share
        self.setValue(round(share * PLACES))  # what a screen reader asks for
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(100, 22)

    def minimumSizeHint(self) -> QSize:
        return QSize(40, 22)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._slide_to(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._slide_to(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.reset_asked.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        step_by_wheel(event, self.stepped)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        n = {**STEPS, Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if n is not None:
            self.stepped.emit(n)
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self.slid.emit(float(event.key() == Qt.Key.Key_End))
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line = QRectF(KNOB, (self.height() - TRACK) / 2, self.width() - 2 * KNOB, TRACK)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.palette().color(QPalette.ColorRole.Mid))
        painter.drawRoundedRect(line, TRACK / 2, TRACK / 2)
        done = QRectF(line.topLeft(), line.size())
        done.setWidth(line.width() * self._share)
        painter.setBrush(self.palette().color(QPalette.ColorRole.Highlight))
        painter.drawRoundedRect(done, TRACK / 2, TRACK / 2)
        focus = (
            QPalette.ColorRole.Highlight if self.hasFocus() else QPalette.ColorRole.AlternateBase
        )
        painter.setPen(QPen(self.palette().color(focus), 2))
        painter.setBrush(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawEllipse(QPointF(done.right(), self.height() / 2), KNOB - 1, KNOB - 1)
        painter.end()

    def _slide_to(self, x: float) -> None:
        self.slid.emit((x - KNOB) / max(1, self.width() - 2 * KNOB))
