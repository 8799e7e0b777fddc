"""Replays the recorded steps of a run, one after the other."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.selection import Scene
from app.store import Store

FULL_SPEED_MS = 16  # a step a frame: no eye follows more


class Player(QObject):
    """Moves the selection on by a clock, until the end or until another hand moves it."""

    changed = Signal()  # it began or it stopped

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._at: tuple[int | None, int] | None = None  # run and step it has shown
        self._timer = QTimer(self, interval=FULL_SPEED_MS)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.go_on)

    @property
    def playing(self) -> bool:
        return self._at is not None

    def set_pace(self, pace: float | None) -> None:
        """Steps a second; None for full speed."""
        self._timer.setInterval(FULL_SPEED_MS if pace is None else round(1000 / pace))

    @Slot()
    def toggle(self) -> None:
        """Play, from the start if the end is shown; or hold."""
        if self.playing:
            self.stop()
            return
        moment = self._store.scene.moment
        if moment is not None and moment.trace.n_steps > 1:
            ended = moment.step >= moment.trace.n_steps - 1
            self._show(0 if ended else moment.step)
            self._timer.start()
            self.changed.emit()

    @Slot()
    def stop(self) -> None:
        """Hold at the step that is shown."""
        if self.playing:
            self._at = None
            self._timer.stop()
            self.changed.emit()

    def watch(self, scene: Scene) -> None:
        """Stop if another hand moved."""
        if self.playing and self._at != (scene.selection.run, scene.selection.step):
            self.stop()

    @Slot()
    def go_on(self) -> None:
        """Show the next step; the newest one is followed live."""
        moment = self._store.scene.moment
        self.watch(self._store.scene)
        if not self.playing or moment is None:
            return
        if moment.step + 1 < moment.trace.n_steps - 1:
            self._show(moment.step + 1)
        else:
            self.stop()
            self._store.go_live()

    def _show(self, step: int) -> None:
        self._at = (self._store.selection.run, step)
        self._store.scrub(step)
