"""All heads at once: a grid of small causal maps, rows layers, columns heads."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QImage, QPainter

from app.theme import Theme
from app.widgets.heat import (
    Scale,
    Values,
    at_pixels,
    device_factor,
    future,
    heat_colors,
    is_vector,
    snapped,
)
from app.widgets.marks import draw_box, draw_frame, draw_text

NUMBERS = (22, 16)  # room for layer numbers at the left and head numbers above
GAP = 3


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the thumbnails are, from the top left of the mosaic."""

    left: float
    top: float
    cell: float  # from one thumbnail to the next
    gap: float
    n_layer: int
    n_head: int

    def rect(self, layer: int, head: int) -> QRectF:
        side = self.cell - self.gap
        return QRectF(
            self.left + head * self.cell + self.gap / 2,
            self.top + layer * self.cell + self.gap / 2,
            side,
            side,
        )


class Mosaic:
    """Paints thumbnails (L, H, m, m) as one image and tells which head lies under a point."""

    def __init__(self) -> None:
        self._image = QImage()
        self._numbers = QImage()
        self._thumbnails: Values | None = None
        self._look: object = None
        self._origin = QPointF()
        self._grid: Grid | None = None

    def paint(
        self,
        painter: QPainter,
        rect: QRectF,
        thumbnails: Values,
        theme: Theme,
        *,
        scale: Scale = "sqrt",
        vmax: float = 1.0,
        selected: tuple[int, int] | None = None,
        hovered: tuple[int, int] | None = None,
    ) -> None:
        """Draw the grid as large as rect allows, at its top left.

        Thumbnails are (L, H, m, m), row = query, 0 to vmax, or uint8 where 255 stands for 1. The
        same array object means the same picture.
        """
        factor = device_factor(painter)
        self._origin = snapped(painter, rect.topLeft())
        self._grid = grid = layout(rect.size(), thumbnails.shape[:2], theme, factor=factor)
        look = (theme, scale, vmax, grid, factor)
        if look != self._look:
            self._numbers = QImage()
        if thumbnails is not self._thumbnails or look != self._look:
            self._thumbnails, self._look = thumbnails, look
            self._image = _image(thumbnails, theme, grid, factor, scale, vmax)
        painter.save()
        painter.translate(self._origin)
        size = QSizeF(grid.n_head * grid.cell, grid.n_layer * grid.cell)
        painter.drawImage(QRectF(QPointF(grid.left, grid.top), size), self._image)
        if is_vector(painter):
            _draw_numbers(painter, grid, theme)
        else:
            if self._numbers.isNull():
                self._numbers = _number_layer(grid, factor, theme)
            painter.drawImage(QPointF(0, 0), self._numbers)
        if hovered is not None:
            draw_box(painter, grid.rect(*hovered), radius=0, line=theme.color("text"))
        if selected is not None:
            draw_frame(painter, grid.rect(*selected), theme, radius=2)
        painter.restore()

    def head_at(self, pos: QPointF) -> tuple[int, int] | None:
        """(layer, head) under a point."""
        grid = self._grid
        if grid is None:
            return None
        layer = (pos.y() - self._origin.y() - grid.top) // grid.cell
        head = (pos.x() - self._origin.x() - grid.left) // grid.cell
        if 0 <= layer < grid.n_layer and 0 <= head < grid.n_head:
            return int(layer), int(head)
        return None

    def size(self) -> QSizeF:
        """What the last paint took of its rect, numbers included."""
        grid = self._grid
        if grid is None:
            return QSizeF()
        return QSizeF(grid.left + grid.n_head * grid.cell, grid.top + grid.n_layer * grid.cell)


def layout(size: QSizeF, heads: tuple[int, ...], theme: Theme, *, factor: float) -> Grid:
    """Square thumbnails of whole device pixels, all the same size."""
    n_layer, n_head = heads
    left = round(theme.pixels(NUMBERS[0]) * factor)
    top = round(theme.pixels(NUMBERS[1]) * factor)
    across = (size.width() * factor - left) / n_head
    down = (size.height() * factor - top) / n_layer
    cell = max(2, int(min(across, down)))
    gap = min(max(1, round(GAP * factor)), cell // 2)
    return Grid(
        left=left / factor,
        top=top / factor,
        cell=cell / factor,
        gap=gap / factor,
        n_layer=n_layer,
        n_head=n_head,
    )


def _image(
    thumbnails: Values, theme: Theme, grid: Grid, factor: float, scale: Scale, vmax: float
) -> QImage:
    n_layer, n_head, m, _ = thumbnails.shape
    cell, gap = round(grid.cell * factor), round(grid.gap * factor)
    side, start = cell - gap, gap // 2
    colors = heat_colors(at_pixels(thumbnails, side), theme.lut(), scale, vmax=vmax)
    colors[..., future(m, side)] = theme.color("raised").rgba()  # (L, H, side, side)
    canvas = np.full((n_layer, cell, n_head, cell), theme.color("panel").rgba(), dtype=np.uint32)
    inside = slice(start, start + side)
    canvas[:, inside, :, inside] = colors.transpose(0, 2, 1, 3)  # (L, side, H, side)
    width, height = n_head * cell, n_layer * cell
    return QImage(canvas.data, width, height, 4 * width, QImage.Format.Format_RGB32).copy()


def _number_layer(grid: Grid, factor: float, theme: Theme) -> QImage:
    """The numbers along both sides, kept: a run changes the thumbnails at every step, not these."""
    width, height = grid.left + grid.n_head * grid.cell, grid.top + grid.n_layer * grid.cell
    size = QSize(math.ceil(width * factor), math.ceil(height * factor))
    layer = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    layer.setDevicePixelRatio(factor)
    layer.fill(Qt.GlobalColor.transparent)
    painter = QPainter(layer)
    _draw_numbers(painter, grid, theme)
    painter.end()
    return layer


def _draw_numbers(painter: QPainter, grid: Grid, theme: Theme) -> None:
    font, color = theme.font("ui", 10), theme.color("faint")
    every = max(1, -(-theme.pixels(12) // max(1, int(grid.cell))))  # numbers must not touch
    for layer in range(0, grid.n_layer, every):
        y = grid.rect(layer, 0).center().y() + theme.pixels(4)
        draw_text(painter, grid.left - theme.pixels(8), y, str(layer), font, color, "right")
    for head in range(0, grid.n_head, every):
        x = grid.rect(0, head).center().x()
        draw_text(painter, x, grid.top - theme.pixels(7), str(head), font, color, "center")
