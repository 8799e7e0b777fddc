"""Times and rates in the units that people compare; hints that show how a figure is made."""

import math
import re

import pytest

from app.timeline_words import duration, hint_of_run, hint_of_step, rate, tick
from engine.trace import Trace
from tests.corpora.short_run import MS, events


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (None, "–"),
        (412_345, "0.412 ms"),
        (4.94 * MS, "4.9 ms"),
        (178.4 * MS, "178 ms"),
        (9_876 * MS, "9,876 ms"),
        (12_340 * MS, "12.3 s"),
    ],
)
def test_a_time_has_about_three_digits(ns: float | None, words: str) -> None:
    assert duration(ns) == words


@pytest.mark.parametrize(
    ("ns", "step", "words"),
    [
        (40 * MS, 20 * MS, "40 ms"),
        (2 * MS, 0.5 * MS, "2.0 ms"),
        (58.12 * MS, 0.02 * MS, "58.12 ms"),
        (4_000 * MS, 2_000 * MS, "4 s"),
    ],
)
def test_ticks_are_as_precise_as_they_are_apart(ns: float, step: float, words: str) -> None:
    assert tick(ns, step) == words


def test_a_rate_is_a_whole_number_or_unknown() -> None:
    assert (rate(2_130.4), rate(None)) == ("2,130 tok/s", "–")


def test_the_hint_of_a_step_shows_the_formulas_with_its_numbers() -> None:
    moment = Trace(events()).at(2)
    assert hint_of_step(moment, 2).splitlines() == [
        "decode: “·a” read at position 3",
        "drawn: “·cat” for position 4",
        "ITL 7.0 ms ƒ = pass 6.0 ms ● + draw 1.0 ms ●",
        "waited 50.0 ms ● before the pass, in no figure",
        # 2 x 1,536 + 804,112 + 256: position 3 sees four.
        "807,440 FLOP ƒ = 2 · 1,536 weights · 1 + 2 · 50,257 · 8 + 4 · 2 · 8 · 4 pairs",
        "1,615,264 B of weights ƒ, each read once",
        "640 B of K and V ƒ = 128 B · (4 read + 1 written)",
        "● clocked on A processor, cpu float32",
    ]


def test_the_hint_of_the_prefill_says_what_the_first_token_took() -> None:
    moment = Trace(events()).at(2)
    lines = hint_of_step(moment, 0).splitlines()
    assert lines[:3] == [
        "prefill: 2 read in one pass, up to “·you” at position 1",
        "drawn: “·are” for position 2",
        "TTFT 13.0 ms ƒ = tokenize 1.0 ms ● + pass 10.0 ms ● + draw 2.0 ms ●",
    ]


def test_the_figures_are_explained_by_what_they_are_made_of() -> None:
    moment = Trace(events()).at(2)
    assert hint_of_run(moment).splitlines()[:5] == [
        "TTFT 13.0 ms ƒ = tokenize 1.0 ms ● + prefill 10.0 ms ● + draw 2.0 ms ●",
        "prefill 200 tok/s ƒ = 2 / 10.0 ms",
        "decode 167 tok/s ƒ = 2 / 12.0 ms, without the first token",
        "p50 6.0 ms, p95 6.9 ms ƒ of the times between tokens: pass + draw",
        "waited 50.0 ms ● in all, in no figure",
    ]


def test_a_pass_that_has_drawn_nothing_yet_has_no_latency() -> None:
    lines = hint_of_step(Trace(events()[:7]).at(2), 2).splitlines()
    assert lines[1] == "pass 6.0 ms ●, its token is not drawn yet"


def test_the_formulas_in_the_hint_give_the_numbers_that_the_run_recorded(
    recorded: Trace,
) -> None:
    for step, forward_ in enumerate(recorded.forwards):
        lines = hint_of_step(recorded.at(recorded.n_steps - 1), step).splitlines()
        flops = next(line for line in lines if "FLOP" in line).split(" = ")[1]
        assert sum(product(part) for part in flops.split(" + ")) == forward_.work.flops
        kv = next(line for line in lines if "K and V" in line).split(" = ")[1]
        per_position, positions = kv.split(" · ")
        moved = sum(numbers(positions))
        assert numbers(per_position)[0] * moved == forward_.work.kv_bytes


def numbers(words: str) -> list[int]:
    return [int(n.replace(",", "")) for n in re.findall(r"[\d,]+", words)]


def product(words: str) -> int:
    return math.prod(numbers(words))
