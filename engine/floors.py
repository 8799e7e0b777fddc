"""What a pass must take at least on this machine, and which of the machine's limits holds it back.

Floors, and what they predict, are theory (≈). Nearness, MBU and MFU are derived (ƒ) from a measured
span. The formulas are those of the roofline model (Williams, Waterman, Patterson 2009), with the
cost of telling a machine what to do as a third limit beside its memory and its arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from engine.events import Forward, Machine, Work
from engine.timing import length

Bound = Literal["memory", "compute", "overhead"]

SECOND = 1e9  # nanoseconds
_SANE = {
    "bandwidth": (1e7, 1e16),
    "flops": (1e6, 1e19),
    "dispatch_ns": (1.0, 1e8),
    "launch_ns": (1.0, 1e8),
}  # from far below the slowest machine to far above the fastest: outside, a clock was wrong


@dataclass(frozen=True, slots=True)
class Limits:
    """What a machine can do at most, as `engine.probe` measured it.

    Raises:
        ValueError: a figure is not finite, or one that no machine has.
    """

    device: str  # "cpu", "cuda" or "mps"
    dtype: str  # what matrices were multiplied in
    n_threads: int
    bandwidth: float  # bytes a second, read from memory that no cache holds
    flops: float  # FLOP a second of the fastest matrix product
    matrix: str  # how that product was packed: a kind of `engine.linear`
    dispatch_ns: float  # one small operation, told by Python to torch
    launch_ns: float | None  # from one small kernel to the next; None: no queue that we can time
    quiet: bool = True  # no other program worked meanwhile; if one did, all of this is too low

    def __post_init__(self) -> None:
        for name, (low, high) in _SANE.items():
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and low <= value <= high):
                raise ValueError(f"{name} is {value}")


@dataclass(frozen=True, slots=True)
class Floors:
    """Four times, in ns, below which a pass cannot stay; see `floors`."""

    memory_ns: float
    compute_ns: float
    dispatch_ns: float
    launch_ns: float
    queued: bool  # an accelerator works while the CPU already tells it what comes next

    @property
    def overhead_ns(self) -> float:
        """Dispatch, and on an accelerator launch if that is longer: there the two overlap."""
        return max(self.dispatch_ns, self.launch_ns)

    @property
    def predicted_ns(self) -> float:
        """What the pass should take.

        CPU: max(memory, compute) + dispatch. The next weights are read while the last are
        multiplied, so the longer of the two counts; but the threads that do so stand still while
        Python says what comes next.

        Accelerator: max(dispatch, max(memory, compute) + launch). It has a queue, so that it waits
        for Python only if Python takes longer altogether, but between two kernels it rests.
        """
        busy = max(self.memory_ns, self.compute_ns)
        if self.queued:
            return max(self.dispatch_ns, busy + self.launch_ns)
        return busy + self.dispatch_ns


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which limit holds a pass back, and how near it came to it."""

    bound: Bound
    floor_ns: float
    nearness: float  # floor / span: 1 is as fast as can be; more: a cache held what was read

    @property
    def explains(self) -> bool:
        """Whether the floor is at least half of the span; if not, the time went elsewhere."""
        return self.nearness >= 0.5


@dataclass(frozen=True, slots=True)
class Rating:
    """One pass held against the limits of the machine it ran on."""

    count: int  # positions it read
    span_ns: int
    n_operations: int
    n_launches: int
    limits: Limits
    floors: Floors
    verdict: Verdict
    mbu: float
    mfu: float


def with_roofs(machine: Machine, limits: Limits | None) -> Machine:
    """The machine with what was measured of it, if it was; not if other programs worked then."""
    if limits is None or not limits.quiet:
        return machine
    return replace(machine, flops=limits.flops, bandwidth=limits.bandwidth)


