"""Boxes side by side along an axis, and words above and below that keep off each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter

from app.theme import Theme
from app.widgets.marks import elided, text_width

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LABEL_ROOM = 18  # px that a block needs for a label of its own
LABEL_CUT = 34  # px that it needs where the label must be cut
LABEL_REACH = 72  # px that a label may take beyond a narrower block
LABEL_GAP = 6


@dataclass(frozen=True, slots=True)
class Label:
    """Words that belong to a block or a place, from x on."""

    index: int
    x: float
    width: float
    words: str


def merged(x0: Floats, x1: Floats) -> tuple[Ints, Floats, Floats]:
    """Blocks that begin in one pixel become one; none is narrower than a pixel.

    Args:
        x0: (n,) left edges in whole px, rising.
        x1: (n,) right edges.

    Returns:
        (m,) the first block of each that is drawn, (m,) its left and (m,) its right edge.

    >>> firsts, left, right = merged(np.array([3.0, 3.0, 4.0]), np.array([3.0, 4.0, 9.0]))
    >>> firsts.tolist(), left.tolist(), right.tolist()
    ([0, 2], [3.0, 4.0], [4.0, 9.0])
    """
    if not len(x0):
        return np.empty(0, np.int64), x0, x1
    begins = np.ones(len(x0), bool)
    np.not_equal(x0[1:], x0[:-1], out=begins[1:])
    firsts = np.flatnonzero(begins)  # (m,)
    left = x0[firsts]
    return firsts, left, np.maximum(np.maximum.reduceat(x1, firsts), left + 1)  # (m,)


def fill(painter: QPainter, boxes: list[QRectF], color: QColor) -> None:
    """Fill boxes with whole-pixel edges: without the smoothing, which costs ten times as much."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawRects(boxes)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)


def strips(x0: Floats, x1: Floats, top: float, bottom: float) -> list[QRectF]:
    """Boxes of one height, from x0 to x1, both (n,)."""
    height = bottom - top
    return [
        QRectF(left, top, right - left, height)
        for left, right in zip(x0.tolist(), x1.tolist(), strict=True)
    ]


class Lane:
    """A row of blocks, one colour a pixel column: a thousand blocks cost what ten do."""

    def __init__(self, rect: QRectF) -> None:
        self._rect = rect
        self._columns = np.zeros(max(1, int(rect.width())), np.uint32)

    def add(self, x0: Floats, x1: Floats, color: QColor) -> None:
        """Lay blocks from x0 to x1, (m,) whole px, each at least a column, over what is there."""
        n = len(self._columns)
        left = np.minimum(x0 - self._rect.left(), n - 1).astype(np.int64)
        right = np.maximum((x1 - self._rect.left()).astype(np.int64), left + 1)
        if len(left) == 1:
            self._columns[left[0] : right[0]] = color.rgba()
            return
        begins = np.bincount(left, minlength=n + 1)  # (n + 1,)
        ends = np.bincount(right, minlength=n + 1)
        self._columns[(begins - ends).cumsum()[:n] > 0] = color.rgba()

    def draw(self, painter: QPainter) -> None:
        """Paint the row over the height of the lane."""
        _draw_pixels(painter, self._rect, self._columns[None, :])  # (1, n)


class Bars:
    """Bars side by side on one line, by pixel column like a lane."""

    def __init__(self, rect: QRectF) -> None:
        self._rect = rect
        n = max(1, int(rect.width()))
        self._heights = np.zeros(n, np.int64)
        self._colors = np.zeros(n, np.uint32)

    def add(self, x0: Floats, x1: Floats, heights: Floats, color: QColor) -> None:
        """Stand bars from x0, rising, to x1; of those that begin in one column the highest."""
        if not len(x0):
            return
        last = self._rect.left() + len(self._heights) - 1
        firsts, left, right = merged(np.minimum(x0, last), x1)
        highest = np.maximum.reduceat(heights, firsts)  # (m,)
        columns = np.arange(len(self._heights)) + self._rect.left()
        bar = np.searchsorted(left, columns, side="right") - 1  # (n,)
        inside = (bar >= 0) & (columns < right[bar])
        self._heights[inside] = highest[bar[inside]]
        self._colors[inside] = color.rgba()

    def draw(self, painter: QPainter) -> None:
        """Paint them from the ground up."""
        above = np.arange(int(self._rect.height()), 0, -1)[:, None]  # (h, 1)
        bars = np.where(self._heights >= above, self._colors, np.uint32(0))  # (h, n)
        _draw_pixels(painter, self._rect, bars)


