"""The Next token panel: how one distribution became one token, and what other sliders would do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QObject, QPointF, QRectF
from PySide6.QtGui import QPainter

from app import texts
from app.panels.base import Panel
from app.selection import Scene
from app.store import Store
from app.theme import Theme
from app.widgets import bars, shares, stack
from app.widgets.bars import Bar, Layout, percent
from app.widgets.shares import Candidate, Shares
from engine import tokenizer
from engine.events import Sampled
from engine.request import Sampling
from engine.tokenizer import visible


@dataclass(frozen=True, slots=True)
class Draw:
    """The draw that is shown: which step's, as it was or under other sliders."""

    step: int
    sampled: Sampled
    shares: Shares
    selected: bool  # the token it made is the selected one
    what_if: bool
    notice: str  # what must be known to read the bars rightly

    @property
    def badge(self) -> str:
        """The word in front of the notice."""
        return texts.text("controls.what_if") if self.what_if else ""


class NextToken(Panel):
    """The selected token's draw, or the step's where the selected token was read, not drawn."""

    id = "next_token"
    order = 50

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        # The last answer: a repaint must not cost 50,257 exponentials again.
        self._known: tuple[tuple[Sampled, Sampling], Shares] | None = None

    def subtitle(self) -> str:
        found = _find(self.scene)
        if found is None:
            return ""
        assert self.scene.moment is not None
        before = self.scene.moment.trace.tokens[found[1].position - 1]
        return _say("caption", token=visible(before.piece))

    def figure(self) -> str:
        found = _find(self.scene)
        return "" if found is None else _say("figure", bits=found[1].entropy)

    def key(self, scene: Scene) -> object:
        found = _find(scene)
        if found is None or scene.moment is None:
            return None
        step, sampled = found
        wanted = scene.draft.sampling if scene.draft.sampling != sampled.sampling else None
        has_logits = scene.moment.trace.forwards[step].logits is not None
        return sampled, wanted, has_logits, scene.token

    def empty(self) -> str | None:
        sentence = super().empty()
        if sentence is None and _find(self.scene) is None:
            return _say("undrawn")
        return sentence

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        draw = self._draw()
        notice, layout = self._lay_out(rect, draw)
        if draw.notice:
            bars.draw_notice(painter, notice, draw.notice, draw.badge, self.theme)
        if layout.header is not None:
            rule = _say("after", rule=_rule(draw.shares.sampling))
            bars.draw_header(
                painter, layout, _say("raw"), (rule, _say("final"), _say("final_short"))
            )
        listed = draw.shares.listed(len(layout.rows) - 1)
        bars.draw_rows(painter, layout, self._bars(draw, listed), outlined=draw.what_if)
        if layout.stack is not None:
            self._paint_stack(painter, layout, draw)
        if layout.caption is not None:
            self._paint_caption(painter, layout, draw)

    def double(self, pos: QPointF) -> None:
        """Go on from this draw with another token."""
        draw, candidate = self._draw(), self._candidate_at(pos)
        if candidate is not None and not self.scene.running:
            self.store.branch(candidate.id, step=draw.step)

    def hint(self, pos: QPointF) -> str:
        draw = self._draw()
        notice, layout = self._lay_out(self.area, draw)
        if draw.notice and notice.contains(pos):
            return draw.notice
        if layout.header is not None and layout.header.contains(pos):
            return _say("header_tip", rule=_rule(draw.shares.sampling))
        candidate = self._candidate_at(pos)
        if candidate is not None:
            return self._tip(draw, candidate)
        if layout.row_at(pos) is not None:
            return _rest_tip(draw, draw.shares.listed(len(layout.rows) - 1))
        below = (layout.stack, layout.caption)
        if any(part is not None and part.contains(pos) for part in below):
            return self._coin_tip(draw)
        return ""

    def spoken(self) -> str:
        if self.empty() is not None:
            return ""
        draw = self._draw()
        rows = self._bars(draw, draw.shares.listed(5))
        told = ", ".join(f"{bar.label} {percent(bar.before)} → {bar.words}" for bar in rows)
        notice = f"{draw.badge} {draw.notice}".strip()
        sentences = (super().spoken(), notice, told, _coin_words(draw)[0])
        return ". ".join(sentence for sentence in sentences if sentence)

    def _draw(self) -> Draw:
        found, moment = _find(self.scene), self.scene.moment
        assert found is not None and moment is not None and self.scene.token is not None
        step, sampled = found
        wanted, logits = self.scene.draft.sampling, moment.trace.forwards[step].logits
        differs = wanted != sampled.sampling
        what_if = differs and logits is not None
        known = (sampled, wanted if what_if else sampled.sampling)
        if self._known is None or self._known[0] != known:
            if what_if and logits is not None:
                value = shares.what_if(sampled, logits, wanted)
            else:
                value = shares.recorded(sampled, n_vocab=moment.trace.dimensions.n_vocab)
            self._known = known, value
        notices = []
        if what_if:
            notices.append(_say("drawn_with", rule=_rule(sampled.sampling)))
        elif differs:
            notices.append(_say("no_logits"))
        if self.scene.token < moment.n_prompt:
            token = moment.trace.tokens[self.scene.token]
            notices.append(_say("read", token=visible(token.piece)))
        selected = self.scene.token == sampled.position
        return Draw(step, sampled, self._known[1], selected, what_if, " ".join(notices))

    def _lay_out(self, rect: QRectF, draw: Draw) -> tuple[QRectF, Layout]:
        """Where the notice lies, and below it all the rest."""
        size = rect.width(), rect.height()
        height = bars.notice_height(draw.notice, draw.badge, *size, self.theme)
        notice = QRectF(rect.left(), rect.top(), rect.width(), height)
        body = rect.adjusted(0, height, 0, 0)
        return notice, bars.lay_out(body, self.theme, n_rows=len(draw.shares.ids) + 1)

    def _bars(self, draw: Draw, listed: tuple[Candidate, ...]) -> list[Bar]:
        rows, above = [], -1
        for c in listed:
            chosen = c.id == draw.shares.written.id
            rows.append(
                Bar(
                    label=_label(c.id),
                    before=c.raw,
                    after=c.final,
                    words=percent(c.final) if c.final > 0 else _say("cut"),
                    cut=c.final == 0,
                    chosen=chosen,
                    selected=chosen and draw.selected,
                    fallen=c == draw.shares.choice and not draw.shares.greedy,
                    jump=c.rank > above + 1,
                )
            )
            above = c.rank
        raw, final = draw.shares.rest(listed)
        rows.append(Bar(_say("rest"), raw, final, percent(final), rest=True))
        return rows

    def _paint_stack(self, painter: QPainter, layout: Layout, draw: Draw) -> None:
        stack.draw_stack(
            painter,
            layout,
            draw.shares.kept.tolist(),
            chosen=draw.shares.place(draw.shares.written),
            coin=None if draw.shares.greedy else draw.sampled.coin,
            outlined=draw.what_if,
        )

    def _paint_caption(self, painter: QPainter, layout: Layout, draw: Draw) -> None:
        n, all_of = draw.shares.n_kept, draw.shares.n_vocab
        kept = (_say("kept", kept=n, vocabulary=all_of), _say("kept_short", kept=n))
        thrown = draw.sampled.coin is not None and not draw.shares.greedy
        stack.draw_caption(painter, layout, _coin_words(draw), kept, "coin" if thrown else "muted")

    def _candidate_at(self, pos: QPointF) -> Candidate | None:
        """The candidate whose row, or whose part of the stack, is under a place."""
        draw = self._draw()
        _, layout = self._lay_out(self.area, draw)
        row = layout.row_at(pos)
        if row is not None:
            listed = draw.shares.listed(len(layout.rows) - 1)
            return listed[row] if row < len(listed) else None
        if layout.stack is None or not layout.stack.contains(pos):
            return None
        return draw.shares.under((pos.x() - layout.stack.left()) / layout.stack.width())

    def _tip(self, draw: Draw, c: Candidate) -> str:
        token = tokenizer.load().token(c.id)
        lines = [
            _say("tip_token", token=visible(token.piece), number=c.id, bytes=token.piece.hex(" ")),
            _say("tip_raw", raw=percent(c.raw), rank=c.rank + 1, n=draw.shares.n_vocab),
        ]
        rule, cut = _rule(draw.shares.sampling), draw.shares.cut_by(c)
        if cut is None:
            lines.append(_say("tip_final", final=percent(c.final), rule=rule))
        else:
            k, p = draw.shares.sampling.top_k, draw.shares.sampling.top_p
            lines.append(_say(f"cut_{cut}", rank=c.rank + 1, k=k, p=p))
        lines.append(_say("tip_wait" if self.scene.running else "tip_branch"))
        return "\n".join(lines)

    def _coin_tip(self, draw: Draw) -> str:
        moment, coin = self.scene.moment, draw.sampled.coin
        assert moment is not None
        if coin is None:
            return _say("picked_tip")
        seed, of = moment.started.request.seed, draw.shares
        how = _say("coin_tip", coin=coin, seed=seed, position=draw.sampled.position)
        facts = {"kept": of.n_kept, "vocabulary": of.n_vocab, "rule": _rule(of.sampling)}
        return (_say("greedy_tip") if of.greedy else how) + "\n" + _say("kept_tip", **facts)


