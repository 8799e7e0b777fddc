"""A buffer that grows along its row axis, so that what was recorded lies in one piece.

Who records the rows of a prefill knows how many will follow, and lays them at the beginning of an
array with room for all (`roomy`). The first buffer that takes them in goes on writing there instead
of copying them: on a small model that copy is several hundredths of the pass.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from engine.events import Floats, frozen

_unclaimed: WeakValueDictionary[int, np.ndarray[Any, np.dtype[np.float32]]] = (
    WeakValueDictionary()
)  # whole arrays by their id


class Rows:
    """One array with room for more rows; what `extend` returns are views of it."""

    def __init__(self, like: Floats, axis: int, room: int) -> None:
        self._axis = axis
        self._n = 0
        claimed = _claimed(like)
        if claimed is None:
            claimed = np.empty(self._shape(like, max(room, like.shape[axis])), np.float32)
        self._data: Floats = claimed

    @property
    def used(self) -> Floats:
        """All rows so far."""
        return self._view(0, self._n)

    @property
    def nbytes(self) -> int:
        """Of the rows in use: what is reserved and never touched takes no memory."""
        return int(self._data.nbytes // self._data.shape[self._axis] * self._n)

    def extend(self, rows: Floats) -> Floats:
        """Copy rows in at the end, unless they are there, and return the view that holds them."""
        first, self._n = self._n, self._n + rows.shape[self._axis]
        if self._n > self._data.shape[self._axis]:
            old = self._data
            self._data = np.empty(self._shape(rows, self._n * 2), np.float32)
            self._data[self._place(0, first)] = old[self._place(0, first)]
        if rows.base is not self._data:
            self._data[self._place(first, self._n)] = rows
        return self._view(first, self._n)

    def _view(self, first: int, end: int) -> Floats:
        return frozen(self._data[self._place(first, end)])

    def _place(self, first: int, end: int) -> tuple[slice, ...]:
        return (*[slice(None)] * self._axis, slice(first, end))

    def _shape(self, like: Floats, rows: int) -> tuple[int, ...]:
        return (*like.shape[: self._axis], rows, *like.shape[self._axis + 1 :])


def roomy(shape: tuple[int, ...], axis: int, room: int) -> Floats:
    """Uninitialised float32 rows at the beginning of an array that holds `room` of them.

    The first `Rows` that is made like them goes on writing behind them; until then, and for every
    other one, they are an array like any.

    >>> rows = roomy((2, 3, 4), axis=1, room=10)
    >>> rows.shape, rows.base.shape
    ((2, 3, 4), (2, 10, 4))
    """
    n = shape[axis]
    if room <= n:
        return np.empty(shape, np.float32)
    whole: Floats = np.empty((*shape[:axis], room, *shape[axis + 1 :]), np.float32)
    _unclaimed[id(whole)] = whole
    return whole[(*[slice(None)] * axis, slice(0, n))]


def _claimed(rows: Floats) -> Floats | None:
    """The array with room that these rows begin, once; None for any other rows."""
    whole = _unclaimed.get(id(rows.base))
    if whole is None or whole.ctypes.data != rows.ctypes.data or rows.base is not whole:
        return None
    del _unclaimed[id(whole)]
    return whole
