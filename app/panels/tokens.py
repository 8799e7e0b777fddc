"""The Tokens panel: how the prompt is split as it is typed, and how full the context is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QAction, QFontMetricsF, QPainter

from app.panels.base import Panel
from app.selection import Scene
from app.split import Split, count, say, split_of
from app.store import Store
from app.theme import Theme
from app.widgets.marks import draw_wrapped, text_width
from app.widgets.meter_bar import BARE, WHOLE, draw_meter
from app.widgets.one_of import OneOf
from app.widgets.pieces import hexadecimal
from app.widgets.token_ink import CHIP_HEIGHT, Item
from app.widgets.token_scroll import ScrolledFlow, View
from engine.events import Token
from engine.tokenizer import visible

SHOWS = ("ids", "bytes")
TOP, GAP = 2, 8  # pixels above the chips and between the parts, as designed
OVER_TINT = 0.5  # of a chip for which the context has no position
MOST_SPOKEN = 100


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts are; a part that there is no room for is None."""

    chips: View | None
    problem: QRectF | None
    meter: QRectF | None


class Tokens(Panel):
    """Chips of the draft while it differs from the run, else of the run's prompt."""

    id = "tokens"
    order = 20
    saved = ("shows",)

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        self._flow = ScrolledFlow("chip", theme)
        self._edited = 0  # the first token that the last edit changed
        self._made: object = None  # what the items are made of
        self._items: list[Item] = []
        self._counted: tuple[tuple[Token, ...], int, int] = ((), 0, 0)
        self._shows = OneOf({shows: say(f"show_{shows}") for shows in SHOWS}, self)
        self._shows.triggered.connect(self.canvas.update)

    @property
    def shows(self) -> str:
        """What stands below each piece."""
        return self._shows.value

    @shows.setter
    def shows(self, shows: str) -> None:
        self._shows.take(shows)
        self.canvas.update()

    def actions(self) -> list[QAction]:
        return self._shows.actions()

    def subtitle(self) -> str:
        split = split_of(self.scene)
        if not split.tokens:
            return ""
        n, n_bytes = len(split.tokens), self._counts(split.tokens)[1]
        words = say("caption", tokens=count("token", n), bytes=count("byte", n_bytes))
        return say("caption_draft", words=words) if split.stale else words

    def figure(self) -> str:
        split = split_of(self.scene)
        # The word "draft" needs the room more.
        if not split.tokens or split.stale:
            return ""
        return count("char", self._counts(split.tokens)[0])

    def empty(self) -> str | None:
        """Nothing is typed, or there is no tokenizer yet; to split needs no model."""
        draft = self.scene.draft
        if not self.scene.draft_differs:
            return None
        if not draft.prompt:
            return say("empty")
        return say("loading") if draft.tokens is None and draft.problem is None else None

    def show(self, scene: Scene) -> None:
        before, after = split_of(self.scene), split_of(scene)
        chips = self._lay_out(self.area).chips
        if chips is not None:
            self._flow.settle(chips)
        if before.tokens != after.tokens or _selected(self.scene) != _selected(scene):
            self._flow.release()
            self._edited = _first_other(before.tokens, after.tokens)
        super().show(scene)

    def key(self, scene: Scene) -> object:
        return split_of(scene), _selected(scene)

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        split, theme, layout = split_of(self.scene), self.theme, self._lay_out(rect)
        if layout.problem is not None and split.problem is not None:
            font, color = theme.font("ui", 11), theme.color("warn")
            draw_wrapped(painter, layout.problem, split.problem, font, color)
        if layout.chips is not None:
            selected, hovered = _selected(self.scene), self.store.hover if split.own else None
            self._flow.paint(painter, layout.chips, theme, selected=selected, hovered=hovered)
        if layout.meter is not None:
            words = say("context"), split.meter
            draw_meter(painter, layout.meter, words, _parts(split), theme, warns=split.over)

    def hovered(self, token: object) -> None:
        if split_of(self.scene).own:
            self.canvas.update()

    def press(self, pos: QPointF) -> None:
        chip = self._chip_at(pos)
        if chip is not None and split_of(self.scene).own:
            self.store.select(token=chip)

    def move(self, pos: QPointF) -> None:
        self.store.point_at(self._chip_at(pos) if split_of(self.scene).own else None)

    def wheel(self, pos: QPointF, steps: float, modifiers: Qt.KeyboardModifier) -> bool:
        return self._turn(-steps)

    def key_pressed(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        split, chips = split_of(self.scene), self._lay_out(self.area).chips
        if chips is None:
            return False
        if key in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            return self._turn(chips.n if key == Qt.Key.Key_PageDown else -chips.n)
        if key not in (Qt.Key.Key_Left, Qt.Key.Key_Right) or not split.own:
            return False
        assert self.scene.token is not None
        token = self.scene.token + (1 if key == Qt.Key.Key_Right else -1)
        self.store.select(token=max(0, min(token, len(split.tokens) - 1)))
        return True

    def hint(self, pos: QPointF) -> str:
        split, layout, chip = split_of(self.scene), self._lay_out(self.area), self._chip_at(pos)
        if layout.problem is not None and layout.problem.contains(pos):
            return split.problem or ""
        if chip is not None:
            return split.chip_hint(chip)
        if layout.meter is not None and layout.meter.contains(pos):
            return split.meter_hint
        if not split.tokens:
            return ""
        characters, n_bytes = self._counts(split.tokens)
        return split.counts_hint(characters, n_bytes)

    def spoken(self) -> str:
        tokens = split_of(self.scene).tokens[:MOST_SPOKEN]
        told = ", ".join(f"{visible(token.piece)} {token.id}" for token in tokens)
        return f"{super().spoken()}. {told}" if told else ""

    def _lay_out(self, rect: QRectF) -> Layout:
        """The meter at the bottom, the problem above it, chips in what is left."""
        split, theme = split_of(self.scene), self.theme
        gap, tall = theme.pixels(GAP), theme.pixels(CHIP_HEIGHT)
        free = rect.adjusted(0, theme.pixels(TOP), 0, 0)
        if not split.tokens:
            return Layout(None, free, None)
        meter = problem = None
        for height in (theme.pixels(WHOLE), theme.pixels(BARE)):
            if meter is None and free.height() >= tall + gap + height:
                meter = QRectF(rect.left(), rect.bottom() - height, rect.width(), height)
                free.setBottom(meter.top() - gap)
        if split.problem is not None:
            words = self._height_of(split.problem, rect.width(), free.height() - tall - gap)
            # Chips go before words that the prompt has under it as well.
            if free.height() < tall or free.height() >= tall + gap + words:
                problem = QRectF(free.left(), free.bottom() - words, free.width(), words)
                free.setBottom(problem.top() - gap)
        return Layout(self._view(free, split) if free.height() >= tall else None, problem, meter)

    def _height_of(self, problem: str, width: float, room: float) -> float:
        """Of one or two lines of small text, as many as there is room for."""
        font = self.theme.font("ui", 11)
        line = QFontMetricsF(font).height()
        needs_two = text_width(problem, font) > width
        return 2.25 * line if needs_two and 2.25 * line <= room else line

    def _view(self, rect: QRectF, split: Split) -> View:
        """Lay out the chips; the selected one or what was edited last is in view."""
        made = split, self.shows
        if self._made != made:
            self._made, shows, limit = made, self.shows, split.limit or len(split.tokens)
            items = enumerate(split.tokens)
            self._items = [_item(t, shows, split.stale, i >= limit) for i, t in items]
        wanted = _selected(self.scene) if split.own else min(self._edited, len(split.tokens) - 1)
        return self._flow.view(self._items, rect, self.theme, wanted=wanted)

    def _chip_at(self, pos: QPointF) -> int | None:
        chips = self._lay_out(self.area).chips
        return None if chips is None else self._flow.index_at(pos, chips)

    def _turn(self, n_lines: float) -> bool:
        chips = self._lay_out(self.area).chips
        if chips is None or not chips.scrolls:
            return False
        self._flow.turn(n_lines, chips)
        self.canvas.update()
        return True

    def _counts(self, tokens: tuple[Token, ...]) -> tuple[int, int]:
        """Characters and bytes of the text that these tokens are."""
        if self._counted[0] is not tokens:
            text = b"".join(token.piece for token in tokens)
            self._counted = tokens, len(text.decode("utf-8", "replace")), len(text)
        return self._counted[1:]


def _selected(scene: Scene) -> int | None:
    """The chip that is selected."""
    if scene.moment is None or scene.draft_differs or scene.token is None:
        return None
    return scene.token if scene.token < scene.moment.n_prompt else None


def _first_other(before: tuple[Token, ...], after: tuple[Token, ...]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    same = min(len(before), len(after))
    return next((i for i, (old, new) in pairs if old != new), same)


@lru_cache(maxsize=8192)
def _item(token: Token, shows: str, stale: bool, over: bool) -> Item:
    below = str(token.id) if shows == "ids" else hexadecimal(token.piece)
    return Item(visible(token.piece), below, OVER_TINT * over, "warn", muted=stale)


def _parts(split: Split) -> list[tuple[str, float]]:
    """The meter: the prompt amber, what was written cyan; all of it a warning beyond the limit."""
    if split.limit is None:
        return []
    if split.over:
        return [("warn", 1.0)]
    shares = len(split.tokens) / split.limit, split.n_written / split.limit
    return list(zip(("prefill", "decode"), shares, strict=True))
