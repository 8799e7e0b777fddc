"""A slim bar that says how full something is, in parts of different colours, and its words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPainterPath

from app.theme import Theme
from app.widgets.marks import draw_mark, draw_text

# As designed, in pixels at scale 1.
BAR, BELOW, BASE = 5, 5, 12  # the bar, what is free below it, the baseline of the words
WHOLE, BARE = 30, 10  # heights of the bar with its words, and without

LEAST = 2.0  # pixels of a part that is not nothing


def draw_meter(
    painter: QPainter,
    rect: QRectF,
    words: tuple[str, str],
    parts: Sequence[tuple[str, float]],
    theme: Theme,
    *,
    warns: bool = False,
) -> None:
    """Draw a bar at the bottom of rect, and above it, where there is room, its words.

    Args:
        painter: to draw with.
        rect: its place, WHOLE or BARE high.
        words: the label at the left and the figure at the right, which was measured.
        parts: side by side from the left, each a role and its share of the whole, 0 to 1.
        theme: for colours and sizes.
        warns: the figure is a warning.
    """
    if rect.height() >= theme.pixels(WHOLE):
        _draw_words(painter, rect, words, theme, warns=warns)
    top = rect.bottom() - theme.pixels(BELOW + BAR)
    bar = QRectF(rect.left(), top, rect.width(), theme.pixels(BAR))
    path = QPainterPath()
    path.addRoundedRect(bar, bar.height() / 2, bar.height() / 2)
    painter.save()
    painter.setClipPath(path)
    painter.fillRect(bar, theme.color("line"))
    x = bar.left()
    for role, share in parts:
        width = max(LEAST, bar.width() * share) if share > 0 else 0.0
        painter.fillRect(QRectF(x, bar.top(), width, bar.height()), theme.color(role))
        x += width
    painter.restore()


def _draw_words(
    painter: QPainter, rect: QRectF, words: tuple[str, str], theme: Theme, *, warns: bool
) -> None:
    label, figure = words
    base = rect.top() + theme.pixels(BASE)
    mark = theme.pixels(10)
    draw_mark(painter, rect.right() - mark + theme.pixels(2), base, "measured", theme)
    color = theme.color("warn" if warns else "muted")
    font, right = theme.font("mono", 11), rect.right() - mark - theme.pixels(2)
    width = draw_text(painter, right, base, figure, font, color, "right", right - rect.left())
    room = right - width - theme.pixels(10) - rect.left()
    if room > theme.pixels(20):
        ui, muted = theme.font("ui", 11), theme.color("muted")
        draw_text(painter, rect.left(), base, label, ui, muted, width=room)
