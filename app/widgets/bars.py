"""Rows of two bars, before and after, with a notice above and room for a stacked bar below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QPolygonF

from app.theme import Theme
from app.widgets.marks import (
    draw_box,
    draw_frame,
    draw_mark,
    draw_text,
    draw_wrapped,
    text_width,
)

# As designed, in pixels at scale 1.
PITCH, HEADER, STACK, CAPTION = 23, 16, 26, 20
GAP = 12  # between a label and its bars; the coin's mark stands in it
FIGURE, FIGURES = 52, 124  # one percentage; two and the arrow between them
WIDE = 420  # from here on both percentages are written


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: its label, both shares of 100 %, and what marks it."""

    label: str
    before: float
    after: float
    words: str  # what stands at the right
    cut: bool = False
    chosen: bool = False
    selected: bool = False
    fallen: bool = False  # the coin fell on it
    jump: bool = False  # rows between this one and the one above are not shown
    rest: bool = False  # all that has no row of its own


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lies; a part that there is no room for is None."""

    theme: Theme
    header: QRectF | None
    rows: tuple[QRectF, ...]
    stack: QRectF | None
    caption: QRectF | None
    wide: bool
    bars_left: float
    bars_right: float

    def row_at(self, pos: QPointF) -> int | None:
        """The row under a place."""
        return next((i for i, row in enumerate(self.rows) if row.contains(pos)), None)


def lay_out(rect: QRectF, theme: Theme, *, n_rows: int) -> Layout:
    """Give rows the room: at least two, then the header, the caption and the stack stay too."""
    px, width = theme.pixels, rect.width()
    header, stack, caption = px(HEADER), px(STACK), px(CAPTION)
    least = 2 * px(PITCH)
    if header + stack + caption + least > rect.height():
        header = 0
    if stack + caption + least > rect.height():
        caption = 0
    if stack + least > rect.height():
        stack = 0
    room = rect.height() - header - stack - caption
    n = max(1, min(n_rows, int(room // px(PITCH))))
    y = rect.top() + header
    rows = tuple(QRectF(rect.left(), y + i * px(PITCH), width, px(PITCH)) for i in range(n))
    wide = width >= px(WIDE)
    label = min(max(0.32 * width, px(56)), px(180))
    end = rows[-1].bottom()
    return Layout(
        theme=theme,
        header=QRectF(rect.left(), rect.top(), width, header) if header else None,
        rows=rows,
        stack=QRectF(rect.left(), end + px(12), width, px(14)) if stack else None,
        caption=QRectF(rect.left(), end + px(STACK), width, caption) if caption else None,
        wide=wide,
        bars_left=rect.left() + label + px(GAP),
        bars_right=rect.right() - px(FIGURES if wide else FIGURE) - px(6),
    )


def percent(share: float) -> str:
    """A share as people read it; nothing small is rounded to 0, nothing uncertain to 100.

    >>> [percent(share) for share in (0.5824, 0.004, 0.0004, 0.00001, 0.0, 0.9999, 1.0)]
    ['58.2 %', '0.4 %', '0.04 %', '<0.01 %', '0 %', '>99.9 %', '100 %']
    """
    hundred = 100 * share
    if hundred in (0, 100):
        return f"{hundred:.0f} %"
    if hundred >= 99.95:
        return ">99.9 %"
    if hundred >= 0.095:
        return f"{hundred:.1f} %"
    return f"{hundred:.2f} %" if hundred >= 0.005 else "<0.01 %"


def notice_height(notice: str, badge: str, width: float, height: float, theme: Theme) -> float:
    """How much of a panel's height its notice takes: two lines only where there is room."""
    if not notice:
        return 0.0
    long = text_width(notice, theme.font("ui", 11)) > width - _badge_room(badge, theme)
    return theme.pixels(36 if long and height >= theme.pixels(200) else 20)


def draw_notice(painter: QPainter, rect: QRectF, notice: str, badge: str, theme: Theme) -> None:
    """Draw what must be known to read the bars rightly, behind a badge unless it is empty."""
    room = _badge_room(badge, theme)
    if badge:
        pill = QRectF(rect.left(), rect.top(), room - theme.pixels(8), theme.pixels(15))
        color, font = theme.color("decode"), theme.font("strong", 10)
        draw_box(painter, pill, radius=pill.height() / 2, line=color)
        y = rect.top() + theme.pixels(11)
        draw_text(painter, pill.center().x(), y, badge, font, color, "center")
    font, color = theme.font("ui", 11), theme.color("muted")
    draw_wrapped(painter, rect.adjusted(room, 0, 0, 0), notice, font, color)


def _badge_room(badge: str, theme: Theme) -> float:
    return text_width(badge, theme.font("strong", 10)) + theme.pixels(20) if badge else 0.0


def draw_header(painter: QPainter, layout: Layout, before: str, after: Sequence[str]) -> None:
    """Name both bars with their colours; of the wordings of `after` the first that fits."""
    assert layout.header is not None
    theme, y = layout.theme, layout.header.top() + layout.theme.pixels(9)
    font, color, right = theme.font("ui", 10), theme.color("faint"), layout.header.right()
    side, space = theme.pixels(7), theme.pixels(4)
    x = layout.bars_left
    draw_box(painter, QRectF(x, y - side, side, side), radius=2, fill=theme.color("weights"))
    x += side + space
    x += draw_text(painter, x, y, before, font, color) + space
    x += draw_mark(painter, x, y, "derived", theme) + 2 * space
    mark = text_width("ƒ", font) + space
    room = right - mark - x - side - space
    words = next((w for w in after if text_width(w, font) <= room), after[-1])
    width = draw_text(painter, right - mark, y, words, font, color, "right", room)
    draw_mark(painter, right - mark + space, y, "derived", theme)
    swatch = QRectF(right - mark - width - space - side, y - side, side, side)
    draw_box(painter, swatch, radius=2, fill=theme.color("decode"))


