"""Threads given up while other programs are in the way, and taken again when they are gone."""

from collections.abc import Callable

import pytest

from engine.crowd import FIRST_WAIT, WINDOW, Crowd

Machine = Callable[[int, int], int]  # threads, number of the step -> ns


def quiet(n_threads: int, step: int) -> int:
    return 100 if n_threads > 1 else 150


def crowded(n_threads: int, step: int) -> int:
    """Every fourth pass of several threads waits ten times as long for the one that was put off."""
    if n_threads == 1:
        return 150
    return 1_000 if step % 4 == 0 else 100


def uneven(n_threads: int, step: int) -> int:
    """Held up now and then, but one thread would be slower still."""
    if n_threads == 1:
        return 400
    return 300 if step % 4 == 0 else 100


def used(crowd: Crowd, machine: Machine, n_steps: int) -> list[int]:
    """How many threads each of the steps used."""
    found = []
    for step in range(n_steps):
        found.append(crowd.n_threads)
        crowd.took(machine(crowd.n_threads, step))
    return found


def test_a_quiet_machine_keeps_all_threads() -> None:
    assert set(used(Crowd(4), quiet, 1_000)) == {4}


def test_one_thread_is_used_while_others_would_be_waited_for() -> None:
    found = used(Crowd(2), crowded, 3_000)
    assert found[:WINDOW] == [2] * WINDOW  # the window that showed it
    assert found[WINDOW : 2 * WINDOW] == [1] * WINDOW
    assert found.count(1) > 2_600


def test_all_threads_are_tried_again_and_taken_when_the_crowd_is_gone() -> None:
    crowd = Crowd(2)
    used(crowd, crowded, 2 * WINDOW)
    assert crowd.n_threads == 1
    found = used(crowd, quiet, (FIRST_WAIT + 20) * WINDOW)
    assert set(found[FIRST_WAIT * WINDOW :]) == {2}


def test_one_thread_is_given_up_at_once_where_it_is_slower_still() -> None:
    found = used(Crowd(8), uneven, 3_000)
    assert found[WINDOW : 3 * WINDOW] == [1] * WINDOW + [8] * WINDOW
    assert found.count(1) < 12 * WINDOW  # tried ever more rarely


def test_one_slow_step_is_no_crowd() -> None:
    assert set(used(Crowd(2), lambda n, step: 5_000 if step % 17 == 3 else 100, 500)) == {2}


@pytest.mark.parametrize("machine", [quiet, crowded, uneven])
def test_who_has_one_thread_keeps_it(machine: Machine) -> None:
    assert set(used(Crowd(1), machine, 200)) == {1}


def test_who_asked_for_a_number_keeps_it() -> None:
    assert set(used(Crowd(2, watched=False), crowded, 200)) == {2}
