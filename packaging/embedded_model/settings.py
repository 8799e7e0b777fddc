"""What a training run is made of, read from one file and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_type_hints

from embedded_model.refusal import Refusal

SHIPPED = Path(__file__).with_name("settings.toml")
TEXTS = ("A", "B", "C", "stories", "drills")  # the streams a row can be cut from
COPYING = "copying"  # rows made on the fly

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Model:
    """The sizes of the network that is trained."""

    n_layer: int
    n_head: int
    n_embd: int
    n_positions: int
    n_rows: int  # tokens with a row of their own


@dataclass(frozen=True, slots=True)
class Start:
    """What is put into the weights before training."""

    position_scale: float  # 0 = none, and no heads either
    look_back_heads: int
    look_back_strength: float


@dataclass(frozen=True, slots=True)
class Run:
    """How much is read, and in which portions."""

    tokens: int
    batch_tokens: int
    seed: int
    measure_every: int  # steps


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Rates and their course."""

    matrix_rate: float
    other_rate: float
    weight_decay: float
    warm_up: float  # part of the run
    last_rate: float  # part of the full rates
    clip: float


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts that are generated, and how rows are given out to tokens."""

    n_stories: int
    story_seed: int
    n_drills: int
    drill_seed: int
    n_held_out_stories: int
    held_out_seed: int
    weights: dict[str, float]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stretch of the run."""

    until: float  # part of the run that is over when it ends
    context: int  # tokens a row
    shares: dict[str, float]  # of the rows of a batch; need not sum to 1

    def shares_of(self, texts: Collection[str]) -> dict[str, float]:
        """The shares of what there is: texts that a corpus lacks leave theirs to the others."""
        found = {name: s for name, s in self.shares.items() if name in {*texts, COPYING}}
        return {name: s for name, s in found.items() if s}


@dataclass(frozen=True, slots=True)
class Settings:
    """One run. Two runs with equal settings, texts, arithmetic and threads give equal weights."""

    model: Model
    start: Start
    run: Run
    optimizer: Optimizer
    corpus: Corpus
    stage: tuple[Stage, ...]

    @property
    def n_steps(self) -> int:
        """Of the whole run."""
        return self.run.tokens // self.run.batch_tokens

    def stage_at(self, step: int) -> Stage:
        """The stage that a step, counted from 0, belongs to."""
        done = step / self.n_steps
        return next((stage for stage in self.stage if done < stage.until), self.stage[-1])

    def plain(self) -> dict[str, Any]:
        """As `settled` takes it."""
        return asdict(self)


def read(path: Path = SHIPPED) -> Settings:
    """Read a settings file.

    Raises:
        Refusal: it is not there, is not TOML, lacks a value, or has one that cannot be.
    """
    try:
        return settled(tomllib.loads(path.read_text(encoding="utf-8")), source=path.name)
    except OSError as error:
        raise Refusal(f"{path.name} could not be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"{path.name} is not TOML: {error}.") from error


def settled(plain: Mapping[str, Any], *, source: str) -> Settings:
    """Settings from plain values.

    Raises:
        Refusal: as `read`, naming `source`.
    """
    sections = {
        name: _section(kind, plain.get(name), f"{source}: [{name}]")
        for name, kind in get_type_hints(Settings).items()
        if name != "stage"
    }
    stages = plain.get("stage")
    if not isinstance(stages, list | tuple) or not stages:
        raise Refusal(f"{source} has no [[stage]]; a run needs at least one.")
    if unknown := set(plain) - set(sections) - {"stage"}:
        raise Refusal(f"{source} has a section [{min(unknown)}] that no run knows.")
    found = Settings(
        **sections, stage=tuple(_section(Stage, s, f"{source}: [[stage]]") for s in stages)
    )
    _check(found, source)
    return found


def _section(kind: type[_T], found: object, where: str) -> _T:
    """One section, each value of its field's type; an integer will do for a float."""
    if not isinstance(found, Mapping):
        raise Refusal(f"{where} is missing.")
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if unknown := set(found) - set(names):
        raise Refusal(f"{where} has {min(unknown)}, which no run knows.")
    hints, values = get_type_hints(kind), {}
    for name in names:
        value, wanted = found.get(name), hints[name]
        if wanted is float and type(value) is int:
            value = float(value)
        if wanted not in (int, float):  # a table of numbers
            if not isinstance(value, Mapping) or not all(_number(v) for v in value.values()):
                raise Refusal(f"{where} needs {name}: names with numbers that are not negative.")
            value = {key: float(number) for key, number in value.items()}
        elif type(value) is not wanted or not _number(value):
            what = "nothing" if type(value) is NoneType else f"{value!r}"
            raise Refusal(f"{where} has {what} for {name}; it must be a number of 0 or more.")
        values[name] = value
    return kind(**values)


def _number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")  # type: ignore[operator]


def _check(settings: Settings, source: str) -> None:
    """What must hold between values."""
    model, run = settings.model, settings.run
    sizes = (*asdict(model).values(), run.batch_tokens, run.measure_every)
    if not all(sizes) or settings.n_steps < 1:
        raise Refusal(f"{source}: sizes, batch and tokens must be at least 1, and one step long.")
    if model.n_embd % model.n_head or model.n_embd % 4 or model.n_embd < 8 or model.n_rows < 64:
        raise Refusal(
            f"{source}: n_embd must be a multiple of n_head and of 4 and at least 8, and n_rows at "
            "least 64."
        )
    if settings.start.look_back_heads > model.n_head:
        raise Refusal(f"{source}: look_back_heads is more than n_head.")
    if unknown := set(settings.corpus.weights) ^ set(TEXTS):
        raise Refusal(f"{source}: weights must name {', '.join(TEXTS)}; see {min(unknown)}.")
    before = 0.0
    for stage in settings.stage:
        if not before < stage.until <= 1:
            raise Refusal(f"{source}: the stages' until must rise and end at 1.")
        if not 8 <= stage.context <= min(model.n_positions, run.batch_tokens):
            raise Refusal(f"{source}: a context of {stage.context} does not fit.")
        if unknown := set(stage.shares) - {*TEXTS, COPYING}:
            raise Refusal(f"{source}: no rows can be cut from {min(unknown)}.")
        if not sum(stage.shares.values()):
            raise Refusal(f"{source}: the shares of a stage are all 0.")
        before = stage.until
    if before != 1:
        raise Refusal(f"{source}: the last stage must last until 1.0.")
