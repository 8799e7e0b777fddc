"""What a pass has to do, by formula; what memory and machine there are, asked of the system."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from pathlib import Path

from engine import __version__
from engine.events import Dimensions, Machine, Work

_PROC = Path("/proc")
QUIET = 0.9  # share of the time that a thread has for itself if no other program is in its way


def now_ns() -> int:
    """The clock of every span: monotonic, the same in all threads."""
    return time.perf_counter_ns()


class Watch:
    """Tells whether the thread that made it has had the processor to itself since then.

    It counts the time in which the thread computes or spins: one that waits for other threads of
    its own spins, one that another program put aside does not.
    """

    def __init__(self) -> None:
        self._start, self._used = now_ns(), time.thread_time_ns()

    @property
    def quiet(self) -> bool:
        """Whether no other program was in its way."""
        used, passed = time.thread_time_ns() - self._used, now_ns() - self._start
        return used / max(1, passed) >= QUIET


def work(dimensions: Dimensions, first: int, count: int, *, item_weight: int, item_kv: int) -> Work:
    """What a pass over `count` new positions from `first` on must compute and move at least.

    With L layers, C numbers a token, V ids, the matrices of the layers hold W = 12 L C^2 weights.

    flops = 2 W count + 2 V C + 4 L C pairs: two for each weight and token, the head for the last
    token only, and QK^T and PV for every pair of a new position with one it may see, itself
    included: pairs = count first + count (count + 1) / 2.

    weight_bytes = item_weight (L (12 C^2 + 13 C) + 2 C + V C): every parameter once, but for the
    position embedding, of which a pass needs `count` rows.

    kv_bytes = item_kv 2 L C ((first + count) + count): K and V of all positions up to the last
    read once, those of the new ones written once.

    Args:
        dimensions: of the model.
        first: positions read earlier.
        count: positions this pass reads, 1 or more.
        item_weight: bytes a weight takes in memory.
        item_kv: bytes a number of K and V takes.

    >>> small = Dimensions(12, 12, 768, 1024, 50257)
    >>> work(small, 0, 6, item_weight=4, item_kv=4)
    Work(flops=1097184768, weight_bytes=494613504, kv_bytes=884736)
    >>> work(small, 1023, 1, item_weight=2, item_kv=2)
    Work(flops=284812800, weight_bytes=247306752, kv_bytes=37785600)
    """
    layers, c, v = dimensions.n_layer, dimensions.n_embd, dimensions.n_vocab
    pairs = count * first + count * (count + 1) // 2
    return Work(
        flops=2 * 12 * layers * c * c * count + 2 * v * c + 4 * layers * c * pairs,
        weight_bytes=item_weight * (layers * (12 * c * c + 13 * c) + 2 * c + v * c),
        kv_bytes=dimensions.kv_token_bytes(item_kv) * (first + count + count),
    )


def process_bytes() -> int | None:
    """Resident memory of this process now; None where the system has no cheap answer."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:  # asked after every step: 10 us
            resident = file.read().split()[1]
    except OSError:
        return None
    return int(resident) * os.sysconf("SC_PAGE_SIZE")


def peak_rss_bytes() -> int | None:
    """The most resident memory this process has had; None on Windows."""
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def available_bytes(device: str) -> int | None:
    """Memory that can still be had on a device without swapping; None where nobody says."""
    if device == "cuda":
        import torch  # so that the rest of this file costs a caller no second of loading

        free, _ = torch.cuda.mem_get_info()
        return int(free)
    return _number(_read(_PROC / "meminfo"), r"MemAvailable:\s+(\d+) kB", times=1024)


def device_bytes(device: str) -> int | None:
    """Memory that our tensors take on an accelerator; None on the CPU."""
    if device == "cpu":
        return None
    import torch  # as above

    if device == "cuda":
        return int(torch.cuda.memory_allocated())
    return int(torch.mps.current_allocated_memory())


def machine(device: str, n_threads: int) -> Machine:
    """The processor or card that computes, by its own name."""
    if device == "cuda":
        import torch  # as above

        return Machine(torch.cuda.get_device_name(), n_threads)
    named = re.search(r"^model name\s*:\s*(.+)$", _read(_PROC / "cpuinfo"), re.MULTILINE)
    name = named[1].strip() if named else platform.processor() or platform.machine()
    return Machine(name, n_threads)


def fingerprint(device: str) -> dict[str, str | int]:
    """The machine and the versions on which whatever was measured here depends."""
    import torch  # as above

    return {
        "machine": machine(device, 1).name,
        "n_cores": n_cores(),
        "torch": str(torch.__version__),
        "program": __version__,
    }


def n_cores() -> int:
    """Physical cores this process may use; two threads of one core share its arithmetic."""
    logical = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        logical = len(os.sched_getaffinity(0))
    pairs = re.findall(
        r"^physical id\s*:\s*(\d+)$.*?^core id\s*:\s*(\d+)$",
        _read(_PROC / "cpuinfo"),
        re.MULTILINE | re.DOTALL,
    )
    return min(logical, len(set(pairs)) or logical)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _number(text: str, pattern: str, *, times: int) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) * times if found else None
