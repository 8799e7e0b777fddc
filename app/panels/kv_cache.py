"""The KV cache panel: what the keys and values cost in bytes, from the real buffers."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app import texts
from app.panels.base import Panel
from app.selection import Scene
from app.widgets.bars import percent
from app.widgets.cache_lanes import Lanes, Parts, draw_lanes, draw_share, lay_out
from app.widgets.legend import Entry, draw_entry, size
from app.widgets.marks import draw_mark, draw_text, text_width
from engine.tokenizer import visible
from engine.trace import Moment

KV_ITEM = 4  # bytes: K and V are kept in float32, whatever the weights are multiplied in


class KvCache(Panel):
    """Used and reserved bytes, layer by layer; the formula beside them; what else takes memory."""

    id = "kv_cache"
    order = 60

    def subtitle(self) -> str:
        moment = self.scene.moment
        return "" if moment is None else _say("caption", n=moment.n_read)

    def figure(self) -> str:
        moment = self.scene.moment
        if moment is None:
            return ""
        return _say("figure", bytes=moment.trace.dimensions.kv_token_bytes(KV_ITEM))

    def key(self, scene: Scene) -> object:
        moment = scene.moment
        if moment is None:
            return None
        shape = moment.trace.dimensions, _n_shown(moment), moment.n_read, _n_reused(scene)
        return shape, moment.forward.memory, scene.token

    def hovered(self, token: object) -> None:
        self.canvas.update()

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        moment, parts = self._moment, self._lay_out(rect)
        self._paint_big(painter, parts)
        if parts.lanes is not None:
            draw_lanes(
                painter,
                parts.lanes,
                self.theme,
                n_used=moment.n_read,
                n_reused=_n_reused(self.scene),
                selected=self._within(self.scene.token),
                hovered=self._within(self.store.hover),
            )
        if parts.axis is not None:
            self._paint_axis(painter, parts.axis)
        if parts.formula is not None:
            self._paint_formula(painter, parts.formula)
        for place, entry in zip(parts.entries, _entries(moment), strict=False):
            draw_entry(painter, place, _say(entry.name), entry, self.theme)

    def press(self, pos: QPointF) -> None:
        """Select the token whose column is under the mouse."""
        position = self._position_at(pos)
        if position is not None and position < len(self._moment.tokens):
            self.store.select(token=position)

    def drag(self, pos: QPointF) -> None:
        self.press(pos)

    def move(self, pos: QPointF) -> None:
        position = self._position_at(pos)
        known = position is not None and position < len(self._moment.tokens)
        self.store.point_at(position if known else None)

    def hint(self, pos: QPointF) -> str:
        moment, parts = self._moment, self._lay_out(self.area)
        memory = moment.forward.memory
        if parts.lanes is not None and parts.lanes.rect.contains(pos):
            return self._cell_tip(parts.lanes, pos)
        if parts.formula is not None and parts.formula.contains(pos):
            same = _product(moment) == memory.kv_used
            return _formula(moment) + "\n" + _say("formula_tip" if same else "unequal_tip")
        if parts.axis is not None and parts.axis.contains(pos):
            return "\n".join(
                filter(None, (_reused_words(self.scene), _layer_words(moment), _axis_words(moment)))
            )
        for place, entry in zip(parts.entries, _entries(moment), strict=False):
            if place.contains(pos):
                return _say(f"{entry.name}_tip", used=entry.used, reserved=entry.reserved)
        if parts.big.contains(pos) or (parts.bar is not None and parts.bar.contains(pos)):
            return _say("big_tip", used=memory.kv_used, reserved=memory.kv_reserved)
        return ""

    def spoken(self) -> str:
        moment = self.scene.moment
        if moment is None:
            return ""
        memory = moment.forward.memory
        return f"{size(memory.kv_used)} {_reserved_words(moment)}. {_formula(moment)}"

    @property
    def _moment(self) -> Moment:
        assert self.scene.moment is not None
        return self.scene.moment

    def _within(self, token: int | None) -> int | None:
        return token if token is not None and token < _n_shown(self._moment) else None

    def _position_at(self, pos: QPointF) -> int | None:
        lanes = self._lay_out(self.area).lanes
        return None if lanes is None else lanes.position_at(pos)

    def _lay_out(self, rect: QRectF) -> Parts:
        moment = self._moment
        return lay_out(
            rect,
            self.theme,
            n_layer=moment.trace.dimensions.n_layer,
            n_shown=_n_shown(moment),
            n_entries=len(_entries(moment)),
        )

    def _paint_big(self, painter: QPainter, parts: Parts) -> None:
        theme, px, memory = self.theme, self.theme.pixels, self._moment.forward.memory
        x, y = parts.big.left(), parts.big.top() + px(22)
        words = size(memory.kv_used)
        x += draw_text(painter, x, y, words, theme.font("strong", 24), theme.color("text"))
        x += draw_mark(painter, x + px(4), y, "measured", theme) + px(12)
        room, font = parts.big.right() - x, theme.font("ui", 11)
        share = percent(_share(self._moment))
        words = _reserved_words(self._moment)
        words = words if text_width(words, font) <= room else share
        draw_text(painter, x, y, words, font, theme.color("muted"), "left", room)
        if parts.bar is not None:
            draw_share(painter, parts.bar, _share(self._moment), theme)

    def _paint_axis(self, painter: QPainter, rect: QRectF) -> None:
        font, color = self.theme.font("ui", 10), self.theme.color("faint")
        y = rect.top() + self.theme.pixels(12)
        taken = draw_text(painter, rect.right(), y, _axis_words(self._moment), font, color, "right")
        room = rect.width() - taken - self.theme.pixels(12)
        reused = _reused_words(self.scene)
        wordings = [_layer_words(self._moment, w) for w in ("layer", "layer_short")]
        words = reused or next((w for w in wordings if text_width(w, font) <= room), "")
        draw_text(painter, rect.left(), y, words, font, color, width=room)

    def _paint_formula(self, painter: QPainter, rect: QRectF) -> None:
        theme, y = self.theme, rect.top() + self.theme.pixels(14)
        x = rect.left() + draw_mark(painter, rect.left(), y, "derived", theme) + theme.pixels(5)
        same = _product(self._moment) == self._moment.forward.memory.kv_used
        fonts = theme.font("mono", 11), theme.font("mono", 10)
        room = rect.right() - x
        fits = [(font, int(room / text_width("0", font))) for font in fonts]
        wordings = ("formula", "formula_short", "formula_least")
        least = _formula(self._moment, wordings[-1]), fonts[-1], 0
        tries = ((_formula(self._moment, w), font, n) for w in wordings for font, n in fits)
        words, font, _ = next((t for t in tries if len(t[0]) <= t[2]), least)
        color = theme.color("text" if same else "warn")
        draw_text(painter, x, y, words, font, color, "left", room)

    def _cell_tip(self, lanes: Lanes, pos: QPointF) -> str:
        moment, d = self._moment, self._moment.trace.dimensions
        position, layer = lanes.position_at(pos), lanes.layer_at(pos)
        if position is None or position >= len(moment.tokens):
            return _say("free_tip")
        token = visible(moment.tokens[position].piece)
        if position >= moment.n_read:
            return _say("unread_tip", token=token)
        facts = {"heads": d.n_head, "size": d.head_size, "item": KV_ITEM}
        cell = d.n_embd * KV_ITEM
        words = _say("cell_tip", layer=layer, position=position, token=token, cell=cell, **facts)
        reused = position < _n_reused(self.scene)
        return words + "\n" + _say("reused_tip") if reused else words


def _entries(moment: Moment) -> tuple[Entry, ...]:
    memory = moment.forward.memory
    half, room = memory.kv_used // 2, memory.kv_reserved // 2  # K and V are of one shape
    entries = (
        Entry("k", half, room, "k"),
        Entry("v", half, room, "v"),
        Entry("q", memory.q_used, memory.q_reserved, "q"),
        Entry("weights", memory.weights, role="weights"),
        Entry("residual", memory.residual_used, memory.residual_reserved),
    )
    if memory.device is not None:
        return (*entries, Entry("device", memory.device))
    return entries if memory.process is None else (*entries, Entry("process", memory.process))


def _n_shown(moment: Moment) -> int:
    """Positions the lanes are wide: what the run asked for, up to the next power of two.

    A whole context of 1,024 would leave a short run a hair's breadth; a width that followed the
    tokens would make the lanes jump.
    """
    asked = max(moment.n_prompt + moment.started.request.max_tokens, moment.n_read, 32)
    return min(1 << (asked - 1).bit_length(), moment.trace.dimensions.n_positions)


def _n_reused(scene: Scene) -> int:
    """Positions that the run, or the branch, found in place when it began."""
    moment, run = scene.moment, scene.session.open_run
    assert moment is not None
    start = 0 if run is None or run.fork_step is None else run.fork_step + 1
    return moment.trace.forwards[start if moment.step >= start else 0].reused


def _product(moment: Moment) -> int:
    return moment.trace.dimensions.kv_token_bytes(KV_ITEM) * moment.n_read


def _formula(moment: Moment, wording: str = "formula") -> str:
    """The formula with the current numbers; if the buffers hold something else, that too."""
    d, used, product = moment.trace.dimensions, moment.forward.memory.kv_used, _product(moment)
    facts = {"layers": d.n_layer, "heads": d.n_head, "size": d.head_size, "item": KV_ITEM}
    each = d.kv_token_bytes(KV_ITEM)
    words = _say(wording, n=moment.n_read, bytes=product, each=each, **facts)
    return words if product == used else _say("unequal", formula=words, used=used)


def _share(moment: Moment) -> float:
    memory = moment.forward.memory
    return memory.kv_used / memory.kv_reserved


def _reserved_words(moment: Moment) -> str:
    reserved = size(moment.forward.memory.kv_reserved)
    return _say("reserved", reserved=reserved, percent=percent(_share(moment)))


def _axis_words(moment: Moment) -> str:
    shown, all_of = _n_shown(moment), moment.trace.dimensions.n_positions
    return _say("axis" if shown < all_of else "axis_all", shown=shown, all=all_of)


def _layer_words(moment: Moment, wording: str = "layer") -> str:
    memory, n_layer = moment.forward.memory, moment.trace.dimensions.n_layer
    used, reserved = memory.kv_used // n_layer, memory.kv_reserved // n_layer
    return _say(wording, used=size(used), reserved=size(reserved))


def _reused_words(scene: Scene) -> str:
    n = _n_reused(scene)
    return _say("reused", n=n) if n else ""


def _say(name: str, **facts: object) -> str:
    return texts.text(f"panel.kv_cache.{name}", **facts)
