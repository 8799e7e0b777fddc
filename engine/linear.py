"""Linear layers packed for this machine, in whichever way is right and fastest here.

No single way wins everywhere: on one processor a packed oneDNN matrix is three times as fast as the
BLAS behind `F.linear`, on the next it is slower. So each kind is checked against `F.linear` and
timed on the model's own weights when the model is loaded, and every kind but the first may be
missing: they are private or ageing parts of torch.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine.meter import now_ns

Kind = Literal["linear", "columns", "onednn", "half", "half_serial"]

PACKED_FOR = 128  # rows that oneDNN packs for; best for one row too, so one copy serves both
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2}  # of the largest number in the answer
WORTH = 1.1  # how many times as long a kind may take that is preferred for other reasons
REPEATS = 5  # the fastest counts: whatever else the machine does only adds time


class Linear(ABC):
    """x W + b for rows x (n, in); the answer has the type of the weights, `add` gives float32."""

    nbytes: int  # of the weights as they lie in memory, bias included
    rows: Tensor | None = None  # (out, in): a view of the matrix, where the kind keeps it plain
    bias: Tensor | None = None  # (out,)

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """The product, (n, out)."""

    def gelu(self, x: Tensor) -> Tensor:
        """GELU of x W + b, by the tanh formula that GPT-2 was trained with."""
        return functional.gelu(self(x), approximate="tanh")  # (n, out)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """Residual (n, out), float32, plus x W + b."""
        return torch.add(residual, self(x))  # (n, out)


@dataclass(frozen=True, slots=True)
class Trial:
    """One situation to time a kind in: so many rows at once, by so many threads, so many times."""

    n_rows: int
    n_threads: int
    n_times: int


def pack(
    weight: NDArray[np.float32],
    bias: NDArray[np.float32] | None,
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    kind: Kind = "linear",
) -> Linear:
    """Pack one layer's weights.

    Args:
        weight: (in, out), in any memory order. Where order and type already fit it is kept, not
            copied, so nobody may change it afterwards.
        bias: (out,) or None.
        device: where the plain kinds lie; the others are for the CPU.
        dtype: what the weights are rounded to and multiplied in.
        kind: "linear" and "columns" work everywhere; "onednn" on the CPU; "half" and "half_serial"
            on x86 with float32: they keep float16 weights, so use them only for weights that are.

    Raises:
        RuntimeError: torch does not have this kind here.
    """
    w = torch.from_numpy(np.require(weight, requirements="W"))  # (in, out)
    b = None if bias is None else torch.from_numpy(np.array(bias))
    if kind == "columns":
        w = w.contiguous().to(device, dtype)
        return _Plain(w, b if b is None else b.to(device, dtype))
    rows = w.t().contiguous()  # (out, in)
    if kind == "onednn":
        return _OneDnn(rows.to(dtype), b if b is None else b.to(dtype))
    if kind == "half":
        return _Half(rows, b)
    if kind == "half_serial":
        return _HalfSerial(rows, b)
    return _Plain(rows.to(device, dtype).t(), b if b is None else b.to(device, dtype))


def kinds(device: str, dtype: torch.dtype, *, exact_in_half: bool) -> tuple[Kind, ...]:
    """The kinds worth trying for these weights."""
    if device != "cpu":
        return ("linear",)
    if dtype is torch.float32 and exact_in_half:
        return ("linear", "columns", "onednn", "half", "half_serial")
    return ("linear", "columns", "onednn")


def item_bytes(kind: Kind, dtype: torch.dtype) -> int:
    """Bytes that one weight takes in memory."""
    return 2 if kind in ("half", "half_serial") else dtype.itemsize


def choose(
    weight: NDArray[np.float32],
    bias: NDArray[np.float32] | None,
    *,
    dtype: torch.dtype,
    among: Sequence[Kind],
    trials: Sequence[Trial],
    rather: Collection[Kind] = (),
) -> Kind:
    """The fastest kind on this CPU that gives the answer of `F.linear`, summed over the trials.

    One of `rather` is taken instead if it takes at most `WORTH` times as long.
    """
    if len(among) == 1:
        return among[0]
    reference = pack(weight, bias, dtype=dtype)
    wanted = _answers(reference, *weight.shape)
    times: dict[Kind, int] = {}
    for kind in among:
        linear: Linear | None = reference
        if kind != "linear":
            linear = _tested(weight, bias, dtype=dtype, kind=kind, wanted=wanted)
        if linear is not None:
            times[kind] = sum(_time(linear, len(weight), trial) for trial in trials)
    if not times:
        return "linear"
    best = min(times.values())
    good = [kind for kind in times if kind in rather and times[kind] <= WORTH * best]
    return min(good or times, key=times.__getitem__)


def use_threads(n_threads: int) -> None:
    """Let the calling thread compute with this many; torch keeps the number per thread."""
    if torch.get_num_threads() != n_threads:
        torch.set_num_threads(n_threads)


class _Plain(Linear):
    """Public torch only. MKL multiplies one row far faster by (in, out) columns on some CPUs."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight = weight  # (in, out)
        self.bias = bias
        self.rows = weight.t()
        self.nbytes = weight.nbytes + _nbytes(bias)

    def __call__(self, x: Tensor) -> Tensor:
        x = x.to(self._weight.dtype)
        if self.bias is None:
            return torch.mm(x, self._weight)  # (n, out)
        return torch.addmm(self.bias, x, self._weight)  # (n, out)


