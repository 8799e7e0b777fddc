"""Tokens in lines, as chips or as running text: layout that grows, painting, hit testing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.theme import Theme
from app.widgets.marks import draw_frame
from app.widgets.token_ink import LINE_END, Ink, Item, Style

TAB = "    "


@dataclass(frozen=True, slots=True)
class Box:
    """A piece of one item on one line; a long item of running text has several."""

    item: int
    line: int
    x: float
    width: float
    text: str
    ends: bool = False  # with a line end, drawn as ↵ behind the text


class Flow:
    """Lays items out in lines of a width and paints those that can be seen.

    Positions count from the top left of the flow; `paint` and `index_at` take its origin.
    """

    def __init__(self, style: Style, theme: Theme) -> None:
        self._style = style
        self._width = 0.0
        self._items: list[Item] = []
        self._ink = Ink(style, theme)
        self._clear()

    @property
    def items(self) -> Sequence[Item]:
        return self._items

    @property
    def pitch(self) -> float:
        """From one line's top to the next."""
        return self._ink.pitch

    @property
    def gap(self) -> float:
        """Between two lines."""
        return self._ink.pitch - self._ink.tall

    @property
    def height(self) -> float:
        """Of all lines, the caret's included."""
        last = self._line + 1 if self._items else 0
        return max(0.0, last * self.pitch - self.gap)

    def show(self, items: Sequence[Item], *, width: float, theme: Theme) -> None:
        """Lay out these items; what was laid out before and is the same is not done again."""
        if theme != self._ink.theme or width != self._width:
            self._ink = Ink(self._style, theme) if theme != self._ink.theme else self._ink
            self._width = width
            self._items = []
            self._clear()
        elif list(items[: len(self._items)]) != self._items:
            self._cut(_n_same(self._items, items))
        self.extend(items[len(self._items) :])

    def extend(self, items: Iterable[Item]) -> None:
        """Append items; lines above the last word stay as they are."""
        for item in items:
            self._items.append(item)
            if self._style == "chip" or item.small:
                self._place_chip(len(self._items) - 1)
            else:
                self._place_run(len(self._items) - 1)

    def rects(self, index: int, origin: QPointF | None = None) -> list[QRectF]:
        """Where an item is: one rect a line it touches, none for an item without text."""
        start = self._first_box[index]
        end = self._first_box[index + 1] if index + 1 < len(self._first_box) else len(self._boxes)
        return [self._rect(box, origin or QPointF()) for box in self._boxes[start:end]]

    def index_at(self, pos: QPointF, origin: QPointF | None = None) -> int | None:
        """The item under a point."""
        origin = origin or QPointF()
        line = int((pos.y() - origin.y()) // self._ink.pitch)
        for box in self._on_lines(line, line + 1):
            if self._rect(box, origin).contains(pos):
                return box.item
        return None

    def caret(self, origin: QPointF | None = None) -> QRectF:
        """Where the next token goes."""
        origin = origin or QPointF()
        size = self._ink.theme.pixels(8), self._ink.tall - self._ink.theme.pixels(2)
        x, line = self._x + 2, self._line
        if x + size[0] > self._width and self._x > 0:
            x, line = 0.0, line + 1
        return QRectF(origin.x() + x, origin.y() + line * self._ink.pitch + 1, *size)

    def paint(
        self,
        painter: QPainter,
        visible: QRectF,
        *,
        origin: QPointF | None = None,
        selected: int | None = None,
        hovered: int | None = None,
        caret: bool = False,
    ) -> None:
        """Draw the lines that touch `visible`."""
        origin = origin or visible.topLeft()
        first = int((visible.top() - origin.y()) // self._ink.pitch)
        end = int((visible.bottom() - origin.y()) // self._ink.pitch) + 1
        for box in self._on_lines(first, end):
            item = self._items[box.item]
            chip = self._style == "chip" or item.small
            rect, hover = self._rect(box, origin), box.item == hovered
            if chip:
                self._ink.draw_chip(painter, rect, item, hovered=hover)
            else:
                self._ink.draw_run(painter, rect, item, box.text, ends=box.ends, hovered=hover)
        if selected is not None and 0 <= selected < len(self._items):
            radius = 6.0 if self._style == "chip" else 3.0
            for rect in self.rects(selected, origin):
                if rect.intersects(visible):
                    draw_frame(painter, rect, self._ink.theme, radius=radius)
        if caret:
            painter.fillRect(self.caret(origin), self._ink.theme.color("decode"))

    def _clear(self) -> None:
        self._boxes: list[Box] = []
        self._first_box: list[int] = []  # of each item
        self._x = 0.0
        self._line = 0
        self._word = 0  # the first item of the word that the next item may go on with
        self._word_x = 0.0

    def _cut(self, n: int) -> None:
        """Take back all items from n on, and the word before them: it may go on another way."""
        n = max(0, n - 1)
        while n > 0 and self._style == "run" and not self._may_break_before(n):
            n -= 1
        del self._boxes[self._first_box[n] :]
        del self._first_box[n:]
        del self._items[n:]
        if not self._boxes:
            self._items = []
            self._clear()
            return
        last = self._boxes[-1]
        self._line, self._x = last.line, last.x + last.width
        if self._style == "chip" or self._items[last.item].small:
            self._x += self._ink.chip_size(self._items[last.item])[1]
        elif last.ends:
            self._break()
        self._word, self._word_x = n, self._x

    def _place_chip(self, index: int) -> None:
        item = self._items[index]
        width, gap = self._ink.chip_size(item)
        width = min(width, max(1.0, self._width))
        if self._x > 0 and self._x + width > self._width:
            self._break()
        self._first_box.append(len(self._boxes))
        self._boxes.append(Box(index, self._line, self._x, width, item.text))
        self._x += width + gap

    def _place_run(self, index: int) -> None:
        text = self._items[index].text
        end = self._x + self._ink.measure(text)
        if self._may_break_before(index):
            self._word, self._word_x = index, self._x
        elif self._word_x > 0 and end > self._width >= end - self._word_x:
            self._carry_word(index)
        self._first_box.append(len(self._boxes))
        lines = text.replace("\r\n", "\n").replace("\t", TAB).split("\n")
        for part in lines[:-1]:
            self._put(index, part, ends=True)
            self._break()
            self._word, self._word_x = index + 1, 0.0
        if lines[-1]:
            self._put(index, lines[-1])

    def _may_break_before(self, index: int) -> bool:
        """Whether a line may end before this item: at a space, a chip, and letters of CJK."""
        text = self._items[index].text
        if index and self._items[index - 1].small:
            return True
        before = self._items[index - 1].text if index else ""
        if not text or not before:
            return not before
        return text[0].isspace() or before[-1].isspace() or max(text[0], before[-1]) >= "\u2e80"

    def _carry_word(self, index: int) -> None:
        """Move the word's items that are placed already to the next line."""
        word = self._word
        del self._boxes[self._first_box[word] :]
        del self._first_box[word:]
        self._break()
        self._word_x = 0.0
        for earlier in range(word, index):
            self._first_box.append(len(self._boxes))
            text = self._items[earlier].text
            self._put(earlier, text.lstrip(" ") if earlier == word else text)

    def _put(self, index: int, text: str, *, ends: bool = False) -> None:
        """Place text of an item on this line, or as much as fits and the rest below."""
        tail = self._ink.measure(LINE_END) if ends else 0.0
        if self._x + self._ink.measure(text) + tail > self._width and self._x > 0:
            if text.rstrip(" "):
                text = text.lstrip(" ")  # a space at a line's start would look like an indent
            self._break()
            if index == self._word:
                self._word_x = 0.0
        while self._ink.measure(text) > self._width and len(text) > 1:
            head = text[: self._n_fitting(text)]
            self._boxes.append(Box(index, self._line, self._x, self._ink.measure(head), head))
            self._break()
            text = text[len(head) :]
        width = self._ink.measure(text) + tail
        self._boxes.append(Box(index, self._line, self._x, width, text, ends))
        self._x += width

    def _n_fitting(self, text: str) -> int:
        """How many characters fit on an empty line; at least one."""
        shorter, measure = range(1, len(text)), self._ink.measure
        return max(1, bisect_right(shorter, self._width, key=lambda n: measure(text[:n])))

    def _break(self) -> None:
        self._line += 1
        self._x = 0.0

    def _rect(self, box: Box, origin: QPointF) -> QRectF:
        y = origin.y() + box.line * self._ink.pitch
        return QRectF(origin.x() + box.x, y, box.width, self._ink.tall)

    def _on_lines(self, first: int, end: int) -> list[Box]:
        start = bisect_left(self._boxes, first, key=_line_of)
        return self._boxes[start : bisect_left(self._boxes, end, lo=start, key=_line_of)]


def _line_of(box: Box) -> int:
    return box.line


def _n_same(before: Sequence[Item], after: Sequence[Item]) -> int:
    """How many items at the start are the same."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))
