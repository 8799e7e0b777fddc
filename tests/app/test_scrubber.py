"""The way through a run: every means moves the store, and the store moves what is shown."""

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app import theme
from app.scrubber import Scrubber, steps_of
from app.selection import EMPTY
from app.store import Store
from app.widgets.scrub_bar import Steps
from engine.trace import Trace

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def store(qtbot: QtBot, recorded: Trace) -> Store:
    """The recorded run has ended: 6 tokens of prompt, 14 steps."""
    made = Store()
    made.edit({"prompt": "x"})
    made.run()
    made.take([(1, event) for event in recorded.events])
    return made


@pytest.fixture
def scrubber(qtbot: QtBot, store: Store) -> Scrubber:
    made = Scrubber(store, theme.load("dark"))
    qtbot.addWidget(made)
    store.changed.connect(lambda: made.show_scene(store.scene))
    made.show_scene(store.scene)
    made.resize(600, 52)
    made.show()
    return made


def test_without_a_run_there_is_no_way_to_go(qtbot: QtBot) -> None:
    made = Scrubber(Store(), theme.load("light"))
    qtbot.addWidget(made)
    made.show_scene(EMPTY)
    assert steps_of(EMPTY) == Steps()
    assert made.bar.words == ""
    assert not any(button.isEnabled() for button in made.buttons.values())
    assert (made.bar.isEnabled(), made.live.isEnabled(), made.live.isChecked()) == (False,) * 3


def test_an_ended_run_fills_the_bar(scrubber: Scrubber) -> None:
    assert scrubber.bar.steps == Steps(n_prompt=6, n_steps=14, step=13, room=14)
    assert scrubber.bar.words == "step 14 of 14"
    assert scrubber.live.isChecked()
    assert not scrubber.buttons["forward"].isEnabled()


def test_a_run_that_goes_leaves_room_for_what_was_asked(qtbot: QtBot, recorded: Trace) -> None:
    store = Store()
    store.edit({"prompt": "x"})
    store.run()
    store.take([(1, event) for event in recorded.events[:8]])
    assert steps_of(store.scene) == Steps(n_prompt=6, n_steps=3, step=2, room=24)


def test_a_click_goes_to_the_step_there(scrubber: Scrubber, store: Store, qtbot: QtBot) -> None:
    bar = scrubber.bar
    qtbot.mouseClick(bar, LEFT, pos=QPoint(round(bar.x_of(5)), 26))
    assert (store.selection.step, store.selection.live) == (5, False)
    assert bar.words == "step 6 of 14"
    assert not scrubber.live.isChecked()


def test_a_drag_follows_the_mouse_and_ends_with_the_run(
    scrubber: Scrubber, store: Store, qtbot: QtBot
) -> None:
    bar = scrubber.bar
    qtbot.mousePress(bar, LEFT, pos=QPoint(round(bar.x_of(3)), 26))
    qtbot.mouseMove(bar, QPoint(round(bar.x_of(7)), 40))
    qtbot.mouseRelease(bar, LEFT, pos=QPoint(bar.width() + 50, 26))
    bar.scrubbed.emit(99)
    assert store.selection.step == 13


@pytest.mark.parametrize(
    ("key", "step"),
    [
        (Qt.Key.Key_Left, 4),
        (Qt.Key.Key_Right, 6),
        (Qt.Key.Key_PageUp, 13),
        (Qt.Key.Key_PageDown, 0),
        (Qt.Key.Key_Home, 0),
    ],
)
def test_keys_step_through_the_run(
    scrubber: Scrubber, store: Store, qtbot: QtBot, key: Qt.Key, step: int
) -> None:
    store.scrub(5)
    qtbot.keyClick(scrubber.bar, key)
    assert (store.selection.step, store.selection.live) == (step, False)


def test_end_follows_the_newest_step(scrubber: Scrubber, store: Store, qtbot: QtBot) -> None:
    store.scrub(5)
    qtbot.keyClick(scrubber.bar, Qt.Key.Key_End)
    assert (store.selection.step, store.selection.live) == (13, True)


def test_buttons_step_through_the_run(scrubber: Scrubber, store: Store, qtbot: QtBot) -> None:
    visited = []
    for id in ("first", "forward", "forward", "back"):
        qtbot.mouseClick(scrubber.buttons[id], LEFT)
        visited.append(store.selection.step)
    assert visited == [0, 1, 2, 1]
    for _ in range(2):  # a second click must not uncheck it
        qtbot.mouseClick(scrubber.live, LEFT)
        assert (store.selection.step, scrubber.live.isChecked()) == (13, True)


def test_space_plays_and_holds(scrubber: Scrubber, store: Store, qtbot: QtBot) -> None:
    store.scrub(5)
    qtbot.keyClick(scrubber.bar, Qt.Key.Key_Space)
    assert scrubber.player.playing
    assert scrubber.buttons["play"].toolTip() == "Hold the replay (Space)."
    qtbot.keyClick(scrubber.bar, Qt.Key.Key_Space)
    assert not scrubber.player.playing
    assert store.selection.step == 5


def test_scrubbing_stops_the_replay(scrubber: Scrubber, qtbot: QtBot) -> None:
    qtbot.mouseClick(scrubber.buttons["play"], LEFT)
    assert scrubber.player.playing
    qtbot.keyClick(scrubber.bar, Qt.Key.Key_Right)
    assert not scrubber.player.playing
