"""How far a run has come: losses on texts it never trains on, and whether it copies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from embedded_model.loss import UNSCORED
from embedded_model.network import Network
from embedded_model.streams import Stream, Streams

WINDOW = 256  # tokens of a window of text
N_WINDOWS = 64  # of a text, at most
AT_ONCE = 16  # windows
SEGMENT = 64  # random tokens, twice in a row
FREQUENT = 4_000  # of the most frequent tokens they are drawn from
MEASURED = ("A", "B", "stories")


@torch.no_grad()
def measure(network: Network, streams: Streams) -> dict[str, float]:
    """Mean losses in nats over the small vocabulary.

    Returns:
        By text, of held-out windows side by side from its start, tokens without a row of their own
        left out; a text too short for one window is absent. "copy_first" and "copy_second": of 16
        segments of random tokens, the first time and when they come again.
    """
    found = {}
    window = min(WINDOW, len(network.wpe.weight))
    for name in MEASURED:
        if name in streams.held_out and (windows := _windows(streams.held_out[name], window)):
            found[name] = _loss(network, windows, unscored=len(streams.vocabulary))
    generator = torch.Generator().manual_seed(1)
    n_rows, segment = len(streams.vocabulary), min(SEGMENT, window // 2)
    once = torch.randint(0, min(FREQUENT, n_rows), (AT_ONCE, segment), generator=generator)
    twice = torch.cat([once, once], 1)  # (16, 2 segment)
    losses = _losses(network, twice[:, :-1], twice[:, 1:])  # (16, 2 segment - 1)
    found["copy_first"] = float(losses[:, : segment - 1].mean())
    found["copy_second"] = float(losses[:, segment:].mean())
    return found


def _windows(stream: Stream, window: int) -> list[Tensor]:
    """Groups of up to AT_ONCE rows of window + 1 tokens."""
    n = min(len(stream.rows) // (window + 1), N_WINDOWS)
    rows = torch.from_numpy(stream.rows[: n * (window + 1)].astype(np.int64))
    return list(torch.split(rows.view(n, window + 1), AT_ONCE)) if n else []


def _loss(network: Network, groups: list[Tensor], *, unscored: int) -> float:
    total, n = 0.0, 0
    for group in groups:
        y = group[:, 1:].masked_fill(group[:, 1:] == unscored, UNSCORED)  # (16, window)
        total += float(_losses(network, group[:, :-1], y).sum())
        n += int((y >= 0).sum())
    return total / max(n, 1)


def _losses(network: Network, x: Tensor, y: Tensor) -> Tensor:
    """(rows, T), 0 where y is UNSCORED."""
    states = network(x)  # (rows, T, C)
    return torch.cat(list(_row_losses(network, states, y)))


def _row_losses(network: Network, states: Tensor, y: Tensor) -> Iterator[Tensor]:
    """(1, T) a row: the logits of all rows together would take gigabytes with long windows."""
    for h, target in zip(states, y, strict=True):
        logits = F.linear(h, network.wte.weight).float()  # (T, R)
        loss = F.cross_entropy(logits, target, ignore_index=UNSCORED, reduction="none")
        yield loss[None]
