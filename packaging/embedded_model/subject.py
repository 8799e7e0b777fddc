"""The model that is judged: what it says after every token, and where its heads look.

L layers, H heads, C numbers a token, V ids in the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embedded_model import trained_tokens
from embedded_model.measures import SEQUENCE, Floats, Ids
from embedded_model.refusal import Refusal
from engine import attention, weights
from engine.generate import Engine
from engine.models import packing
from engine.runners import Runner

CHUNK = 64  # rows whose logits are made together: 13 MB


class Subject:
    """A model folder, read and run by our own engine in float32 on the CPU.

    Attributes:
        checkpoint: what the folder holds.
        engine: for letting it write.
        trained: ids of the rows that training made, most frequent first; None: all rows.
    """

    def __init__(self, folder: Path, *, n_threads: int | None = None) -> None:
        """Read a folder.

        Raises:
            EngineError: what `weights.read` and `Runner` say.
            Refusal: trained_tokens.txt is damaged, or the model has too few positions.
        """
        self.checkpoint = checkpoint = weights.read(folder)
        self.n_positions = checkpoint.config.dimensions.n_positions
        if self.n_positions < SEQUENCE:
            raise Refusal(
                f"The model has {self.n_positions} positions and the measures read {SEQUENCE} "
                "tokens at once: judge a model with more."
            )
        self.trained = trained_tokens.read(folder)
        # One way of multiplying, not the fastest by the clock: the same machine, the same figures.
        self._runner = Runner(
            checkpoint, device="cpu", dtype="float32", n_threads=n_threads, kind="linear"
        )
        self.engine = Engine(self._runner, model=checkpoint.model, sha256=checkpoint.sha256)
        self._head = packing.numbers(checkpoint, packing.head_name(checkpoint))  # (V, C)
        self._scale = packing.numbers(checkpoint, "ln_f.weight")  # (C,)
        self._shift = packing.numbers(checkpoint, "ln_f.bias")  # (C,)

    @property
    def untrained(self) -> NDArray[np.bool_] | None:
        """(V,) true for rows that training never saw; None if it saw all."""
        if self.trained is None:
            return None
        rows = np.ones(len(self._head), np.bool_)
        rows[self.trained] = False
        return rows

    def logits(self, ids: Sequence[int] | Ids) -> Iterator[Floats]:
        """Read a window from position 0 and say what follows each of its tokens.

        Yields:
            (at most 64, V) float32, the rows in order; fresh, the caller's to change.
        """
        self._read(ids)
        stream = self._runner.rows(0, len(ids), attention=False).residual
        assert stream is not None
        last = self._last_norm(stream[-1])  # (n, C)
        for first in range(0, len(last), CHUNK):
            yield last[first : first + CHUNK] @ self._head.T  # (n, V)

    def maps(self, ids: Sequence[int] | Ids) -> Floats:
        """(L, H, n, n) float32: every head's map over a window, as in `attention.head_map`."""
        self._read(ids)
        rows = self._runner.rows(0, len(ids), residual=False)
        assert rows.q is not None and rows.k is not None
        return attention.rows(rows.q, rows.k, 0)

    def _read(self, ids: Sequence[int] | Ids) -> None:
        for _ in self._runner.prefill([int(id) for id in ids], first=0):
            pass

    def _last_norm(self, x: Floats) -> Floats:
        """The LayerNorm before the head, row by row: (n, C)."""
        moved = x - x.mean(axis=-1, keepdims=True)  # (n, C)
        variance = np.square(moved).mean(axis=-1, keepdims=True)  # (n, 1)
        normal: Floats = moved / np.sqrt(
            variance + np.float32(self.checkpoint.config.layer_norm_epsilon)
        )
        normal *= self._scale  # (n, C)
        normal += self._shift  # (n, C)
        return normal
