"""How many operations a pass tells torch to do: counted, on a model too small to take time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.overrides import TorchFunctionMode

from engine.checkpoint import Checkpoint, Config
from engine.events import Dimensions, Model, Phase
from engine.graphs import GraphRunner
from engine.linear import Kind
from engine.models import kernels
from engine.models.streams import Tick
from engine.queues import Queue, Work
from engine.runners import Runner

N_RECORDED = 2  # graphs that a recorded step calls for: the pass and the draw


def operations(runner: Runner, phase: Phase, first: int, count: int) -> tuple[int, int]:
    """How many operations a pass tells torch to do, and how many of them start a kernel.

    Counted, not estimated: the same pass is made with models of one and two layers that are small
    but otherwise alike. Each further layer adds what the second did. What is done after the pass,
    to record it, is not counted. A recorded step tells of a graph at once, however many kernels it
    starts.

    Args:
        runner: that would make the pass; it is left as it is.
        phase: as in `Forward`.
        first: likewise.
        count: likewise.
    """
    asked = _Pass(phase, first, count)
    one, two = (_count(runner, asked, n_layer) for n_layer in (1, 2))
    more = runner.dimensions.n_layer - 1
    n_operations, n_launches = (a + more * (b - a) for a, b in zip(one, two, strict=True))
    return n_operations, n_launches


def small_runner(
    device: str, dtype: str, n_threads: int, kind: Kind, *, n_layer: int, n_positions: int
) -> Runner:
    """A runner of a GPT-2 whose arithmetic takes next to no time: 32 numbers a token, all zero."""
    c = 32
    dimensions = Dimensions(n_layer, 2, c, n_positions, 64)
    shapes = {"wte": (64, c), "wpe": (n_positions, c), "ln_f": (c,)}
    for n in range(n_layer):
        shapes |= {f"h.{n}.ln_1": (c,), f"h.{n}.ln_2": (c,)}
        shapes |= {f"h.{n}.attn.c_attn": (c, 3 * c), f"h.{n}.attn.c_proj": (c, c)}
        shapes |= {f"h.{n}.mlp.c_fc": (c, 4 * c), f"h.{n}.mlp.c_proj": (4 * c, c)}
    tensors: dict[str, NDArray[np.generic]] = {}
    for name, shape in shapes.items():
        tensors[f"{name}.weight"] = np.zeros(shape, np.float32)
        if name not in ("wte", "wpe"):
            tensors[f"{name}.bias"] = np.zeros(shape[-1], np.float32)
    checkpoint = Checkpoint(
        model=Model("small", "Small", dimensions, verified=False),
        config=Config(dimensions, layer_norm_epsilon=1e-5),
        tensors=tensors,
        dtypes=dict.fromkeys(tensors, "F32"),
        sha256="",
        notes=(),
    )
    return Runner(checkpoint, device=device, dtype=dtype, n_threads=n_threads, kind=kind)


@dataclass(frozen=True, slots=True)
class _Pass:
    phase: Phase
    first: int
    count: int


class Counter(TorchFunctionMode):
    """Counts what torch is told to do while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.n_operations = self.n_launches = 0

    def __torch_function__(
        self,
        func: Any,  # noqa: ANN401 - torch does not type its operators
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        result = func(*args, **(kwargs or {}))
        if _has_tensors(result):  # else it was only asked for a shape or a type
            self.n_operations += 1
            self.n_launches += _starts_a_kernel(func.__name__, result, args)
        return result


def _has_tensors(result: object) -> bool:
    parts = result if isinstance(result, tuple) else (result,)
    return any(isinstance(part, torch.Tensor) for part in parts)


def _starts_a_kernel(name: str, result: object, args: tuple[object, ...]) -> bool:
    """Not so if it only looks at its tensor in another way, hands it back, or gets memory."""
    if name.endswith("_") and not name.startswith("_"):  # in place, as copy_
        return True
    parts = result if isinstance(result, tuple) else (result,)
    return not name.startswith("new_empty") and not any(
        _same_memory(part, arg) for part in parts for arg in args
    )


def _same_memory(a: object, b: object) -> bool:
    """Whether both are plain tensors that lie in the same storage."""
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return False
    if a.layout is not torch.strided or b.layout is not torch.strided:  # oneDNN's own
        return False
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _count(runner: Runner, asked: _Pass, n_layer: int) -> tuple[int, int]:
    end = asked.first + asked.count
    small = small_runner(
        runner.device, runner.dtype, 1, runner.kind, n_layer=n_layer, n_positions=end
    )
    if isinstance(runner, GraphRunner) and asked.phase == "decode":
        return _count_recorded(runner.tick, small, asked)
    return _counted(small, asked)


def _count_recorded(tick: Tick, small: Runner, asked: _Pass) -> tuple[int, int]:
    told, _ = _counted(GraphRunner(small, _Told()), asked)
    if tick is not kernels.tick:
        return told + N_RECORDED, _counted(GraphRunner(small, Queue(), tick=tick), asked)[1]
    # Torch does not see kernels of ours: counted is what is around them.
    logits = torch.zeros(1, len(small.weights.tokens), device=small.device)
    around = GraphRunner(small, Queue(), tick=lambda *_, **__: logits)
    launched = kernels.n_launches(len(small.weights.layers)) + _counted(around, asked)[1]
    return told + N_RECORDED, launched


def _counted(small: Runner, asked: _Pass) -> tuple[int, int]:
    small.state.position = asked.first  # as if they were read: what they say does not matter
    counter = Counter()
    with counter:
        if asked.phase == "decode":
            small.step(0, position=asked.first)
        else:
            for _ in small.prefill([0] * asked.count, first=asked.first):
                pass
    return counter.n_operations, counter.n_launches


class _Told(Queue):
    """Does nothing where recorded work is called for: what is left, Python tells by itself."""

    def record(self, work: Work) -> Work:
        return lambda: None
