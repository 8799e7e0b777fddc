"""The trace: the list of a run's events, and the moment: what a panel may ask of it at a step.

The list is the only truth. A trace copies the rows of each pass into one buffer a kind that grows
with the run, and the events it keeps hold views of them; nothing is computed that the events do
not say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from engine import events as records
from engine.attention import Thumbnails, head_map
from engine.events import (
    Dimensions,
    Event,
    Floats,
    Forward,
    RunFailed,
    RunFinished,
    RunStarted,
    Sampled,
    Token,
    Tokenized,
)
from engine.rows import Rows
from engine.timing import Timing

Kind = Literal["logits", "residual", "attention"]
_FIELDS: dict[Kind, tuple[str, ...]] = {
    "logits": ("logits",),
    "residual": ("residual",),
    "attention": ("q", "k", "v"),
}
_ROW_AXIS = {"q": 2, "k": 2, "v": 2, "residual": 1}


class Trace:
    """One run's events in order, and the arrays that they share.

    `append` is the only way in; it asserts the order R T (F S)* E.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        self.forwards: list[Forward] = []
        self.samples: list[Sampled] = []
        self.tokens: list[Token] = []  # the prompt's, then those written
        self.started: RunStarted | None = None
        self.tokenized: Tokenized | None = None
        self.ended: RunFinished | RunFailed | None = None
        self._rows: dict[str, Rows] = {}
        self._dropped: set[Kind] = set()
        self._thumbnails: Thumbnails | None = None
        for event in events:
            self.append(event)

    @property
    def n_steps(self) -> int:
        """How many passes there are; step k is the k-th and its draw."""
        return len(self.forwards)

    @property
    def n_prompt(self) -> int:
        """How many tokens the prompt has."""
        return len(self.tokenized.tokens) if self.tokenized else 0

    @property
    def dimensions(self) -> Dimensions:
        """The model's."""
        assert self.started is not None
        return self.started.model.dimensions

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays this trace keeps alive."""
        logits = sum(f.logits.nbytes for f in self.forwards if f.logits is not None)
        tops = sum(s.top_ids.nbytes + s.top_raw.nbytes * 2 for s in self.samples)
        return logits + tops + sum(rows.nbytes for rows in self._rows.values())

    def append(self, event: Event) -> Event:
        """Take in the next event and return it as it is kept."""
        assert self.ended is None, "nothing follows the terminal event"
        match event:
            case RunStarted():
                assert not self.events, "a run starts once"
                self.started = event
            case Tokenized():
                assert self.started is not None and self.tokenized is None
                self.tokenized = event
                self.tokens.extend(event.tokens)
            case Forward():
                assert self.tokenized is not None and len(self.samples) == len(self.forwards)
                event = self._keep(event)
                self.forwards.append(event)
            case Sampled():
                assert len(self.samples) == len(self.forwards) - 1, "a draw follows its pass"
                self.samples.append(event)
                self.tokens.append(event.token)
            case RunFinished() | RunFailed():
                assert self.started is not None
                self.ended = event
        self.events.append(event)
        return event

    def at(self, step: int) -> Moment:
        """The run as it stood right after pass `step`."""
        return Moment(self, step)

    def cut(self, step: int) -> Trace:
        """The first part of this trace: all before the draw of `step`. A branch grows from it."""
        forward = self.forwards[step]
        end = next(i for i, event in enumerate(self.events) if event is forward)
        return Trace(self.events[: end + 1])

    def has(self, kind: Kind) -> bool:
        """Whether these arrays were recorded, of every pass, and are still here."""
        return bool(self.forwards) and getattr(self.forwards[0], _FIELDS[kind][0]) is not None

    def drop(self, kind: Kind) -> None:
        """Let these arrays go, now and for the rest of the run. Probabilities of the top stay."""
        self._dropped.add(kind)
        for name in _FIELDS[kind]:
            self._rows.pop(name, None)
        kept = [self._without(forward, kind) for forward in self.forwards]
        swap = {id(old): new for old, new in zip(self.forwards, kept, strict=True)}
        self.forwards = kept
        self.events = [swap.get(id(event), event) for event in self.events]

    def rows(self, name: str) -> Floats | None:
        """Everything recorded under q, k, v (L, H, n, D) or residual (2L + 1, n, C)."""
        return self._rows[name].used if name in self._rows else None

    def thumbnails(self, n: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None:
        """Every head's small map when n positions were read; see `Thumbnails.at`."""
        q, k = self.rows("q"), self.rows("k")
        if q is None or k is None:
            return None
        if self._thumbnails is None:
            self._thumbnails = Thumbnails(*q.shape[:2])
        self._thumbnails.grow(q, k)
        return self._thumbnails.at(n, q, k)

    def _keep(self, forward: Forward) -> Forward:
        for kind, names in _FIELDS.items():
            given = getattr(forward, names[0]) is not None
            if self.forwards and given != self.has(kind) and kind not in self._dropped:
                self.drop(kind)  # all passes have it, or none: rows of some would be misplaced
        for kind in self._dropped:
            forward = self._without(forward, kind)
        views: dict[str, Floats] = {}
        for name, axis in _ROW_AXIS.items():
            new: Floats | None = getattr(forward, name)
            if new is not None:
                rows = self._rows.get(name)
                if rows is None:
                    rows = self._rows[name] = Rows(new, axis, self._room())
                views[name] = rows.extend(new)
        return replace(forward, **views) if views else forward  # type: ignore[arg-type]

    def _room(self) -> int:
        assert self.started is not None
        asked = self.n_prompt + self.started.request.max_tokens
        return min(asked, self.dimensions.n_positions)

    @staticmethod
    def _without(forward: Forward, kind: Kind) -> Forward:
        return replace(forward, **dict.fromkeys(_FIELDS[kind]))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Moment:
    """A run as it stood right after pass `step`; it cannot see what came later."""

    trace: Trace
    step: int

    @property
    def started(self) -> RunStarted:
        """The run's first event."""
        assert self.trace.started is not None
        return self.trace.started

    @property
    def tokenized(self) -> Tokenized:
        """The prompt's tokens."""
        assert self.trace.tokenized is not None
        return self.trace.tokenized

    @property
    def forward(self) -> Forward:
        """The pass of this step."""
        return self.trace.forwards[self.step]

    @property
    def sampled(self) -> Sampled | None:
        """The draw of this step; None while it is being made, or where the run was cut."""
        return self.sample_at(self.step)

    @property
    def n_prompt(self) -> int:
        """How many of the tokens are the prompt's."""
        return self.trace.n_prompt

    @property
    def n_read(self) -> int:
        """Positions whose K and V are in the cache; the token drawn last is not yet read."""
        return self.forward.first + self.forward.count

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The prompt's tokens and those drawn up to and with this step."""
        return tuple(self.trace.tokens[: self.n_prompt + self.step + 1])

    @property
    def finished(self) -> RunFinished | RunFailed | None:
        """How the run ended, if this is its last step."""
        return self.trace.ended if self.step == self.trace.n_steps - 1 else None

    @property
    def timing(self) -> Timing:
        """Latencies and rates up to this step."""
        end = self.step + 1
        return Timing(self.tokenized, self.trace.forwards[:end], self.trace.samples[:end])

    def has(self, kind: Kind) -> bool:
        """Whether these arrays were recorded."""
        return self.trace.has(kind)

    def sample_at(self, step: int) -> Sampled | None:
        """The draw of an earlier step or of this one."""
        return self.trace.samples[step] if 0 <= step < self._n_samples else None

    def sample_of(self, token: int) -> Sampled | None:
        """The draw that made the token at this index; None for the prompt's tokens."""
        return self.sample_at(token - self.n_prompt)

    def head_map(self, layer: int, head: int) -> Floats | None:
        """One head's map, (n_read, n_read); None if Q and K were not recorded."""
        q, k = self.trace.rows("q"), self.trace.rows("k")
        if q is None or k is None:
            return None
        return head_map(q[layer, head, : self.n_read], k[layer, head, : self.n_read])

    def thumbnails(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None:
        """Every head's small map, (L, H, m, m); None if Q and K were not recorded."""
        return self.trace.thumbnails(self.n_read)

    @property
    def _n_samples(self) -> int:
        return min(self.step + 1, len(self.trace.samples))


def same(a: Trace, b: Trace) -> bool:
    """Whether two traces hold equal events, arrays bit for bit."""
    return len(a.events) == len(b.events) and all(
        records.same(x, y) for x, y in zip(a.events, b.events, strict=True)
    )
