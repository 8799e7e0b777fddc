"""The frame clock: leaves the model its share of the time."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

LEAST_MS = 33
SHARE = 12  # a frame may take at most a twelfth of the time


class Frames(QObject):
    """Turns any number of askings into few frames.

    While a run goes on, the next frame begins not before max(33 ms, 12 x the last frame's cost)
    after the last one began. When nothing runs, a frame comes at once.
    """

    frame = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.busy = False  # a run goes on
        self.n = 0
        self.last_cost_ns = 0
        self._began_ns = 0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)

    @Slot()
    def ask(self) -> None:
        """There is something new to show."""
        if not self._timer.isActive():
            self._timer.start(self._wait_ms())

    def add_cost(self, ns: int) -> None:
        """What painting took outside the frame itself."""
        self.last_cost_ns += ns

    @Slot()
    def _tick(self) -> None:
        self.n += 1
        self._began_ns = time.perf_counter_ns()
        self.frame.emit()
        self.last_cost_ns = time.perf_counter_ns() - self._began_ns

    def _wait_ms(self) -> int:
        if not self.busy:
            return 0
        gap_ns = max(LEAST_MS * 1_000_000, SHARE * self.last_cost_ns)
        left_ns = self._began_ns + gap_ns - time.perf_counter_ns()
        return max(0, -(-left_ns // 1_000_000))
