"""Numbers from 0 to 1 become colours: scales, pooling to pixels, the causal mask, images."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QImage, QPaintEngine, QPainter

Scale = Literal["sqrt", "linear", "log"]
Values = NDArray[np.float32] | NDArray[np.float64] | NDArray[np.uint8]  # uint8: 255 means 1
Colors = NDArray[np.uint32]
Ints = NDArray[np.intp]
Numbers = NDArray[Any]  # of any kind, given back as the same kind

LOG_FLOOR = 1e-4  # the log scale starts here; what is smaller looks like 0


def level(value: float, scale: Scale, vmax: float = 1.0) -> float:
    """Where a value lies on the colour bar, 0 to 1.

    >>> level(0.25, "sqrt"), level(0.25, "linear"), level(0.01, "log")
    (0.5, 0.25, 0.5)
    """
    return float(_levels(np.array([value]), scale, vmax)[0])


def causal_image(
    values: Values,
    lut: Colors,
    *,
    background: QColor,
    scale: Scale = "sqrt",
    vmax: float = 1.0,
    pixels: int | None = None,
) -> QImage:
    """A causal map as a square image; the future half is background, not zero.

    Args:
        values: (n, n) finite weights, row = query; what lies above the diagonal is not looked at.
        lut: (256,) ARGB32 colours from 0 to vmax.
        background: may be transparent.
        scale: how a value becomes a place among the colours.
        vmax: what the last colour stands for.
        pixels: side of the image; n where not given. Where a pixel covers several cells it shows
            the largest, so that no spike is averaged away.
    """
    side = pixels or len(values)
    n, empty = len(values), background.rgba() if background.alpha() else 0
    if n <= side:  # colours first: there are fewer cells than pixels
        colors = heat_colors(values, lut, scale, vmax=vmax)  # (n, n)
        colors[future(n, n)] = empty
        colors = at_pixels(colors, side)  # (side, side)
    else:
        colors = heat_colors(at_pixels(values, side), lut, scale, vmax=vmax)  # (side, side)
        colors[future(n, side)] = empty
    opaque = background.alpha() == 255
    form = QImage.Format.Format_RGB32 if opaque else QImage.Format.Format_ARGB32
    return colors_image(colors, form)


def heat_colors(values: Values, lut: Colors, scale: Scale, *, vmax: float = 1.0) -> Colors:
    """Any shape of values as ARGB32 colours of the same shape."""
    if values.dtype == np.uint8:
        steps = np.arange(256, dtype=np.float32) / 255.0
        return lut[_indices(steps, scale, vmax)][values]  # a table beats a root for each value
    return lut[_indices(values, scale, vmax)]


def at_pixels(values: Numbers, pixels: int) -> Numbers:
    """(..., n, n) as (..., pixels, pixels): a cell fills pixels, or a pixel takes the maximum."""
    n = values.shape[-1]
    first = first_cells(n, pixels)
    if n <= pixels:
        wide = values.take(first, axis=-1)  # (..., n, pixels)
        return wide.take(first, axis=-2)  # (..., pixels, pixels)
    low = _largest(values, first, axis=-2)  # (..., pixels, n)
    return _largest(low, first, axis=-1)  # (..., pixels, pixels)


def future(n: int, pixels: int) -> NDArray[np.bool_]:
    """(pixels, pixels): where a pixel shows only keys that come after its queries."""
    first = first_cells(n, pixels)
    last = np.maximum(first, np.append(first[1:], n) - 1)
    return np.asarray(first[None, :] > last[:, None])


def first_cells(n: int, pixels: int) -> Ints:
    """(pixels,) the first of n cells that each pixel shows.

    >>> first_cells(2, 5).tolist(), first_cells(5, 2).tolist()
    ([0, 0, 0, 1, 1], [0, 2])
    """
    return np.arange(pixels) * n // pixels


def cell_span(cell: int, n: int, pixels: int) -> tuple[int, int]:
    """The pixels (first, end) that show a cell; at least one.

    >>> cell_span(1, 2, 5), cell_span(3, 5, 2)
    ((3, 5), (1, 2))
    """
    if n <= pixels:
        return -(-cell * pixels // n), -(-(cell + 1) * pixels // n)
    at = int(np.searchsorted(first_cells(n, pixels), cell, side="right")) - 1
    return at, at + 1


def device_factor(painter: QPainter) -> float:
    """Device pixels in one unit of the painter."""
    return max(1e-3, painter.deviceTransform().m11())


def is_vector(painter: QPainter) -> bool:
    """Whether the painter writes a file of shapes and text, not pixels."""
    kinds = (QPaintEngine.Type.SVG, QPaintEngine.Type.Pdf, QPaintEngine.Type.Picture)
    return painter.paintEngine().type() in kinds


def snapped(painter: QPainter, point: QPointF) -> QPointF:
    """The point moved to the corner of a device pixel, so that cells have crisp edges."""
    there = painter.deviceTransform().map(point)
    back, invertible = painter.deviceTransform().inverted()
    assert invertible
    return back.map(QPointF(round(there.x()), round(there.y())))


def colors_image(colors: Colors, form: QImage.Format) -> QImage:
    """Colours (rows, columns) as an image that owns its pixels."""
    colors = np.ascontiguousarray(colors)
    rows, columns = colors.shape
    return QImage(colors.data, columns, rows, 4 * columns, form).copy()


def _largest(values: Numbers, first: Ints, *, axis: int) -> Numbers:
    """The maximum of each run of cells that starts at `first`; runs are short, so gathers win."""
    last = np.append(first[1:], values.shape[axis]) - 1
    found = values.take(first, axis=axis)
    for step in range(1, int((last - first).max()) + 1):
        np.maximum(found, values.take(np.minimum(first + step, last), axis=axis), out=found)
    return found


def _indices(values: Values, scale: Scale, vmax: float) -> NDArray[np.uint8]:
    return (_levels(values, scale, vmax) * 255.0 + 0.5).astype(np.uint8)


def _levels(values: Values, scale: Scale, vmax: float) -> NDArray[np.floating]:
    share: NDArray[np.floating] = np.clip(values * (1.0 / vmax), 0.0, 1.0)
    if scale == "sqrt":
        share = np.sqrt(share)
    elif scale == "log":
        share = 1.0 - np.log10(np.maximum(share, LOG_FLOOR)) / np.log10(LOG_FLOOR)
    return share
