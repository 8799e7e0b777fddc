"""Any head's attention map from the recorded Q and K, and what all heads look like at a glance.

A = softmax(Q K^T / sqrt(D)) over the keys a query may see: itself and what came before.
H heads, L layers, n positions, D numbers a head; m cells a side of a thumbnail.
"""

from __future__ import annotations

import math
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
A = TypeVar("A", bound=NDArray[np.generic])

BLOCK = 64  # rows of a map at a time: they and their keys stay in the processor's cache


def head_map(q: Floats, k: Floats) -> Floats:
    """One head's whole map.

    Args:
        q: (n, D) recorded queries of the head.
        k: (n, D) recorded keys of the head.

    Returns:
        (n, n) float32, query rows, key columns; each row sums to 1, the future is exactly 0.

    >>> head_map(np.zeros((2, 4), np.float32), np.zeros((2, 4), np.float32)).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    n, scaled = len(q), q * _scale(q)
    found = np.zeros((n, n), np.float32)
    for first in range(0, n, BLOCK):  # the future of a block is never computed
        end = min(n, first + BLOCK)
        _softmax(_scores(scaled[first:end], k[:end], first), out=found[first:end, :end])
    return found


def rows(q: Floats, k: Floats, first: int) -> Floats:
    """The last rows of every head's map.

    Args:
        q: (L, H, n, D) recorded queries.
        k: (L, H, n, D) recorded keys.
        first: the first query position wanted.

    Returns:
        (L, H, n - first, n) float32.
    """
    return _softmax(_scores(q[:, :, first:] * _scale(q), k, first))


def _scale(q: Floats) -> np.float32:
    """1 / sqrt(D), put on the queries as they are fewer than the scores."""
    return np.float32(1 / math.sqrt(q.shape[-1]))


def _scores(q: Floats, k: Floats, first: int) -> Floats:
    """Q K^T, (..., n - first, n), of the queries from `first` on; -inf for what comes later."""
    scores: Floats = q @ k.swapaxes(-1, -2)
    count = q.shape[-2]
    if count > 1:  # the last row alone sees everything
        scores[..., first:] += np.triu(np.full((count, count), -np.inf, np.float32), 1)
    return scores


def _softmax(scores: Floats, *, out: Floats | None = None) -> Floats:
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    weights = scores if out is None else out
    np.divide(scores, scores.sum(axis=-1, keepdims=True), out=weights)
    return weights


class Thumbnails:
    """Every head's map at most `side` cells wide, grown by one row a token.

    Where a map is larger than the thumbnail, a cell is the largest weight in its bin, so that a
    single strong look is never averaged away. Weights are kept as 8 bits of their square root,
    as they are painted.
    """

    def __init__(self, n_layer: int, n_head: int, *, side: int = 64) -> None:
        self._side = side
        self._bin = 1  # positions a cell stands for
        self._n = 0
        self._cells = np.zeros((n_layer, n_head, side, side), np.uint8)
        self._finer: dict[int, Thumbnails] = {}  # by their bin, for moments long before the last

    @property
    def n(self) -> int:
        """How many positions have been taken in."""
        return self._n

    def grow(self, q: Floats, k: Floats) -> None:
        """Take in the rows that are new in q and k, both (L, H, n, D)."""
        first, n = self._n, q.shape[2]
        while self._bin < self._size(n):
            self._halve()
        step = q.shape[0] if n - first == 1 else 1  # layers at once: scratch that the cache holds
        for layer in range(0, q.shape[0], step):
            layers = slice(layer, layer + step)
            for start in range(first, n, BLOCK):
                end = min(n, start + BLOCK)
                self._take(layers, q[layers, :, start:end], k[layers, :, :end], start)
        self._n = max(n, first)

    def at(self, n: int, q: Floats, k: Floats) -> NDArray[np.uint8]:
        """As it stood when n positions had been read: (L, H, m, m), sqrt of weight x 255.

        The last bin may hold rows that came later; those few are computed again without them. A
        moment that was shown in finer cells than now is shown in those again.
        """
        size = self._size(n)
        if size < self._bin:
            finer = self._finer.get(size)
            if finer is None:
                finer = self._finer[size] = Thumbnails(*self._cells.shape[:2], side=self._side)
                room = size * self._side
                finer.grow(q[:, :, :room], k[:, :, :room])
            return finer.at(n, q, k)
        cells = -(-n // self._bin)
        whole = self._cells[:, :, :cells, :cells]
        if n == self._n or n % self._bin == 0:
            return whole
        start = (n // self._bin) * self._bin
        whole = whole.copy()
        last = _as_bytes(rows(q[:, :, :n], k[:, :, :n], start)).max(axis=2)  # (L, H, n)
        whole[:, :, -1, :] = _pool(last, self._bin)
        return whole

    def _size(self, n: int) -> int:
        """Positions a cell stands for in a thumbnail of n of them."""
        size = 1
        while -(-n // size) > self._side:
            size *= 2
        return size

    def _take(self, layers: slice, q: Floats, k: Floats, start: int) -> None:
        pooled = _as_bytes(_pooled(_scores(q * _scale(q), k, start), self._bin))
        cells = self._cells[layers, :, :, : pooled.shape[-1]]  # (layers, H, side, cells)
        for i in range(pooled.shape[2]):
            row = cells[:, :, (start + i) // self._bin]
            np.maximum(row, pooled[:, :, i], out=row)

    def _halve(self) -> None:
        n_layer, n_head, side, _ = self._cells.shape
        half = self._cells.reshape(n_layer, n_head, side // 2, 2, side // 2, 2).max(axis=(3, 5))
        self._cells = np.zeros_like(self._cells)
        self._cells[:, :, : side // 2, : side // 2] = half  # (L, H, side / 2, side / 2)
        self._bin *= 2


def _pooled(scores: Floats, size: int) -> Floats:
    """The largest of each `size` weights of the softmax of scores (..., n): (..., n / size).

    A larger score is a larger weight, so bins are found before anything is divided.
    """
    if size == 1:
        return _softmax(scores)
    pooled = _pool(scores, size)
    largest = pooled.max(axis=-1, keepdims=True)
    scores -= largest
    np.exp(scores, out=scores)
    weights: Floats = np.exp(pooled - largest) / scores.sum(axis=-1, keepdims=True)
    return weights


def _as_bytes(weights: Floats) -> NDArray[np.uint8]:
    cells: NDArray[np.uint8] = np.rint(np.sqrt(weights) * 255).astype(np.uint8)
    return cells


def _pool(cells: A, size: int) -> A:
    """The largest of each `size` neighbours along the last axis; `size` is a power of two."""
    while size > 1:
        pooled = cells[..., ::2].copy()
        odd = cells[..., 1::2]
        np.maximum(pooled[..., : odd.shape[-1]], odd, out=pooled[..., : odd.shape[-1]])
        cells, size = cast(A, pooled), size // 2
    return cells
