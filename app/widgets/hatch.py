"""The hatched half of a causal map: no number is there, and zero is not painted."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QImage, QPainter, QPen

from app.theme import Theme


@lru_cache(maxsize=4)
def hatched(pixels: int, factor: float, theme: Theme) -> QImage:
    """A hatched square of so many device pixels, kept: a map grows, its square seldom does."""
    image = QImage(pixels, pixels, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(factor)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    draw_hatch(painter, QRectF(0, 0, pixels / factor, pixels / factor), theme)
    painter.end()
    return image


def draw_hatch(painter: QPainter, square: QRectF, theme: Theme) -> None:
    """Cover a square, its lines in the upper right half; cells are painted over the rest."""
    painter.fillRect(square, theme.color("raised"))
    painter.setPen(QPen(theme.color("line"), 1))
    x, y, side = square.x(), square.y(), square.width()
    pitch = theme.pixels(7)
    # A line from the upper or right edge down to the diagonal, where the past begins.
    lines = [
        QLineF(x + min(at, side), y + max(0.0, at - side), x + at / 2, y + at / 2)
        for at in range(pitch, 2 * int(side), pitch)
    ]
    painter.drawLines(lines)
