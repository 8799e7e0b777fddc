"""One stacked bar of falling shares with the coin that falls on one of them, and its caption."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter, QPen

from app.theme import Theme
from app.widgets.bars import Layout, draw_share, draw_triangle
from app.widgets.marks import draw_box, draw_text, text_width


def draw_stack(
    painter: QPainter,
    layout: Layout,
    shares: Sequence[float],
    *,
    chosen: int | None,
    coin: float | None,
    outlined: bool,
) -> None:
    """Lay falling shares end to end over the width, and show where the coin falls.

    What is too thin to see, and what `shares` leaves out of 1, is one pale block at the end.
    """
    assert layout.stack is not None
    theme, bar = layout.theme, layout.stack
    draw_box(painter, bar, radius=3, fill=theme.color("raised"), line=theme.color("line"))
    x, inner = bar.left(), bar.adjusted(0, 1, 0, -1)
    for i, share in enumerate(shares):
        width = bar.width() * share
        if width < 2.5 and i != chosen:
            break
        color = theme.color("select" if i == chosen else "decode")
        color.setAlpha(230 if i == chosen else max(70, 200 - 14 * i))
        piece = QRectF(x, inner.top(), max(0.5, width - 1), inner.height())
        draw_share(painter, piece, color, outlined=outlined)
        x += width
    if bar.right() - x > 0.5 and len(shares):
        tail = QRectF(x, inner.top(), bar.right() - x, inner.height())
        painter.fillRect(tail, theme.color("decode", 50))
    if coin is not None:
        _draw_coin(painter, bar, bar.left() + bar.width() * coin, theme)


def draw_caption(
    painter: QPainter, layout: Layout, left: Sequence[str], right: Sequence[str], role: str
) -> None:
    """Draw a line below the stack; of the wordings of each side the first that fits."""
    assert layout.caption is not None
    theme, rect = layout.theme, layout.caption
    y, gap = rect.top() + theme.pixels(14), theme.pixels(12)
    mono, font = theme.font("mono", 11), theme.font("ui", 11)
    widths = {words: text_width(words, font) for words in right}
    least = min(text_width(words, mono) for words in left)
    shown = next((w for w in right if widths[w] + gap + least <= rect.width()), right[-1])
    draw_text(painter, rect.right(), y, shown, font, theme.color("muted"), "right")
    room = rect.width() - widths[shown] - gap
    words = next((w for w in left if text_width(w, mono) <= room), left[-1])
    draw_text(painter, rect.left(), y, words, mono, theme.color(role), "left", room)


def _draw_coin(painter: QPainter, bar: QRectF, x: float, theme: Theme) -> None:
    px = theme.pixels
    painter.setPen(QPen(theme.color("coin"), max(1.5, px(2))))
    painter.drawLine(QPointF(x, bar.top() - px(4)), QPointF(x, bar.bottom() + px(3)))
    top = bar.top() - px(9)
    corners = (QPointF(x - px(5), top), QPointF(x + px(5), top), QPointF(x, top + px(6)))
    draw_triangle(painter, corners, theme)
