"""A run on a clock: model time lays spans end to end, the wall clock keeps gaps, both fold."""

from __future__ import annotations

import pytest

from app.widgets.course import Clock, Course, Fold, course
from engine.events import Forward, Sampled
from tests.corpora.short_run import DRAWS, MS, PASSES, START, TOKENIZED, forward, sampled

PAUSED = (*PASSES[:2], forward(3, 1, 5_018, 5_024, waited=5_000))  # 5 s instead of 50 ms
PAUSED_DRAWS = (*DRAWS[:2], sampled(4, b" cat", 5_024, 5_025))


def laid(
    clock: Clock,
    passes: tuple[Forward, ...] = PASSES,
    draws: tuple[Sampled, ...] = DRAWS,
) -> Course:
    return course(START, TOKENIZED, passes, draws, clock=clock)


def edges_ms(course: Course) -> list[list[int]]:
    return (course.edges // MS).tolist()


def test_model_time_lays_pass_and_draw_end_to_end() -> None:
    assert edges_ms(laid("own")) == [[1, 11, 11, 13], [13, 17, 17, 18], [18, 24, 24, 25]]


def test_the_wall_clock_keeps_a_pause_of_less_than_a_second() -> None:
    course = laid("wall")
    assert edges_ms(course) == [[1, 11, 11, 13], [13, 17, 17, 18], [68, 74, 74, 75]]
    assert course.folds == ()


def test_a_wait_is_marked_in_model_time_with_its_length() -> None:
    assert laid("own").folds == (Fold(18 * MS, 50 * MS),)


def test_a_wait_of_a_millisecond_is_no_wait() -> None:
    passes = (*PASSES[:2], forward(3, 1, 19, 23, waited=1))
    assert laid("own", passes, (*DRAWS[:2], sampled(4, b" cat", 23, 24))).folds == ()


def test_no_gap_is_in_the_time_the_model_itself_has_worked() -> None:
    assert laid("own").own_ns == laid("wall").own_ns == 25 * MS  # 1 + 10 + 2 + 4 + 1 + 6 + 1


def test_a_latency_is_pass_and_draw_and_unknown_until_drawn() -> None:
    assert (laid("own").latencies // MS).tolist() == [12, 5, 7]
    assert (laid("own", draws=DRAWS[:2]).latencies // MS).tolist() == [12, 5, 0]


def test_a_pass_without_its_draw_ends_its_block() -> None:
    assert edges_ms(laid("own", draws=DRAWS[:2]))[-1] == [18, 24, 24, 24]


def test_the_wall_clock_folds_a_pause_of_more_than_a_second() -> None:
    course = laid("wall", PAUSED, PAUSED_DRAWS)
    assert course.folds == (Fold(18 * MS, 5_000 * MS),)
    assert edges_ms(course)[-1] == [18, 24, 24, 25]


@pytest.mark.parametrize("day", [100_000_000, -6_000])  # a later day, another machine's clock
def test_where_a_branch_took_over_nobody_knows_how_long_it_was(day: int) -> None:
    draws = (DRAWS[0], sampled(3, b" a", day, day + 1))
    course = laid("wall", PASSES[:2], draws)
    assert course.folds == (Fold(17 * MS, None),)
    assert edges_ms(course)[-1] == [13, 17, 17, 18]


def test_ticks_are_round_times_in_sight() -> None:
    ticks = laid("own").ticks(0, 25 * MS, 10 * MS)
    assert ticks == [(0, 0), (10 * MS, 10 * MS), (20 * MS, 20 * MS)]


def test_behind_a_fold_the_wall_clock_says_what_the_wall_clock_said() -> None:
    course = laid("wall", PAUSED, PAUSED_DRAWS)
    ticks = course.ticks(0, course.total, 10 * MS)
    assert ticks[:3] == [(0, 0), (10 * MS, 10 * MS), (20 * MS, 5_020 * MS)]  # 18 = 5,018