def _draw_pixels(painter: QPainter, rect: QRectF, pixels: NDArray[np.uint32]) -> None:
    """Draw opaque or empty 0xAARRGGBB pixels, (h, n), stretched over rect with sharp edges."""
    pixels = np.ascontiguousarray(pixels)
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.drawImage(QRectF(rect.left(), rect.top(), width, rect.height()), image)


def labelled(
    x0: Floats,
    x1: Floats,
    words: Callable[[int], str],
    theme: Theme,
    *,
    right: float,
    first: int | None = None,
) -> list[Label]:
    """Choose which blocks get a label: each that has room, else as many as keep apart.

    Args:
        x0: (n,) left edges in px, rising.
        x1: (n,) right edges.
        words: what to say of a block; asked only where it is said.
        theme: whose mono font of size 10 it is said in.
        right: where labels must end.
        first: the block whose label goes before all others.
    """
    reach = theme.pixels(LABEL_REACH)
    chosen = None
    if first is not None:  # it may begin left of its block, to end where labels must
        room = max(float(x1[first] - x0[first]), reach)
        text, width = _fitted(words(first), theme, int(room))
        chosen = Label(first, min(float(x0[first]), right - width), width, text)
    labels = [] if chosen is None else [chosen]
    block = 0
    while block < len(x0):
        x, room, name = float(x0[block]), float(x1[block] - x0[block]) - 2, words(block)
        own = _stays(name, room, theme)
        here = _label(block, x, name, min(room if own else reach, right - x), theme)
        if here is None or (chosen is not None and not _apart(here, chosen)):
            block += 1
            continue
        labels.append(here)
        free = here.x + here.width + LABEL_GAP
        block = block + 1 if own else max(block + 1, int(np.searchsorted(x0, free)))
    return labels


def spread(places: list[tuple[float, str]], theme: Theme, left: float, right: float) -> list[Label]:
    """Words (ui 10) centred at places of an axis, from left to right; those that touch go."""
    labels: list[Label] = []
    free = left
    for i, (x, words) in enumerate(places):
        width = width_of(words, theme)
        start = max(left, x - width / 2)
        if start >= free and start + width <= right:
            labels.append(Label(i, start, width, words))
            free = start + width + 2 * LABEL_GAP
    return labels


@lru_cache(maxsize=512)
def width_of(words: str, theme: Theme) -> float:
    """How wide words are in the ui font of size 10."""
    return text_width(words, theme.font("ui", 10))


def _stays(name: str, room: float, theme: Theme) -> bool:
    """Whether a label stays in its block, whole or with enough of it to be read."""
    if room >= theme.pixels(LABEL_CUT):
        return True
    reach = theme.pixels(LABEL_REACH)
    return room >= theme.pixels(LABEL_ROOM) and _fitted(name, theme, reach)[1] <= room


def _label(block: int, x: float, name: str, room: float, theme: Theme) -> Label | None:
    """A label within the room, unless that leaves crumbs of it."""
    text, width = _fitted(name, theme, int(room))
    return Label(block, x, width, text) if text == name or room >= theme.pixels(LABEL_CUT) else None


def _apart(a: Label, b: Label) -> bool:
    return a.index != b.index and (
        a.x + a.width + LABEL_GAP <= b.x or b.x + b.width + LABEL_GAP <= a.x
    )


@lru_cache(maxsize=4096)
def _fitted(text: str, theme: Theme, room: int) -> tuple[str, float]:
    """The text as far as it fits, and its width: shaping text is what costs in a repaint."""
    font = theme.font("mono", 10)
    text = elided(text, font, room)
    return text, text_width(text, font)
