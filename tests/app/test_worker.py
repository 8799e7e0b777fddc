"""The door: one thread, events in order, stops and steps heard, always one end."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QObject, QThread, Slot
from pytestqt.qtbot import QtBot

from app.limits import A_STEP, Found, Shape
from app.reins import EVENTS_AHEAD, Reins
from app.store import Ask
from app.worker import Door, Loaded, Unloaded, Wanted
from engine import probe
from engine.errors import EngineError
from engine.events import Event, RunFailed, RunFinished, Sampled, Token, Tokenized
from engine.floors import Limits
from engine.generate import Engine
from engine.request import Pick, Request, Sampling

STORY = Request("Once upon a time", max_tokens=40)


class Taker(QObject):
    """Takes events as the window does, and notes in which thread."""

    def __init__(self, door: Door) -> None:
        super().__init__()
        self.door = door
        self.events: list[Event] = []
        self.threads: set[QThread] = set()
        door.woke.connect(self.take)

    @Slot()
    def take(self) -> None:
        self.threads.add(QThread.currentThread())
        self.events += [event for _, event in self.door.take()]

    @property
    def n_tokens(self) -> int:
        return sum(isinstance(event, Sampled) for event in self.events)

    @property
    def ended(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], RunFinished | RunFailed)


@pytest.fixture
def door(qtbot: QtBot, engine: Engine) -> Iterator[Door]:
    door = Door(load=lambda *_: engine)
    with qtbot.waitSignal(door.loaded):
        door.start(Wanted())
    yield door
    assert door.close()


@pytest.fixture
def taker(door: Door) -> Taker:
    return Taker(door)


def test_a_run_arrives_whole_and_in_order_in_the_windows_thread(
    qtbot: QtBot, door: Door, taker: Taker
) -> None:
    door.run(Ask(1, STORY))
    qtbot.waitUntil(lambda: taker.ended)
    names = [type(event).__name__ for event in taker.events]
    assert names[:2] == ["RunStarted", "Tokenized"]
    assert names[2:-1] == ["Forward", "Sampled"] * 40
    assert taker.threads == {QThread.currentThread()}


def test_stop_ends_within_one_step(qtbot: QtBot, door: Door, taker: Taker) -> None:
    door.reins.set_pace(50)
    door.run(Ask(1, STORY))
    qtbot.waitUntil(lambda: taker.n_tokens >= 3)
    before = taker.n_tokens
    door.reins.stop()
    qtbot.waitUntil(lambda: taker.ended)
    assert taker.n_tokens - before <= 1
    assert taker.events[-1] == RunFinished("stopped", taker.events[-1].at_ns)  # type: ignore[union-attr]


def test_a_paused_run_goes_token_by_token_and_then_on(
    qtbot: QtBot, door: Door, taker: Taker
) -> None:
    door.run(Ask(1, STORY), paused=True)
    qtbot.waitUntil(lambda: taker.n_tokens == 1)
    door.reins.step()
    qtbot.waitUntil(lambda: taker.n_tokens == 2)
    qtbot.wait(50)
    assert (taker.n_tokens, taker.ended) == (2, False)
    door.reins.resume()
    qtbot.waitUntil(lambda: taker.ended)
    assert taker.n_tokens == 40


def test_stop_is_heard_by_a_paused_run(qtbot: QtBot, door: Door, taker: Taker) -> None:
    door.run(Ask(1, STORY), paused=True)
    qtbot.waitUntil(lambda: taker.n_tokens == 1)
    door.reins.stop()
    qtbot.waitUntil(lambda: taker.ended)
    assert taker.n_tokens == 1


def waits(reins: Reins) -> threading.Thread:
    """Somebody who is about to make a step."""
    thread = threading.Thread(target=reins.after_token, daemon=True)
    thread.start()
    thread.join(0.05)
    return thread


def test_a_paced_step_waits_until_a_frame_is_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.reins.LONGEST_FRAME_S", 60.0)
    reins = Reins()
    reins.begin(paused=False)
    reins.set_pace(1e6)
    reins.paint(painting=True)
    worker = waits(reins)
    assert worker.is_alive()
    reins.paint(painting=False)
    worker.join(10)
    assert not worker.is_alive()


@pytest.mark.parametrize(("pace", "longest"), [(None, 60.0), (1e6, 0.0)])
def test_no_step_waits_at_full_speed_nor_for_a_frame_that_takes_too_long(
    pace: float | None, longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.reins.LONGEST_FRAME_S", longest)
    reins = Reins()
    reins.begin(paused=False)
    reins.set_pace(pace)
    reins.paint(painting=True)
    worker = waits(reins)
    worker.join(10)
    assert not worker.is_alive()


def test_the_wait_of_a_pace_is_noted_and_not_latency(
    qtbot: QtBot, door: Door, taker: Taker
) -> None:
    door.reins.set_pace(20)
    door.run(Ask(1, Request("Once upon a time", max_tokens=4)))
    qtbot.waitUntil(lambda: taker.ended)
    from engine.trace import Trace

    trace = Trace(taker.events)
    for forward, sampled in zip(trace.forwards[1:], trace.samples[1:], strict=True):
        own = forward.span[1] - forward.span[0] + sampled.span[1] - sampled.span[0]
        assert forward.waited_ns + own > 45_000_000  # 20 a second: 50 ms, less what is rounded


def test_an_order_holds_for_the_tokens_to_come(qtbot: QtBot, door: Door, taker: Taker) -> None:
    door.run(Ask(1, STORY), paused=True)
    qtbot.waitUntil(lambda: taker.n_tokens == 1)
    door.order(Sampling(temperature=0))
    door.order(Pick(262))
    door.reins.resume()
    qtbot.waitUntil(lambda: taker.ended)
    drawn = [event for event in taker.events if isinstance(event, Sampled)]
    assert drawn[0].sampling.temperature == 0.8
    assert {sampled.sampling.temperature for sampled in drawn[1:]} == {0}
    assert 262 in {sampled.token.id for sampled in drawn if sampled.coin is None}


def test_a_refused_request_is_one_terminal_event(qtbot: QtBot, door: Door, taker: Taker) -> None:
    door.run(Ask(1, Request("the" + " the" * 600)))
    qtbot.waitUntil(lambda: taker.ended)
    assert [type(event) for event in taker.events] == [RunFailed]
    assert isinstance(taker.events[0], RunFailed)
    assert taker.events[0].kind == "context_too_long"


class Broken:
    """An engine whose run breaks as it is told to."""

    model = device = dtype = ""
    notes: tuple[str, ...] = ()
    position = 0

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def generate(self, request: Request, stopped: Callable[[], bool]) -> Iterator[Event]:
        yield Tokenized((Token(0, b"!"),), (0, 1))
        raise self._error


@pytest.mark.parametrize(
    "error", [RuntimeError("boom"), MemoryError(), KeyboardInterrupt(), EngineError("busy")]
)
def test_whatever_breaks_the_last_event_says_so_and_the_door_still_works(
    qtbot: QtBot, engine: Engine, error: BaseException
) -> None:
    engines = iter([Broken(error), engine])
    door = Door(load=lambda *_: next(engines))  # type: ignore[arg-type,return-value]
    taker = Taker(door)
    with qtbot.waitSignal(door.loaded):
        door.start(Wanted())
    door.run(Ask(1, STORY))
    qtbot.waitUntil(lambda: taker.ended)
    assert sum(isinstance(event, RunFailed) for event in taker.events) == 1
    with qtbot.waitSignal(door.loaded):
        door.load(Wanted())
    door.run(Ask(2, Request("Once", max_tokens=2)))
    qtbot.waitUntil(lambda: isinstance(taker.events[-1], RunFinished))
    assert door.close()


def test_a_model_that_cannot_be_loaded_is_said(qtbot: QtBot) -> None:
    def refuse(*_: object) -> Engine:
        raise EngineError("model_not_found", name="x", known="y", looked="z")

    door = Door(load=refuse)
    with qtbot.waitSignal(door.loaded) as said:
        door.start(Wanted("x"))
    assert isinstance(said.args[0], Unloaded)
    assert "x" in said.args[0].message
    taker = Taker(door)
    door.run(Ask(1, STORY))
    qtbot.waitUntil(lambda: taker.ended)
    assert isinstance(taker.events[0], RunFailed)
    assert taker.events[0].kind == "no_model"
    assert door.close()


def test_what_was_loaded_is_told(qtbot: QtBot, engine: Engine) -> None:
    door = Door(load=lambda *_: engine)
    with qtbot.waitSignal(door.loaded) as said:
        door.start(Wanted())
    assert isinstance(said.args[0], Loaded)
    assert said.args[0].model.title == engine.model.title
    assert door.close()


def test_closing_while_a_run_goes_on_ends_the_thread(qtbot: QtBot, engine: Engine) -> None:
    door = Door(load=lambda *_: engine)
    with qtbot.waitSignal(door.loaded):
        door.start(Wanted())
    taker = Taker(door)
    door.run(Ask(1, Request("Once upon a time", max_tokens=400)))
    qtbot.waitUntil(lambda: taker.n_tokens > 2)
    assert door.close()


def test_a_worker_waits_when_the_window_is_too_far_behind() -> None:
    reins = Reins()
    reins.begin(paused=False)
    event = RunFinished("stopped", 0)
    for _ in range(EVENTS_AHEAD):
        reins.tell(1, event)
    behind = threading.Thread(target=reins.tell, args=(1, event))
    behind.start()
    behind.join(0.05)
    assert behind.is_alive()
    assert len(reins.take_told()) == EVENTS_AHEAD
    behind.join(5)
    assert not behind.is_alive()
    assert len(reins.take_told()) == 1


def test_only_the_first_event_wakes_the_window() -> None:
    reins = Reins()
    reins.begin(paused=False)
    event = RunFinished("stopped", 0)
    assert [reins.tell(1, event) for _ in range(3)] == [True, False, False]
    reins.take_told()
    assert reins.tell(1, event)


LIMITS = Limits("cpu", "float32", 1, 20e9, 90e9, "onednn", 3_000.0, None)


def test_what_is_kept_of_the_limits_is_told_without_measuring(
    qtbot: QtBot, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "measure", None)  # it would fail if it were called
    with qtbot.waitSignal(door.found) as said:
        door.find_limits(measure=False)
    assert (said.args[0].limits, said.args[0].reason) == ((), "")
    monkeypatch.setattr(probe, "kept", lambda *_, **__: LIMITS)
    with qtbot.waitSignal(door.found) as said:
        door.find_limits(measure=False)
    assert said.args[0].limits == (LIMITS,)
    assert said.args[0].place.n_layer == 6


def test_a_measuring_gives_way_to_a_run(
    qtbot: QtBot, door: Door, taker: Taker, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def endless(*_: object, stopped: Callable[[], bool], **__: object) -> Limits:
        begun.set()
        while not stopped():
            time.sleep(0.001)
        raise probe.Interrupted

    monkeypatch.setattr(probe, "measure", endless)
    found: list[Found] = []
    door.found.connect(found.append)
    door.find_limits(measure=True)
    qtbot.waitUntil(begun.is_set)
    door.run(Ask(1, Request("Once upon a time", max_tokens=2)))
    qtbot.waitUntil(lambda: taker.ended)
    assert [(said.limits, said.reason) for said in found] == [((), "")]
    assert taker.n_tokens == 2


def test_closing_ends_a_measuring(
    qtbot: QtBot, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def endless(*_: object, stopped: Callable[[], bool], **__: object) -> Limits:
        while not stopped():
            asked.append(True)
            time.sleep(0.001)
        raise probe.Interrupted

    monkeypatch.setattr(probe, "measure", endless)
    door = Door(load=lambda *_: engine)
    with qtbot.waitSignal(door.loaded):
        door.start(Wanted())
    door.find_limits(measure=True)
    qtbot.waitUntil(lambda: bool(asked))
    assert door.close()


def test_why_limits_cannot_be_measured_is_told(
    qtbot: QtBot, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> Limits:
        raise EngineError("limits", reason="not enough memory")

    monkeypatch.setattr(probe, "measure", full)
    with qtbot.waitSignal(door.found) as said:
        door.find_limits(measure=True)
    assert said.args[0].limits == ()
    assert "(not enough memory)" in said.args[0].reason


def test_a_pass_of_a_shape_is_counted(qtbot: QtBot, door: Door, engine: Engine) -> None:
    with qtbot.waitSignal(door.counted) as said:
        door.count(Shape("prefill", 0, 200))
    one = said.args[0].orders
    with qtbot.waitSignal(door.counted) as said:
        door.count(A_STEP)
    step = said.args[0].orders
    assert (one.n_threads, step.n_threads) == (1, 1)
    # Two chunks against one row; each layer of either is more than ten operations.
    assert one.n_operations > 1.5 * step.n_operations > 1.5 * 6 * 10