def floors(work: Work, limits: Limits, *, n_operations: int, n_launches: int) -> Floors:
    """The four floors of a pass.

    memory   = (weight_bytes + kv_bytes) / bandwidth
    compute  = flops of the pass / flops of the machine
    dispatch = n_operations x dispatch_ns
    launch   = n_launches x launch_ns, 0 without a queue

    Args:
        work: of the pass, by `engine.meter.work`.
        limits: of the machine, with the threads that the pass used.
        n_operations: that Python tells torch to do, by `engine.probe.operations`.
        n_launches: those of them that start a kernel on an accelerator.

    The first decode step of GPT-2 small in float32, at 40 GB/s, 100 GFLOP/s and 2 us an operation:

    >>> from engine.events import Dimensions
    >>> from engine.meter import work
    >>> step = work(Dimensions(12, 12, 768, 1024, 50257), 0, 1, item_weight=4, item_kv=4)
    >>> cpu = Limits("cpu", "float32", 1, 40e9, 100e9, "onednn", 2_000.0, None)
    >>> found = floors(step, cpu, n_operations=284, n_launches=161)
    >>> [round(ns / 1e6, 2) for ns in (found.memory_ns, found.compute_ns, found.dispatch_ns)]
    [12.37, 2.47, 0.57]
    >>> round(found.predicted_ns / 1e6, 2)
    12.94
    """
    return Floors(
        memory_ns=_moved(work) / limits.bandwidth * SECOND,
        compute_ns=work.flops / limits.flops * SECOND,
        dispatch_ns=n_operations * limits.dispatch_ns,
        launch_ns=n_launches * (limits.launch_ns or 0.0),
        queued=limits.device != "cpu",
    )


def verdict(floors: Floors, span_ns: int) -> Verdict:
    """The largest floor names what binds; of equal ones memory before compute before overhead.

    >>> verdict(Floors(12e6, 2e6, 1e6, 0.0, queued=False), 15_000_000)
    Verdict(bound='memory', floor_ns=12000000.0, nearness=0.8)
    """
    candidates: dict[Bound, float] = {
        "memory": floors.memory_ns,
        "compute": floors.compute_ns,
        "overhead": floors.overhead_ns,
    }
    bound = max(candidates, key=candidates.__getitem__)
    return Verdict(bound, candidates[bound], candidates[bound] / max(1, span_ns))


def mbu(work: Work, span_ns: int, limits: Limits) -> float:
    """Memory bandwidth utilisation: (weight_bytes + kv_bytes) / span / bandwidth.

    >>> cpu = Limits("cpu", "float32", 1, 40e9, 100e9, "onednn", 2_000.0, None)
    >>> round(mbu(Work(0, 494_613_504, 147_456), 15_000_000, cpu), 3)
    0.825
    """
    return _moved(work) / max(1, span_ns) * SECOND / limits.bandwidth


def mfu(work: Work, span_ns: int, limits: Limits) -> float:
    """Model FLOP utilisation: flops of the pass / span / flops of the machine.

    The name is that of PaLM (Chowdhery et al. 2022); only what the model needs is counted.

    >>> cpu = Limits("cpu", "float32", 1, 40e9, 100e9, "onednn", 2_000.0, None)
    >>> round(mfu(Work(247_100_928, 0, 0), 15_000_000, cpu), 3)
    0.165
    """
    return work.flops / max(1, span_ns) * SECOND / limits.flops


def rate(forward: Forward, limits: Limits, *, n_operations: int, n_launches: int) -> Rating:
    """A measured pass against the limits; what is counted is explained at `floors`."""
    work, span_ns = forward.work, forward.device_ns or length(forward.span)
    found = floors(work, limits, n_operations=n_operations, n_launches=n_launches)
    return Rating(
        count=forward.count,
        span_ns=span_ns,
        n_operations=n_operations,
        n_launches=n_launches,
        limits=limits,
        floors=found,
        verdict=verdict(found, span_ns),
        mbu=mbu(work, span_ns, limits),
        mfu=mfu(work, span_ns, limits),
    )


def _moved(work: Work) -> int:
    return work.weight_bytes + work.kv_bytes
