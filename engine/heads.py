"""What one head does: its map, grown row by row, and how much of it follows a known pattern."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from engine.attention import rows
from engine.events import Floats
from engine.trace import Moment, Trace

Pattern = Literal["previous", "first", "current", "duplicate", "induction"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

STRONG = 0.5  # a head has a tag where one pattern takes at least half of its attention,
ENOUGH = 3  # seen in at least so many queries


@dataclass(frozen=True, slots=True)
class Score:
    """The share of its attention that a head gives to one pattern, as a mean over queries."""

    share: float  # 0 to 1
    n_queries: int  # over which the mean was taken


class GrowingHead:
    """One head at any moment of a run: its map and its scores, of which only new rows are computed.

    A row depends on nothing that comes after it: an earlier moment is the upper left corner of a
    later one. The same moment and head give the same array object.
    """

    def __init__(self) -> None:
        self._of: tuple[ReferenceType[Trace], int, int] | None = None
        self._n: int  # rows that are computed
        self._weights: Floats
        self._shares: NDArray[np.float64]
        self._shown: Floats  # what `at` gave last
        self._clear()

    def at(self, moment: Moment, layer: int, head: int) -> Floats | None:
        """(n_read, n_read), the future exactly 0; None if Q and K are not here."""
        q, k = moment.trace.rows("q"), moment.trace.rows("k")
        if q is None or k is None:
            return None
        n, of = moment.n_read, (ref(moment.trace), layer, head)
        if of != self._of:
            self._of = of
            self._clear()
        if n > self._n:
            ids = [token.id for token in moment.tokens[:n]]
            self._grow(q[layer, head, :n], k[layer, head, :n], ids)
        if len(self._shown) != n:
            self._shown = self._weights[:n, :n]
            self._shown.flags.writeable = False
        return self._shown

    def scores(self) -> dict[Pattern, Score]:
        """Of the map that `at` gave last; see `scores`."""
        return _means(self._shares[: len(self._shown)])

    def _clear(self) -> None:
        self._n = 0
        self._shown = self._weights = np.zeros((0, 0), np.float32)
        self._shares = np.zeros((0, len(PATTERNS)))

    def _grow(self, q: Floats, k: Floats, ids: Sequence[int]) -> None:
        """Add the rows from the first that is missing; q and k are (n, D)."""
        first, n = self._n, len(q)
        if n > len(self._weights):
            room = max(n, 2 * len(self._weights), 64)
            weights, shares = np.zeros((room, room), np.float32), np.zeros((room, len(PATTERNS)))
            weights[:first, :first] = self._weights[:first, :first]
            shares[:first] = self._shares[:first]
            self._weights, self._shares = weights, shares
        new = rows(q[None, None], k[None, None], first)[0, 0]  # (n - first, n)
        self._weights[first:n, :n] = new
        self._shares[first:n] = _shares(new, ids)
        self._n = n


def scores(weights: Floats, ids: Sequence[int]) -> dict[Pattern, Score]:
    """How much of its attention a head gives, on average, to five places with a name.

    Only patterns that these tokens have a query for are in the answer; the query at 0 can look
    nowhere but at itself and counts for none.

    previous: the key just before the query. The mean of weights[i, i - 1].
    first: the first key, where heads look that have nothing to find (a sink). weights[i, 0].
    current: the query's own token. weights[i, i].
    duplicate: earlier copies of the query's token. The sum of weights[i, j] over all j < i with
        ids[j] == ids[i], for queries that have one.
    induction: what came after those copies. The sum of weights[i, j + 1] over the same j with
        j + 1 < i, for queries that have one.

    Args:
        weights: (n, n), query rows, key columns.
        ids: n token ids.

    >>> map = np.array([[1, 0, 0], [1, 0, 0], [0.5, 0.25, 0.25]], np.float32)
    >>> found = scores(map, [7, 8, 7])  # 7 comes twice: its copy is at 0, what followed it at 1
    >>> {pattern: score.share for pattern, score in found.items()}
    {'previous': 0.625, 'first': 0.75, 'current': 0.125, 'duplicate': 0.5, 'induction': 0.25}
    """
    return _means(_shares(weights, ids))


def terms(moment: Moment, layer: int, head: int, *, query: int, key: int) -> tuple[float, float]:
    """What one weight is made of: weight = exp(score - log_sum).

    Returns:
        score: q · k / sqrt(D) of this query and key.
        log_sum: ln of the sum of exp over the scores of this query with the keys 0 to query.
    """
    q, k = moment.trace.rows("q"), moment.trace.rows("k")
    assert q is not None and k is not None and key <= query < moment.n_read
    values = k[layer, head, : query + 1].astype(np.float64) @ q[layer, head, query]  # (query + 1,)
    values /= math.sqrt(q.shape[-1])
    peak = float(values.max())
    return float(values[key]), peak + math.log(float(np.exp(values - peak).sum()))


def tag(scores: Mapping[Pattern, Score]) -> tuple[Pattern, Score] | None:
    """The pattern that takes most of a head's attention, if it is strong and often enough seen."""
    strong = [
        (pattern, score)
        for pattern, score in scores.items()
        if score.share >= STRONG and score.n_queries >= ENOUGH
    ]
    return max(strong, key=lambda found: found[1].share, default=None)


def _shares(weights: Floats, ids: Sequence[int]) -> NDArray[np.float64]:
    """What each query gives to each pattern, NaN where it has no key for it.

    Args:
        weights: (m, n), the last m rows of a map.
        ids: n token ids.

    Returns:
        (m, 5), columns as in PATTERNS.
    """
    m, n = weights.shape
    tokens, keys, queries = np.asarray(ids), np.arange(n), np.arange(n - m, n)
    row = np.arange(m)
    copies = (tokens[queries][:, None] == tokens) & (keys < queries[:, None])  # (m, n)
    after = np.zeros_like(copies)
    after[:, 1:] = copies[:, :-1]
    after[row, queries] = False  # what came after the copy is the query itself
    found = np.full((m, len(PATTERNS)), np.nan)
    found[:, 0] = weights[row, np.maximum(queries - 1, 0)]
    found[:, 1] = weights[:, 0]
    found[:, 2] = weights[row, queries]
    for column, places in ((3, copies), (4, after)):
        has = places.any(axis=1)
        found[has, column] = np.where(places[has], weights[has], 0).sum(axis=1)  # (has,)
    found[queries == 0] = np.nan
    return found


def _means(shares: NDArray[np.float64]) -> dict[Pattern, Score]:
    """The mean of each column of shares over the queries that have one."""
    counts = np.count_nonzero(~np.isnan(shares), axis=0)  # (5,)
    sums = np.nansum(shares, axis=0)  # (5,)
    return {
        pattern: Score(float(total / count), int(count))
        for pattern, total, count in zip(PATTERNS, sums, counts, strict=True)
        if count
    }