def draw_rows(painter: QPainter, layout: Layout, bars: Sequence[Bar], *, outlined: bool) -> None:
    """Draw one bar a row, all on one scale; outlined: what would be, not what was."""
    rows = list(zip(layout.rows, bars, strict=False))
    _draw_labels(painter, layout, rows)
    _draw_figures(painter, layout, rows)
    _draw_pairs(painter, layout, rows, outlined=outlined)
    theme, px = layout.theme, layout.theme.pixels
    for row, bar in rows:
        if bar.fallen:
            x, y = layout.bars_left - px(3), row.top() + px(10)
            back = x - px(6)
            corners = (QPointF(x, y), QPointF(back, y - px(4)), QPointF(back, y + px(4)))
            draw_triangle(painter, corners, theme)
        if bar.jump:
            painter.setPen(QPen(theme.color("faint", 140), 1, Qt.PenStyle.DotLine))
            painter.drawLine(row.topLeft(), QPointF(layout.bars_right, row.top()))
        if bar.selected:
            draw_frame(painter, row.adjusted(0, 0, 0, -px(2)), theme)


def draw_share(painter: QPainter, rect: QRectF, color: QColor, *, outlined: bool = False) -> None:
    """A bar with round ends; outlined, where there is room for a line, with a pale inside."""
    radius = min(2.0, rect.width() / 2)
    painter.setPen(Qt.PenStyle.NoPen)
    if outlined and rect.width() >= 3:
        painter.setPen(color)
        color = QColor(color)
        color.setAlpha(color.alpha() // 4)
        rect = rect.adjusted(0.5, 0.5, -0.5, -0.5)
    painter.setBrush(color)
    painter.drawRoundedRect(rect, radius, radius)


def draw_triangle(painter: QPainter, corners: Sequence[QPointF], theme: Theme) -> None:
    """A small triangle in the coin's colour."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("coin"))
    painter.drawPolygon(QPolygonF(list(corners)))


def draw_column(
    painter: QPainter,
    theme: Theme,
    font: QFont,
    right: float,
    column: Sequence[tuple[float, str, str]],
    width: float = math.inf,
) -> None:
    """Draw right-aligned words, each (baseline, words, role); the font is set only once."""
    metrics, colors = QFontMetricsF(font), {role: theme.color(role) for _, _, role in column}
    painter.setFont(font)
    for y, words, role in column:
        advance = metrics.horizontalAdvance(words)
        if advance > width:
            words = metrics.elidedText(words, Qt.TextElideMode.ElideRight, width)
            advance = metrics.horizontalAdvance(words)
        painter.setPen(colors[role])
        painter.drawText(QPointF(right - advance, y), words)


def _draw_labels(painter: QPainter, layout: Layout, rows: Sequence[tuple[QRectF, Bar]]) -> None:
    theme, px = layout.theme, layout.theme.pixels
    right = layout.bars_left - px(GAP)
    width = right - layout.rows[0].left() - px(4)
    for font, rest in ((theme.font("mono", 12), False), (theme.font("ui", 11), True)):
        labels = [
            (row.top() + px(14), bar.label, _role(bar)) for row, bar in rows if bar.rest is rest
        ]
        draw_column(painter, theme, font, right, labels, width)


def _draw_figures(painter: QPainter, layout: Layout, rows: Sequence[tuple[QRectF, Bar]]) -> None:
    theme, px, font = layout.theme, layout.theme.pixels, layout.theme.font("mono", 11)
    right = layout.rows[0].right() - px(4)
    words = [(row.top() + px(14), bar.words, _role(bar, figure=True)) for row, bar in rows]
    draw_column(painter, theme, font, right, words)
    if layout.wide:
        before = [(row.top() + px(14), f"{percent(bar.before)} →", "faint") for row, bar in rows]
        draw_column(painter, theme, font, right - px(FIGURE + 4), before)


def _role(bar: Bar, *, figure: bool = False) -> str:
    if bar.rest:
        return "muted"
    if bar.chosen and not figure:
        return "select"
    return "faint" if bar.cut else "text"


def _draw_pairs(
    painter: QPainter, layout: Layout, rows: Sequence[tuple[QRectF, Bar]], *, outlined: bool
) -> None:
    theme, px = layout.theme, layout.theme.pixels
    most = max((max(bar.before, bar.after) for _, bar in rows), default=0.0) or 1.0
    x, unit = layout.bars_left, (layout.bars_right - layout.bars_left) / most
    grey, cut = theme.color("weights", 150), theme.color("cut", 150)
    final, chosen = theme.color("decode"), theme.color("select")
    for row, bar in rows:
        before = QRectF(x, row.top() + px(3), max(1.5, unit * bar.before), px(6))
        draw_share(painter, before, cut if bar.cut else grey)
        if bar.after > 0:
            after = QRectF(x, row.top() + px(10), max(1.5, unit * bar.after), px(7))
            draw_share(painter, after, chosen if bar.chosen else final, outlined=outlined)
