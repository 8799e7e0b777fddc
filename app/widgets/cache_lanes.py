"""The picture of a KV cache: where its parts lie, and a K and a V lane a layer over positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.theme import Theme
from app.widgets.bars import draw_column
from app.widgets.marks import draw_box, draw_frame, text_width

# As designed, in pixels at scale 1.
BIG, BAR, AXIS, FORMULA, LINE = 34, 12, 18, 20, 20
LANES = 28  # the least height of all lanes together
LAYER = 44  # lanes grow up to this much a layer
TWO, THREE, COLUMN = 240, 450, 220  # widths for two and three legend entries a line; of one at most


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where the lanes lie: `n_layer` rows, `n_shown` positions from left to right."""

    rect: QRectF  # of the bars, labels not included
    n_layer: int
    n_shown: int

    @property
    def pitch(self) -> float:
        """From one layer's K to the next one's."""
        return self.rect.height() / self.n_layer

    def column(self, position: int) -> QRectF:
        """All layers' cells of one position."""
        width = self.rect.width() / self.n_shown
        left = self.rect.left() + position * width
        return QRectF(left, self.rect.top(), width, self.rect.height())

    def position_at(self, pos: QPointF) -> int | None:
        """The position under a place."""
        if not self.rect.contains(pos):
            return None
        share = (pos.x() - self.rect.left()) / self.rect.width()
        return min(int(share * self.n_shown), self.n_shown - 1)

    def layer_at(self, pos: QPointF) -> int:
        """The layer under a place within the lanes."""
        return min(int((pos.y() - self.rect.top()) / self.pitch), self.n_layer - 1)


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the parts lie; a part that there is no room for is None."""

    big: QRectF
    bar: QRectF | None
    lanes: Lanes | None
    axis: QRectF | None
    formula: QRectF | None
    entries: tuple[QRectF, ...]


def lay_out(rect: QRectF, theme: Theme, *, n_layer: int, n_shown: int, n_entries: int) -> Parts:
    """The big number always; then, as room allows, formula, lanes, legend and bar."""
    px, width = theme.pixels, rect.width()
    n_columns = 1 + (width >= px(TWO)) + (width >= px(THREE))
    room = rect.height() - px(BIG)
    formula = px(FORMULA) if room >= px(FORMULA) else 0
    room -= formula
    lanes, axis = (px(LANES), px(AXIS)) if room >= px(LANES) + px(AXIS) else (0, 0)
    room -= lanes + axis
    n_lines = max(0, min(-(-n_entries // n_columns), int(room // px(LINE))))
    room -= n_lines * px(LINE)
    bar = px(BAR) if room >= px(BAR) else 0
    if lanes:
        lanes += int(max(0, min(room - bar, n_layer * px(LAYER) - lanes)))
    x, y = rect.left(), rect.top() + px(BIG) + bar
    label = text_width(str(n_layer - 1), theme.font("ui", 10)) + px(6)
    lanes_rect = QRectF(x + label, y, width - label, lanes)
    below = y + lanes + axis
    column = min(width / n_columns, px(COLUMN))
    return Parts(
        big=QRectF(x, rect.top(), width, px(BIG)),
        bar=QRectF(x, y - bar, width, px(4)) if bar else None,
        lanes=Lanes(lanes_rect, n_layer, n_shown) if lanes else None,
        axis=QRectF(x + label, y + lanes, width - label, axis) if lanes else None,
        formula=QRectF(x, below, width, formula) if formula else None,
        entries=tuple(
            QRectF(x + i * column, below + formula + line * px(LINE), column, px(LINE))
            for line in range(n_lines)
            for i in range(n_columns)
        ),
    )


def draw_share(painter: QPainter, rect: QRectF, share: float, theme: Theme) -> None:
    """Draw what K and V take of all that is reserved for them."""
    draw_box(painter, rect, radius=2, fill=theme.color("raised"))
    half = rect.width() * share / 2
    for left, role in ((rect.left(), "k"), (rect.left() + half, "v")):
        painter.fillRect(QRectF(left, rect.top(), half, rect.height()), theme.color(role))


def draw_lanes(
    painter: QPainter,
    lanes: Lanes,
    theme: Theme,
    *,
    n_used: int,
    n_reused: int,
    selected: int | None,
    hovered: int | None,
) -> None:
    """Draw what is used, what of it was reused (hatched), the hovered and the selected column."""
    left, width = lanes.rect.left(), lanes.rect.width()
    used = width * n_used / lanes.n_shown
    between = 1.0 if lanes.pitch >= 6 else 0.0  # thin lanes touch
    height = (lanes.pitch - 3 * between) / 2
    bands = [
        QRectF(left, lanes.rect.top() + layer * lanes.pitch + below, width, height)
        for layer in range(lanes.n_layer)
        for below in (0.0, height + between)
    ]
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)  # a hundred soft edges cost 2 ms
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("raised"))
    painter.drawRects(bands if between else [lanes.rect])
    for i, role in enumerate(("k", "v")):
        painter.setBrush(theme.color(role))
        painter.drawRects([QRectF(left, band.top(), used, height) for band in bands[i::2]])
    painter.restore()
    _draw_numbers(painter, lanes, theme)
    if n_reused:
        kept = QRectF(left, lanes.rect.top(), width * n_reused / lanes.n_shown, lanes.rect.height())
        _draw_hatch(painter, kept, theme)
    if hovered is not None:
        painter.fillRect(lanes.column(hovered), theme.color("text", 60))
    if selected is not None:
        draw_frame(painter, lanes.column(selected), theme)


def _draw_hatch(painter: QPainter, rect: QRectF, theme: Theme) -> None:
    """Slanted lines, not a pattern brush: a vector file cannot hold one."""
    painter.save()
    painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
    painter.setPen(QPen(theme.color("panel"), 1))
    x, y, drop = rect.left(), rect.bottom(), rect.height()
    reach = int(rect.width() + drop)
    painter.drawLines(
        [QLineF(x + at - drop, y, x + at, y - drop) for at in range(0, reach, theme.pixels(6))]
    )
    painter.restore()


def _draw_numbers(painter: QPainter, lanes: Lanes, theme: Theme) -> None:
    """The layers' numbers, as many as stand apart; the first always."""
    font = theme.font("ui", 10)
    metrics = QFontMetricsF(font)
    if lanes.rect.height() < metrics.ascent():
        return
    every = next(n for n in _STEPS if n * lanes.pitch >= metrics.ascent() + 2 or n == _STEPS[-1])
    column, capital = [], metrics.capHeight()
    for layer in range(0, lanes.n_layer, every):
        middle = lanes.rect.top() + (layer + 0.5) * lanes.pitch
        y = max(middle + capital / 2, lanes.rect.top() + capital)
        column.append((y, str(layer), "faint"))
    draw_column(painter, theme, font, lanes.rect.left() - theme.pixels(6), column)


_STEPS: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16, 24, 48)
