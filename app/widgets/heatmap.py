"""The attention map: a causal square with a label for each token, a colour bar and a selection."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter

from app.theme import Theme
from app.widgets import color_bar, map_labels
from app.widgets.hatch import draw_hatch, hatched
from app.widgets.heat import (
    Scale,
    causal_image,
    cell_span,
    device_factor,
    heat_colors,
    is_vector,
    snapped,
)
from app.widgets.map_labels import MapLabels
from app.widgets.marks import draw_box, draw_frame

MAX_LABELS = (86, 70)  # room for row labels and column labels, as designed
EDGE = 6  # around a map without labels: its frame and the figures of its bar reach out
CELL_FOR_LABELS = 9.5  # a smaller cell shares its label with its neighbours
LEAST_LABELLED = 0.5  # labels that would leave less than this of the map's side give way
MAX_SHARED = 4  # more cells to a label than this, and there are no labels
VECTOR_CELLS = 64  # up to this size a map in a vector file is made of rectangles
VECTOR_FACTOR = 4.0  # and beyond it, of an image that viewers can hardly blur


@dataclass(frozen=True, slots=True)
class CausalMap:
    """What a heat map shows. The same array object means the same picture."""

    values: NDArray[np.float32] = field(repr=False, compare=False)  # (n, n), row = query, 0 to 1
    labels: tuple[str, ...]  # n token pieces, already visible
    scale: Scale = "sqrt"
    vmax: float = 1.0  # what the last colour stands for
    selected: int | None = None  # the token whose row is framed

    @property
    def n(self) -> int:
        return len(self.values)

    def same(self, other: CausalMap) -> bool:
        """Whether both are one picture."""
        return self.values is other.values and self == other


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where things are, from the top left of the heat map; `side` lies on device pixels."""

    left: float  # of the square; row labels lie before it
    top: float
    side: float
    pixels: int  # device pixels of a side
    n: int
    every: int  # one label for so many cells; 0 = no labels

    @property
    def cell(self) -> float:
        return self.side / self.n

    def span(self, cell: int) -> tuple[float, float]:
        """Start and length of a cell along a side, as the pixels have it."""
        first, end = cell_span(cell, self.n, self.pixels)
        unit = self.side / self.pixels
        return first * unit, (end - first) * unit


