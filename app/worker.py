"""The door between the window and the engine: one thread, one job at a time, events out.

torch is imported in the worker's thread, never in the window's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QThread, Signal, Slot

from app.limits import Counted, Found, Orders, Place, Shape
from app.reins import Reins, Told
from app.store import Ask
from engine.errors import EngineError
from engine.events import Event, Model, Order, RunFailed, RunFinished, Sampled
from engine.floors import Limits
from engine.job import Job, Stopped, failed

if TYPE_CHECKING:
    from engine.generate import Engine
    from engine.runners import Runner

MakeJob = Callable[["Engine"], Job]
LoadEngine = Callable[[str, str, str], "Engine"]


@dataclass(frozen=True)
class Wanted:
    """Which engine to load."""

    model: str = "embedded"
    device: str = "auto"
    dtype: str = "auto"


@dataclass(frozen=True)
class Loaded:
    """Which engine is there now."""

    wanted: Wanted
    model: Model
    device: str
    dtype: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Unloaded:
    """Why there is none."""

    wanted: Wanted
    message: str
    detail: str


def load_engine(model: str, device: str, dtype: str) -> Engine:
    """Read the weights; imports torch, so call it in the worker's thread."""
    from engine.generate import Engine  # a second of torch, after the window is up

    return Engine.load(model, device, dtype)


class Worker(QObject):
    """Lives in the worker's thread: loads engines and drives jobs to their terminal event."""

    woke = Signal()  # events lie in the reins for the window
    loaded = Signal(object)  # Loaded or Unloaded
    found = Signal(object)  # Found
    counted = Signal(object)  # Counted

    def __init__(self, reins: Reins, load: LoadEngine, wanted: Stopped) -> None:
        super().__init__()
        self.engine: Engine | None = None
        self._reins = reins
        self._load = load
        self._wanted = wanted  # whether something else is, that must not wait for a measuring

    @Slot(object)
    def load(self, wanted: Wanted) -> None:
        """Replace the engine; the old one goes first, so that two never share the memory."""
        self.engine = None
        try:
            self.engine = self._load(wanted.model, wanted.device, wanted.dtype)
        except BaseException as error:
            said = failed(error)
            self.loaded.emit(Unloaded(wanted, said.message, said.detail))
            return
        engine = self.engine
        self.loaded.emit(Loaded(wanted, engine.model, engine.device, engine.dtype, engine.notes))

    @Slot(object)
    def run(self, ask: Ask) -> None:
        """Drive one job; whatever happens, exactly one terminal event comes last."""
        try:
            if self.engine is None:
                raise EngineError("no_model")
            terminal = self._drive(ask.run, self._job(ask)(self.engine))
        except BaseException as error:
            terminal = failed(error)
        self._tell(ask.run, terminal)

    @Slot(bool)
    def find_limits(self, measure: bool) -> None:
        """Say what is kept of this machine's limits, or measure them: about two seconds."""
        if self.engine is None:
            return
        from engine import probe  # brings torch

        runner, reason = self.engine.runner, ""
        found: tuple[Limits, ...] = ()
        try:
            if measure:
                found = probe.all_renewed(runner, stopped=self._wanted)
            else:
                found = probe.all_kept(runner)
        except probe.Interrupted:
            pass  # it gave way: nothing is known, and nothing is wrong
        except BaseException as error:
            reason = failed(error).message
        self.engine.limits = found[0] if found else None  # those of a decode step
        self.found.emit(Found(_place(runner), found, reason))

    @Slot(object)
    def count(self, shape: Shape) -> None:
        """Say how many operations a pass of this shape is: about ten ms."""
        if self.engine is None:
            return
        from engine.dispatch import operations  # brings torch

        runner = self.engine.runner
        counts = operations(runner, shape.phase, shape.first, shape.count)
        orders = Orders(runner.threads(shape.count), *counts)
        self.counted.emit(Counted(_place(runner), shape, orders))

    def _job(self, ask: Ask) -> MakeJob:
        stopped, parent = self._reins.stopped, ask.parent
        if parent is None:
            return lambda engine: engine.generate(ask.request, stopped)
        return lambda engine: engine.branch(parent, ask.step, ask.pick, ask.request, stopped)

    def _drive(self, run: int, job: Job) -> RunFinished | RunFailed:
        """Tell every event but the terminal one, which is returned."""
        event = next(job)
        while not isinstance(event, RunFinished | RunFailed):
            self._tell(run, event)
            if isinstance(event, Sampled):
                self._reins.after_token()
            event = job.send(self._reins.take_order())
        return event

    def _tell(self, run: int, event: Event) -> None:
        if self._reins.tell(run, event):
            self.woke.emit()


