"""Small things that every panel draws: text that fits, boxes, frames, and where-from marks."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QPen,
    QTextLayout,
    QTextOption,
)

from app.theme import Theme

Align = Literal["left", "center", "right"]
Mark = Literal["measured", "derived", "theory"]

MOST_WIDTHS = 20_000
_WIDTHS: dict[tuple[str, str, int, QFont.Weight], float] = {}  # a cache: it decides nothing

SIGNS: dict[Mark, str] = {"measured": "●", "derived": "ƒ", "theory": "≈"}


def text_width(text: str, font: QFont) -> float:
    """How wide a line of text is in this font; shaping it takes longer than remembering it."""
    key = text, font.family(), font.pixelSize(), font.weight()
    width = _WIDTHS.get(key)
    if width is None:
        if len(_WIDTHS) >= MOST_WIDTHS:
            _WIDTHS.clear()
        width = _WIDTHS[key] = QFontMetricsF(font).horizontalAdvance(text)
    return width


def elided(text: str, font: QFont, width: float) -> str:
    """The text, or as much of it as fits and an ellipsis."""
    if text_width(text, font) <= width:
        return text
    return QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, width)


def draw_text(
    painter: QPainter,
    x: float,
    y: float,
    text: str,
    font: QFont,
    color: QColor,
    align: Align = "left",
    width: float | None = None,
) -> float:
    """Draw one line with its baseline at y; x is the edge or the middle that `align` names.

    Text wider than `width` ends in an ellipsis. Returns the width drawn.
    """
    if width is not None:
        text = elided(text, font, width)
    advance = text_width(text, font)
    left = x - advance * {"left": 0.0, "center": 0.5, "right": 1.0}[align]
    painter.setFont(font)
    painter.setPen(color)
    painter.drawText(QPointF(left, y), text)
    return advance


def draw_wrapped(
    painter: QPainter, rect: QRectF, text: str, font: QFont, color: QColor, align: Align = "left"
) -> float:
    """Draw text in lines as wide as rect; the last line that fits ends in an ellipsis if cut.

    Returns the height drawn.
    """
    metrics = QFontMetricsF(font)
    pitch = metrics.height() * 1.25
    lines = _wrapped(text, font, rect.width())
    room = max(1, int((rect.height() - metrics.height()) // pitch) + 1)
    if len(lines) > room:
        rest = " ".join(lines[room - 1 :])
        lines = [*lines[: room - 1], elided(rest + "…", font, rect.width())]
    x = {"left": rect.left(), "center": rect.center().x(), "right": rect.right()}[align]
    for i, line in enumerate(lines):
        y = rect.top() + metrics.ascent() + i * pitch
        draw_text(painter, x, y, line, font, color, align, rect.width())
    return (len(lines) - 1) * pitch + metrics.height()


def draw_mark(
    painter: QPainter, x: float, y: float, mark: Mark, theme: Theme, *, size: int = 10
) -> float:
    """Draw where a number comes from, baseline at y; returns the width drawn.

    The words for it, ui.toml's mark.<mark>_tip, belong in the tool tip of the number.
    """
    color = theme.color("faint")
    if mark != "measured":
        return draw_text(painter, x, y, SIGNS[mark], theme.font("ui", size), color)
    side = theme.pixels(size * 0.6)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawEllipse(QRectF(x + 1, y - side - 0.5, side, side))
    return side + 2.0


def draw_box(
    painter: QPainter,
    rect: QRectF,
    *,
    radius: float,
    fill: QColor | None = None,
    line: QColor | None = None,
    width: float = 1.0,
) -> None:
    """Draw a rounded box with its line inside rect."""
    inset = width / 2 if line is not None else 0.0
    painter.setPen(Qt.PenStyle.NoPen if line is None else QPen(line, width))
    painter.setBrush(Qt.BrushStyle.NoBrush if fill is None else fill)
    painter.drawRoundedRect(rect.adjusted(inset, inset, -inset, -inset), radius, radius)


def draw_frame(painter: QPainter, rect: QRectF, theme: Theme, *, radius: float = 3.0) -> None:
    """Draw the one frame that means selected, just outside rect."""
    draw_box(
        painter,
        rect.adjusted(-1.25, -1.25, 1.25, 1.25),
        radius=radius,
        line=theme.color("select"),
        width=1.5,
    )


def _wrapped(text: str, font: QFont, width: float) -> list[str]:
    layout = QTextLayout(text.replace("\n", "\u2028"), font)
    units = text.encode("utf-16-le")  # Qt counts in these, two bytes each
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    lines: list[str] = []
    layout.beginLayout()
    while (line := layout.createLine()).isValid():
        line.setLineWidth(max(1.0, width))
        start = 2 * line.textStart()
        lines.append(units[start : start + 2 * line.textLength()].decode("utf-16-le").strip())
    layout.endLayout()
    return lines
