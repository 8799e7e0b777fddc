"""The limits of this machine, measured within two seconds and kept until the machine changes.

Everything is measured with the operations that a pass uses, so that the limits are those of this
program's tools, not of a data sheet. The fastest of many goes counts: whatever else the machine
does only adds time. Who measures can be asked to stop, and does so within a go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from engine import limits_file, linear, meter
from engine.dispatch import Counter, operations, small_runner
from engine.errors import EngineError
from engine.events import Floats, Forward
from engine.floors import SECOND, Limits, Rating
from engine.floors import rate as rate_by
from engine.job import Stopped
from engine.kept_file import Fingerprint
from engine.linear import Kind
from engine.meter import now_ns
from engine.runners import Runner

READ = {"cpu": 2**28, "cuda": 2**30, "mps": 2**29}  # bytes: eight caches of most machines
PRODUCT = {
    "cpu": (128, 768, 3072),  # rows, in, out: a chunk of a prefill and GPT-2 small's widest matrix
    "cuda": (4096, 4096, 4096),  # a card needs more to be busy
    "mps": (2048, 2048, 2048),
}
BUDGET_NS = 75_000_000  # of each measurement after its first go; there are up to eight
TIMES_QUEUED = 10  # calls an accelerator is given at once, as its queue is what we time
N_PARTS = 8  # in which that memory is written, as all of it takes 0.2 s
N_KERNELS = 200  # in the graph that tells what a launch costs


class Interrupted(Exception):
    """The measuring was asked to stop before it had come to its end."""


def rate(runner: Runner, forward: Forward) -> Rating:
    """A pass of this runner against the limits of this machine.

    Raises:
        EngineError: kind "limits".
    """
    n_threads = runner.threads(forward.count)
    found = limits(runner.device, runner.dtype, n_threads, kind=runner.kind)
    n_operations, n_launches = operations(runner, forward.phase, forward.first, forward.count)
    return rate_by(forward, found, n_operations=n_operations, n_launches=n_launches)


def limits(device: str, dtype: str, n_threads: int, *, kind: Kind = "linear") -> Limits:
    """What is kept of this same machine with these same versions, or `renewed`.

    Raises:
        EngineError: kind "limits".
    """
    found = kept(device, dtype, n_threads, kind=kind)
    return renewed(device, dtype, n_threads, kind=kind) if found is None else found


def kept(device: str, dtype: str, n_threads: int, *, kind: Kind = "linear") -> Limits | None:
    """What was measured earlier, at no cost; see `engine.limits_file` for where that is kept."""
    return limits_file.read(_fingerprint(device, dtype, n_threads, kind))


def renewed(
    device: str,
    dtype: str,
    n_threads: int,
    *,
    kind: Kind = "linear",
    stopped: Stopped = lambda: False,
) -> Limits:
    """`measure`, and keep it. What was measured beside other programs is too low, and is not kept.

    Raises:
        EngineError: kind "limits".
        Interrupted: `stopped` said so.
    """
    found = measure(device, dtype, n_threads, kind=kind, stopped=stopped)
    if found.quiet:
        limits_file.write(found, _fingerprint(device, dtype, n_threads, kind))
    return found


def all_kept(runner: Runner) -> tuple[Limits, ...]:
    """`kept`, for every number of threads that passes of this runner use; all of it or nothing."""
    where = runner.device, runner.dtype
    found = [kept(*where, n_threads, kind=runner.kind) for n_threads in _thread_counts(runner)]
    return tuple(limits for limits in found if limits) if None not in found else ()


def all_renewed(runner: Runner, *, stopped: Stopped = lambda: False) -> tuple[Limits, ...]:
    """`renewed`, for every number of threads that passes of this runner use.

    Raises:
        EngineError: kind "limits".
        Interrupted: `stopped` said so.
    """
    where = runner.device, runner.dtype
    return tuple(
        renewed(*where, n_threads, kind=runner.kind, stopped=stopped)
        for n_threads in _thread_counts(runner)
    )


def measure(
    device: str,
    dtype: str,
    n_threads: int,
    *,
    kind: Kind = "linear",
    stopped: Stopped = lambda: False,
) -> Limits:
    """Measure bandwidth, matrix rate, dispatch and launch, in about a second.

    Args:
        device: "cpu", "cuda" or "mps".
        dtype: what a runner there multiplies in.
        n_threads: of the CPU, to read, to multiply and to dispatch with.
        kind: how the runner packs its layers; operations of some kinds take longer to begin.
        stopped: asked before every go, the longest of which takes some tens of ms.

    Raises:
        EngineError: kind "limits": something could not be measured, or what came out cannot be.
        Interrupted: `stopped` said so.
    """
    linear.use_threads(n_threads)
    clock = _Clock(device, stopped)
    watch = meter.Watch()
    try:
        with torch.inference_mode():
            flops, matrix = _matrix_rate(clock, getattr(torch, dtype), kind)
            bandwidth = _bandwidth(clock)
            dispatch_ns = _dispatch_ns(clock, dtype, n_threads, kind)
            launch_ns = _launch_ns(clock) if device == "cuda" else None
        return Limits(
            device=device,
            dtype=dtype,
            n_threads=n_threads,
            bandwidth=bandwidth,
            flops=flops,
            matrix=matrix,
            dispatch_ns=dispatch_ns,
            launch_ns=launch_ns,
            quiet=watch.quiet or device != "cpu",  # who waits for a card uses nothing
        )
    except (RuntimeError, MemoryError, ValueError) as error:
        raise EngineError("limits", reason=str(error).partition("\n")[0] or "memory") from error


def _thread_counts(runner: Runner) -> tuple[int, ...]:
    """Those of a decode step and, if they are others, those of a long prefill."""
    few, most = runner.threads(1), runner.threads(runner.dimensions.n_positions)
    return (few,) if few == most else (few, most)


def _fingerprint(device: str, dtype: str, n_threads: int, kind: Kind) -> Fingerprint:
    """All that the limits depend on; if any of it changes, they are measured anew."""
    return {
        "device": device,
        "dtype": dtype,
        "n_threads": n_threads,
        "kind": kind,
        **meter.fingerprint(device),
    }


class _Clock:
    """Times calls on a device, until it is told to stop."""

    def __init__(self, device: str, stopped: Stopped) -> None:
        self.device = device
        self._stopped = stopped

    def fastest_ns(self, call: Callable[[], object]) -> float:
        """How long a call takes, at best."""
        n_times = 1 if self.device == "cpu" else TIMES_QUEUED
        first = self._time(call, 1)
        if first > BUDGET_NS:  # so long that what is made on first use no longer shows
            return first
        best, until = float("inf"), now_ns() + BUDGET_NS
        while now_ns() < until:
            best = min(best, self._time(call, n_times) / n_times)
        return max(best, 1.0)

    def give_way(self) -> None:
        """Stop here if that is wanted."""
        if self._stopped():
            raise Interrupted

    def _time(self, call: Callable[[], object], n_times: int) -> int:
        self.give_way()
        start = now_ns()
        for _ in range(n_times):
            call()
        _synchronize(self.device)
        return now_ns() - start


def _bandwidth(clock: _Clock) -> float:
    """Bytes a second that a matrix far larger than any cache can be read with."""
    n_bytes = READ[clock.device]
    matrix = torch.empty(n_bytes // 4 // 8192, 8192, device=clock.device)  # (rows, 8192)
    for part in matrix.chunk(N_PARTS):  # memory is there only once it has been written to
        clock.give_way()
        part.fill_(1)
    vector = torch.ones(8192, device=clock.device)
    reads: list[Callable[[], object]] = [partial(torch.mv, matrix, vector), matrix.sum]
    return n_bytes * SECOND / min(map(clock.fastest_ns, reads))


def _matrix_rate(clock: _Clock, dtype: torch.dtype, used: Kind) -> tuple[float, Kind]:
    """FLOP a second, 2 x rows x in x out a product, of the fastest kind that could be used."""
    device = clock.device
    halved = linear.item_bytes(used, dtype) < dtype.itemsize
    n_rows, n_in, n_out = PRODUCT[device]
    weight, x = _numbers(n_in, n_out), torch.from_numpy(_numbers(n_rows, n_in)).to(device)
    if device != "cpu":  # there the rows come rounded, on a CPU each kind does it by itself
        x = x.to(dtype)
    times: dict[Kind, float] = {}
    for kind in linear.kinds(device, dtype, exact_in_half=halved):
        try:
            layer = linear.pack(weight, None, device=device, dtype=dtype, kind=kind)
        except RuntimeError:  # torch does not have it here
            continue
        times[kind] = clock.fastest_ns(partial(layer, x))
    best = min(times, key=times.__getitem__)
    return 2 * n_rows * n_in * n_out * SECOND / times[best], best


def _dispatch_ns(clock: _Clock, dtype: str, n_threads: int, kind: Kind) -> float:
    """One operation of a decode step so small that nothing else takes time."""
    small = small_runner(clock.device, dtype, n_threads, kind, n_layer=6, n_positions=2)
    small.state.position = 1
    counter = Counter()
    with counter:
        small.step(0, position=1)
    return clock.fastest_ns(partial(small.step, 0, position=1)) / counter.n_operations


def _launch_ns(clock: _Clock) -> float:
    """From one small kernel to the next in a CUDA graph, where Python has no part in it."""
    x = torch.zeros(1, device="cuda")
    x.add_(1)  # what is made on first use must not be made while the graph is
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(N_KERNELS):
            x.add_(1)
    return clock.fastest_ns(graph.replay) / N_KERNELS


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()


def _numbers(n_rows: int, n_columns: int) -> Floats:
    """A matrix of numbers around 0 that look random: some cards multiply zeros faster."""
    places = np.arange(n_rows * n_columns, dtype=np.int64) * 7919 % 1009  # both are prime
    spread: Floats = places.astype(np.float32) / np.float32(1009) - np.float32(0.5)
    return spread.reshape(n_rows, n_columns)
