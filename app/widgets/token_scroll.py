"""Tokens in lines that scroll by whole lines, and the slim bar that says what is in view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.theme import Theme
from app.widgets.marks import draw_box
from app.widgets.token_flow import Flow
from app.widgets.token_ink import Item, Style

BAR, LEAST_THUMB = 3, 14  # pixels
ASIDE = 6  # of the bar from the lines: it lies in the panel's padding, so that they need not yield


@dataclass(frozen=True, slots=True)
class View:
    """The lines in view: whole ones, so that none is cut."""

    rect: QRectF  # of the lines in view
    pitch: float
    first: int
    n: int  # lines that fit
    total: int
    wanted: range | None  # lines to be seen

    @property
    def origin(self) -> QPointF:
        """Where line 0 begins, above `rect` if it is out of view."""
        return QPointF(self.rect.left(), self.rect.top() - self.first * self.pitch)

    @property
    def scrolls(self) -> bool:
        """Whether there are more lines than fit."""
        return self.total > self.n

    def holds(self, lines: range) -> bool:
        """Whether lines are in view, or as many of the first ones as fit."""
        end = min(lines.stop, lines.start + self.n)
        return self.first <= lines.start and end <= self.first + self.n


class ScrolledFlow:
    """A flow of tokens in a place that may be too small for it.

    What is wanted is kept in view, moving no more than it must, until the wheel chooses another
    place; `release` ends that choice.
    """

    def __init__(self, style: Style, theme: Theme) -> None:
        self._flow = Flow(style, theme)
        self._first = 0.0
        self._chosen = False

    def view(
        self, items: Sequence[Item], rect: QRectF, theme: Theme, *, wanted: int | None
    ) -> View:
        """Lay out items and say which lines are in view.

        Args:
            items: all of them.
            rect: their place.
            theme: for sizes.
            wanted: the item to be seen; len(items) is the caret's place.
        """
        flow = self._flow
        flow.show(items, width=max(1.0, rect.width()), theme=theme)
        total = round((flow.height + flow.gap) / flow.pitch)
        lines = None if wanted is None else self._lines(wanted)
        if lines is not None:
            total = max(total, lines.stop)  # a caret that found no room has a line of its own
        n = max(1, int((rect.height() + flow.gap) // flow.pitch))
        first = round(self._first)
        if lines is not None and not self._chosen:
            first = min(max(first, lines.stop - n), lines.start)
        first = max(0, min(first, total - n))
        height = max(0.0, min(n, total) * flow.pitch - flow.gap)
        place = QRectF(rect.left(), rect.top(), rect.width(), height)
        return View(place, flow.pitch, first, n, total, lines)

    def settle(self, view: View) -> None:
        """What is in view now stays as long as what is wanted allows it."""
        if round(self._first) != view.first:
            self._first = float(view.first)

    def release(self) -> None:
        """Something else is wanted: the wheel's choice no longer counts."""
        self._chosen = False

    def turn(self, n_lines: float, view: View) -> None:
        """Move by lines, down is positive; fractions of a line, from a touch pad, add up."""
        self.settle(view)
        self._first = min(max(0.0, self._first + n_lines), float(max(0, view.total - view.n)))
        moved = replace(view, first=round(self._first))
        self._chosen = view.wanted is not None and not moved.holds(view.wanted)

    def index_at(self, pos: QPointF, view: View) -> int | None:
        """The item under a point."""
        return self._flow.index_at(pos, view.origin) if view.rect.contains(pos) else None

    def paint(
        self,
        painter: QPainter,
        view: View,
        theme: Theme,
        *,
        selected: int | None,
        hovered: int | None,
        caret: bool = False,
    ) -> None:
        """Draw the lines in view, and the bar if there are others."""
        self._flow.paint(
            painter,
            view.rect,
            origin=view.origin,
            selected=selected,
            hovered=hovered,
            caret=caret and view.holds(self._caret_line()),
        )
        if view.scrolls:
            _draw_bar(painter, view, theme)

    def _lines(self, item: int) -> range | None:
        """The lines that an item touches; None for an item without text."""
        if item == len(self._flow.items):
            return self._caret_line()
        lines = [int(rect.center().y() // self._flow.pitch) for rect in self._flow.rects(item)]
        return range(lines[0], lines[-1] + 1) if lines else None

    def _caret_line(self) -> range:
        line = int(self._flow.caret().center().y() // self._flow.pitch)
        return range(line, line + 1)


def _draw_bar(painter: QPainter, view: View, theme: Theme) -> None:
    length = view.rect.height()
    thumb = min(length, max(float(theme.pixels(LEAST_THUMB)), length * view.n / view.total))
    top = view.rect.top() + (length - thumb) * view.first / (view.total - view.n)
    place = QRectF(view.rect.right() + ASIDE, top, BAR, thumb)
    draw_box(painter, place, radius=BAR / 2, fill=theme.color("faint"))
