"""What is said of limits: a verdict that holds, and formulas with the numbers filled in."""

from dataclasses import replace

import pytest

from app.limits import A_STEP, Known, Orders, Place, Shape
from app.limits_words import hint, sheet
from app.selection import Draft, Scene, Selection
from app.widgets.floor_bars import Sheet
from engine.events import Event, Forward, Work
from engine.floors import Limits
from engine.session import Session
from engine.trace import Trace
from tests.corpora.short_run import STARTED, events

LIMITS = Limits("cpu", "float32", 1, 20e9, 100e9, "onednn", 3_000.0, None)
ORDERS = {A_STEP: Orders(1, 100, 60), Shape("prefill", 0, 2): Orders(1, 110, 70)}
KNOWN = Known(Place.of(STARTED), "measured", (LIMITS,), ORDERS)
WORK = Work(flops=50_000_000, weight_bytes=79_000_000, kv_bytes=1_000_000)


def scene(known: Known | None, token: int = 4) -> Scene:
    """The short run with passes that have something to do; token 4 is of the 6 ms step."""
    told: list[Event] = [
        replace(event, work=WORK) if isinstance(event, Forward) else event for event in events()
    ]
    moment = Trace(told).at(2)
    return Scene(moment, Selection(1, 2, token=token), Draft(), Session(), limits=known)


def said(known: Known) -> Sheet:
    found = sheet(scene(known))
    assert found is not None
    return found


def test_the_floors_stand_beside_the_measured_time() -> None:
    # 80 MB at 20 GB/s, 50 MFLOP at 100 GFLOP/s, 100 x 3 us; of 6 ms.
    found = said(KNOWN)
    assert (found.head, found.figure, found.what) == ("memory-bound", "67 % of the floor", "step 3")
    assert [(row.name, row.time, row.mark, row.share) for row in found.rows] == [
        ("measured", "6.0 ms", "measured", ""),
        ("predicted", "4.3 ms", "theory", ""),
        ("memory", "4.0 ms", "theory", "MBU 67 %"),
        ("compute", "0.5 ms", "theory", "MFU 8 %"),
        ("dispatch", "0.3 ms", "theory", ""),
    ]
    assert [row.name for row in found.rows if row.strong] == ["memory"]
    assert (found.note, found.button) == ("", "")


def test_a_card_has_a_launch_floor_too() -> None:
    card = replace(LIMITS, device="cuda", launch_ns=100_000.0)
    found = said(replace(KNOWN, limits=(card,)))
    assert (found.head, found.figure) == ("overhead-bound", "100 % of the floor")  # 60 x 0.1 ms
    assert [row.name for row in found.rows if row.strong] == ["launch"]
    assert "launch 6.0 ms ≈ = 60 kernels · 100.0 µs" in hint(scene(replace(KNOWN, limits=(card,))))


def test_less_than_half_is_explained_by_no_floor() -> None:
    found = said(replace(KNOWN, limits=(replace(LIMITS, bandwidth=40e9),)))
    assert (found.head, found.figure) == ("held by no floor", "memory explains 33 %")
    assert not any(row.strong for row in found.rows)


def test_more_than_all_of_it_is_not_called_bound() -> None:
    found = said(replace(KNOWN, limits=(replace(LIMITS, bandwidth=10e9),)))
    assert (found.head, found.figure) == ("faster than its memory floor", "133 %")


def test_limits_that_were_measured_on_a_busy_machine_are_said_to_be_too_low() -> None:
    busy = replace(KNOWN, limits=(replace(LIMITS, quiet=False),))
    found = said(busy)
    assert (found.note, found.button) == ("Machine was busy: too low", "Measure again")
    assert hint(scene(busy)).endswith("all of it is too low, and it is not kept.")


def test_the_hint_shows_the_formulas_with_the_numbers_of_the_pass() -> None:
    assert hint(scene(KNOWN)).splitlines() == [
        "step 3, a decode step: 6.0 ms ● in its pass",
        "memory 4.0 ms ≈ = (79,000,000 B of weights + 1,000,000 B of K and V) / 20.0 GB/s",
        "compute 0.500 ms ≈ = 50,000,000 FLOP / 100.0 GFLOP/s",
        "dispatch 0.300 ms ≈ = 100 operations · 3.0 µs",
        "predicted 4.3 ms ≈ = max(memory, compute) + dispatch",
        "67 % ƒ = memory 4.0 ms / 6.0 ms: how near it came to its highest floor",
        "MBU 67 % ƒ = 80,000,000 B / 6.0 ms / 20.0 GB/s",
        "MFU 8 % ƒ = 50,000,000 FLOP / 6.0 ms / 100.0 GFLOP/s",
        "20.0 GB/s, 100.0 GFLOP/s (float32, onednn), 3.0 µs an operation ● "
        "with 1 thread on A processor",
    ]


def test_of_a_prompts_token_the_prefill_is_judged() -> None:
    found = sheet(scene(KNOWN, token=0))
    assert found is not None
    assert (found.what, found.rows[0].time, found.rows[0].role) == ("prefill", "10.0 ms", "prefill")
    assert hint(scene(KNOWN, token=0)).startswith("prefill of 2: 10.0 ms ● in its pass")


@pytest.mark.parametrize(
    ("known", "words", "button"),
    [
        (
            Known(KNOWN.place, "unmeasured"),
            "This machine's limits are not measured.",
            "Measure (2 s)",
        ),
        (Known(KNOWN.place, "measuring"), "Measuring what this machine can do at most…", ""),
        (Known(KNOWN.place, "failed", reason="No memory."), "No memory.", "Measure again"),
        (
            replace(KNOWN, place=replace(KNOWN.place, machine="Another")),
            "Made on A processor, cpu float32, by another engine than the one that is loaded: "
            "its limits are not known.",
            "",
        ),
    ],
)
def test_where_nothing_can_be_judged_a_sentence_says_why(
    known: Known, words: str, button: str
) -> None:
    found = said(known)
    assert (found.head, found.button, found.rows) == (words, button, ())
    assert hint(scene(known)) == words


def test_before_a_run_and_before_anybody_has_looked_there_is_nothing_to_say() -> None:
    assert sheet(scene(None)) is None
    empty = Scene(None, Selection(), Draft(), Session(), limits=KNOWN)
    assert (sheet(empty), hint(empty)) == (None, "")
