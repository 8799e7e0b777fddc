"""All heads as a mosaic, one head as a map with a line under it, or both: painting and finding."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.theme import Theme
from app.widgets.heat import Scale, Values
from app.widgets.heatmap import CausalMap, Heatmap
from app.widgets.map_plan import LINE, Plan, View, plan
from app.widgets.marks import draw_box, draw_mark, draw_text, text_width
from app.widgets.mosaic import Mosaic

GAP = 8  # between a cell's words, its figure and its mark


@dataclass(frozen=True, slots=True)
class Caption:
    """What stands under a map."""

    full: str  # a cell in words
    short: str  # the same where there is less room
    figure: str  # its weight, which is never cut
    notice: str = ""  # below it, or instead of it where there is one line and no cell pointed at


@dataclass(frozen=True, slots=True)
class Shown:
    """What is painted; the same arrays mean the same picture."""

    thumbnails: Values  # (L, H, m, m)
    note: str  # the line under the mosaic
    scale: Scale
    map: CausalMap | None = None  # of the chosen head
    caption: Caption | None = None
    chosen: tuple[int, int] | None = None  # (layer, head)


@dataclass(frozen=True, slots=True)
class Pointed:
    """What the mouse or the keys are on."""

    thumbnail: tuple[int, int] | None = None  # (layer, head)
    cell: tuple[int, int] | None = None  # (query, key)
    token: int | None = None  # whose row is tinted


class HeadsView:
    """Paints what is shown and tells what lies where, as it was painted last."""

    def __init__(self) -> None:
        self._mosaic = Mosaic()
        self._heatmap = Heatmap()
        self._plan = Plan(None, None, None)

    def paint(
        self,
        painter: QPainter,
        rect: QRectF,
        view: View,
        shown: Shown,
        pointed: Pointed,
        theme: Theme,
    ) -> None:
        """Draw into rect what the view asks for and there is room for."""
        layers, heads = shown.thumbnails.shape[:2]
        self._plan = places = plan(view, rect, (layers, heads), theme)
        if places.mosaic is not None:
            self._mosaic.paint(
                painter,
                places.mosaic,
                shown.thumbnails,
                theme,
                scale=shown.scale,
                selected=shown.chosen,
                hovered=pointed.thumbnail,
            )
        if places.note is not None:
            x, y, width = places.note.left(), places.note.top(), places.note.width()
            font, faint = theme.font("ui", 11), theme.color("faint")
            if text_width(shown.note, font) <= width:
                draw_text(painter, x, y + theme.pixels(14), shown.note, font, faint)
        if places.map is not None and shown.map is not None and shown.caption is not None:
            self._paint_map(painter, places.map, shown.map, pointed, theme)
            self._paint_caption(painter, places.map, shown.caption, pointed, theme)

    def thumbnail_at(self, pos: QPointF) -> tuple[int, int] | None:
        """(layer, head) under a point."""
        return self._mosaic.head_at(pos) if self._plan.mosaic is not None else None

    def cell_at(self, pos: QPointF) -> tuple[int, int] | None:
        """(query, key) under a point; None in the future."""
        return self._heatmap.cell_at(pos) if self._plan.map is not None else None

    def label_at(self, pos: QPointF) -> int | None:
        """The token whose label lies under a point."""
        return self._heatmap.label_at(pos) if self._plan.map is not None else None

    def on_map(self, pos: QPointF) -> bool:
        """Whether a point lies on the map, the future included."""
        return self._plan.map is not None and self._heatmap.square().contains(pos)

    def on_caption(self, pos: QPointF) -> bool:
        """Whether a point lies on the lines under the map."""
        square = self._heatmap.square()
        right = self._plan.map is not None and pos.x() >= square.left()
        return right and pos.y() > square.bottom()

    def _paint_map(
        self, painter: QPainter, rect: QRectF, shown: CausalMap, pointed: Pointed, theme: Theme
    ) -> None:
        heatmap = self._heatmap
        heatmap.paint(painter, rect, shown, theme, hovered=pointed.cell)
        if pointed.token is not None and 0 <= pointed.token < shown.n:
            edge, fill = theme.color("text", 110), theme.color("text", 36)
            draw_box(painter, heatmap.row_rect(pointed.token), radius=0, fill=fill, line=edge)
        if shown.selected is not None:
            column = heatmap.cell_rect(0, shown.selected)
            mark = QRectF(column.left(), column.top() - 4, column.width(), 2)
            painter.fillRect(mark, theme.color("select"))

    def _paint_caption(
        self, painter: QPainter, rect: QRectF, caption: Caption, pointed: Pointed, theme: Theme
    ) -> None:
        square, aside = self._heatmap.square(), self._plan.aside
        clear = aside is not None and aside.bottom() <= square.bottom()
        left = aside.left() if aside is not None and clear else rect.left()
        start = QPointF(square.left(), square.bottom() + theme.pixels(LINE))
        room = QRectF(QPointF(left, start.y()), rect.bottomRight())
        n_lines, font = self._plan.n_lines, theme.font("ui", 11)
        width = text_width(caption.notice, font)
        fits = bool(caption.notice) and width <= room.width()
        if n_lines == 2 or (n_lines == 1 and (pointed.cell is not None or not fits)):
            _draw_cell(painter, start, room, caption, theme)
            start += QPointF(0, theme.pixels(LINE))
            n_lines -= 1
        if n_lines:
            x = _fitting(start.x(), room, width)
            muted, width = theme.color("muted"), room.right() - x
            draw_text(painter, x, start.y(), caption.notice, font, muted, width=width)


def _draw_cell(
    painter: QPainter, start: QPointF, room: QRectF, caption: Caption, theme: Theme
) -> None:
    """Words as full as fit, then the figure and its mark."""
    font, color, gap = theme.font("mono", 11), theme.color("text"), theme.pixels(GAP)
    tail = text_width(caption.figure, font) + 3 * gap
    x = _fitting(start.x(), room, text_width(caption.full, font) + tail)
    width = max(0.0, room.right() - x - tail)
    words = caption.full if text_width(caption.full, font) <= width else caption.short
    end = x + draw_text(painter, x, start.y(), words, font, color, width=width) + gap
    end += draw_text(painter, end, start.y(), caption.figure, font, color) + gap / 2
    draw_mark(painter, end, start.y(), "derived", theme)


def _fitting(x: float, room: QRectF, width: float) -> float:
    """x, or as far before it as a text needs to end within the room."""
    return max(room.left(), min(x, room.right() - width))