def _find(scene: Scene) -> tuple[int, Sampled] | None:
    """The draw to show and its step: of the selected token if it was drawn, else the step's."""
    moment, token = scene.moment, scene.token
    if moment is None or token is None:
        return None
    step = token - moment.n_prompt
    if step < 0:  # read, not drawn
        step = len(moment.tokens) - moment.n_prompt - 1
    sampled = moment.sample_at(step)
    return None if sampled is None else (step, sampled)


def _say(name: str, **facts: object) -> str:
    return texts.text(f"panel.next_token.{name}", **facts)


@lru_cache(maxsize=4096)
def _label(id: int) -> str:
    return visible(tokenizer.load().token(id).piece)


def _rule(sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return texts.text("controls.temperature_off")
    top_k = str(sampling.top_k) if sampling.top_k else texts.text("controls.top_k_off")
    top_p = f"{sampling.top_p:g}" if sampling.top_p < 1 else texts.text("controls.top_p_off")
    return _say("rule", temperature=f"{sampling.temperature:g}", top_k=top_k, top_p=top_p)


def _coin_words(draw: Draw) -> tuple[str, ...]:
    """What decided, in wordings that get shorter."""
    choice = draw.shares.choice
    if choice is None or draw.sampled.coin is None:
        return (_say("picked"),)
    if draw.shares.greedy:
        return (_say("greedy_to", token=_label(choice.id)), _say("greedy"))
    coin = math.floor(draw.sampled.coin * 1e4) / 1e4  # cut, not rounded: it stays below 1
    return (_say("coin_to", coin=coin, token=_label(choice.id)), _say("coin", coin=coin))


def _rest_tip(draw: Draw, listed: tuple[Candidate, ...]) -> str:
    raw, final = draw.shares.rest(listed)
    n = draw.shares.n_vocab - len(listed)
    return _say("rest_tip", n=n, raw=percent(raw), final=percent(final))