class Heatmap:
    """Paints a CausalMap and tells which cell lies under a point.

    All but the hover is painted once and kept, until the map, the theme or the size changes.
    """

    def __init__(self) -> None:
        self._layer = QImage()
        self._shown: CausalMap | None = None
        self._frame: tuple[Theme, QSizeF, float] | None = None
        self._origin = QPointF()
        self._geometry: Geometry | None = None
        self._labels = MapLabels()

    def paint(
        self,
        painter: QPainter,
        rect: QRectF,
        shown: CausalMap,
        theme: Theme,
        *,
        hovered: tuple[int, int] | None = None,
    ) -> None:
        """Draw the map as large as rect allows, at its top left."""
        vector = is_vector(painter)
        factor = VECTOR_FACTOR if vector else device_factor(painter)
        self._origin = snapped(painter, rect.topLeft())
        frame = (theme, rect.size(), factor)
        if self._shown is None or not shown.same(self._shown) or frame != self._frame:
            self._shown, self._frame = shown, frame
            self._geometry = layout(rect.size(), shown, theme, factor=factor)
            self._layer = QImage()
        painter.save()
        painter.translate(self._origin)
        if vector:
            self._paint_still(painter, shown, theme, factor=None)
        else:
            if self._layer.isNull():
                self._layer = self._new_layer(rect.size(), factor, shown, theme)
            painter.drawImage(QPointF(0, 0), self._layer)
        if hovered is not None:
            draw_box(painter, self._cell(*hovered), radius=0, line=theme.color("text"))
        painter.restore()

    def cell_rect(self, row: int, column: int) -> QRectF:
        """Where a cell was painted last."""
        return self._cell(row, column).translated(self._origin)

    def row_rect(self, row: int) -> QRectF:
        """Where a row was painted last, from edge to edge."""
        cell, square = self.cell_rect(row, 0), self.square()
        return QRectF(square.left(), cell.top(), square.width(), cell.height())

    def cell_at(self, pos: QPointF) -> tuple[int, int] | None:
        """(row, column) under a point; None outside and in the future.

        Where a pixel shows several cells, the largest of them, which is the one it shows.
        """
        shown = self._shown
        if shown is None:
            return None
        rows, columns = self._cells(pos.y(), vertical=True), self._cells(pos.x(), vertical=False)
        if not rows or not columns or columns[0] > rows[-1]:
            return None
        past = [(row, column) for row in rows for column in columns if column <= row]
        return max(past, key=lambda cell: float(shown.values[cell]))

    def label_at(self, pos: QPointF) -> int | None:
        """The token whose label, on either axis, lies under a point."""
        geometry = self._geometry
        if geometry is None or geometry.every == 0:
            return None
        at = pos - self._origin
        found = range(0)
        if 0 <= at.x() < geometry.left:
            found = self._cells(pos.y(), vertical=True)
        elif 0 <= at.y() < geometry.top:
            found = self._cells(pos.x(), vertical=False)
        return found[0] if found else None

    def square(self) -> QRectF:
        """The square as it was painted last; empty before."""
        geometry = self._geometry
        if geometry is None:
            return QRectF()
        corner = self._origin + QPointF(geometry.left, geometry.top)
        return QRectF(corner, QSizeF(geometry.side, geometry.side))

    def _cells(self, at: float, *, vertical: bool) -> range:
        """The rows, or the columns, that the pixel at this place shows."""
        geometry, square = self._geometry, self.square()
        assert geometry is not None
        along = at - (square.top() if vertical else square.left())
        if not 0 <= along < geometry.side:
            return range(0)
        n, pixels = geometry.n, geometry.pixels
        pixel = int(along / geometry.side * pixels)
        first = pixel * n // pixels
        return range(first, max(first + 1, (pixel + 1) * n // pixels))

    def _cell(self, row: int, column: int) -> QRectF:
        geometry = self._geometry
        assert geometry is not None
        x, width = geometry.span(column)
        y, height = geometry.span(row)
        return QRectF(geometry.left + x, geometry.top + y, width, height)

    def _new_layer(self, size: QSizeF, factor: float, shown: CausalMap, theme: Theme) -> QImage:
        layer = QImage(
            math.ceil(size.width() * factor) + 1,
            math.ceil(size.height() * factor) + 1,
            QImage.Format.Format_ARGB32_Premultiplied,
        )
        layer.setDevicePixelRatio(factor)
        layer.fill(Qt.GlobalColor.transparent)
        painter = QPainter(layer)
        painter.setRenderHints(
            QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing
        )
        self._paint_still(painter, shown, theme, factor=factor)
        painter.end()
        return layer

    def _paint_still(
        self, painter: QPainter, shown: CausalMap, theme: Theme, *, factor: float | None
    ) -> None:
        """Paint all but the hover: device pixels where `factor` is given, else shapes and text."""
        geometry = self._geometry
        assert geometry is not None
        square = QRectF(geometry.left, geometry.top, geometry.side, geometry.side)
        if factor is None:
            draw_hatch(painter, square, theme)
        else:
            painter.drawImage(square.topLeft(), hatched(geometry.pixels, factor, theme))
        if factor is None and shown.n <= VECTOR_CELLS:
            self._paint_cells(painter, shown, theme)
        else:
            image = causal_image(
                shown.values,
                theme.lut(),
                background=QColor(0, 0, 0, 0),
                scale=shown.scale,
                vmax=shown.vmax,
                pixels=geometry.pixels,
            )
            painter.drawImage(square, image)
        self._paint_labels(painter, shown, theme, factor=factor)
        color_bar.draw_color_bar(painter, square, theme, scale=shown.scale, vmax=shown.vmax)
        if shown.selected is not None and shown.selected < shown.n:
            y, height = geometry.span(shown.selected)
            row = QRectF(square.left(), square.top() + y, square.width(), height)
            draw_frame(painter, row, theme, radius=1.5)

    def _paint_labels(
        self, painter: QPainter, shown: CausalMap, theme: Theme, *, factor: float | None
    ) -> None:
        geometry = self._geometry
        assert geometry is not None
        if not geometry.every:
            return
        corner = QPointF(geometry.left, geometry.top)
        spans = ((i, *geometry.span(i)) for i in _labelled(shown, geometry.every))
        places = [(i, start + length / 2) for i, start, length in spans]
        chosen = shown.selected
        if factor is None:
            map_labels.draw_as_text(painter, corner, shown.labels, places, theme, selected=chosen)
        else:
            self._labels.draw(
                painter, corner, shown.labels, places, theme, selected=chosen, factor=factor
            )

    def _paint_cells(self, painter: QPainter, shown: CausalMap, theme: Theme) -> None:
        colors = heat_colors(shown.values, theme.lut(), shown.scale, vmax=shown.vmax)
        for row in range(shown.n):
            for column in range(row + 1):
                painter.fillRect(self._cell(row, column), QColor(int(colors[row, column])))


def layout(size: QSizeF, shown: CausalMap, theme: Theme, *, factor: float) -> Geometry:
    """Fit the square, its labels and the colour bar; `factor` device pixels make one unit."""
    edge = theme.pixels(EDGE)
    room = size.width() - color_bar.room(shown.scale, shown.vmax, theme)
    low = size.height() - edge
    left = top = float(edge)
    side = min(room - left, low - top)
    every = _sharing(side / shown.n, theme)
    if every:
        widest = map_labels.widest(shown.labels, theme)
        labelled = (
            max(left, min(theme.pixels(MAX_LABELS[0]), math.ceil(widest))),
            max(top, min(theme.pixels(MAX_LABELS[1]), math.ceil(widest))),
        )
        shorter = min(room - labelled[0], low - labelled[1])
        every = _sharing(shorter / shown.n, theme) if shorter >= side * LEAST_LABELLED else 0
        if every:
            (left, top), side = labelled, shorter
    pixels = max(1, int(side * factor))
    return Geometry(
        left=round(left * factor) / factor,
        top=round(top * factor) / factor,
        side=pixels / factor,
        pixels=pixels,
        n=shown.n,
        every=every,
    )


def _sharing(cell: float, theme: Theme) -> int:
    """How many cells share a label; 0 = none gets one."""
    every = math.ceil(CELL_FOR_LABELS * theme.scale / max(cell, 1e-6))
    return every if every <= MAX_SHARED else 0


def _labelled(shown: CausalMap, every: int) -> list[int]:
    """Which tokens get a label: every so many, and always the selected one."""
    chosen = list(range(0, shown.n, every))
    selected = shown.selected
    if selected is not None and selected < shown.n:
        chosen = [i for i in chosen if abs(i - selected) >= every]
        chosen.append(selected)
    return chosen
