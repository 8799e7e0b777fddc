"""Cross entropy over the small vocabulary, without ever holding all logits.

Letters: N positions, C n_embd, R rows of the table, the last of which stands for many tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 512  # positions whose logits are held at once: they stay in the processor's cache
ALIGNED = 16  # rows are added up to a multiple of this: odd row lengths multiply half as fast
UNSCORED = -100  # a target that is not counted


def cross_entropy(states: Tensor, table: Tensor, targets: Tensor, *, rest: float) -> Tensor:
    """The mean of -log softmax(states @ table.T + rest at the last row)[target].

    Args:
        states: (N, C), float32 or bfloat16.
        table: (R, C), float32.
        targets: (N,), int64, below R; UNSCORED ones count for nothing.
        rest: added to the logits of the last row: the logarithm of how many tokens it stands for.

    Returns:
        (), float32, in nats; 0 if no target is scored. States and table get their gradients.
    """
    loss: Tensor = _CrossEntropy.apply(states, table, targets, rest)  # type: ignore[no-untyped-call]
    return loss


class _CrossEntropy(torch.autograd.Function):
    """Gradients are made on the way forward, chunk by chunk, while the logits are at hand."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, table: Tensor, targets: Tensor, rest: float) -> Tensor:  # noqa: ANN401 - torch's own
        n_rows = len(table)
        scored = (targets >= 0).nonzero().squeeze(1)  # (n,)
        n = len(scored)
        h, y = states[scored], targets[scored, None]  # (n, C), (n, 1)
        weight = F.pad(table, (0, 0, 0, -n_rows % ALIGNED)).to(h.dtype)  # (R', C)
        d_h, d_weight = torch.empty_like(h), torch.zeros(weight.shape)
        total = 0.0
        for at in range(0, n, CHUNK):
            some = slice(at, at + CHUNK)
            logits = (h[some] @ weight.t()).float()  # (chunk, R')
            logits[:, n_rows - 1] += rest
            logits[:, n_rows:] = float("-inf")
            p = torch.softmax(logits, dim=1)  # (chunk, R')
            found = p.gather(1, y[some]).clamp_min(torch.finfo(torch.float32).tiny)  # (chunk, 1)
            total -= float(found.log().sum())
            p.scatter_add_(1, y[some], torch.full_like(found, -1))
            p = p.to(h.dtype)
            d_h[some] = p @ weight  # (chunk, C)
            if h.dtype == torch.float32:
                d_weight.addmm_(p.t(), h[some])  # (R', C)
            else:
                d_weight += p.t() @ h[some]  # (R', C), summed in float32
        d_states = torch.zeros_like(states)
        d_states[scored] = d_h
        ctx.n = max(n, 1)
        ctx.save_for_backward(d_states, d_weight[:n_rows])
        return torch.tensor(total / ctx.n)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:  # noqa: ANN401
        d_states, d_table = ctx.saved_tensors
        scale = grads[0] / ctx.n
        return (d_states * scale).to(d_states.dtype), d_table * scale, None, None
