"""One token of each of B streams at once, by what lies on the device alone.

gpt2.py's `step` cuts its views at a position that the CPU knows. Here tokens and places are numbers
on the device: every tick does the same operations on the same addresses, so a CUDA graph can repeat
it and a compiler sees one shape. The letters are those of gpt2.py; B streams, T positions.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from engine.models.gpt2 import Weights
from engine.state import K, Q, State, V


class Tick(Protocol):
    """What makes a step of all streams: `tick` below, or kernels that do the same."""

    def __call__(
        self, weights: Weights, state: State, tokens: Tensor, places: Tensor, *, context: int
    ) -> Tensor:
        """As `tick`."""


def tick(weights: Weights, state: State, tokens: Tensor, places: Tensor, *, context: int) -> Tensor:
    """Read one token in each stream; it attends to all before it in its stream and to itself.

    The rows of the tokens are written at their places, float32 whatever the weights are; the
    position of `state` stays. What lies beyond a place is read too and weighed by 0, so it must be
    finite: the zeros of a new State are, and so is what any pass that went well left there.

    Args:
        weights: the model.
        state: buffers of B streams, all rows of a stream before its place written.
        tokens: (B,) int64 on the weights' device, each below V.
        places: (B,) int64 there, each below `context`: the position of each token.
        context: how many positions of the buffers are looked at, at most T. The only number that
            is the CPU's: a graph holds for one context.

    Returns:
        Logits (B, V), float32: what each stream expects next.
    """
    n, n_head, size = len(tokens), state.qkv.shape[3], state.qkv.shape[5]
    streams = torch.arange(n, device=places.device)  # (B,)
    position = weights.positions.index_select(0, places)  # (B, C)
    x = torch.add(position, weights.tokens.index_select(0, tokens))  # (B, C)
    hidden = _hidden(places, context, n_head)  # (B H, 1, context)
    rows = state.qkv.permute(0, 2, 4, 1, 3, 5).unbind(0)  # L of (B, T, 3, H, D)
    # The heads of all streams side by side: they are the batch of a product.
    keys = state.qkv[:, K].flatten(1, 2)[:, :, :context].unbind(0)  # L of (B H, context, D)
    values = state.qkv[:, V].flatten(1, 2)[:, :, :context].unbind(0)  # L of (B H, context, D)
    residual = [x]
    for layer, kept, k, v in zip(weights.layers, rows, keys, values, strict=True):
        qkv = layer.qkv(layer.before_attention(x)).float()  # (B, 3 C)
        new = qkv.view(n, 3, n_head, size)  # (B, 3, H, D)
        kept.index_put_((streams, places), new)
        q = new[:, Q].reshape(-1, 1, size)  # (B H, 1, D), a view if B = 1
        x = layer.project.add(_attend(q, k, v, hidden).view_as(x), x)  # (B, C)
        residual.append(x)
        h = layer.expand.gelu(layer.before_mlp(x))  # (B, 4 C)
        x = layer.contract.add(h, x)  # (B, C)
        residual.append(x)
    stacked = torch.stack(residual, dim=1)  # (B, 2 L + 1, C)
    state.residual.permute(1, 2, 0, 3).index_put_((streams, places), stacked)
    return weights.head(weights.last(x)).float()  # (B, V)


def _hidden(places: Tensor, context: int, n_head: int) -> Tensor:
    """What is added to scores (B H, 1, context): 0 up to a stream's place, -infinity beyond."""
    seen = torch.arange(context, device=places.device) <= places[:, None]  # (B, context)
    mask = torch.log(seen)  # log 1 = 0 and log 0 = -infinity, in one kernel
    return mask[:, None].expand(-1, n_head, -1).reshape(-1, 1, context)  # a view if B = 1


def _attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(D) + hidden) V: q (B H, 1, D), k and v (B H, context, D)."""
    scale = 1 / math.sqrt(q.shape[-1])
    scores = torch.baddbmm(hidden, q, k.transpose(1, 2), alpha=scale)  # (B H, 1, context)
    return torch.bmm(torch.softmax(scores, dim=-1), v)  # (B H, 1, D)
