"""The colour bar beside a heat map: which colour stands for which value."""

from __future__ import annotations

import math
from functools import lru_cache

from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from app.theme import Theme
from app.widgets.heat import Scale, colors_image, level
from app.widgets.marks import draw_text, text_width

GAP, WIDTH = 14, 8  # from the map to the bar, and of the bar
TICKS: dict[Scale, tuple[float, ...]] = {
    "sqrt": (1.0, 0.5, 0.1, 0.0),
    "linear": (1.0, 0.5, 0.1, 0.0),
    "log": (1.0, 0.1, 0.01, 0.001, 0.0),
}


@lru_cache(maxsize=16)
def room(scale: Scale, vmax: float, theme: Theme) -> float:
    """How much the bar takes of a map's width, gap and figures included."""
    font = theme.font("ui", 10)
    widest = max(text_width(_words(tick, scale, vmax), font) for tick in TICKS[scale])
    return theme.pixels(GAP + WIDTH + 4) + math.ceil(widest)


def draw_color_bar(
    painter: QPainter, square: QRectF, theme: Theme, *, scale: Scale, vmax: float
) -> None:
    """Draw the bar at the right of a map, as high as the map."""
    left = square.right() + theme.pixels(GAP)
    bar = QRectF(left, square.top(), theme.pixels(WIDTH), square.height())
    painter.drawImage(bar, colors_image(theme.lut()[::-1, None], QImage.Format.Format_RGB32))
    font, color = theme.font("ui", 10), theme.color("faint")
    last = -math.inf
    for tick in TICKS[scale]:
        y = bar.bottom() - level(tick, scale) * bar.height()
        if y - last >= theme.pixels(12):  # a figure that would touch the one above is left out
            x = bar.right() + theme.pixels(4)
            draw_text(painter, x, y + theme.pixels(4), _words(tick, scale, vmax), font, color)
            last = y


def _words(tick: float, scale: Scale, vmax: float) -> str:
    """The figure of a tick, which is a share of vmax."""
    if tick == 0.0 and scale == "log":
        return "≤1e-4"  # the log scale has no zero: this is where it starts
    return f"{tick * vmax:g}"
