"""Where a mosaic of all heads and one head's map lie in a panel, whatever its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRectF

from app.theme import Theme

GAP = 24  # between mosaic and map
LINE = 16  # from one line of captions to the next
LABELS = (86, 70)  # what the map's labels take at most, from the left and from above
BAR = 46  # what its colour bar takes
NUMBERS = (22, 16)  # what the mosaic's layer and head numbers take
LEAST_CELL = 7.0  # a mosaic of smaller thumbnails gives way to the map
WIDE = 560  # a narrower panel leaves more of itself to the map
LEAST = (0.3, 0.34)  # of the width that a mosaic beside the map takes, narrow and wide
MOST = 0.45  # of the width or the height

View = Literal["both", "head", "mosaic"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of the panel; one that gave way is None."""

    mosaic: QRectF | None
    note: QRectF | None  # the line under the mosaic
    map: QRectF | None  # with its labels and its bar
    n_lines: int = 0  # of captions that have room under the map

    @property
    def aside(self) -> QRectF | None:
        """The mosaic and its line."""
        return self.mosaic if self.mosaic is None or self.note is None else self.mosaic | self.note


def plan(view: View, rect: QRectF, heads: tuple[int, int], theme: Theme) -> Plan:
    """One of the two alone, or both, side by side or stacked, whichever leaves the map larger.

    What the map's labels say must not move the mosaic, so their room is taken as its most.

    Args:
        view: what is to be seen.
        rect: the panel's body.
        heads: how many layers there are, and heads a layer.
        theme: gives the sizes.
    """
    if view == "mosaic":
        return Plan(*_mosaic(rect, rect.width(), rect.height(), heads, theme), None)
    if view == "head":
        return _map(rect, theme)
    both = [arrange(rect, heads, theme) for arrange in (_beside, _above)]
    with_mosaic = [places for places in both if places.mosaic is not None]
    return max(with_mosaic, key=lambda places: _side(places, theme), default=both[0])


def _map(rect: QRectF, theme: Theme) -> Plan:
    n_lines = _n_lines(rect.height(), theme)
    return Plan(None, None, _less_lines(rect, n_lines, theme), n_lines)


def _beside(rect: QRectF, heads: tuple[int, int], theme: Theme) -> Plan:
    n_lines, gap = _n_lines(rect.height(), theme), theme.pixels(GAP)
    height = _less_lines(rect, n_lines, theme).height()
    side = height - theme.pixels(LABELS[1])
    block = side + theme.pixels(LABELS[0]) if side >= height / 2 else height  # no room for labels
    least = rect.width() * LEAST[rect.width() >= theme.pixels(WIDE)]
    width = max(least, rect.width() - gap - block - theme.pixels(BAR))
    width = min(width, rect.width() * MOST)
    mosaic, note = _mosaic(rect, width, rect.height(), heads, theme)
    if mosaic is None:
        return _map(rect, theme)
    rest = rect.adjusted(mosaic.width() + gap, 0, 0, 0)
    if note is not None:
        note.setRight(min(note.right(), mosaic.right() + gap / 2))
    return Plan(mosaic, note, _less_lines(rest, n_lines, theme), n_lines)


def _above(rect: QRectF, heads: tuple[int, int], theme: Theme) -> Plan:
    mosaic, note = _mosaic(rect, rect.width(), rect.height() * MOST, heads, theme)
    if mosaic is None or note is None:
        return _map(rect, theme)
    rest = rect.adjusted(0, note.bottom() - rect.top() + theme.pixels(LINE), 0, 0)
    n_lines = _n_lines(rest.height(), theme)
    return Plan(mosaic, note, _less_lines(rest, n_lines, theme), n_lines)


def _mosaic(
    rect: QRectF, width: float, height: float, heads: tuple[int, int], theme: Theme
) -> tuple[QRectF | None, QRectF | None]:
    """The mosaic in the upper left corner, as large as it can be, and the line under it."""
    n_layer, n_head = heads
    left, top, line = theme.pixels(NUMBERS[0]), theme.pixels(NUMBERS[1]), theme.pixels(LINE + 4)
    cell = int(min((width - left) / n_head, (height - top - line) / n_layer))
    bare = int(min((width - left) / n_head, (height - top) / n_layer))
    has_note = cell >= LEAST_CELL
    cell = cell if has_note else bare
    if cell < LEAST_CELL:
        return None, None
    mosaic = QRectF(rect.left(), rect.top(), left + n_head * cell, top + n_layer * cell)
    note = QRectF(rect.left() + left, mosaic.bottom(), width - left, line)
    return mosaic, note if has_note else None


def _side(places: Plan, theme: Theme) -> float:
    """About how large the map would be, with labels or, where they give way, without."""
    assert places.map is not None
    width, height = places.map.width() - theme.pixels(BAR), places.map.height()
    labelled = min(width - theme.pixels(LABELS[0]), height - theme.pixels(LABELS[1]))
    return max(labelled, min(width, height) / 2)


def _n_lines(height: float, theme: Theme) -> int:
    """How many lines of captions a map of this height can spare room for."""
    return 2 if height >= theme.pixels(220) else 1 if height >= theme.pixels(72) else 0


def _less_lines(rect: QRectF, n_lines: int, theme: Theme) -> QRectF:
    return rect.adjusted(0, 0, 0, -n_lines * theme.pixels(LINE))
