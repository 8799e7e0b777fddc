"""A button that says its key beside its words."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QStyle, QStyleOptionButton, QStylePainter, QWidget

from app.theme import Theme
from app.widgets.marks import draw_text, text_width

GAP = 8.0  # between words and key
SIDE = 27  # padding at either side


class KeyButton(QPushButton):
    """The action of a window: filled, with its key in small letters where there is room."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._key = ""
        self._key_shown = True
        self.setProperty("primary", True)

    def say(self, words: str, key: str) -> None:
        """Take other words and another key."""
        if (words, key) != (self.text(), self._key):
            self._key = key
            self.setText(words)

    def show_key(self, shown: bool) -> None:
        """Whether there is room for the key."""
        if shown != self._key_shown:
            self._key_shown = shown
            self.updateGeometry()
            self.update()

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self._theme = theme
        self.updateGeometry()

    def width_for(self, words: str, key: str) -> int:
        """How wide the button is with these words."""
        sides = 2 * self._theme.pixels(SIDE if self._key_shown else SIDE * 0.75)
        return round(sum(self._widths(words, key)) + sides)

    def sizeHint(self) -> QSize:
        return QSize(self.width_for(self.text(), self._key), self._theme.pixels(30))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        self._draw_words(painter)
        painter.end()

    def _draw_words(self, painter: QPainter) -> None:
        theme, on = self._theme, self.isEnabled()
        words, key = self._widths(self.text(), self._key)
        x = (self.width() - words - key) / 2
        base = self.height() / 2 + theme.pixels(4.5)
        color = theme.color("on_primary" if on else "faint")
        draw_text(painter, x, base, self.text(), theme.font("strong", 12), color)
        if key:
            color = theme.color("on_primary", 190) if on else theme.color("faint")
            draw_text(painter, x + words + GAP, base, self._key, theme.font("ui", 10), color)

    def _widths(self, words: str, key: str) -> tuple[float, float]:
        """Of the words, and of the key with the gap before it."""
        theme = self._theme
        width = text_width(key, theme.font("ui", 10)) + GAP if self._key_shown and key else 0.0
        return text_width(words, theme.font("strong", 12)), width
