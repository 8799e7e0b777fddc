"""The replay: step by step, from the start if the end is shown, until another hand moves."""

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.player import Player
from app.store import Store
from engine.trace import Trace


@pytest.fixture
def store(qtbot: QtBot, recorded: Trace) -> Store:
    """The recorded run has ended: 14 steps, the last one is shown."""
    made = Store()
    made.edit({"prompt": "x"})
    made.run()
    made.take([(1, event) for event in recorded.events])
    return made


@pytest.fixture
def player(store: Store) -> Player:
    made = Player(store)
    store.changed.connect(lambda: made.watch(store.scene))
    return made


def test_from_the_end_it_plays_the_whole_run(player: Player, store: Store) -> None:
    player.toggle()
    visited = [store.selection.step]
    while player.playing:
        player.go_on()
        visited.append(store.selection.step)
    assert visited == list(range(14))
    assert store.selection.live  # the newest step is followed again


def test_from_the_middle_it_plays_on(player: Player, store: Store) -> None:
    store.scrub(4)
    player.toggle()
    player.go_on()
    assert store.selection.step == 5


def test_a_second_time_it_holds(player: Player, store: Store, qtbot: QtBot) -> None:
    store.scrub(4)
    with qtbot.waitSignal(player.changed):
        player.toggle()
    with qtbot.waitSignal(player.changed):
        player.toggle()
    player.go_on()
    assert store.selection.step == 4


def test_another_hand_stops_it(player: Player, store: Store) -> None:
    player.toggle()
    store.scrub(9)
    assert not player.playing
    player.go_on()
    assert store.selection.step == 9


def test_choosing_a_token_does_not_stop_it(player: Player, store: Store) -> None:
    player.toggle()
    store.select(token=2)
    assert player.playing


def test_without_steps_there_is_nothing_to_play(qtbot: QtBot) -> None:
    player = Player(Store())
    with qtbot.assertNotEmitted(player.changed):
        player.toggle()
    assert not player.playing


@pytest.mark.parametrize(("pace", "interval"), [(5.0, 200), (20.0, 50), (60.0, 17), (None, 16)])
def test_the_pace_is_the_clock_s(player: Player, pace: float | None, interval: int) -> None:
    player.set_pace(pace)
    timer = player.findChild(QTimer)
    assert timer is not None
    assert timer.interval() == interval
