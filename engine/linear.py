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

Kind = Literal["linear", "columns", "onednn", "half", "half_serial", "int8", "int8_rows"]

PACKED_FOR = 128  # rows that oneDNN packs for; best for one row too, so one copy serves both
LARGEST_HALF = 65_504  # the largest number that float16 holds
TINY = 1e-30  # stands for the size of a row of zeros
LARGEST_INT8 = 127  # -128 is left out, so that what is rounded lies evenly around 0
# How far an answer may be from that in float32, as a part of its largest number: what rounding the
# weights does, and for bfloat16 and int8 rounding the rows too.
TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.int8: 5e-2}


class Linear(ABC):
    """x W + b for rows x (n, in), in the type of the weights; `add` and int8 ones give float32."""

    nbytes: int  # of the weights as they lie in memory, scales and bias included
    rows: Tensor | None = None  # (out, in): a view of the matrix, where the kind keeps it plain
    bias: Tensor | None = None  # (out,)
    rounds_rows = False  # to 8 bits

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
            on x86: they round to float16 whatever `dtype` says and multiply in float32. int8 takes
            "int8" (weights rounded to 8 bits) or, on x86, "int8_rows" (rows too, as they come).

    Raises:
        RuntimeError: torch does not have this kind here.
        EngineError: kind "dtype_range": a weight is too large for float16.
    """
    assert (dtype is torch.int8) == (kind in ("int8", "int8_rows"))
    w = torch.from_numpy(np.require(weight, requirements="W"))  # (in, out)
    b = None if bias is None else torch.from_numpy(np.array(bias))
    if kind == "columns":
        w = w.contiguous().to(device, dtype)
        return _Plain(w, b if b is None else b.to(device, dtype))
    if kind in ("half", "half_serial"):
        check_half(w)
    rows = w.t().contiguous()  # (out, in)
    if kind == "onednn":
        return _OneDnn(rows.to(dtype), b if b is None else b.to(dtype))
    if kind == "half":
        return _Half(rows, b)
    if kind == "half_serial":
        return _HalfSerial(rows, b)
    if kind == "int8":
        return _Int8(rows, b)
    if kind == "int8_rows":
        return _Int8Rows(rows, b)
    return _Plain(rows.to(device, dtype).t(), b if b is None else b.to(device, dtype))


def kinds(device: str, dtype: torch.dtype, *, exact_in_half: bool = False) -> tuple[Kind, ...]:
    """The kinds worth trying for these weights; `exact_in_half`: float16 holds them."""
    if device != "cpu":
        return ("linear",)
    if dtype is torch.float16:  # a CPU multiplies it a dozen times slower than float32
        return ("half", "half_serial") if has_fbgemm() else ()
    if dtype is torch.int8:
        return ("int8", "int8_rows") if has_fbgemm() else ("int8",)
    if dtype is torch.float32 and exact_in_half:
        return ("linear", "columns", "onednn", "half", "half_serial")
    return ("linear", "columns", "onednn")


def has_fbgemm() -> bool:
    """Whether this torch can widen float16 weights as it reads them, and multiply int8 by int8."""
    return "fbgemm" in torch.backends.quantized.supported_engines


def item_bytes(kind: Kind, dtype: torch.dtype) -> int:
    """Bytes that one weight takes in memory."""
    return 2 if kind in ("half", "half_serial") else dtype.itemsize


def check_half(weight: Tensor) -> None:
    """Refuse weights that float16 cannot hold.

    Raises:
        EngineError: kind "dtype_range", with the largest of them.
    """
    largest = max(abs(float(end)) for end in torch.aminmax(weight))
    if largest > LARGEST_HALF:
        raise EngineError("dtype_range", found=f"{largest:,.0f}")


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


class _Int8(Linear):
    """int8 weights with a scale for each output; rows and answer go through bfloat16."""

    def __init__(self, rows: Tensor, bias: Tensor | None) -> None:
        n_in = rows.shape[1]
        # Torch reads 16 numbers at a time, and past the end where there are fewer.
        self._missing = -n_in % 16
        self._scale = _scale(rows)  # (out,)
        numbers = torch.round(rows / self._scale.float()[:, None])  # (out, in)
        numbers = numbers.clamp_(-LARGEST_INT8, LARGEST_INT8).to(torch.int8)
        self._weight = functional.pad(numbers, (0, self._missing))  # (out, in + missing)
        self._multiply = _found(torch, "_weight_int8pack_mm")
        self.bias = bias
        self.nbytes = self._weight.nbytes + self._scale.nbytes + _nbytes(bias)

    def __call__(self, x: Tensor) -> Tensor:
        if self._missing:
            x = functional.pad(x, (0, self._missing))  # (n, in + missing)
        y: Tensor = self._multiply(x.bfloat16(), self._weight, self._scale)  # (n, out)
        return y.float() if self.bias is None else torch.add(self.bias, y)  # (n, out)


class _Int8Rows(Linear):
    """The same weights, and each row rounded as it comes: dynamic quantization, W8A8.

    Rows are rounded to 7 bits: on processors that add up pairs of products in 16 bits (all without
    VNNI) a pair of 8 by 8 bits would not fit, and the answer is to be the same on all.
    """

    rounds_rows = True

    def __init__(self, rows: Tensor, bias: Tensor | None) -> None:
        scale = _scale(rows)  # (out,)
        places = torch.zeros(len(rows), dtype=torch.int64)  # of 0 among the whole numbers
        # As in `_HalfSerial`.
        warnings.filterwarnings("ignore", r"torch\.quantize_per_tensor, ", UserWarning)
        quantized = _found(torch, "quantize_per_channel")(
            rows, scale.float(), places, 0, torch.qint8
        )  # (out, in)
        self._packed = _found(torch.ops.quantized, "linear_prepack")(quantized, None)
        self._multiply = _found(torch.ops.quantized, "linear_dynamic").default
        self.bias = bias
        # int8 weights; float32 scale, int32 place of 0 and int32 sum of each output
        self.nbytes = rows.numel() + 12 * len(rows) + _nbytes(bias)

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) == 1:
            y: Tensor = self._multiply(x, self._packed, True)  # (1, out)
            return y if self.bias is None else torch.add(y, self.bias)  # (1, out)
        # Torch rounds all rows by one scale, in which a large row would drown the small ones.
        size = x.abs().amax(1, keepdim=True).clamp_min_(TINY)  # (n, 1)
        y = self._multiply(x / size, self._packed, True)  # (n, out)
        return y * size if self.bias is None else torch.addcmul(self.bias, y, size)  # (n, out)


def _scale(rows: Tensor) -> Tensor:
    """What each of the rows (out, in) is divided by before it is rounded, (out,) bfloat16.

    scale = max |w| / 127: symmetric quantization with a scale for each output channel. bfloat16,
    as one kind multiplies by it in that type, and so both have the same weights.
    """
    low, high = torch.aminmax(rows, dim=1)
    scale = (torch.maximum(-low, high) / LARGEST_INT8).bfloat16()  # (out,)
    return torch.where(scale == 0, torch.ones_like(scale), scale)  # (out,)


def _found(place: object, name: str) -> Any:  # noqa: ANN401 - torch does not type its operators
    """An operator that this torch may or may not have."""
    if not hasattr(place, name):
        raise RuntimeError(f"torch {torch.__version__} has no {name} here")
    return getattr(place, name)


def _nbytes(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.nbytes
