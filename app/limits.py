"""What is known of this machine's limits, and how near a pass came to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.events import Forward, Phase, RunStarted
from engine.floors import Limits, Rating, rate

Progress = Literal["unmeasured", "measuring", "failed", "measured"]
Missing = Literal["elsewhere", "unmeasured", "measuring", "failed", "uncounted"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where passes are made, as far as their limits depend on it."""

    machine: str  # the processor's or the card's own name
    n_threads: int  # that decode uses
    device: str
    dtype: str
    n_layer: int  # of the model: each tells the machine so many operations

    @classmethod
    def of(cls, started: RunStarted) -> Place:
        """Where a run happened."""
        machine, n_layer = started.machine, started.model.dimensions.n_layer
        return cls(machine.name, machine.n_threads, started.device, started.dtype, n_layer)


@dataclass(frozen=True, slots=True)
class Shape:
    """What tells how many operations a pass is; all decode steps are alike."""

    phase: Phase
    first: int
    count: int

    @classmethod
    def of(cls, forward: Forward) -> Shape:
        """The shape of a pass."""
        first = 0 if forward.phase == "decode" else forward.first
        return cls(forward.phase, first, forward.count)


A_STEP = Shape("decode", 0, 1)


@dataclass(frozen=True, slots=True)
class Orders:
    """What a pass tells the machine to do, counted, and by how many threads it is made."""

    n_threads: int
    n_operations: int
    n_launches: int


@dataclass(frozen=True, slots=True)
class Found:
    """What the worker found of the limits."""

    place: Place
    limits: tuple[Limits, ...]  # one for each number of threads that a pass may use, or nothing
    reason: str = ""  # why they could not be measured


@dataclass(frozen=True, slots=True)
class Counted:
    """What the worker counted."""

    place: Place
    shape: Shape
    orders: Orders


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the place where the loaded engine works."""

    place: Place
    progress: Progress
    limits: tuple[Limits, ...] = ()  # one for each number of threads that a pass may use
    orders: Mapping[Shape, Orders] = field(default_factory=dict)
    reason: str = ""  # why they could not be measured

    @property
    def quiet(self) -> bool:
        """Whether no other program worked while they were measured; else all are too low."""
        return all(limits.quiet for limits in self.limits)

    def rating(self, started: RunStarted, forward: Forward) -> Rating | Missing:
        """A pass of a run held against the limits, or what is missing for that.

        A pass that was made elsewhere is not judged by the limits of here.
        """
        if Place.of(started) != self.place:
            return "elsewhere"
        if self.progress != "measured":
            return self.progress
        orders = self.orders.get(Shape.of(forward))
        if orders is None:
            return "uncounted"
        limits = next((x for x in self.limits if x.n_threads == orders.n_threads), None)
        if limits is None:
            return "unmeasured"
        counts = {"n_operations": orders.n_operations, "n_launches": orders.n_launches}
        return rate(forward, limits, **counts)
