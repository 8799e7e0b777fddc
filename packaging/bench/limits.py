"""What this machine can do at best, asked of torch: bytes read and numbers multiplied a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypedDict

import numpy as np
import torch

from engine import linear

ROWS, N_IN, N_OUT = 512, 768, 3072  # a prompt through the widest matrix of GPT-2 124M
N_ROWS = 2**17  # of N_IN float32 numbers, 384 MiB: no cache holds it
REPEATS = 2  # the fastest counts, and every round of the bench measures again


class Limits(TypedDict):
    """As it goes over the pipe; an operation torch lacks here is not in `flops_s`."""

    bytes_s: float
    flops_s: dict[str, float]  # by dtype


class Prober:
    """Holds what it measures with, so that a second look costs a third of a second."""

    def __init__(self, dtypes: list[str], n_threads: int) -> None:
        torch.set_num_threads(n_threads)
        self._table = torch.ones(N_ROWS, N_IN)
        random = np.random.default_rng(0)
        weight = random.standard_normal((N_IN, N_OUT), np.float32)
        self._products = {
            name: list(_products(weight, getattr(torch, name)))
            for name in dtypes
            if name in ("float32", "bfloat16")
        }

    def measure(self) -> Limits:
        """The best of several ways to read a buffer, and of our ways to pack a matrix."""
        table = self._table
        flat = table.view(-1)
        reads: list[Callable[[], object]] = [
            flat.sum,
            flat.max,
            lambda: torch.dot(flat, flat),
            lambda: torch.mv(table, table[0]),
        ]
        flops = 2 * ROWS * N_IN * N_OUT
        with torch.inference_mode():
            return {
                "bytes_s": table.nbytes / min(map(_seconds, reads)),
                "flops_s": {
                    name: flops / min(map(_seconds, products))
                    for name, products in self._products.items()
                },
            }


def _products(weight: np.ndarray, dtype: torch.dtype) -> Iterator[Callable[[], object]]:
    x = torch.ones(ROWS, N_IN, dtype=dtype)
    for kind in linear.kinds("cpu", dtype, exact_in_half=False):
        try:
            packed = linear.pack(weight, None, dtype=dtype, kind=kind)
            packed(x)
        except RuntimeError:  # this torch has no such kind
            continue
        yield lambda packed=packed: packed(x)  # type: ignore[misc]


def _seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
