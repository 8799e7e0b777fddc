"""A buffer that grows along its row axis, so that what was recorded lies in one piece."""

from __future__ import annotations

import numpy as np

from engine.events import Floats, frozen


class Rows:
    """One contiguous array with room for more rows; what `extend` returns are views of it."""

    def __init__(self, like: Floats, axis: int, room: int) -> None:
        self._axis = axis
        self._n = 0
        self._data: Floats = np.empty(self._shape(like, max(room, like.shape[axis])), np.float32)

    @property
    def used(self) -> Floats:
        """All rows so far."""
        return self._view(0, self._n)

    @property
    def nbytes(self) -> int:
        """Of the rows in use: what is reserved and never touched takes no memory."""
        return int(self._data.nbytes // self._data.shape[self._axis] * self._n)

    def extend(self, rows: Floats) -> Floats:
        """Copy rows in at the end and return the view that holds them."""
        first, self._n = self._n, self._n + rows.shape[self._axis]
        if self._n > self._data.shape[self._axis]:
            old = self._data
            self._data = np.empty(self._shape(rows, self._n * 2), np.float32)
            self._data[self._place(0, first)] = old[self._place(0, first)]
        self._data[self._place(first, self._n)] = rows
        return self._view(first, self._n)

    def _view(self, first: int, end: int) -> Floats:
        return frozen(self._data[self._place(first, end)])

    def _place(self, first: int, end: int) -> tuple[slice, ...]:
        return (*[slice(None)] * self._axis, slice(first, end))

    def _shape(self, like: Floats, rows: int) -> tuple[int, ...]:
        return (*like.shape[: self._axis], rows, *like.shape[self._axis + 1 :])
