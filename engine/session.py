"""Runs and branches as a tree, held within a budget of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine.trace import Kind, Trace

FIRST_TO_GO: tuple[Kind, ...] = ("logits", "residual", "attention")


@dataclass
class Run:
    """One run, or a branch of another: `fork_step` is the parent's step whose draw it replaced."""

    id: int
    name: str
    trace: Trace
    parent: int | None = None
    fork_step: int | None = None
    resting: Path | None = None  # the file that holds its arrays while it is not looked at


@dataclass
class Session:
    """All runs since the window opened, or all that a file holds. Nothing in it is ever edited."""

    runs: dict[int, Run] = field(default_factory=dict)
    open_id: int | None = None

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs.values())

    @property
    def open_run(self) -> Run | None:
        """The run that the panels show."""
        return None if self.open_id is None else self.runs[self.open_id]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; rows that a branch copied from its parent count twice, as held."""
        return sum(run.trace.nbytes for run in self)

    def start(self, name: str, *, parent: int | None = None, fork_step: int | None = None) -> Run:
        """Open a new run. A branch begins with its parent's events before the fork's draw."""
        trace = Trace()
        if parent is not None:
            assert fork_step is not None
            trace = self.runs[parent].trace.cut(fork_step)
        run = Run(max(self.runs, default=0) + 1, name, trace, parent, fork_step)
        self.runs[run.id] = run
        self.open_id = run.id
        return run

    def remove(self, id: int) -> None:
        """Take a run out; its branches stay and hang from its parent."""
        gone = self.runs.pop(id)
        for run in self:
            if run.parent == id:
                run.parent, run.fork_step = gone.parent, None
        if self.open_id == id:
            self.open_id = max(self.runs, default=None)

    def ancestors(self, id: int) -> set[int]:
        """The run and all that it grew from."""
        line: set[int] = set()
        at: int | None = id
        while at is not None:
            line.add(at)
            at = self.runs[at].parent
        return line

    def keep_within(self, budget: int, *, rest: Callable[[Run], None] | None = None) -> list[Kind]:
        """Let arrays go until the session fits the budget of bytes.

        Runs away from the open one's line rest first (`rest` puts one into a file); then the
        open line lets go: logits first (the top probabilities stay), residual rows, then q, k, v.

        Returns:
            What the open line had to let go.
        """
        near = set() if self.open_id is None else self.ancestors(self.open_id)
        for run in self:
            if rest is not None and run.id not in near and self.nbytes > budget:
                rest(run)
        gone: list[Kind] = []
        for kind in FIRST_TO_GO:
            for run in (self.runs[id] for id in sorted(near)):
                if self.nbytes > budget and run.trace.has(kind):
                    run.trace.drop(kind)
                    gone.append(kind)
        return gone
