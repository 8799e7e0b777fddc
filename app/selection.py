"""What is looked at, what the controls hold, and both with the run: the one value panels show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from app.limits import Known
from engine.events import Token
from engine.request import Sampling
from engine.session import Session
from engine.trace import Moment, Trace

ModelState = Literal["loading", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class Selection:
    """One value that links all panels; equality stops echo loops."""

    run: int | None = None
    step: int = 0
    token: int | None = None  # an index into the moment's tokens; None follows the step
    layer: int = 0
    head: int | None = 0  # None: no head chosen, all are looked at together
    live: bool = True

    def clamped(self, trace: Trace | None) -> Selection:
        """The nearest selection that the trace can show."""
        if trace is None or not trace.n_steps:
            return replace(self, step=0, token=None)
        d = trace.dimensions
        step = trace.n_steps - 1 if self.live else min(max(0, self.step), trace.n_steps - 1)
        n_tokens = trace.n_prompt + min(step + 1, len(trace.samples))
        token = self.token if self.token is not None and 0 <= self.token < n_tokens else None
        head = None if self.head is None else min(self.head, d.n_head - 1)
        return replace(
            self, step=step, token=token, layer=min(self.layer, d.n_layer - 1), head=head
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """What the controls hold now; the next run is made of it."""

    prompt: str = ""
    tokens: tuple[Token, ...] | None = None  # None: the tokenizer is not loaded yet
    problem: str | None = None  # why this prompt cannot run, as a sentence
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int = 48
    seed: int = 1
    special: bool = False
    model: str = "embedded"
    model_title: str = ""
    model_state: ModelState = "loading"
    n_positions: int | None = None  # of the loaded model


@dataclass(frozen=True)
class Scene:
    """Everything a panel may show. Live, scrubbed and reopened runs are the same value."""

    moment: Moment | None
    selection: Selection
    draft: Draft
    session: Session
    running: bool = False
    limits: Known | None = None  # None: nobody has looked yet

    @property
    def token(self) -> int | None:
        """The selected token's index: the one clicked, else the one drawn at this step."""
        if self.moment is None:
            return None
        if self.selection.token is not None:
            return self.selection.token
        return len(self.moment.tokens) - 1

    @property
    def chosen_step(self) -> int | None:
        """The step that drew the selected token; that of a token of the prompt is the prefill."""
        if self.moment is None or self.token is None:
            return None
        return max(0, self.token - self.moment.n_prompt)

    @property
    def draft_differs(self) -> bool:
        """Whether the prompt being typed is another than the run's."""
        if self.moment is None:
            return True
        request = self.moment.started.request
        return (self.draft.prompt, self.draft.special) != (request.prompt, request.special)

    @property
    def what_if(self) -> bool:
        """Whether the sliders stand elsewhere than they did for the draw that is shown."""
        sampled = self.moment.sampled if self.moment else None
        return sampled is not None and sampled.sampling != self.draft.sampling


EMPTY = Scene(None, Selection(), Draft(), Session())