def _place(runner: Runner) -> Place:
    machine, n_layer = runner.machine, runner.dimensions.n_layer
    return Place(machine.name, machine.n_threads, runner.device, runner.dtype, n_layer)


class Door(QObject):
    """Lives in the window's thread and owns thread and worker for the app's life."""

    woke = Signal()  # take() has something
    loaded = Signal(object)  # Loaded or Unloaded
    found = Signal(object)  # Found
    counted = Signal(object)  # Counted
    _load_asked = Signal(object)
    _run_asked = Signal(object)
    _limits_asked = Signal(bool)
    _count_asked = Signal(object)

    def __init__(self, *, load: LoadEngine = load_engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.reins = Reins()
        self._thread = QThread()
        self._wanted = threading.Event()  # something that must not wait for a measuring
        self._worker = Worker(self.reins, load, self._wanted.is_set)
        self._worker.moveToThread(self._thread)
        queued = Qt.ConnectionType.QueuedConnection
        self._worker.woke.connect(self._pass_on_woke, queued)
        self._worker.loaded.connect(self._pass_on_loaded, queued)
        self._worker.found.connect(self._pass_on_found, queued)
        self._worker.counted.connect(self._pass_on_counted, queued)
        self._load_asked.connect(self._worker.load, queued)
        self._run_asked.connect(self._worker.run, queued)
        self._limits_asked.connect(self._worker.find_limits, queued)
        self._count_asked.connect(self._worker.count, queued)

    def start(self, wanted: Wanted) -> None:
        """Start the thread and load the first engine."""
        self._thread.setObjectName("engine")
        self._thread.start()
        self.load(wanted)

    def load(self, wanted: Wanted) -> None:
        """Load another engine; a run in progress is stopped first."""
        self.reins.stop()
        self._wanted.set()
        self._load_asked.emit(wanted)

    def run(self, ask: Ask, *, paused: bool = False) -> None:
        """Start a run; `paused` holds it after its first token."""
        self.reins.begin(paused=paused)
        self._wanted.set()
        self._run_asked.emit(ask)

    def find_limits(self, *, measure: bool) -> None:
        """Ask for this machine's limits; a measuring gives way to whatever is asked for later."""
        self._wanted.clear()
        self._limits_asked.emit(measure)

    def count(self, shape: Shape) -> None:
        """Ask how many operations a pass of this shape is."""
        self._count_asked.emit(shape)

    def order(self, order: Order) -> None:
        """Give the running job an order for its next token."""
        self.reins.order(order)

    def take(self) -> list[Told]:
        """All events since the last call, in order."""
        return self.reins.take_told()

    @property
    def position(self) -> int:
        """How many positions the running pass has read: a prefill's progress."""
        engine = self._worker.engine
        return engine.position if engine is not None else 0

    def close(self, *, wait_ms: int = 5_000) -> bool:
        """Stop, quit, wait; False if the thread did not end in time."""
        self.reins.stop()
        self._wanted.set()
        if not self._thread.isRunning():
            return True
        self._thread.quit()
        return self._thread.wait(wait_ms)

    @Slot()
    def _pass_on_woke(self) -> None:
        self.woke.emit()

    @Slot(object)
    def _pass_on_loaded(self, said: Loaded | Unloaded) -> None:
        self.loaded.emit(said)

    @Slot(object)
    def _pass_on_found(self, said: Found) -> None:
        self.found.emit(said)

    @Slot(object)
    def _pass_on_counted(self, said: Counted) -> None:
        self.counted.emit(said)
