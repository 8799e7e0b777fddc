"""Linear layers packed for this machine, in whichever way is right and fastest here.

No single way wins everywhere: on one processor a packed oneDNN matrix is three times as fast as the
BLAS behind `F.linear`, on the next it is slower. So `engine.choice` checks each kind against
`F.linear` and times it on the model's own weights, and every kind but the first may be missing:
they are private or ageing parts of torch.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine.errors import EngineError

Kind = Literal["linear", "columns", "onednn", "half", "half_serial"]

PACKED_FOR = 128  # rows that oneDNN packs for; best for one row too, so one copy serves both
LARGEST_HALF = 65_504  # the largest number that float16 holds
# How far an answer may be from that in float32, as a part of its largest number: what rounding the
# weights does, and for bfloat16 rounding the rows too.
TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 2e-2}


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
            on x86: they round to float16 whatever `dtype` says and multiply in float32.

    Raises:
        RuntimeError: torch does not have this kind here.
        EngineError: kind "dtype_range": a weight is too large for float16.
    """
    w = torch.from_numpy(np.require(weight, requirements="W"))  # (in, out)
    b = None if bias is None else torch.from_numpy(np.array(bias))
    if kind == "columns":
        w = w.contiguous().to(device, dtype)
        return _Plain(w, b if b is None else b.to(device, dtype))
    if kind in ("half", "half_serial"):
        _check_half(w)
    rows = w.t().contiguous()  # (out, in)
    if kind == "onednn":
        return _OneDnn(rows.to(dtype), b if b is None else b.to(dtype))
    if kind == "half":
        return _Half(rows, b)
    if kind == "half_serial":
        return _HalfSerial(rows, b)
    return _Plain(rows.to(device, dtype).t(), b if b is None else b.to(device, dtype))


def kinds(device: str, dtype: torch.dtype, *, exact_in_half: bool = False) -> tuple[Kind, ...]:
    """The kinds worth trying for these weights; `exact_in_half`: float16 holds them."""
    if device != "cpu":
        return ("linear",)
    if dtype is torch.float16:  # a CPU multiplies it a dozen times slower than float32
        return ("half", "half_serial") if has_half() else ()
    if dtype is torch.float32 and exact_in_half:
        return ("linear", "columns", "onednn", "half", "half_serial")
    return ("linear", "columns", "onednn")


def has_half() -> bool:
    """Whether this torch can widen float16 weights as it reads them."""
    return "fbgemm" in torch.backends.quantized.supported_engines


def item_bytes(kind: Kind, dtype: torch.dtype) -> int:
    """Bytes that one weight takes in memory."""
    return 2 if kind in ("half", "half_serial") else dtype.itemsize


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
    """float16 weights widened as they are read, float32 arithmetic; nothing else is rounded."""

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


def _check_half(weight: Tensor) -> None:
    largest = max(abs(float(end)) for end in torch.aminmax(weight))
    if largest > LARGEST_HALF:
        raise EngineError("dtype_range", found=f"{largest:,.0f}")


def _nbytes(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.nbytes
