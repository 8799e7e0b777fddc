"""Work recorded once and repeated, and packets that come back: CUDA's way, and the CPU's plain one.

A CUDA graph tells a card hundreds of small operations at once. Memory that stays where it is
(pinned) lets the card write its packets by itself, and events on its own clock say when each came.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Work = Callable[[], None]

WARM_UPS = 3  # runs before a capture, in which libraries make what they make on first use


class Slot:
    """Where one step's packet comes to the CPU; here at once, and no clock of a device tells when.

    Attributes:
        numbers: (n,) float32 in the CPU's memory, right after `wait`.
    """

    def __init__(self, n: int) -> None:
        self.numbers = torch.zeros(n)

    def begin(self) -> None:
        """Say, in the device's order of work, that the step begins."""

    def take(self, packet: Tensor) -> None:
        """Copy a packet (n,) when the work told so far is done."""
        self.numbers.copy_(packet)

    def wait(self) -> None:
        """Until the packet is here."""

    def took_ns(self) -> int | None:
        """From `begin` to the end of the work by the device's clock; ask after `wait`."""
        return None


class Queue:
    """Does work when it is told to: what the CPU has instead of CUDA's graphs and events."""

    def record(self, work: Work) -> Work:
        """Something that does this work, which always uses the same buffers, faster."""
        return work

    def slot(self, n: int) -> Slot:
        """A place for packets of n numbers."""
        return Slot(n)


class CudaSlot(Slot):
    """A place in memory that a card can write by itself, while it goes on computing.

    The packet is set aside on the card first: from there a stream of its own brings it, however
    long that takes, and the next step may overwrite what it was made of.
    """

    def __init__(self, n: int, bringing: torch.cuda.Stream) -> None:
        self.numbers = torch.zeros(n, pin_memory=True)
        self._aside = torch.zeros(n, device="cuda")
        self._bringing = bringing
        self._began = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._done = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._here = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def begin(self) -> None:
        """As `Slot.begin`."""
        self._began.record()

    def take(self, packet: Tensor) -> None:
        """As `Slot.take`, without waiting for it."""
        self._here.wait()  # the card waits, for the packet that was here before
        self._aside.copy_(packet)
        self._done.record()
        self._bringing.wait_event(self._done)
        with torch.cuda.stream(self._bringing):
            self.numbers.copy_(self._aside, non_blocking=True)
            self._here.record()

    def wait(self) -> None:
        """As `Slot.wait`; other Python threads go on meanwhile."""
        self._here.synchronize()

    def took_ns(self) -> int | None:
        """As `Slot.took_ns`."""
        milliseconds: float = self._began.elapsed_time(self._done)
        return round(milliseconds * 1e6)


class CudaQueue(Queue):
    """CUDA graphs in one pool of memory: they never run at the same time, and keep nothing there.

    Raises:
        RuntimeError: CUDA is not here, or, from `record`, work cannot be captured.
    """

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._bringing = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def record(self, work: Work) -> Work:
        """A graph of the work; the work is done a few times, too."""
        graph = torch.cuda.CUDAGraph()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):  # left again even where a capture breaks off
            for _ in range(WARM_UPS):
                work()
            # Only what this thread does may spoil the capture, not what others ask the card.
            with torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            ):
                work()
        return graph.replay

    def slot(self, n: int) -> Slot:
        """As `Queue.slot`."""
        return CudaSlot(n, self._bringing)