class _OneDnn(Linear):
    """oneDNN's own blocked layout, with bias, GELU and residual fused into the product."""

    def __init__(self, rows: Tensor, bias: Tensor | None) -> None:
        self._dtype = rows.dtype
        self._weight = _found(torch.ops.mkldnn, "_reorder_linear_weight")(rows, PACKED_FOR)
        self.bias = bias
        pointwise = _found(torch.ops.mkldnn, "_linear_pointwise")
        # An overload picked beforehand saves 15 us a call of looking for the right one.
        self._unary, self._binary = pointwise.default, pointwise.binary
        self.nbytes = rows.nbytes + _nbytes(bias)

    def __call__(self, x: Tensor) -> Tensor:
        y: Tensor = self._unary(x.to(self._dtype), self._weight, self.bias, "none", [], "")
        return y  # (n, out)

    def gelu(self, x: Tensor) -> Tensor:
        y: Tensor = self._unary(x.to(self._dtype), self._weight, self.bias, "gelu", [], "tanh")
        return y  # (n, out)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        if self._dtype is not torch.float32:  # the fused sum would round the residual
            return super().add(x, residual)
        y: Tensor = self._binary(x, residual, self._weight, self.bias, "add")
        return y  # (n, out)


class _Half(Linear):
    """float16 weights widened as they are read, float32 arithmetic; exact for float16 weights."""

    def __init__(self, rows: Tensor, bias: Tensor | None) -> None:
        self._packed = _found(torch.ops.quantized, "linear_prepack_fp16")(rows, bias)
        self._multiply = _found(torch.ops.quantized, "linear_dynamic_fp16").default
        self.nbytes = rows.nbytes // 2 + _nbytes(bias)

    def __call__(self, x: Tensor) -> Tensor:
        y: Tensor = self._multiply(x, self._packed)
        return y  # (n, out)


class _HalfSerial(Linear):
    """As `_Half`, by an older door that uses one thread but costs 20 us less a call."""

    def __init__(self, rows: Tensor, bias: Tensor | None) -> None:
        n_out = len(rows)
        self.bias = rows.new_zeros(n_out) if bias is None else bias  # older torch insists on one
        # torch.* rather than torch.ops.*, whose warnings Python cannot catch.
        self._multiply = _found(torch, "fbgemm_linear_fp16_weight_fp32_activation")
        # Both say that they will go one day. The filter stays, as engines are loaded in threads and
        # what is put back in one is put back under the others.
        warnings.filterwarnings("ignore", r"fbgemm_\w+ is deprecated", UserWarning)
        self._packed = _found(torch, "fbgemm_pack_gemm_matrix_fp16")(rows)
        self.nbytes = rows.nbytes // 2 + _nbytes(self.bias)

    def __call__(self, x: Tensor) -> Tensor:
        y: Tensor = self._multiply(x, self._packed, self.bias)
        return y  # (n, out)


def _found(place: object, name: str) -> Any:  # noqa: ANN401 - torch does not type its operators
    """An operator that this torch may or may not have."""
    if not hasattr(place, name):
        raise RuntimeError(f"torch {torch.__version__} has no {name} here")
    return getattr(place, name)


def _tested(
    weight: NDArray[np.float32],
    bias: NDArray[np.float32] | None,
    *,
    dtype: torch.dtype,
    kind: Kind,
    wanted: Sequence[Tensor],
) -> Linear | None:
    """The packed layer, or None where it cannot be made or answers differently."""
    try:
        linear = pack(weight, bias, dtype=dtype, kind=kind)
        found = _answers(linear, *weight.shape)
    except RuntimeError:
        return None
    return linear if all(map(_close, found, wanted)) else None


def _answers(linear: Linear, n_in: int, n_out: int) -> tuple[Tensor, Tensor, Tensor]:
    """What a layer says of three random rows, in each of its ways."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(3, n_in, generator=random)
    residual = torch.randn(3, n_out, generator=random)
    with torch.inference_mode():
        return linear(x), linear.gelu(x), linear.add(x, residual)


def _close(found: Tensor, wanted: Tensor) -> bool:
    worst = (found.float() - wanted.float()).abs().max()
    return bool(worst <= TOLERANCE[wanted.dtype] * wanted.float().abs().max())


def _time(linear: Linear, n_in: int, trial: Trial) -> int:
    use_threads(trial.n_threads)
    x = torch.zeros(trial.n_rows, n_in)
    best: int | None = None
    with torch.inference_mode():
        for _ in range(REPEATS):
            start = now_ns()
            linear(x)
            took = now_ns() - start
            best = took if best is None else min(best, took)
    assert best is not None
    return best * trial.n_times


def _nbytes(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.nbytes
