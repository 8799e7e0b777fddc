"""Every buffer a pass reads or writes, allocated once: Q, K and V, and the rows of the residual.

B streams, T positions, C = H D numbers a token. Rows are written forward and never overwritten
within a run; what lies at or after `position` is ignored, so rewinding is setting it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.events import Dimensions

Q, K, V = 0, 1, 2  # slots of the qkv buffer, in the order in which c_attn gives them


@dataclass(frozen=True, slots=True)
class Bytes:
    """Sizes of the three things the buffers hold."""

    kv: int  # the KV cache
    q: int  # Q history: kept for looking, a decode step does not read it
    residual: int


class State:
    """The buffers of one model on one device; see the file's docstring.

    Attributes:
        qkv: (L, 3, B, H, T, D), float32. Head-major, because one head's keys then lie together.
        residual: (2L + 1, B, T, C), float32. Row 2l is what layer l reads, 2l + 1 stands after its
            attention, 2L is what the last LayerNorm reads.
        position: how many positions of the one stream are read; also the next one. Where there are
            several, whoever steps them counts.
        reserved: bytes of the whole buffers.
    """

    def __init__(self, dimensions: Dimensions, *, device: str = "cpu", n_streams: int = 1) -> None:
        d = dimensions
        self.qkv = torch.zeros(
            (d.n_layer, 3, n_streams, d.n_head, d.n_positions, d.head_size), device=device
        )
        self.residual = torch.zeros(
            (2 * d.n_layer + 1, n_streams, d.n_positions, d.n_embd), device=device
        )
        self.position = 0
        self.reserved = Bytes(self.qkv[:, K:].nbytes, self.qkv[:, Q].nbytes, self.residual.nbytes)

    @property
    def n_positions(self) -> int:
        """T: how many positions fit in a stream."""
        return self.residual.shape[2]

    def used(self, n_positions: int) -> Bytes:
        """Bytes of the rows that hold `n_positions` positions, in all streams together.

        >>> State(Dimensions(12, 12, 768, 8, 50257)).used(2)
        Bytes(kv=147456, q=73728, residual=153600)
        """
        whole, of = self.reserved, self.residual.shape[1] * self.n_positions
        return Bytes(
            whole.kv * n_positions // of,
            whole.q * n_positions // of,
            whole.residual * n_positions // of,
        )


def bytes_for(dimensions: Dimensions, *, n_streams: int = 1) -> int:
    """Bytes that a State of these dimensions will reserve, before it exists.

    >>> bytes_for(Dimensions(12, 12, 768, 1024, 50257))
    191889408
    """
    d = dimensions
    return 4 * n_streams * d.n_positions * d.n_embd * (3 * d.n_layer + 2 * d.n_layer + 1)
