"""The limits of this machine, measured within two seconds and kept until the machine changes.

Everything is measured with the operations that a pass uses, so that the limits are those of this
program's tools, not of a data sheet. The fastest of many goes counts: whatever else the machine
does only adds time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import thread_time_ns

import numpy as np
import torch

from engine import __version__, limits_file, linear, meter
from engine.dispatch import Counter, operations, small_runner
from engine.errors import EngineError
from engine.events import Floats, Forward
from engine.floors import SECOND, Limits, Rating
from engine.floors import rate as rate_by
from engine.limits_file import Fingerprint
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
N_KERNELS = 200  # in the graph that tells what a launch costs
QUIET = 0.9  # share of the time that a thread computes or spins if no other program is in its way


def rate(runner: Runner, forward: Forward) -> Rating:
    """A pass of this runner against the limits of this machine.

    Raises:
        EngineError: kind "limits".
    """
    n_threads = runner.threads(forward.count)
    found = limits(runner.device, runner.dtype, n_threads, kind=runner.kind)
    n_operations, n_launches = operations(runner, forward)
    return rate_by(forward, found, n_operations=n_operations, n_launches=n_launches)


def limits(device: str, dtype: str, n_threads: int, *, kind: Kind = "linear") -> Limits:
    """`measure`, or what it found earlier on this same machine with these same versions.

    See `engine.limits_file` for where that is kept. What was measured while other programs worked
    is too low, and is not kept.

    Raises:
        EngineError: kind "limits".
    """
    fingerprint = _fingerprint(device, dtype, n_threads, kind)
    found = limits_file.read(fingerprint)
    if found is None:
        found = measure(device, dtype, n_threads, kind=kind)
        if found.quiet:
            limits_file.write(found, fingerprint)
    return found


def measure(device: str, dtype: str, n_threads: int, *, kind: Kind = "linear") -> Limits:
    """Measure bandwidth, matrix rate, dispatch and launch, in about a second.

    Args:
        device: "cpu", "cuda" or "mps".
        dtype: what a runner there multiplies in.
        n_threads: of the CPU, to read, to multiply and to dispatch with.
        kind: how the runner packs its layers; operations of some kinds take longer to begin.

    Raises:
        EngineError: kind "limits": something could not be measured, or what came out cannot be.
    """
    linear.use_threads(n_threads)
    start, used = now_ns(), thread_time_ns()  # of this thread: it waits for each other one too
    try:
        with torch.inference_mode():
            flops, matrix = _matrix_rate(device, getattr(torch, dtype), kind)
            bandwidth = _bandwidth(device)
            dispatch_ns = _dispatch_ns(device, dtype, n_threads, kind)
            launch_ns = _launch_ns() if device == "cuda" else None
        share = (thread_time_ns() - used) / max(1, now_ns() - start)
        return Limits(
            device=device,
            dtype=dtype,
            n_threads=n_threads,
            bandwidth=bandwidth,
            flops=flops,
            matrix=matrix,
            dispatch_ns=dispatch_ns,
            launch_ns=launch_ns,
            quiet=share >= QUIET or device != "cpu",  # who waits for a card uses nothing
        )
    except (RuntimeError, MemoryError, ValueError) as error:
        raise EngineError("limits", reason=str(error).partition("\n")[0] or "memory") from error


def _fingerprint(device: str, dtype: str, n_threads: int, kind: Kind) -> Fingerprint:
    """All that the limits depend on; if any of it changes, they are measured anew."""
    return {
        "device": device,
        "dtype": dtype,
        "n_threads": n_threads,
        "kind": kind,
        "machine": meter.machine(device, n_threads).name,
        "n_cores": meter.n_cores(),
        "torch": str(torch.__version__),
        "program": __version__,
    }


def _bandwidth(device: str) -> float:
    """Bytes a second that a matrix far larger than any cache can be read with."""
    # Ones, as memory that was only asked to be zero is not there before it is written to.
    matrix = torch.ones(READ[device] // 4 // 8192, 8192, device=device)  # (rows, 8192)
    vector = torch.ones(8192, device=device)
    reads: list[Callable[[], object]] = [partial(torch.mv, matrix, vector), matrix.sum]
    return READ[device] * SECOND / min(_fastest_ns(read, device) for read in reads)


def _matrix_rate(device: str, dtype: torch.dtype, used: Kind) -> tuple[float, Kind]:
    """FLOP a second, 2 x rows x in x out a product, of the fastest kind that could be used."""
    halved = linear.item_bytes(used, dtype) < dtype.itemsize
    n_rows, n_in, n_out = PRODUCT[device]
    weight, x = _numbers(n_in, n_out), torch.from_numpy(_numbers(n_rows, n_in)).to(device, dtype)
    times: dict[Kind, float] = {}
    for kind in linear.kinds(device, dtype, exact_in_half=halved):
        try:
            layer = linear.pack(weight, None, device=device, dtype=dtype, kind=kind)
        except RuntimeError:  # torch does not have it here
            continue
        times[kind] = _fastest_ns(partial(layer, x), device)
    best = min(times, key=times.__getitem__)
    return 2 * n_rows * n_in * n_out * SECOND / times[best], best


def _dispatch_ns(device: str, dtype: str, n_threads: int, kind: Kind) -> float:
    """One operation of a decode step so small that nothing else takes time."""
    small = small_runner(device, dtype, n_threads, kind, n_layer=6, n_positions=2)

    small.state.position = 1
    counter = Counter()
    with counter:
        small.step(0, position=1)
    return _fastest_ns(partial(small.step, 0, position=1), device) / counter.n_operations


def _launch_ns() -> float:
    """From one small kernel to the next in a CUDA graph, where Python has no part in it."""
    x = torch.zeros(1, device="cuda")
    x.add_(1)  # what is made on first use must not be made while the graph is
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(N_KERNELS):
            x.add_(1)
    return _fastest_ns(graph.replay, "cuda") / N_KERNELS


def _fastest_ns(call: Callable[[], object], device: str) -> float:
    """How long a call takes, at best."""
    n_times = 1 if device == "cpu" else TIMES_QUEUED
    start = now_ns()
    call()
    _synchronize(device)
    best, end = float("inf"), now_ns()
    if end - start > BUDGET_NS:  # so long that what is made on first use no longer shows
        return end - start
    until = end + BUDGET_NS
    while end < until:
        start = now_ns()
        for _ in range(n_times):
            call()
        _synchronize(device)
        end = now_ns()
        best = min(best, (end - start) / n_times)
    return max(best, 1.0)


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
