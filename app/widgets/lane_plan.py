"""Where the parts of a course's picture lie: strips, blocks in sight, labels, ticks and grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF

from app.theme import Theme
from app.widgets.boxes import Floats, Ints, Label, labelled, spread, width_of
from app.widgets.course import Course, Fold
from app.widgets.zoom import Scale, Zoom, nice_step

# Heights, px at scale 1. What a low panel keeps longest comes first.
LANE, LEAST_LANE, WAITS = 26, 16, 7
STRIPS = (("axis", 16), ("labels", 17), ("bars", 16), ("caption", 14))
ROOMY_BARS = 64  # bars this high have a scale of their own at the left
LINE_APART, TICK_APART = 56, 84  # least between grid lines, about between ticks
TICK_REACH = 4  # px from a tick that still mean it

Choices = tuple[str, ...]  # words for one place, the fullest first


@dataclass(frozen=True, slots=True)
class Sheet:
    """What there is to show of a course; the callables are asked only for what is in sight."""

    course: Course
    selected: int  # step
    name: Callable[[int], str]  # label of a step
    inside: Callable[
        [int], tuple[tuple[str, ...], ...]
    ]  # words in a pass and in a draw: best first
    layers: Callable[[int], Ints]  # where the layers of a step's pass begin, ns on the axis
    time: Callable[[float, float], str]  # a time, to the precision of a step
    caption: str
    clock: str


@dataclass(frozen=True, slots=True)
class Rows:
    """The strips from top to bottom; one that gave way has no height."""

    labels: QRectF
    lane: QRectF
    waits: QRectF
    caption: QRectF
    bars: QRectF
    axis: QRectF


@dataclass(frozen=True, slots=True)
class Grid:
    """The scale of the bars: lines from 0 to a round number of ns."""

    top: float  # ns of a bar as high as its strip; 0 where there are no bars
    n_lines: int  # above the ground line
    words: tuple[str, ...]  # of every line from the ground up

    @property
    def gutter(self) -> bool:
        """Whether every line has its words, at the left, and not the top one alone."""
        return len(self.words) > 1


@dataclass(frozen=True, slots=True)
class Plan:
    """Where everything lies: painting and the mouse go by the same one."""

    rows: Rows
    scale: Scale
    first: int  # the first step in sight
    x: Floats  # (n, 4) px of the steps in sight: pass from, to, draw from, to
    labels: list[Label]  # counted from the first step in sight
    folds: list[tuple[float, Fold]]  # in sight, with their px
    grid: Grid
    ticks: Floats  # (m,) px
    tick_labels: list[Label]

    def place(self, step: int | None) -> int | None:
        """Where a step is among those in sight."""
        if step is None or not 0 <= step - self.first < len(self.x):
            return None
        return step - self.first

    def step_at(self, pos: QPointF) -> int | None:
        """The step whose label, block or bar is there."""
        rows, x = self.rows, self.x
        if not rows.labels.united(rows.lane).united(rows.bars).contains(pos) or not len(x):
            return None
        if rows.labels.contains(pos):
            over = (n.index for n in self.labels if n.x <= pos.x() <= n.x + n.width)
            label = next(over, None)
            if label is not None:
                return self.first + label
        i = max(0, int(np.searchsorted(x[:, 0], pos.x(), side="right")) - 1)
        near = x[i, 0] - 1 <= pos.x() <= x[i, 3] + 1
        return self.first + i if near else None

    def fold_at(self, pos: QPointF) -> Fold | None:
        """The fold whose tick the mouse can mean there."""
        if not self.rows.waits.contains(pos) or not self.folds:
            return None
        x, fold = min(self.folds, key=lambda placed: abs(placed[0] - pos.x()))
        return fold if abs(x - pos.x()) <= TICK_REACH else None


def lay_out(sheet: Sheet, zoom: Zoom, rect: QRectF, theme: Theme) -> Plan:
    """Lay a sheet out in rect."""
    course, rows = sheet.course, _rows(rect, theme)
    grid = _grid(sheet, rows.bars.height(), theme)
    left, right = rows.lane.left(), rows.lane.right()
    if grid.gutter:
        left += round(max(width_of(words, theme) for words in grid.words)) + theme.pixels(8)
    scale = Scale(left, right - left, *zoom.seen(course.total))
    edges = course.edges
    first = int(np.searchsorted(edges[:, 3], scale.start))
    end = max(first, int(np.searchsorted(edges[:, 0], scale.end, side="right")))
    x = scale.x(edges[first:end])  # (n, 4)
    x[:, 3] = np.maximum(x[:, 3] - (x[:, 3] - x[:, 0] >= 4), x[:, 2])  # a hair of ground between
    labels = _labels(sheet, first, x, right, theme) if rows.labels.height() else []
    seen = [fold for fold in course.folds if scale.start <= fold.at <= scale.end]
    at = scale.x(np.array([fold.at for fold in seen], float)).tolist()
    ticks, tick_labels = _ticks(sheet, scale, theme) if rows.axis.height() else (x[:0, 0], [])
    folds = list(zip(at, seen, strict=True))
    return Plan(rows, scale, first, x, labels, folds, grid, ticks, tick_labels)


def _rows(rect: QRectF, theme: Theme) -> Rows:
    room = rect.height() - theme.pixels(LEAST_LANE) - theme.pixels(WAITS)
    heights = dict.fromkeys((name for name, _ in STRIPS), 0)
    for name, wanted in STRIPS:
        if room < theme.pixels(wanted):
            break
        heights[name] = theme.pixels(wanted)
        room -= heights[name]
    more = max(0, int(min(room, theme.pixels(LANE) - theme.pixels(LEAST_LANE))))
    heights["lane"] = theme.pixels(LEAST_LANE) + more
    heights["waits"] = theme.pixels(WAITS)
    heights["bars" if heights["bars"] else "lane"] += max(0, int(room) - more)
    y, rows = round(rect.top()), {}
    for name in ("labels", "lane", "waits", "caption", "bars", "axis"):
        rows[name] = QRectF(round(rect.left()), y, round(rect.width()), heights[name])
        y += heights[name]
    return Rows(**rows)


def _grid(sheet: Sheet, height: float, theme: Theme) -> Grid:
    """Up to the next round number above the highest bar."""
    peak = int(sheet.course.latencies[1:].max(initial=0))
    if not peak or not height:
        return Grid(0.0, 0, ())
    apart = theme.pixels(LINE_APART)
    step = nice_step(peak, most=max(4.0, height / apart))
    n = math.ceil(peak / step)
    if height < theme.pixels(ROOMY_BARS):  # the top line only
        return Grid(n * step, 1, (sheet.time(n * step, step),))
    return Grid(n * step, n, tuple(sheet.time(i * step, step) for i in range(n + 1)))


def _labels(sheet: Sheet, first: int, x: Floats, right: float, theme: Theme) -> list[Label]:
    chosen = sheet.selected - first
    return labelled(
        x[:, 0],
        x[:, 3],
        lambda i: sheet.name(first + i),
        theme,
        right=right,
        first=chosen if 0 <= chosen < len(x) else None,
    )


def _ticks(sheet: Sheet, scale: Scale, theme: Theme) -> tuple[Floats, list[Label]]:
    step = nice_step(scale.end - scale.start, most=scale.width / theme.pixels(TICK_APART))
    ticks = sheet.course.ticks(scale.start, scale.end, step)
    x = scale.x(np.array([place for place, _ in ticks], float))
    places = [(at, sheet.time(ns, step)) for at, (_, ns) in zip(x.tolist(), ticks, strict=True)]
    end = scale.right - width_of(sheet.clock, theme) - theme.pixels(12)
    return x, spread(places, theme, scale.left, end)
