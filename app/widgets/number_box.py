"""A box for exact numbers: typed, or stepped by keys and wheel."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Signal, SignalInstance, Slot
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QLineEdit

Number = int | float

STEPS = {
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_PageUp: 10,
    Qt.Key.Key_PageDown: -10,
}


class NumberBox(QLineEdit):
    """Takes exact numbers as they are typed; what is no number goes back to what was.

    A spin box will not do: its whole numbers end at 2**31, and a seed may reach 2**64 - 1.
    """

    typed = Signal(object)  # a number, an int where there are no decimals
    stepped = Signal(int)  # so many of the finest steps

    def __init__(self, decimals: int, off: tuple[Number, str] | None) -> None:
        super().__init__()
        self._decimals, self._off = decimals, off
        self._shown: Number = 0
        self.setProperty("number", "true")
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.editingFinished.connect(self._finish)

    def show_value(self, value: Number) -> str:
        """Show a value; returns its words."""
        self._shown = value
        words = self._words(value)
        if words != self.text():
            self.setText(words)
            self.setCursorPosition(0)
        return words

    def wheelEvent(self, event: QWheelEvent) -> None:
        step_by_wheel(event, self.stepped)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        n = STEPS.get(Qt.Key(event.key()))
        if n is None:
            super().keyPressEvent(event)
            return
        self._finish()  # what was typed so far is what to step from
        self.stepped.emit(n)

    @Slot()
    def _finish(self) -> None:
        if self.text() != self._words(self._shown):
            value = self._number(self.text())
            self.typed.emit(self._shown if value is None else value)

    def _words(self, value: Number) -> str:
        if self._off and value == self._off[0]:
            return self._off[1]
        if self._decimals == 0:
            return str(value)
        rounded = f"{value:.{self._decimals}f}"
        return rounded if float(rounded) == value else repr(value)

    def _number(self, words: str) -> Number | None:
        words = words.strip().casefold()
        if self._off and words == self._off[1].casefold():
            return self._off[0]
        try:
            if self._decimals == 0:
                return int(words.replace(",", ""))
            value = float(words.replace(",", "."))
        except ValueError:
            return None
        return value if math.isfinite(value) else None


def step_by_wheel(event: QWheelEvent, stepped: SignalInstance) -> None:
    """One step a notch of the wheel."""
    n = round(event.angleDelta().y() / 120)
    if n:
        stepped.emit(n)
    event.accept()
