"""A run's spans on one clock: end to end in the model's own time, or as the wall clock saw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.events import Forward, Sampled, Span, Tokenized

Clock = Literal["own", "wall"]
Ints = NDArray[np.int64]

WAIT_SHOWN = 1_000_000  # ns that a pass must have waited for its wait to be marked
GAP_KEPT = {"own": 0, "wall": 1_000_000_000}  # ns; a longer gap takes no room on that clock


@dataclass(frozen=True, slots=True)
class Fold:
    """A place where the clock stands still."""

    at: int  # ns on the axis
    length: int | None  # ns left out; None where two clocks meet and nobody knows


@dataclass(frozen=True, eq=False)
class Course:
    """Where the spans of n passes and their draws lie on an axis that starts at 0, in ns.

    `spans` are as measured, `axis` as laid: the run's start, the tokenizing, then pass, draw,
    pass, draw. The last draw may be missing; its block then ends with its pass.
    """

    clock: Clock
    spans: Ints  # (2 + passes + draws, 2)
    axis: Ints  # the same shape
    folds: tuple[Fold, ...]

    @property
    def n_drawn(self) -> int:
        return (len(self.axis) - 2) // 2

    @property
    def total(self) -> int:
        """How long the axis is."""
        return int(self.axis[-1, 1])

    @property
    def own_ns(self) -> int:
        """How long the model itself has worked: all spans, no gap."""
        return int((self.spans[:, 1] - self.spans[:, 0]).sum())

    @cached_property
    def edges(self) -> Ints:
        """(n, 4): where each pass starts and ends, where its draw starts and ends."""
        passes, draws = self.axis[2::2], self.axis[3::2]
        if len(draws) < len(passes):
            draws = np.vstack([draws, passes[-1:, [1, 1]]])
        return np.hstack([passes, draws])  # (n, 4)

    @cached_property
    def latencies(self) -> Ints:
        """(n,) pass + draw, for each token but the first its inter-token latency; 0 = not yet."""
        lengths = self.spans[2:, 1] - self.spans[2:, 0]
        sums = np.zeros(len(self.edges), np.int64)
        sums[: self.n_drawn] = lengths[: 2 * self.n_drawn].reshape(-1, 2).sum(axis=1)
        return sums  # (n,)

    def ticks(self, start: float, end: float, step: float) -> list[tuple[float, float]]:
        """Multiples of step on the clock's face between two places: (place, what the clock says).

        On the wall clock a fold moves the face on by what it left out.
        """
        found: list[tuple[float, float]] = []
        left_out, begin = 0, 0.0
        for fold in (*self._jumps, Fold(self.total, None)):
            first, last = max(start, begin), min(end, float(fold.at))
            n = np.arange(np.ceil((first + left_out) / step), (last + left_out) // step + 1)
            found += [(float(tick) - left_out, float(tick)) for tick in n * step]
            begin, left_out = float(fold.at), left_out + (fold.length or 0)
        return found

    @property
    def _jumps(self) -> tuple[Fold, ...]:
        return self.folds if self.clock == "wall" else ()


def course(
    at_ns: int,
    tokenized: Tokenized,
    forwards: Sequence[Forward],
    samples: Sequence[Sampled],
    *,
    clock: Clock,
) -> Course:
    """Lay a run that began at `at_ns` on a clock; the i-th sample belongs to the i-th pass.

    In own time every gap is folded and a wait of more than 1 ms is marked. On the wall clock gaps
    stay, but for those over 1 s and for those that run backwards: a branch may grow from a run of
    another day, whose clock has nothing to do with today's.
    """
    spans = np.empty((2 + len(forwards) + len(samples), 2), np.int64)
    spans[0] = at_ns
    spans[1] = tokenized.span
    spans[2::2] = _array([forward.span for forward in forwards])
    spans[3::2] = _array([sampled.span for sampled in samples])
    axis, folded = laid(spans, gap_kept=GAP_KEPT[clock])
    if clock == "own":
        waits = [(2 + 2 * i, forward.waited_ns) for i, forward in enumerate(forwards)]
        folds = [Fold(int(axis[i, 0]), wait) for i, wait in waits if wait > WAIT_SHOWN]
    else:
        gaps = spans[1:, 0] - spans[:-1, 1]
        folds = [
            Fold(int(axis[i, 0]), int(gaps[i - 1]) if _known(i, int(gaps[i - 1])) else None)
            for i in np.flatnonzero(folded).tolist()
        ]
    return Course(clock, spans, axis, tuple(folds))


def laid(spans: Ints, *, gap_kept: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Put spans on one axis that starts at 0 and stands still in long gaps.

    Args:
        spans: (m, 2) starts and ends, ns, in the order they happened.
        gap_kept: a gap of more ns than this takes no room; 0 lays the spans end to end.

    Returns:
        (m, 2) where the spans lie, ns, and (m,) whether the gap before each was folded; one that
        runs backwards always is.

    >>> laid(np.array([[100, 130], [150, 160], [900, 950]]), gap_kept=50)[0].tolist()
    [[0, 30], [50, 60], [60, 110]]
    """
    gaps = spans[1:, 0] - spans[:-1, 1]  # (m - 1,)
    folded = np.concatenate([[False], (gaps < 0) | (gaps > gap_kept)])  # (m,)
    lengths = spans[:, 1] - spans[:, 0]  # (m,)
    strides = np.where(folded[1:], 0, gaps) + lengths[:-1]  # (m - 1,)
    starts = np.concatenate([[0], np.cumsum(strides)])  # (m,)
    return np.stack([starts, starts + lengths], axis=1), folded  # (m, 2)


def _array(spans: Sequence[Span]) -> Ints:
    """(n, 2); three times as fast as numpy's own way from tuples."""
    flat = np.fromiter(chain.from_iterable(spans), np.int64, 2 * len(spans))
    return flat.reshape(-1, 2)


def _known(span: int, gap: int) -> bool:
    """Whether a folded gap is time that passed; before a draw it is where a branch took over."""
    is_draw = span >= 3 and span % 2 == 1
    return gap >= 0 and not is_draw
