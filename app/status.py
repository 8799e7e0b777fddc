"""The foot of the window: one sentence about what is going on now, and what the marks mean."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QStatusBar

from app import texts
from app.selection import Scene
from app.worker import Door, Loaded
from engine.events import RunFinished
from engine.trace import Moment


class StatusLine(QStatusBar):
    """Shows one sentence at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._sentence = QLabel()
        legend = QLabel(f"{texts.text('status.shortcuts')}   ·   {texts.text('mark.legend')}")
        marks = ("measured", "derived", "theory")
        legend.setToolTip("\n".join(texts.text(f"mark.{mark}_tip") for mark in marks))
        self.addWidget(self._sentence, 1)
        self.addPermanentWidget(legend)
        self.setSizeGripEnabled(False)

    @property
    def sentence(self) -> str:
        return self._sentence.text()

    def say(self, sentence: str) -> None:
        """Show another sentence."""
        if sentence != self.sentence:
            self._sentence.setText(sentence)


def status(scene: Scene, door: Door, loaded: Loaded | None) -> str:
    """What a person would answer to "what is it doing?"."""
    if scene.running:
        return _running(scene, door)
    if loaded is None:
        if scene.draft.model_state == "failed":
            return texts.text("empty.model")
        return texts.text("status.loading", model=scene.draft.model)
    moment = scene.moment
    if moment is None:
        return texts.text("status.hint")
    n_steps = moment.trace.n_steps
    if not scene.selection.live and moment.step < n_steps - 1:
        return texts.text("status.replay", step=moment.step + 1, steps=n_steps)
    return _ended(moment)


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
