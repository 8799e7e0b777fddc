"""Which devices and number types there are here, and whether a model fits."""

from __future__ import annotations

import torch

from engine import linear, meter
from engine import state as states
from engine.checkpoint import Source
from engine.errors import EngineError
from engine.model_folder import EMBEDDING, HEAD

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int8": torch.int8,
}  # what matrices are kept in
DTYPES_ON = {
    "cpu": ("float32", "bfloat16", "float16", "int8"),
    "cuda": ("float16", "float32", "bfloat16"),
    "mps": ("float32", "float16"),
}  # the first is the automatic choice


def device(asked: str) -> str:
    """The device asked for, or the best one that is here for "auto".

    Raises:
        EngineError: kind "device".
    """
    present = ["cpu"]
    if torch.cuda.is_available():
        present.append("cuda")
    if torch.backends.mps.is_available():
        present.append("mps")
    if asked == "auto":
        return "cuda" if "cuda" in present else "cpu"
    if asked not in present:
        raise EngineError("device", found=asked, present=", ".join(present))
    return asked


def dtype(asked: str, on: str) -> str:
    """The number type asked for, or the usual one of this device for "auto".

    Raises:
        EngineError: kind "dtype".
    """
    allowed = DTYPES_ON[on]
    if on == "cpu" and not linear.has_fbgemm():
        allowed = tuple(name for name in allowed if name != "float16")
    if asked == "auto":
        return allowed[0]
    if asked not in allowed:
        raise EngineError("dtype", found=asked, device=on, allowed=", ".join(allowed))
    return asked


def check_memory(source: Source, device: str, item: int) -> None:
    """Refuse a model that cannot fit before the system has to stop us.

    Args:
        source: the model.
        device: where it shall lie.
        item: bytes a weight takes there.

    Raises:
        EngineError: kind "memory".
    """
    available = meter.available_bytes(device)
    if available is not None and _needed(source, item) > available:
        raise no_memory(source, device, item)


def no_memory(source: Source, device: str, item: int) -> EngineError:
    """The error that tells how much is needed and how much there is."""
    available = meter.available_bytes(device)
    return EngineError(
        "memory",
        device=device,
        needed=_needed(source, item),
        available="fewer" if available is None else available,
    )


def _needed(source: Source, item: int) -> int:
    """Bytes of weights and state."""
    dimensions = source.config.dimensions
    return item * dimensions.n_params + states.bytes_for(dimensions)


def exact_in_half(source: Source) -> bool:
    """Whether every matrix is stored in float16, so that keeping it so loses nothing."""
    matrices = ("c_attn.weight", "c_proj.weight", "c_fc.weight", EMBEDDING, HEAD)
    return all(d == "F16" for name, d in source.dtypes.items() if name.endswith(matrices))
