"""One draw as shares of 100 %: what each candidate had before and after the rule, and the rest."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.events import Floats, Sampled
from engine.request import Sampling
from engine.sampling import Distribution, distribution

Cut = Literal["top_k", "top_p", "greedy", "tiny"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One id that could have been next."""

    id: int
    rank: int  # before the rule, 0 = the most probable
    raw: float
    final: float  # 0: cut


@dataclass(frozen=True, slots=True)
class Shares:
    """All candidates of one draw under one sampling; arrays by falling raw probability."""

    sampling: Sampling
    n_kept: int
    n_vocab: int
    written: Candidate  # the run went on with it
    choice: Candidate | None  # this rule and the draw's coin choose it; None: picked by hand
    ids: NDArray[np.integer] = field(repr=False, compare=False)  # (N,)
    raw: NDArray[np.float64] = field(repr=False, compare=False)  # (N,)
    final: NDArray[np.float64] = field(repr=False, compare=False)  # (N,)

    @property
    def kept(self) -> NDArray[np.float64]:
        """Final probabilities above 0, falling; those of ids beyond the first N are left out."""
        return self.final[self.final > 0]

    @property
    def greedy(self) -> bool:
        """Whether the largest logit wins, wherever the coin falls."""
        return self.sampling.temperature == 0

    def listed(self, n: int) -> tuple[Candidate, ...]:
        """The n most probable, but the written and the chosen one always, last if need be."""
        marked = {c.rank: c for c in (self.written, self.choice) if c is not None}
        ranks = set(list(marked)[:n])
        for rank in range(len(self.ids)):
            if len(ranks) >= n:
                break
            ranks.add(rank)
        return tuple(marked.get(rank) or self.at(rank) for rank in sorted(ranks))

    def at(self, rank: int) -> Candidate:
        """The candidate of a rank below N."""
        id, raw, final = self.ids[rank], self.raw[rank], self.final[rank]
        return Candidate(int(id), rank, float(raw), float(final))

    def under(self, coin: float) -> Candidate | None:
        """Whom a coin would choose; None if it is an id beyond the first N."""
        kept = np.flatnonzero(self.final > 0)
        place = int(np.searchsorted(np.cumsum(self.final[kept]), coin, side="right"))
        return self.at(int(kept[place])) if place < len(kept) else None

    def place(self, candidate: Candidate) -> int | None:
        """Which of `kept` is this candidate's; None if it is cut or beyond the first N."""
        if candidate.final == 0 or candidate.rank >= len(self.ids):
            return None
        return int(np.count_nonzero(self.final[: candidate.rank]))

    def rest(self, listed: Sequence[Candidate]) -> tuple[float, float]:
        """Raw and final probability of all that is not listed."""
        raw = max(1.0 - sum(c.raw for c in listed), 0.0)
        if len(listed) < self.n_vocab:
            raw = max(raw, sys.float_info.min)  # rounding may hide it: softmax leaves no one out
        if sum(c.final > 0 for c in listed) == self.n_kept:
            return raw, 0.0
        return raw, max(1.0 - sum(c.final for c in listed), 0.0)

    def cut_by(self, candidate: Candidate) -> Cut | None:
        """Which part of the rule took a candidate out; None if it stayed."""
        if candidate.final > 0:
            return None
        if self.greedy:
            return "greedy"
        if self.sampling.top_k and candidate.rank >= self.sampling.top_k:
            return "top_k"
        return "top_p" if self.sampling.top_p < 1 else "tiny"


def recorded(sampled: Sampled, *, n_vocab: int) -> Shares:
    """The draw as it was."""
    written = Candidate(sampled.token.id, sampled.rank, sampled.raw_prob, sampled.final_prob)
    return Shares(
        sampling=sampled.sampling,
        n_kept=sampled.n_kept,
        n_vocab=n_vocab,
        written=written,
        choice=None if sampled.coin is None else written,
        ids=sampled.top_ids,
        raw=sampled.top_raw,
        final=sampled.top_final,
    )


def what_if(sampled: Sampled, logits: Floats, sampling: Sampling) -> Shares:
    """The same draw, same logits and same coin, under another sampling."""
    d = distribution(logits, sampling)
    ids, raw = sampled.top_ids, sampled.top_raw  # (N,) no sampling changes them
    choice = None if sampled.coin is None else _candidate(d, d.choose(sampled.coin), raw)
    return Shares(
        sampling=sampling,
        n_kept=d.n_kept,
        n_vocab=len(logits),
        written=replace(_candidate(d, sampled.token.id, raw), raw=sampled.raw_prob),
        choice=choice,
        ids=ids,
        raw=raw,
        final=d.final(ids),
    )


def _candidate(d: Distribution, id: int, top_raw: NDArray[np.float64]) -> Candidate:
    rank, ids = d.rank(id), np.array([id])
    raw = top_raw[rank] if rank < len(top_raw) else d.raw_of(ids)[0]
    return Candidate(id, rank, float(raw), float(d.final(ids)[0]))
