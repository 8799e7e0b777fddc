"""GPT-2, forwards: from token ids to logits, in the order in which the theory explains it.

The letters: L layers, H heads, D = C / H numbers a head, C numbers a token, V ids in the
vocabulary. A pass reads N new positions after P earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine import linear
from engine.checkpoint import Array, Source, float32
from engine.events import Span
from engine.linear import Kind, Linear
from engine.meter import now_ns
from engine.model_folder import EMBEDDING, HEAD
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


@dataclass(frozen=True, slots=True)
class Plan:
    """Where and how weights are packed."""

    device: str
    dtype: torch.dtype
    layers: Kind
    head: Kind


def prefill(weights: Weights, state: State, ids: Sequence[int], *, first: int) -> tuple[Span, ...]:
    """Read N tokens at once, at positions `first`..; each attends to all up to itself.

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

        return _layers(weights, state, x, first=first, attend=attend)


def step(weights: Weights, state: State, id: int, *, position: int) -> tuple[Span, ...]:
    """Read one token, which attends to all before it and to itself: the decode step.

    Returns:
        When each layer began and ended, by the CPU's clock.
    """
    with torch.inference_mode():
        place = weights.positions[position : position + 1]  # (1, C)
        x = torch.add(place, weights.tokens[id : id + 1])  # (1, C)
        return _layers(weights, state, x, first=position, attend=_attend_once)


def logits(weights: Weights, state: State, *, position: int) -> Tensor:
    """What the model expects after `position`: (V,) float32, one number an id, not normalised."""
    with torch.inference_mode():
        x = weights.last(state.residual[-1, 0, position : position + 1])  # (1, C)
        return weights.head(x)[0].float()  # (V,)


def _layers(
    weights: Weights, state: State, x: Tensor, *, first: int, attend: Attend
) -> tuple[Span, ...]:
    """Send x (N, C) through the layers; Q, K, V and the residual rows stay in the state."""
    n, end, n_head = len(x), first + len(x), state.qkv.shape[3]
    # The views of all layers are taken at once: on a small model slicing costs as much as maths.
    new = state.qkv[:, :, 0, :, first:end].unbind(0)  # L of (3, H, N, D)
    queries = state.qkv[:, Q, 0, :, first:end].unbind(0)  # L of (H, N, D)
    keys = state.qkv[:, K, 0, :, :end].unbind(0)  # L of (H, P + N, D)
    values = state.qkv[:, V, 0, :, :end].unbind(0)  # L of (H, P + N, D)
    stream, marks = [x], [now_ns()]
    for layer, rows, q, k, v in zip(weights.layers, new, queries, keys, values, strict=True):
        qkv = layer.qkv(layer.before_attention(x))  # (N, 3 C)
        rows.copy_(qkv.view(n, 3, n_head, -1).permute(1, 2, 0, 3))  # (3, H, N, D)
        x = layer.project.add(attend(q, k, v), x)  # (N, C)
        stream.append(x)
        h = layer.expand.gelu(layer.before_mlp(x))  # (N, 4 C)
        x = layer.contract.add(h, x)  # (N, C)
        stream.append(x)
        marks.append(now_ns())
    state.residual[:, 0, first:end].copy_(torch.stack(stream))  # (2 L + 1, N, C)
    return tuple(pairwise(marks))


