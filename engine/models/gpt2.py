"""GPT-2, forwards: from token ids to logits, in the order in which the theory explains it.

The letters: L layers, H heads, D = C / H numbers a head, C numbers a token, V ids in the
vocabulary. A pass reads N new positions after P earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from engine.events import Span
from engine.linear import Linear
from engine.meter import now_ns
from engine.state import K, Q, State, V

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Norm:
    """LayerNorm: a token's numbers moved to mean 0 and variance 1, then scaled and shifted."""

    scale: Tensor  # (C,)
    shift: Tensor  # (C,)
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise each row of x (N, C)."""
        return torch.layer_norm(x, self.scale.shape, self.scale, self.shift, self.epsilon)  # (N, C)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: attention, in which tokens look at each other, then the MLP, one by one."""

    before_attention: Norm
    qkv: Linear  # C -> 3 C
    project: Linear  # C -> C
    before_mlp: Norm
    expand: Linear  # C -> 4 C
    contract: Linear  # 4 C -> C


@dataclass(frozen=True, slots=True)
class Weights:
    """A whole GPT-2 on one device."""

    tokens: Tensor  # (V, C), wte
    positions: Tensor  # (T, C), wpe
    layers: tuple[Layer, ...]
    last: Norm
    head: Linear  # C -> V; the token embedding again, unless the model has its own

    @property
    def nbytes(self) -> int:
        """Bytes that all of it takes in memory; a matrix that serves twice counts once."""
        norms = [norm for x in self.layers for norm in (x.before_attention, x.before_mlp)]
        matrices = [w for x in self.layers for w in (x.qkv, x.project, x.expand, x.contract)]
        tensors = [t for norm in (*norms, self.last) for t in (norm.scale, norm.shift)]
        tensors.append(self.positions)
        if self.tokens is not self.head.rows:
            tensors.append(self.tokens)
        return sum(w.nbytes for w in (*matrices, self.head)) + sum(t.nbytes for t in tensors)


def prefill(
    weights: Weights, state: State, ids: Sequence[int], *, first: int, stream: int = 0
) -> tuple[Span, ...]:
    """Read N tokens of one stream, at positions `first`..; each attends to all up to itself.

    Returns:
        When each layer began and ended, by the CPU's clock.
    """
    with torch.inference_mode():
        n, device = len(ids), weights.positions.device
        embedded = weights.tokens[torch.tensor(ids, device=device)]  # (N, C)
        # positions first: the sum lies by rows as they do, even if the table is kept by columns
        x = torch.add(weights.positions[first : first + n], embedded)  # (N, C)
        seen = None  # from position 0 the triangle needs no mask: the kernel skips what is above
        if first:
            seen = torch.ones(n, first + n, dtype=torch.bool, device=device)  # (N, P + N)
            seen = seen.tril(first)

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            a = functional.scaled_dot_product_attention(
                q[None], k[None], v[None], attn_mask=seen, is_causal=seen is None
            )  # (1, H, N, D)
            return a[0].transpose(0, 1).reshape(n, -1)  # (N, C)

        return _layers(weights, state, x, first=first, stream=stream, attend=attend)


def step(weights: Weights, state: State, id: int, *, position: int) -> tuple[Span, ...]:
    """Read one token, which attends to all before it and to itself: the decode step.

    Returns:
        When each layer began and ended, by the CPU's clock.
    """
    with torch.inference_mode():
        place = weights.positions[position : position + 1]  # (1, C)
        x = torch.add(place, weights.tokens[id : id + 1])  # (1, C)
        return _layers(weights, state, x, first=position, stream=0, attend=_attend_once)


def logits(weights: Weights, state: State, *, position: int, stream: int = 0) -> Tensor:
    """What the model expects after `position`: (V,) float32, one number an id, not normalised."""
    with torch.inference_mode():
        x = weights.last(state.residual[-1, stream, position : position + 1])  # (1, C)
        return weights.head(x)[0].float()  # (V,)


def _layers(
    weights: Weights, state: State, x: Tensor, *, first: int, stream: int, attend: Attend
) -> tuple[Span, ...]:
    """Send x (N, C) through the layers; Q, K, V and the residual rows stay in the state."""
    n, end, n_head = len(x), first + len(x), state.qkv.shape[3]
    # The views of all layers are taken at once: on a small model slicing costs as much as maths.
    new = state.qkv[:, :, stream, :, first:end].unbind(0)  # L of (3, H, N, D)
    queries = state.qkv[:, Q, stream, :, first:end].unbind(0)  # L of (H, N, D)
    keys = state.qkv[:, K, stream, :, :end].unbind(0)  # L of (H, P + N, D)
    values = state.qkv[:, V, stream, :, :end].unbind(0)  # L of (H, P + N, D)
    residual, marks = [x], [now_ns()]
    for layer, rows, q, k, v in zip(weights.layers, new, queries, keys, values, strict=True):
        qkv = layer.qkv(layer.before_attention(x))  # (N, 3 C)
        rows.copy_(qkv.view(n, 3, n_head, -1).permute(1, 2, 0, 3))  # (3, H, N, D)
        x = layer.project.add(attend(q, k, v), x)  # (N, C)
        residual.append(x)
        h = layer.expand.gelu(layer.before_mlp(x))  # (N, 4 C)
        x = layer.contract.add(h, x)  # (N, C)
        residual.append(x)
        marks.append(now_ns())
    state.residual[:, stream, first:end].copy_(torch.stack(residual))  # (2 L + 1, N, C)
    return tuple(pairwise(marks))


def _attend_once(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(D)) V for one query: q (H, 1, D), k and v (H, P + 1, D)."""
    nothing = q.new_empty(1)  # what the product would be added to, if beta were not 0
    scale = 1 / math.sqrt(q.shape[-1])
    scores = torch.baddbmm(nothing, q, k.transpose(1, 2), beta=0, alpha=scale)  # (H, 1, P + 1)
    return torch.bmm(torch.softmax(scores, dim=-1), v).view(1, -1)  # (1, C)
