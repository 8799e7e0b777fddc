"""When limits are looked up, measured and counted: never in the way of a run."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from app.gauge import Gauge
from app.limits import A_STEP, Counted, Found, Known, Orders, Place, Shape
from app.store import Store
from engine.floors import Limits
from engine.session import Run, Session
from engine.trace import Trace
from tests.corpora.short_run import STARTED, events

HERE = Place.of(STARTED)
LIMITS = Limits("cpu", "float32", 1, 20e9, 90e9, "onednn", 3_000.0, None)


class Listener(QObject):
    """A door that notes what it is asked for."""

    loaded = Signal(object)
    found = Signal(object)
    counted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[object] = []

    def find_limits(self, *, measure: bool) -> None:
        self.asked.append("measure" if measure else "look")

    def count(self, shape: Shape) -> None:
        self.asked.append(shape)


@pytest.fixture
def door(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Listener:
    monkeypatch.setattr("app.gauge.IDLE_MS", 0)
    return Listener()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def gauge(store: Store, door: Listener) -> Gauge:
    return Gauge(store, door, store)  # type: ignore[arg-type]


def progress(store: Store) -> str | None:
    known = store.scene.limits
    return None if known is None else known.progress


def run_one(store: Store) -> None:
    store.edit({"prompt": "Hello you"})
    store.run()
    run = store.session.open_run
    assert run is not None
    store.take([(run.id, event) for event in events()])


@pytest.mark.usefixtures("gauge")
def test_what_is_kept_is_looked_up_once_an_engine_is_there(
    qtbot: QtBot, store: Store, door: Listener
) -> None:
    qtbot.wait(5)
    assert door.asked == []
    door.loaded.emit(None)
    qtbot.waitUntil(lambda: door.asked == ["look"])
    assert store.scene.limits is None  # and nothing is shown until it is answered


@pytest.mark.usefixtures("gauge")
def test_kept_limits_are_shown_and_a_step_is_counted(store: Store, door: Listener) -> None:
    door.found.emit(Found(HERE, (LIMITS,)))
    assert progress(store) == "measured"
    assert door.asked == [A_STEP]
    door.counted.emit(Counted(HERE, A_STEP, Orders(1, 100, 60)))
    assert store.scene.limits == Known(HERE, "measured", (LIMITS,), {A_STEP: Orders(1, 100, 60)})
    assert door.asked == [A_STEP]  # asked once


@pytest.mark.usefixtures("gauge")
def test_the_pass_that_is_shown_is_counted_too(store: Store, door: Listener) -> None:
    door.found.emit(Found(HERE, (LIMITS,)))
    door.counted.emit(Counted(HERE, A_STEP, Orders(1, 100, 60)))
    store.open_session(Session({1: Run(1, "Hello you", Trace(events()))}, 1))
    assert door.asked == [A_STEP]
    store.scrub(0)
    assert door.asked == [A_STEP, Shape("prefill", 0, 2)]


@pytest.mark.usefixtures("gauge")
def test_a_pass_made_elsewhere_is_not_counted(store: Store, door: Listener) -> None:
    other = Place("Another processor", 1, "cpu", "float32", 2)
    door.found.emit(Found(other, (LIMITS,)))
    door.counted.emit(Counted(other, A_STEP, Orders(1, 100, 60)))
    store.open_session(Session({1: Run(1, "Hello you", Trace(events()))}, 1))
    store.scrub(0)
    assert door.asked == [A_STEP]


@pytest.mark.usefixtures("gauge")
def test_nothing_is_measured_by_itself_before_the_first_run(
    qtbot: QtBot, store: Store, door: Listener
) -> None:
    door.loaded.emit(None)
    qtbot.waitUntil(lambda: door.asked == ["look"])
    door.found.emit(Found(HERE, ()))
    qtbot.wait(5)
    assert (progress(store), door.asked) == ("unmeasured", ["look"])
    run_one(store)
    qtbot.waitUntil(lambda: door.asked == ["look", "measure"])
    assert progress(store) == "measuring"


@pytest.mark.usefixtures("gauge")
def test_a_measuring_that_gave_way_comes_again_after_the_run(
    qtbot: QtBot, store: Store, door: Listener
) -> None:
    door.loaded.emit(None)
    door.found.emit(Found(HERE, ()))
    run_one(store)
    qtbot.waitUntil(lambda: door.asked == ["measure"])
    store.run()
    door.found.emit(Found(HERE, ()))  # it stopped for the run
    qtbot.wait(5)
    assert door.asked == ["measure"]
    run = store.session.open_run
    assert run is not None
    store.take([(run.id, event) for event in events()])
    qtbot.waitUntil(lambda: door.asked == ["measure", "measure"])


@pytest.mark.usefixtures("gauge")
def test_a_failure_is_said_and_not_tried_again_by_itself(
    qtbot: QtBot, store: Store, door: Listener
) -> None:
    door.loaded.emit(None)
    door.found.emit(Found(HERE, (), "No memory."))
    run_one(store)
    qtbot.wait(5)
    assert door.asked == []
    assert store.scene.limits == Known(HERE, "failed", reason="No memory.")
    store.ask_limits()
    assert (progress(store), door.asked) == ("measuring", ["measure"])


@pytest.mark.usefixtures("gauge")
def test_what_is_asked_for_during_a_run_is_measured_after_it(
    qtbot: QtBot, store: Store, door: Listener
) -> None:
    door.loaded.emit(None)
    door.found.emit(Found(HERE, (LIMITS,)))
    door.asked.clear()
    store.edit({"prompt": "Hello you"})
    store.run()
    store.ask_limits()
    assert door.asked == []
    run = store.session.open_run
    assert run is not None
    store.take([(run.id, event) for event in events()])
    qtbot.waitUntil(lambda: "measure" in door.asked)


@pytest.mark.usefixtures("gauge")
def test_another_engine_has_other_limits(store: Store, door: Listener) -> None:
    door.found.emit(Found(HERE, (LIMITS,)))
    door.loaded.emit(None)
    assert store.scene.limits is None
    door.counted.emit(Counted(HERE, A_STEP, Orders(1, 100, 60)))  # too late
    assert store.scene.limits is None
