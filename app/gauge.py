"""When this machine's limits are looked up, measured and counted: only while nothing else runs."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, QTimer, Slot

from app.limits import A_STEP, Counted, Found, Known, Place, Progress, Shape
from app.store import Store
from app.worker import Door

IDLE_MS = 300  # without a run, after which nothing is likely to be wanted at once


class Gauge(QObject):
    """Stands between the store, which shows the limits, and the worker, which finds them.

    What is kept is asked for soon after an engine is there. If nothing is kept, it is measured once
    by itself, after the first run, and whenever somebody asks for it.
    """

    def __init__(self, store: Store, door: Door, parent: QObject) -> None:
        super().__init__(parent)
        self._store = store
        self._door = door
        self._known: Known | None = None
        self._loaded = self._ran = self._tried = False
        self._due = False  # asked for during a run
        self._counting: Shape | None = None
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._idle.timeout.connect(self._use_idle_time)
        door.loaded.connect(self._forget)
        door.found.connect(self._take)
        door.counted.connect(self._add)
        store.ended.connect(self._note_end)
        store.changed.connect(self._count)
        store.limits_asked.connect(self.measure)

    @Slot()
    def measure(self) -> None:
        """Measure the limits anew, now or when the run that goes on has ended."""
        if self._known is None or self._known.progress == "measuring":
            return
        self._due = self._store.running
        if self._due:
            return
        self._tried = True
        self._know(replace(self._known, progress="measuring", limits=(), reason=""))
        self._door.find_limits(measure=True)

    @Slot(object)
    def _forget(self, said: object) -> None:
        """Another engine, another kind of limits."""
        self._loaded, self._counting = True, None
        self._tried = self._due = False
        self._know(None)
        self._idle.start()

    @Slot(object)
    def _note_end(self, event: object) -> None:
        self._ran = True
        self._idle.start()

    @Slot()
    def _use_idle_time(self) -> None:
        if self._store.running or not self._loaded:
            return
        if self._known is None:
            self._door.find_limits(measure=False)
        elif self._due or (self._known.progress == "unmeasured" and self._ran and not self._tried):
            self.measure()

    @Slot(object)
    def _take(self, said: Found) -> None:
        progress: Progress = "measured" if said.limits else "unmeasured"
        if said.reason:
            progress = "failed"
        orders = {} if self._known is None else self._known.orders
        self._know(Known(said.place, progress, said.limits, orders, said.reason))
        if progress == "unmeasured":
            self._tried = False  # if it was, it gave way, and may try again
            self._idle.start()

    @Slot()
    def _count(self) -> None:
        """Have counted what is missing: a decode step, and the pass that is shown."""
        known = self._known
        if self._store.running or known is None or known.progress != "measured":
            return
        scene, shapes = self._store.scene, [A_STEP]
        moment, step = scene.moment, scene.chosen_step
        if moment is not None and step is not None and Place.of(moment.started) == known.place:
            shapes.append(Shape.of(moment.trace.forwards[step]))
        missing = next((shape for shape in shapes if shape not in known.orders), None)
        if missing is not None and missing != self._counting:
            self._counting = missing
            self._door.count(missing)

    @Slot(object)
    def _add(self, said: Counted) -> None:
        known = self._known
        if known is not None and said.place == known.place:
            self._know(replace(known, orders={**known.orders, said.shape: said.orders}))

    def _know(self, known: Known | None) -> None:
        self._known = known
        self._store.know(known)
