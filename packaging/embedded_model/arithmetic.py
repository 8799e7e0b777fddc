"""In which numbers this processor multiplies matrices fastest, told by the clock."""

from __future__ import annotations

import time

import torch

SHAPE = (512, 256, 1_024)  # a quarter of the most common product of a training step
N_TRIES = 3
LEAD = 1.2  # bfloat16 must be this much faster to be worth its rounding
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def fastest() -> str:
    """One of DTYPES: "bfloat16" where it is clearly faster, else "float32"."""
    seconds = {name: _seconds(dtype) for name, dtype in DTYPES.items()}
    return "bfloat16" if seconds["float32"] > LEAD * seconds["bfloat16"] else "float32"


def _seconds(dtype: torch.dtype) -> float:
    """The best of a few tries of one product."""
    n, k, m = SHAPE
    a, b = torch.ones(n, k, dtype=dtype), torch.ones(m, k, dtype=dtype)
    best = float("inf")
    for _ in range(N_TRIES):
        start = time.perf_counter()
        a @ b.t()  # (n, m)
        best = min(best, time.perf_counter() - start)
    return best
