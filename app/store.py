"""The open session, the selection and the draft: the only object that panels hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.limits import Known
from app.selection import Draft, Scene, Selection
from engine.errors import EngineError
from engine.events import Event, Order, RunFailed, RunFinished
from engine.request import Capture, Request
from engine.session import Run, Session
from engine.trace import Trace


@dataclass(frozen=True)
class Ask:
    """A run that the worker is to make; a branch says from which trace, where and with what."""

    run: int
    request: Request
    parent: Trace | None = None
    step: int = 0
    pick: int = 0


class Store(QObject):
    """What the window knows. Every change makes a new scene and says so once."""

    changed = Signal()  # the scene is another
    hovered = Signal(object)  # a token's index or None; only tints
    asked = Signal(object)  # an Ask for the worker
    ordered = Signal(object)  # a Sampling or a Pick for the running job
    ended = Signal(object)  # the terminal event
    refused = Signal(str)  # a sentence: why something asked for was not done
    dropped = Signal(str)  # a kind of array that was let go to stay within the budget
    limits_asked = Signal()  # this machine's limits are to be measured

    def __init__(
        self, *, budget: int = 512 * 2**20, cache: Path | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.session = Session()
        self._selection = Selection()
        self._draft = Draft()
        self._running: int | None = None
        self._hover: int | None = None
        self._limits: Known | None = None
        self._scene: Scene | None = None
        self._budget = budget
        self._cache = cache

    @property
    def scene(self) -> Scene:
        """The value to show now."""
        if self._scene is None:
            trace = self._trace
            moment = trace.at(self._selection.step) if trace is not None and trace.n_steps else None
            running = self._running is not None
            shown = (moment, self._selection, self._draft, self.session, running, self._limits)
            self._scene = Scene(*shown)
        return self._scene

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self._running is not None

    @property
    def selection(self) -> Selection:
        return self._selection

    @property
    def draft(self) -> Draft:
        return self._draft

    @property
    def hover(self) -> int | None:
        """The token under the mouse, in whichever panel."""
        return self._hover

    def select(self, **changes: Any) -> None:  # noqa: ANN401  fields of Selection
        """Change the selection: layer, head, token. Selecting never moves time."""
        self._take_selection(replace(self._selection, **changes))

    def scrub(self, step: int) -> None:
        """Move to a step and stay there while the run goes on."""
        self._take_selection(replace(self._selection, step=step, live=False, token=None))

    def go_live(self) -> None:
        """Follow the newest step again."""
        self._take_selection(replace(self._selection, live=True, token=None))

    def point_at(self, token: int | None) -> None:
        """Say which token the mouse is on."""
        if token != self._hover:
            self._hover = token
            self.hovered.emit(token)

    def edit(self, changes: Mapping[str, Any]) -> None:
        """Change what the controls hold; a slider moved during a run goes in as an order."""
        draft = replace(self._draft, **changes)
        if draft == self._draft:
            return
        moved = draft.sampling != self._draft.sampling
        self._draft = draft
        if moved and self.running:
            self.order(draft.sampling)
        self._renew()

    def know(self, limits: Known | None) -> None:
        """Take what is known of this machine's limits; None: nothing, as of another engine."""
        if limits != self._limits:
            self._limits = limits
            self._renew()

    def ask_limits(self) -> None:
        """Have this machine's limits measured, as soon as nothing runs."""
        self.limits_asked.emit()

    def order(self, order: Order) -> None:
        """Tell the running job what to do for the tokens to come."""
        if self.running:
            self.ordered.emit(order)

    def run(self, capture: Capture | None = None) -> None:
        """Make a request of the draft and ask for it; a refusal is said, nothing is lost."""
        if self.running:
            return
        draft = self._draft
        try:
            request = Request(
                draft.prompt,
                max_tokens=draft.max_tokens,
                sampling=draft.sampling,
                seed=draft.seed,
                capture=capture or Capture(),
                special=draft.special,
            )
        except EngineError as error:
            self.refused.emit(str(error))
            return
        run = self.session.start(_name(draft.prompt))
        self._begin(run, Ask(run.id, request))

    def branch(self, pick: int, *, step: int | None = None) -> None:
        """Go on from a step of the open run with another token."""
        parent = self.session.open_run
        if self.running or parent is None or not parent.trace.n_steps:
            return
        step = self._selection.step if step is None else step
        assert parent.trace.started is not None
        request = replace(parent.trace.started.request, sampling=self._draft.sampling)
        run = self.session.start(parent.name, parent=parent.id, fork_step=step)
        self._begin(run, Ask(run.id, request, parent.trace, step, pick))

    def take(self, told: Sequence[tuple[int, Event]]) -> None:
        """Append what the worker said to its run, and follow it if live."""
        endings = [self._append(run, event) for run, event in told if run in self.session.runs]
        if not endings:
            return
        self._keep_within_budget()
        self._selection = self._selection.clamped(self._trace)
        self._renew()
        for ending in endings:
            if ending is not None:
                self.ended.emit(ending)

    def open_run(self, id: int) -> None:
        """Show another run of the session, at its last step, and what it was made of."""
        if not self._wake(id):
            return
        self.session.open_id = id
        self._adopt()
        self._take_selection(replace(self._selection, run=id, live=True, token=None))
        self._renew()

    def open_session(self, session: Session) -> None:
        """Show a saved session instead of this one."""
        self.tidy()
        self.session = session
        self._adopt()
        self._selection = Selection(run=session.open_id).clamped(self._trace)
        self._renew()

    def tidy(self) -> None:
        """Remove the files in which runs rest: nobody will open these runs again."""
        for run in self.session:
            if run.resting is not None:
                run.resting.unlink(missing_ok=True)

    @property
    def _trace(self) -> Trace | None:
        run = self.session.open_run
        return run.trace if run is not None else None

    def _adopt(self) -> None:
        """The controls stand as they did for the open run: moved from there is a what-if."""
        trace = self._trace
        if trace is None or trace.started is None:
            return
        request = trace.started.request
        names = ("prompt", "sampling", "max_tokens", "seed", "special")
        self._draft = replace(self._draft, **{name: getattr(request, name) for name in names})

    def _begin(self, run: Run, ask: Ask) -> None:
        self._running = run.id
        layer, head = self._selection.layer, self._selection.head
        self._selection = Selection(run.id, layer=layer, head=head).clamped(run.trace)
        self.asked.emit(ask)
        self._renew()

    def _append(self, run: int, event: Event) -> RunFinished | RunFailed | None:
        """The event again if it ended its run."""
        trace = self.session.runs[run].trace
        if isinstance(event, RunFailed) and trace.started is None:
            self._running = None  # refused before it began: there is no run to keep
            self.session.remove(run)
            return event
        trace.append(event)
        if not isinstance(event, RunFinished | RunFailed):
            return None
        self._running = None
        return event

    def _take_selection(self, selection: Selection) -> None:
        selection = selection.clamped(self._trace)
        if selection != self._selection:
            self._selection = selection
            self._renew()

    def _keep_within_budget(self) -> None:
        for kind in self.session.keep_within(self._budget, rest=self._rest):
            self.dropped.emit(kind)

    def _rest(self, run: Run) -> None:
        """Put a run's arrays into a file until it is opened again; say so if that fails."""
        if self._cache is None:
            return
        from engine import tracefile  # not needed for the first paint

        try:
            tracefile.rest(run, self._cache)
        except EngineError as error:
            self.refused.emit(str(error))

    def _wake(self, id: int) -> bool:
        """Bring a run's arrays back from where they rest; False if they are gone, which is said."""
        from engine import tracefile  # not needed for the first paint

        run = self.session.runs[id]
        try:
            self.session.runs[id] = tracefile.wake(run)
        except EngineError as error:
            self.refused.emit(str(error))
            return False
        if run.resting is not None:
            run.resting.unlink(missing_ok=True)
        return True

    def _renew(self) -> None:
        self._scene = None
        self.changed.emit()


def _name(prompt: str) -> str:
    words = " ".join(prompt.split())
    return words if len(words) <= 40 else words[:39] + "…"