def _attend_once(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(Q K^T / sqrt(D)) V for one query: q (H, 1, D), k and v (H, P + 1, D)."""
    nothing = q.new_empty(1)  # what the product would be added to, if beta were not 0
    scale = 1 / math.sqrt(q.shape[-1])
    scores = torch.baddbmm(nothing, q, k.transpose(1, 2), beta=0, alpha=scale)  # (H, 1, P + 1)
    return torch.bmm(torch.softmax(scores, dim=-1), v).view(1, -1)  # (1, C)


def pack(source: Source, plan: Plan) -> Weights:
    """Put a model's weights on the device, each matrix packed as planned as soon as it is there."""
    parts = _Parts(source, plan)
    with closing(source.stream()) as tensors:
        for name, array in tensors:
            parts.take(name, array)
            del array  # or it would lie beside the next one
    return parts.together(source.config.dimensions.n_layer)


def numbers(source: Source, name: str, *, n_rows: int | None = None) -> NDArray[np.float32]:
    """One tensor of a model, or its first rows, widened."""
    return float32(source.rows(name, n_rows), source.dtypes[name])


def head_name(source: Source) -> str:
    """Which tensor turns the last rows into logits: GPT-2 uses the token embedding again."""
    return HEAD if HEAD in source.dtypes else EMBEDDING


class _Parts:
    """What is packed so far; the tensors may come in any order."""

    def __init__(self, source: Source, plan: Plan) -> None:
        self._plan = plan
        self._dtypes = source.dtypes
        self._epsilon = source.config.layer_norm_epsilon
        self._vectors: dict[str, Tensor] = {}
        self._linears: dict[str, Linear] = {}
        self._waiting: dict[str, Array] = {}  # weights without their bias, and the other way round
        self._head: Linear | None = None
        self._tokens: Tensor | None = None

    def take(self, name: str, array: Array) -> None:
        """Pack one tensor, or the layer that it completes."""
        layer = name.rpartition(".")[0]
        if name == HEAD:
            self._head = self._pack_head(name, array)
        elif name == EMBEDDING:
            self._take_embedding(name, array)
        elif layer.endswith((".c_attn", ".c_proj", ".c_fc")):
            self._waiting[name] = array
            weight, bias = f"{layer}.weight", f"{layer}.bias"
            if weight in self._waiting and bias in self._waiting:
                plan = self._plan
                self._linears[layer] = linear.pack(
                    float32(self._waiting.pop(weight), self._dtypes[weight]),
                    float32(self._waiting.pop(bias), self._dtypes[bias]),
                    device=plan.device,
                    dtype=plan.dtype,
                    kind=plan.layers,
                )
        else:
            self._vectors[name] = torch.tensor(
                float32(array, self._dtypes[name]), device=self._plan.device
            )

    def together(self, n_layer: int) -> Weights:
        """The whole model."""
        assert self._head is not None
        assert self._tokens is not None
        assert not self._waiting
        return Weights(
            tokens=self._tokens,
            positions=self._vectors["wpe.weight"],
            layers=tuple(
                Layer(
                    before_attention=self._norm(f"h.{n}.ln_1"),
                    qkv=self._linears[f"h.{n}.attn.c_attn"],
                    project=self._linears[f"h.{n}.attn.c_proj"],
                    before_mlp=self._norm(f"h.{n}.ln_2"),
                    expand=self._linears[f"h.{n}.mlp.c_fc"],
                    contract=self._linears[f"h.{n}.mlp.c_proj"],
                )
                for n in range(n_layer)
            ),
            last=self._norm("ln_f"),
            head=self._head,
        )

    def _take_embedding(self, name: str, array: Array) -> None:
        """The embedding is the head's own matrix where that lies plain, else a table beside it."""
        rows = None
        if self._head is None:  # one of its own would have come before
            self._head = self._pack_head(name, array)
            rows = self._head.rows
        self._tokens = self._table(name, array) if rows is None else rows

    def _pack_head(self, name: str, array: Array) -> Linear:
        weight = float32(array, self._dtypes[name]).T  # (C, V)
        plan = self._plan
        return linear.pack(weight, None, device=plan.device, dtype=plan.dtype, kind=plan.head)

    def _table(self, name: str, array: Array) -> Tensor:
        """(V, C) in the type it is stored in, or the plan's if that is narrower."""
        table = torch.from_numpy(np.require(array, requirements="W"))
        if self._dtypes[name] == "BF16":
            table = table.view(torch.bfloat16)
        narrower = self._plan.dtype.itemsize < table.itemsize
        return table.to(self._plan.device, self._plan.dtype if narrower else table.dtype)

    def _norm(self, name: str) -> Norm:
        return Norm(self._vectors[f"{name}.weight"], self._vectors[f"{name}.bias"], self._epsilon)
