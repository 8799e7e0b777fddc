"""What the weights of all ids sum to, in float64 and no slower than it must be."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Sums = Callable[[NDArray[np.floating], float, float], tuple[float, float]]

BLOCK = 8_192  # numbers that stay in the cache; OpenBLAS starts threads for a dot of 10,001


def sums(
    logits: NDArray[np.floating], largest: float, temperature: float = 1.0
) -> tuple[float, float]:
    """Sum of w and sum of w u over all ids, u = (logit - largest) / temperature, w = exp u.

    Args:
        logits: (V,), any float dtype; -inf weighs nothing.
        largest: of the logits, finite.
        temperature: above 0.

    >>> total, moment = sums(np.log([0.1, 0.2, 0.3, 0.4]), math.log(0.4))
    >>> round(total, 12), round(moment, 12)  # the first is 1 / 0.4
    (2.5, -0.908908734899)
    """
    totals, moments = [], []
    for first in range(0, len(logits), BLOCK):
        u = exponents(logits[first : first + BLOCK], largest, temperature)
        w = np.exp(u)
        totals.append(float(w.sum()))
        moments.append(_dot(w, u))
    return math.fsum(totals), math.fsum(moments)


def exponents(logits: NDArray[np.floating], largest: float, temperature: float = 1.0) -> Floats:
    """(logits - largest) / temperature in float64, fresh; -inf where even that overflows."""
    u = logits.astype(np.float64)
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the largest to -inf
        u -= largest
        if temperature != 1:
            u /= temperature
    return u


def _dot(w: Floats, u: Floats) -> float:
    found = float(np.vdot(w, u))
    if math.isnan(found):  # 0 x -inf: some ids can never happen
        found = float(np.vdot(w[w > 0], u[w > 0]))
    return found
