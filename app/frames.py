"""The frame clock: leaves the model its share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.selection import Scene
from engine.timing import length

LEAST_MS = 33
HEAD_START_MS = 60  # without a frame, for a run that begins: a short prefill is done by then
SHARE = 20  # a frame may take a twentieth of the time: with all that goes with it, a twelfth


class Frames(QObject):
    """Turns any number of askings into few frames.

    While a run goes on, the next frame begins not before max(33 ms, 20 x the last frame's cost)
    after the last one began, unless the frame fits into the time that a pace leaves idle between
    two steps. When nothing runs, a frame comes at once. A frame's cost is the processor time that
    the window's thread spends from its beginning until all is painted.
    """

    began = Signal()
    frame = Signal()
    painted = Signal()  # all that the frame has asked for

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.busy = False  # a run goes on
        self.idle_ns = 0  # what the pace leaves of a step's time
        self.n = 0
        self.cost_ns = 0  # of the last frame
        self._began_ns = 0
        self._not_before_ns = 0
        self._began_cpu_ns = 0
        self._timer = self._single_shot(self._tick)
        self._painted = self._single_shot(self._settle)

    def begin(self) -> None:
        """A run begins: from now on the model comes first."""
        self.busy = True
        self._not_before_ns = time.perf_counter_ns() + HEAD_START_MS * 1_000_000

    def end(self) -> None:
        """The run has ended: frames come at once again."""
        self.busy = False

    @Slot()
    def ask(self) -> None:
        """There is something new to show."""
        if not self._timer.isActive():
            self._timer.start(self.wait_ms())

    def wait_ms(self) -> int:
        """How long from now until the next frame may begin."""
        if not self.busy:
            return 0
        fits = self.cost_ns < self.idle_ns
        gap_ns = max(LEAST_MS * 1_000_000, 0 if fits else SHARE * self.cost_ns)
        due_ns = max(self._began_ns + gap_ns, self._not_before_ns)
        left_ns = due_ns - time.perf_counter_ns()
        return max(0, -(-left_ns // 1_000_000))

    @Slot()
    def _tick(self) -> None:
        self.n += 1
        self._began_ns = time.perf_counter_ns()
        self._began_cpu_ns = time.thread_time_ns()
        self.began.emit()
        self.frame.emit()
        self._painted.start(0)  # comes after the painting that the frame has asked for

    @Slot()
    def _settle(self) -> None:
        self.cost_ns = time.thread_time_ns() - self._began_cpu_ns
        self.painted.emit()

    def _single_shot(self, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setTimerType(Qt.TimerType.PreciseTimer)
        timer.timeout.connect(slot)
        return timer


def idle_ns(scene: Scene, pace: str) -> int:
    """What a pace leaves of a step's time after the model's own; 0 at full speed."""
    moment = scene.moment
    if pace == "full" or moment is None or moment.sampled is None:
        return 0
    own = length(moment.forward.span) + length(moment.sampled.span)
    return round(1e9 / float(pace)) - own
