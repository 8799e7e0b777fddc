"""The largest of many numbers, in order, without sorting all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.softmax import exponents

Floats = NDArray[np.float64]
Ids = NDArray[np.intp]

GROUPS = 1_024
FEW = 1_024  # numbers that are sorted sooner than picked over


def ranking(values: Floats, n: int) -> Ids:
    """(n,) places of the n largest values, largest first, lower place first on ties.

    >>> ranking(np.array([1.0, 3.0, 2.0, 3.0]), 3)
    array([1, 3, 2])
    """
    if n >= len(values) or len(values) <= FEW:
        return np.argsort(-values, kind="stable")[:n]
    edge = np.partition(values, len(values) - n)[len(values) - n]
    above = np.flatnonzero(values > edge)  # fewer than n
    above = above[np.argsort(-values[above], kind="stable")]
    ties = np.flatnonzero(values == edge)  # there may be thousands, all alike
    return np.concatenate([above, ties[: n - len(above)]])


def ranking_of_logits(logits: NDArray[np.floating], largest: float, n: int) -> Ids:
    """`ranking(exponents(logits, largest), n)`, most often from a few hundred of them.

    Of 1,024 groups of logits n have a largest of at least the n-th largest of the 1,024: so do n
    logits, and who is smaller is not among the first n.
    """
    n_rows = len(logits) // GROUPS
    if n_rows < 8 or n > GROUPS:
        return ranking(exponents(logits, largest), n)
    tops = logits[: n_rows * GROUPS].reshape(n_rows, GROUPS).max(axis=0)  # (GROUPS,)
    bound = float(np.partition(tops, GROUPS - n)[GROUPS - n])
    # Logits that differ may be as far from the largest once float64 has rounded the distance.
    slack = 2.0**-50 * (abs(largest) + abs(bound))
    with np.errstate(over="ignore"):  # below the smallest float16 or float32 all are candidates
        least = logits.dtype.type(bound - slack)
    ids = np.flatnonzero(logits >= least)
    return ids[ranking(exponents(logits[ids], largest), n)]
