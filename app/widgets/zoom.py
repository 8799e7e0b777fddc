"""A time axis to zoom and pan: what is in sight, and where a time lies on the screen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SHORTEST = 1_000.0  # ns in sight at the most: no clock that we read is finer


@dataclass(frozen=True, slots=True)
class Scale:
    """Times `start` to `end`, ns, over `width` px from `left` on."""

    left: float
    width: float
    start: float
    end: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def ns_per_px(self) -> float:
        return (self.end - self.start) / max(1.0, self.width)

    def x(self, ns: Ints | Floats) -> Floats:
        """Whole pixels, so that boxes have sharp edges; times out of sight lie at the ends."""
        x = np.rint(self.left + (ns - self.start) / self.ns_per_px)
        return np.minimum(np.maximum(x, self.left), self.right)

    def ns(self, x: float) -> float:
        """The time at a place."""
        return self.start + (x - self.left) * self.ns_per_px


class Zoom:
    """Which stretch of an axis is in sight: all of it, however it grows, until one zooms."""

    def __init__(self) -> None:
        self._seen: tuple[float, float] | None = None

    def seen(self, total: float) -> tuple[float, float]:
        """The stretch in sight of an axis that is `total` ns long, never past its ends."""
        total = max(1.0, total)
        if self._seen is None:
            return 0.0, total
        length = min(self._seen[1] - self._seen[0], total)
        start = min(max(0.0, self._seen[0]), total - length)
        return start, start + length

    def fit(self) -> None:
        """Show all."""
        self._seen = None

    def zoom(self, factor: float, *, about: float, total: float) -> None:
        """Show 1 / factor of what is in sight; the time `about` stays where it is."""
        start, end = self.seen(total)
        length = max(SHORTEST, (end - start) / factor)
        if length >= total:
            self.fit()
            return
        first = about - (about - start) * length / (end - start)
        self._seen = (first, first + length)
        self._seen = self.seen(total)

    def move(self, start: float, *, total: float) -> None:
        """Slide the stretch in sight to begin at `start`; where all is in sight nothing moves."""
        if self._seen is None:
            return
        before, end = self.seen(total)
        self._seen = (start, start + end - before)
        self._seen = self.seen(total)


def nice_step(length: float, *, most: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that divides length into `most` or fewer.

    >>> nice_step(178.0, most=10)
    20.0
    """
    rough = length / max(1.0, most)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(float(n * power) for n in (1, 2, 5, 10) if n * power >= rough * (1 - 1e-9))
