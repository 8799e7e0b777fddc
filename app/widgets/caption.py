"""One line of small text, cut with an ellipsis where it has to be."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import texts
from app.theme import Theme
from app.widgets.marks import draw_text


class Caption(QWidget):
    """Says one thing; the tool tip has it whole."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.text = ""
        self._theme = theme
        self._warns = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def say(self, text: str, *, warns: bool = False) -> None:
        """Show another text."""
        if (text, warns) != (self.text, self._warns):
            self.text, self._warns = text, warns
            self.setToolTip(texts.as_tip(text) if text else "")
            self.setAccessibleName(text)
            self.update()

    def restyle(self, theme: Theme) -> None:
        self._theme = theme
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(40, self._theme.pixels(18))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        font = self._theme.font("ui", 11)
        base = (self.height() + QFontMetricsF(font).capHeight()) / 2
        color = self._theme.color("warn" if self._warns else "muted")
        draw_text(painter, 0, base, self.text, font, color, width=self.width())
        painter.end()
