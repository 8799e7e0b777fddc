"""A course as a picture: a lane of blocks, labels above, waits, bars and an axis below."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.theme import Theme
from app.widgets.boxes import Bars, Floats, Lane, fill, strips
from app.widgets.lane_plan import Plan, Sheet
from app.widgets.marks import draw_frame, draw_mark, draw_text, text_width

WORDY = 80  # a pass or draw this wide says what it is, and shows its layers


def draw_lanes(
    painter: QPainter, sheet: Sheet, plan: Plan, theme: Theme, *, hovered: int | None
) -> None:
    """Draw a sheet where the plan says; `hovered` is a step, or None."""
    rows = plan.rows
    if rows.caption.height():
        _draw_caption(painter, sheet, plan, theme)
    if rows.bars.height():
        _draw_grid(painter, plan, theme)
        _draw_bars(painter, sheet, plan, theme, hovered)
    if rows.axis.height():
        _draw_axis(painter, sheet, plan, theme)
    if plan.folds:
        x = np.unique([x for x, _ in plan.folds])
        top = rows.waits.top() + theme.pixels(2)
        fill(painter, strips(x - 1, x + 1, top, rows.waits.bottom()), theme.color("faint"))
    _draw_lane(painter, sheet, plan, theme, hovered)
    _draw_inside(painter, sheet, plan, theme)
    _draw_labels(painter, sheet, plan, theme)


def _draw_lane(
    painter: QPainter, sheet: Sheet, plan: Plan, theme: Theme, hovered: int | None
) -> None:
    x, lane = plan.x, Lane(plan.rows.lane)
    tokenizing = sheet.course.axis[1:2]
    if plan.scale.start < tokenizing[0, 1]:
        edges = plan.scale.x(tokenizing)  # (1, 2)
        lane.add(edges[:, 0], edges[:, 1], theme.color("weights"))
    n_prefill = 1 if plan.first == 0 else 0
    _add_blocks(lane, x[n_prefill:], theme.color("decode"))
    _add_blocks(lane, x[:n_prefill], theme.color("prefill"))
    i = plan.place(hovered)
    if i is not None:
        color = theme.color("decode" if hovered else "prefill").lighter(125)
        _add_blocks(lane, x[i : i + 1], color)
    i = plan.place(sheet.selected)
    if i is not None and sheet.selected:  # the prefill keeps its colour inside the frame
        _add_blocks(lane, x[i : i + 1], theme.color("select"))
    lane.draw(painter)
    if i is not None:
        _draw_selected(painter, plan.rows.lane, float(x[i, 0]), float(x[i, 3]), theme)


def _draw_selected(
    painter: QPainter, lane: QRectF, left: float, right: float, theme: Theme
) -> None:
    block = QRectF(left, lane.top(), max(2.0, right - left), lane.height())
    if block.width() >= theme.pixels(10):  # a line of ground, to tell the frame from the block
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(theme.color("panel"), 1.5))
        painter.drawRect(block.adjusted(0.75, 0.75, -0.75, -0.75))
    draw_frame(painter, block, theme)


def _add_blocks(lane: Lane, x: Floats, color: QColor) -> None:
    """A block is its pass, and darker its draw where that is wide enough to be seen."""
    lane.add(x[:, 0], _ends(x), color)
    draws = x[_apart(x) | (x[:, 3] - x[:, 2] >= 2)]
    if len(draws):
        lane.add(draws[:, 2], draws[:, 3], color.darker(135))


def _apart(x: Floats) -> NDArray[np.bool_]:
    """(n,) whether time went by between a pass and its draw, as it may on the wall clock."""
    return np.asarray(x[:, 2] - x[:, 1] >= 2)


def _ends(x: Floats) -> Floats:
    """(n,) where blocks end: at the draw's end, or at the pass's where the draw lies apart."""
    return np.where(_apart(x), x[:, 1], x[:, 3])


def _draw_inside(painter: QPainter, sheet: Sheet, plan: Plan, theme: Theme) -> None:
    """What a wide block is, in words, and where its layers begin."""
    lane, x, pad = plan.rows.lane, plan.x, theme.pixels(5)
    font, color = theme.font("strong", 10), theme.color("on_prefill")
    y = lane.center().y() + theme.pixels(3)
    widths = np.maximum(x[:, 1] - x[:, 0], x[:, 3] - x[:, 2])  # (n,)
    wide = np.flatnonzero(widths >= theme.pixels(WORDY)).tolist()
    for i in wide:
        starts = sheet.layers(plan.first + i)
        begin = plan.scale.x(starts[(starts > plan.scale.start) & (starts < plan.scale.end)])
        ticks = strips(begin, begin + 1, lane.bottom() - theme.pixels(5), lane.bottom())
        fill(painter, ticks, theme.color("on_prefill", 170))
        for words, left in zip(sheet.inside(plan.first + i), (0, 2), strict=True):
            room = float(x[i, left + 1] - x[i, left]) - 2 * pad
            fits = next((w for w in words if text_width(w, font) <= room), None)
            if fits is not None:
                draw_text(painter, float(x[i, left]) + pad, y, fits, font, color)
    if plan.first == 0 and len(x) and 0 not in wide:  # the prefill says so as long as it can
        room = float(_ends(x)[0] - x[0, 0]) - 2 * pad
        words = sheet.inside(0)[0]
        fits = next((w for w in words if text_width(w, font) <= room), words[-1])
        if room >= theme.pixels(30):
            draw_text(painter, float(x[0, 0]) + pad, y, fits, font, color, width=room)


def _draw_labels(painter: QPainter, sheet: Sheet, plan: Plan, theme: Theme) -> None:
    y = plan.rows.labels.bottom() - theme.pixels(6)
    painter.setFont(theme.font("mono", 10))
    muted, select = theme.color("muted"), theme.color("select")
    for label in plan.labels:
        painter.setPen(select if plan.first + label.index == sheet.selected else muted)
        painter.drawText(QPointF(label.x, y), label.words)


def _draw_caption(painter: QPainter, sheet: Sheet, plan: Plan, theme: Theme) -> None:
    strip, font, color = plan.rows.caption, theme.font("ui", 10), theme.color("faint")
    x, y = plan.scale.left, strip.bottom() - theme.pixels(3)
    room = strip.right() - x - theme.pixels(12)
    width = draw_text(painter, x, y, sheet.caption, font, color, width=room)
    width += theme.pixels(4)
    width += draw_mark(painter, x + width, y, "derived", theme)
    if plan.grid.words and not plan.grid.gutter:
        words = plan.grid.words[0]
        if width + text_width(words, font) + theme.pixels(12) < strip.width():
            draw_text(painter, strip.right(), y, words, font, color, "right")


def _draw_grid(painter: QPainter, plan: Plan, theme: Theme) -> None:
    strip, grid = plan.rows.bars, plan.grid
    left, right = plan.scale.left, strip.right()
    font, faint = theme.font("ui", 10), theme.color("faint")
    n = grid.n_lines
    y = [strip.bottom() - (round(strip.height() * i / n) if i else 0) for i in range(n + 1)]
    lines = [QRectF(left, at, right - left, 1) for at in y]
    fill(painter, lines[1:], theme.color("grid"))
    fill(painter, lines[:1], theme.color("line"))
    if grid.gutter:
        for words, at in zip(grid.words, y, strict=True):
            x = left - theme.pixels(6)
            draw_text(painter, x, at + theme.pixels(3), words, font, faint, "right")


def _draw_bars(
    painter: QPainter, sheet: Sheet, plan: Plan, theme: Theme, hovered: int | None
) -> None:
    strip, x = plan.rows.bars, plan.x
    took = sheet.course.latencies[plan.first : plan.first + len(x)].astype(float)  # (n,)
    took[: 1 if plan.first == 0 else 0] = 0  # the first token has no token before it
    if not took.any():
        return
    heights, ends = np.rint(strip.height() * took / plan.grid.top), _ends(x)  # (n,)
    decode, ground = theme.color("decode"), theme.color("panel")
    bars = Bars(strip)
    bars.add(x[:, 0], ends, heights, _mixed(decode, ground, 0.4))
    for step, color in (
        (hovered, _mixed(decode, ground, 0.7)),
        (sheet.selected, theme.color("select")),
    ):
        i = plan.place(step)
        if i is not None:
            one = slice(i, i + 1)
            bars.add(x[one, 0], ends[one], heights[one], color)
    bars.draw(painter)


def _draw_axis(painter: QPainter, sheet: Sheet, plan: Plan, theme: Theme) -> None:
    strip, font, color = plan.rows.axis, theme.font("ui", 10), theme.color("faint")
    y = strip.bottom() - theme.pixels(2)
    fill(
        painter,
        strips(plan.ticks, plan.ticks + 1, strip.top(), strip.top() + theme.pixels(3)),
        color,
    )
    draw_text(painter, strip.right(), y, sheet.clock, font, color, "right")
    for label in plan.tick_labels:
        painter.drawText(QPointF(label.x, y), label.words)


def _mixed(over: QColor, under: QColor, share: float) -> QColor:
    """One colour over another, as one: a see-through fill of a large box costs much more."""

    def mix(a: int, b: int) -> int:
        return round(a * share + b * (1 - share))

    return QColor(
        mix(over.red(), under.red()),
        mix(over.green(), under.green()),
        mix(over.blue(), under.blue()),
    )
