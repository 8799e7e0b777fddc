"""The foot of the window: one sentence about what is going on now, and what the marks mean."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QStatusBar

from app import texts
from app.choices import model_title
from app.selection import Scene
from app.theme import Theme
from app.widgets.caption import Caption
from app.worker import Door, Loaded
from engine.events import RunFinished
from engine.trace import Moment


class StatusLine(QStatusBar):
    """Shows what goes on, or a note about what was just done, until something else goes on."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._state = ""
        self._sentence = Caption(theme)
        legend = QLabel(f"{texts.text('status.shortcuts')}   ·   {texts.text('mark.legend')}")
        marks = ("measured", "derived", "theory")
        legend.setToolTip("\n".join(texts.text(f"mark.{mark}_tip") for mark in marks))
        self.addWidget(self._sentence, 1)
        self.addPermanentWidget(legend)
        self.setSizeGripEnabled(False)

    @property
    def sentence(self) -> str:
        return self._sentence.text

    def say(self, state: str) -> None:
        """Show what goes on now, if it is something else than before."""
        if state != self._state:
            self._state = state
            self._sentence.say(state)

    def note(self, sentence: str) -> None:
        """Show what was just done."""
        self._sentence.say(sentence)

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self._sentence.restyle(theme)


def status(scene: Scene, door: Door, loaded: Loaded | None) -> str:
    """What a person would answer to "what is it doing?"."""
    if scene.running:
        return _running(scene, door)
    if loaded is None:
        if scene.draft.model_state == "failed":
            return texts.text("empty.model")
        return texts.text("status.loading", model=model_title(scene.draft))
    moment = scene.moment
    if moment is not None and moment.step < moment.trace.n_steps - 1:
        facts = {"step": moment.step + 1, "steps": moment.trace.n_steps}
        return texts.text("status.replay", **facts)
    if moment is None or scene.draft_differs:
        return scene.draft.problem or _drafted(scene)
    return f"{_ended(moment)} {_look(scene.draft.prompt)}".rstrip()


def _drafted(scene: Scene) -> str:
    """Before a run of this prompt; the first example is what a first start has to explain."""
    prompt = scene.draft.prompt
    look = _look(prompt)
    if look and prompt != texts.examples()[0].prompt:
        return texts.text("status.example", look=look)
    if scene.moment is not None:
        return texts.text("status.draft")
    return texts.text("status.hint")


def _look(prompt: str) -> str:
    """What to look at in the run of an example; empty for any other prompt."""
    return next((e.look for e in texts.examples() if e.prompt == prompt), "")


def _running(scene: Scene, door: Door) -> str:
    run = scene.session.open_run
    trace = run.trace if run is not None else None
    if trace is None or not trace.n_steps:
        total = trace.n_prompt if trace is not None else 0
        return texts.text("status.reading", done=min(door.position, total), total=total)
    n = len(trace.samples)
    if door.reins.holds:
        return texts.text("status.paused", n=n)
    return texts.text("status.writing", n=n + 1)


def _ended(moment: Moment) -> str:
    ended = moment.trace.ended
    if not isinstance(ended, RunFinished):
        return texts.text("status.ready")
    facts = {
        "end of text": ("status.end_of_text", {}),
        "max tokens": ("status.max_tokens", {"n": len(moment.trace.samples)}),
        "context full": ("status.context_full", {"n": moment.trace.dimensions.n_positions}),
        "stopped": ("status.stopped", {"n": len(moment.trace.samples)}),
    }
    id, numbers = facts[ended.reason]
    return texts.text(id, **numbers)
