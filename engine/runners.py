"""A model on a device: the only place that knows how CPU, CUDA and MPS differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine import choice, devices, linear, meter
from engine.checkpoint import Source
from engine.choice import Threads
from engine.crowd import Crowd
from engine.errors import EngineError
from engine.events import Floats, Memory, Span, frozen
from engine.linear import Kind
from engine.models import gpt2, packing
from engine.request import Sampling
from engine.rows import roomy
from engine.state import K, Q, State, V

SHORT = 16  # rows below which a chunk is over before more threads would have helped
CHUNK = 128  # positions a prefill reads at once: tens of ms, so that a stop is heard soon


@dataclass(frozen=True, slots=True)
class Rows:
    """Copies of what some positions left in the state; None = not asked for."""

    # q, k, v: (L, H, count, D); residual: (2L + 1, count, C)
    q: Floats | None = field(repr=False, compare=False)
    k: Floats | None = field(repr=False, compare=False)
    v: Floats | None = field(repr=False, compare=False)
    residual: Floats | None = field(repr=False, compare=False)


class Runner:
    """One model's weights and state on one device, run operation by operation.

    Not for two threads at once. Construction ends with a short warm-up pass, which is rewound, so
    that no run pays for pages, threads and kernels that are made on first use.

    Attributes:
        dimensions: of the model.
        device: "cpu", "cuda" or "mps".
        dtype: what the weights are rounded to; the state is float32 always.
        item_weight: bytes a weight takes in memory. Half of the dtype's where float16 weights are
            widened as they are read.
        weight_bytes: all weights as they lie in memory.
        kind: how the matrices of the layers are packed.
        note: a sentence about something that could not be used here, or about what it cost to use
            it, or None.
        machine: the processor or card, and the threads that decode uses.
        state: the buffers, and how many positions are read.
    """

    def __init__(
        self,
        source: Source,
        *,
        device: str = "auto",
        dtype: str = "auto",
        n_threads: int | None = None,
        kind: Kind | None = None,
    ) -> None:
        """Pack the weights.

        Args:
            source: the model. Its tensors are packed one by one; they may be kept, not changed.
            device: "auto" (CUDA, else CPU), "cpu", "cuda" or "mps".
            dtype: "auto", "float32", "bfloat16", "float16" or, on the CPU only, "int8".
            n_threads: for prefill and decode alike. None: every core for a long prefill; for decode
                and a short one, one less, because a pass waits for its slowest thread and the
                window needs a core too; only one while other programs are in the way.
            kind: how matrices are packed; None lets the clock decide.

        Raises:
            EngineError: kind "device", "dtype" or "memory", or what the source says.
        """
        self.dimensions = source.config.dimensions
        self.device = devices.device(device)
        cores = meter.n_cores()
        self._prefill_threads = n_threads or cores
        self._decode_threads = n_threads or max(1, cores - 1)
        # Who asks for a number gets it; and steps of an accelerator only begin here.
        watched = n_threads is None and self.device == "cpu"
        self._crowd = Crowd(self._decode_threads, watched=watched)
        self.machine = meter.machine(self.device, self._decode_threads)
        plan = self._plan(source, dtype, kind)
        try:
            self._pack(source, plan)
        except EngineError as error:
            if error.kind != "dtype_range" or dtype != "auto":
                raise
            self._pack(source, self._plan(source, "float32", kind))
        self.weight_bytes = self._weights.nbytes
        self.note: str | None = None
        self._logits: Tensor | None = None
        self._spans: tuple[Span, ...] = ()
        self._warm_up()

    def prefill(self, ids: Sequence[int], *, first: int) -> Iterator[int]:
        """Read a prompt chunk by chunk; what was read before `first` stays.

        Args:
            ids: one or more, at positions `first`, `first` + 1, ...
            first: at most how many positions are read already.

        Yields:
            How many positions are read, from position 0 on, after each chunk. The logits are there
            after the last one.
        """
        end = first + len(ids)
        assert ids
        assert 0 <= first <= self.state.position
        assert end <= self.state.n_positions
        self.state.position, self._logits = first, None
        for at in range(first, end, CHUNK):
            chunk = ids[at - first : at - first + CHUNK]
            linear.use_threads(self.threads(len(chunk)))  # the caller may have stepped in between
            spans = gpt2.prefill(self._weights, self.state, chunk, first=at)
            self._spans = spans if len(chunk) == len(ids) else ()
            self.state.position = at + len(chunk)
            if self.state.position == end:
                self._logits = self._head()
            yield self.state.position

    def step(self, id: int, *, position: int) -> None:
        """Read one token, at most at the first position not read yet: the decode step."""
        assert 0 <= position <= self.state.position
        assert position < self.state.n_positions
        linear.use_threads(self._crowd.n_threads)
        start = meter.now_ns()
        self._spans = gpt2.step(self._weights, self.state, id, position=position)
        self.state.position = position + 1
        self._logits = self._head()
        self._crowd.took(meter.now_ns() - start)

    @property
    def weights(self) -> gpt2.Weights:
        """The packed weights, for those who compute with them in another order."""
        return self._weights

    def threads(self, count: int) -> int:
        """How many threads read `count` positions at once, if no other program is in their way."""
        return self._decode_threads if count < SHORT else self._prefill_threads

    def logits(self) -> NDArray[np.float32]:
        """(V,) of the last position read; fresh and read-only."""
        assert self._logits is not None, "the last prefill was not finished"
        return frozen(self._logits.cpu().numpy())

    def rows(
        self,
        first: int,
        count: int,
        *,
        attention: bool = True,
        residual: bool = True,
        room: int = 0,
    ) -> Rows:
        """What `count` positions from `first` on left in the state; fresh and read-only.

        They come at the beginning of arrays with room for `room` positions; see `engine.rows`.
        """
        q = k = v = stream = None
        end = first + count
        if attention:
            q, k, v = (
                _copied(self.state.qkv[:, slot, 0, :, first:end], axis=2, room=room)
                for slot in (Q, K, V)
            )
        if residual:
            stream = _copied(self.state.residual[:, 0, first:end], axis=1, room=room)
        return Rows(q, k, v, stream)

    def layer_spans(self) -> tuple[Span, ...]:
        """When each layer of the last pass began and ended.

        Empty where that cannot be told: on an accelerator, which works behind the CPU's back, and
        for a prefill of several chunks, in which every layer worked several times.
        """
        return self._spans if self.device == "cpu" else ()

    def device_ns(self) -> int | None:
        """How long the last pass took by the device's own clock; None where it has none."""
        return None

    def expect(self, sampling: Sampling, seed: int) -> None:
        """Say how the next token will be drawn, in case that steps can be made ahead of it."""

    def synchronize(self) -> None:
        """Wait until the device has done all it was told."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        elif self.device == "mps":
            torch.mps.synchronize()

    def memory(self, n_positions: int) -> Memory:
        """The ledger with `n_positions` positions read."""
        used, reserved = self.state.used(n_positions), self.state.reserved
        return Memory(
            kv_used=used.kv,
            kv_reserved=reserved.kv,
            q_used=used.q,
            q_reserved=reserved.q,
            residual_used=used.residual,
            residual_reserved=reserved.residual,
            weights=self.weight_bytes,
            process=meter.process_bytes(),
            device=meter.device_bytes(self.device),
        )

    def _head(self) -> Tensor:
        return gpt2.logits(self._weights, self.state, position=self.state.position - 1)

    def _plan(self, source: Source, dtype: str, kind: Kind | None) -> packing.Plan:
        found = devices.dtype(dtype, self.device)
        if kind is not None:
            return packing.Plan(self.device, devices.DTYPES[found], kind, kind)
        threads = Threads(self._decode_threads, self._prefill_threads)
        return choice.plan(source, self.device, dtype if dtype == "auto" else found, threads)

    def _pack(self, source: Source, plan: packing.Plan) -> None:
        item = linear.item_bytes(plan.layers, plan.dtype)
        devices.check_memory(source, self.device, item)
        if plan.layers == "half_serial":  # one thread multiplies: others would only be waited for
            self._prefill_threads = self._decode_threads
        self.kind, self.item_weight = plan.layers, item
        self.dtype = str(plan.dtype).removeprefix("torch.")
        try:
            self._weights = packing.pack(source, plan)
            self.state = State(self.dimensions, device=self.device)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise devices.no_memory(source, self.device, item) from error

    def _warm_up(self) -> None:
        for _ in self.prefill([0], first=0):
            pass
        if self.state.n_positions > 1:
            self.step(0, position=1)
        self.synchronize()
        self.state.position, self._logits, self._spans = 0, None, ()


def _copied(rows: Tensor, *, axis: int, room: int) -> Floats:
    copy = roomy(tuple(rows.shape), axis, room)
    torch.from_numpy(copy).copy_(rows)
    return frozen(copy)
