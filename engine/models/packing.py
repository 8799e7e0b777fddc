"""GPT-2's weights from a source to a device: each matrix packed as soon as it is there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine import linear
from engine.checkpoint import Array, Source, float32
from engine.linear import Kind, Linear
from engine.model_folder import EMBEDDING, HEAD
from engine.models.gpt2 import Layer, Norm, Weights


@dataclass(frozen=True, slots=True)
class Plan:
    """Where and how weights are packed."""

    device: str
    dtype: torch.dtype
    layers: Kind
    head: Kind

    @property
    def table(self) -> torch.dtype:
        """The widest type of a token table beside a packed head. It has no scales, so not int8."""
        return torch.float16 if self.dtype is torch.int8 else self.dtype


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
        """(V, C) in the type it is stored in, or the plan's `table` if that is narrower."""
        table = torch.from_numpy(np.require(array, requirements="W"))
        if self._dtypes[name] == "BF16":
            table = table.view(torch.bfloat16)
        widest = self._plan.table
        if widest.itemsize >= table.itemsize:
            return table.to(self._plan.device)
        if widest is torch.float16:
            linear.check_half(table)
        return table.to(self._plan.device, widest)

    def _norm(self, name: str) -> Norm:
        return Norm(self._vectors[f"{name}.weight"], self._vectors[f"{name}.bias"], self._epsilon)
