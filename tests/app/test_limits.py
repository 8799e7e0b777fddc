"""What is known of the limits: whom they judge, and what is said to be missing otherwise."""

from dataclasses import replace

import pytest

from app.limits import A_STEP, Known, Orders, Place, Shape
from engine.events import Machine
from engine.floors import Limits, Rating
from tests.corpora.short_run import PASSES, STARTED, forward

LIMITS = Limits("cpu", "float32", 1, 20e9, 90e9, "onednn", 3_000.0, None)
PREFILL, STEP = PASSES[0], PASSES[1]
ORDERS = {A_STEP: Orders(1, 100, 60), Shape("prefill", 0, 2): Orders(2, 110, 70)}
BOTH = (LIMITS, replace(LIMITS, n_threads=2, bandwidth=30e9))
KNOWN = Known(Place.of(STARTED), "measured", BOTH, ORDERS)


def test_a_pass_is_judged_by_the_limits_of_the_threads_that_made_it() -> None:
    prefill, step = KNOWN.rating(STARTED, PREFILL), KNOWN.rating(STARTED, STEP)
    assert isinstance(prefill, Rating)
    assert isinstance(step, Rating)
    assert (prefill.limits.bandwidth, prefill.n_operations, prefill.n_launches) == (30e9, 110, 70)
    assert (step.limits.bandwidth, step.n_operations, step.n_launches) == (20e9, 100, 60)
    assert step.floors.dispatch_ns == 300_000  # 100 x 3 us


def test_all_decode_steps_are_alike_and_each_prefill_is_not() -> None:
    assert Shape.of(STEP) == Shape.of(PASSES[2]) == A_STEP
    assert Shape.of(PREFILL) == Shape("prefill", 0, 2)
    assert Shape.of(forward(0, 3, 0, 1)) != Shape.of(PREFILL)


@pytest.mark.parametrize(
    "started",
    [
        replace(STARTED, machine=Machine("Another processor", 1)),
        replace(STARTED, machine=Machine("A processor", 4)),
        replace(STARTED, device="cuda"),
        replace(STARTED, dtype="bfloat16"),
    ],
)
def test_a_pass_made_elsewhere_is_not_judged(started: object) -> None:
    assert KNOWN.rating(started, STEP) == "elsewhere"  # type: ignore[arg-type]


def test_a_model_of_other_layers_is_another_place() -> None:
    dimensions = replace(STARTED.model.dimensions, n_layer=3)
    model = replace(STARTED.model, dimensions=dimensions)
    assert KNOWN.rating(replace(STARTED, model=model), STEP) == "elsewhere"


def test_what_is_missing_is_named() -> None:
    for progress in ("unmeasured", "measuring", "failed"):
        assert replace(KNOWN, progress=progress).rating(STARTED, STEP) == progress
    assert replace(KNOWN, orders={}).rating(STARTED, STEP) == "uncounted"
    assert replace(KNOWN, limits=BOTH[:1]).rating(STARTED, PREFILL) == "unmeasured"


def test_limits_are_quiet_if_all_of_them_are() -> None:
    assert KNOWN.quiet
    assert not replace(KNOWN, limits=(LIMITS, replace(LIMITS, quiet=False))).quiet
