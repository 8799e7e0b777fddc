"""How the window holds a running job: stop, pause, step, pace, and how far ahead it may run.

All of it is plain calls on threading primitives: a queued order would wait for the run's end.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from engine.events import Event, Forward, Order

EVENTS_AHEAD = 256
BYTES_AHEAD = 64 * 2**20
LONGEST_FRAME_S = 0.1  # that a step waits for

Told = tuple[int, Event]


class Reins:
    """Shared by the window's thread, which pulls, and the worker's, which obeys between steps."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._stopped = threading.Event()
        self._permit: int | None = None  # tokens that may still be written; None: any number
        self._pace: float | None = None  # tokens a second; None: full speed
        self._painting = False
        self._orders: deque[Order] = deque()
        self._told: deque[Told] = deque()
        self._bytes_ahead = 0
        self._last_token = 0.0

    # The window's side.

    def begin(self, *, paused: bool) -> None:
        """Make ready for a new run: `paused` lets one token through."""
        with self._lock:
            self._stopped.clear()
            self._permit = 1 if paused else None
            self._orders.clear()
            self._told.clear()
            self._bytes_ahead = 0
            self._last_token = 0.0

    def stop(self) -> None:
        """End the run after the step in progress, wherever it waits."""
        self._stopped.set()
        with self._lock:
            self._lock.notify_all()

    def pause(self) -> None:
        """Hold after the token in progress."""
        with self._lock:
            self._permit = 0

    def step(self) -> None:
        """Let one more token through."""
        with self._lock:
            self._permit = (self._permit or 0) + 1
            self._lock.notify_all()

    def resume(self) -> None:
        """Let tokens through again."""
        with self._lock:
            self._permit = None
            self._lock.notify_all()

    def set_pace(self, pace: float | None) -> None:
        """Tokens a second at most; None for full speed. Takes hold at once."""
        with self._lock:
            self._pace = pace
            self._lock.notify_all()

    def paint(self, *, painting: bool) -> None:
        """A frame begins, or all of it is painted.

        A step and a frame that get in each other's way make the step look ten times as long. Where
        a pace leaves time between steps, the step waits for the frame.
        """
        with self._lock:
            self._painting = painting
            self._lock.notify_all()

    def order(self, order: Order) -> None:
        """Leave an order for the job."""
        with self._lock:
            self._orders.append(order)

    def take_told(self) -> list[Told]:
        """Everything the job has said since the last call; gives the worker its credit back."""
        with self._lock:
            told = list(self._told)
            self._told.clear()
            self._bytes_ahead = 0
            self._lock.notify_all()
        return told

    @property
    def half_full(self) -> bool:
        """Whether the worker would soon have to wait for the window."""
        with self._lock:
            return self._half_full()

    @property
    def holds(self) -> bool:
        """Whether a run would wait for a step now."""
        return self._permit is not None

    # The worker's side.

    def stopped(self) -> bool:
        """Whether the run is to end."""
        return self._stopped.is_set()

    def tell(self, run: int, event: Event) -> bool:
        """Leave an event for the window, waiting while it is too far behind.

        Returns:
            Whether the window has to be woken: nothing was lying there yet, or half of what may
            lie there now does, and it should be taken without waiting for the next frame.
        """
        with self._lock:
            self._lock.wait_for(self._has_credit)
            was_half = self._half_full()
            self._told.append((run, event))
            self._bytes_ahead += _nbytes(event)
            return len(self._told) == 1 or (self._half_full() and not was_half)

    def after_token(self) -> None:
        """Wait as pace, pause and step ask; a stop ends every wait."""
        with self._lock:
            self._last_token = self._last_token or time.monotonic()
            if self._permit is not None:
                self._permit -= 1
            while not self._stopped.is_set():
                if self._permit is not None and self._permit <= 0:
                    self._lock.wait()
                    continue
                left = self._pace_left()
                if left <= 0:
                    break
                self._lock.wait(left)
            self._last_token = time.monotonic()

    def take_order(self) -> Order | None:
        """The oldest order that was left."""
        with self._lock:
            return self._orders.popleft() if self._orders else None

    def _pace_left(self) -> float:
        if self._pace is None:
            return 0.0
        left = self._last_token + 1 / self._pace - time.monotonic()
        return left if left > 0 or not self._painting else left + LONGEST_FRAME_S

    def _half_full(self) -> bool:
        return len(self._told) >= EVENTS_AHEAD // 2 or self._bytes_ahead >= BYTES_AHEAD // 2

    def _has_credit(self) -> bool:
        few = len(self._told) < EVENTS_AHEAD and self._bytes_ahead < BYTES_AHEAD
        return few or self._stopped.is_set()


def _nbytes(event: Event) -> int:
    if not isinstance(event, Forward):
        return 0
    arrays = (event.q, event.k, event.v, event.residual, event.logits)
    return sum(array.nbytes for array in arrays if array is not None)
