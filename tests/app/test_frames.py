"""The frame clock: many askings, few frames, and the model's share while it runs."""

import pytest
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app import frames
from app.frames import Frames, idle_ns
from app.selection import EMPTY, Scene, Selection
from engine.trace import Trace

MS = 1_000_000


class Clock:
    """Stands in for the module `time` in the clock under test."""

    def __init__(self) -> None:
        self.now = 10**12
        self.cpu = 0

    def perf_counter_ns(self) -> int:
        return self.now

    def thread_time_ns(self) -> int:
        return self.cpu


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(frames, "time", clock)
    return clock


def painted(qtbot: QtBot, frames: Frames, clock: Clock, *, cost_ms: int) -> None:
    """One frame that costs so much."""
    with qtbot.waitSignal(frames.frame):
        frames.ask()
    clock.cpu += cost_ms * MS
    QTest.qWait(1)  # lets the clock see that all is painted


def test_fifty_askings_are_one_frame(qtbot: QtBot) -> None:
    frames = Frames()
    with qtbot.waitSignal(frames.frame):
        for _ in range(50):
            frames.ask()
    assert frames.n == 1


def test_a_frame_says_when_it_begins_and_when_all_of_it_is_painted(qtbot: QtBot) -> None:
    frames, said = Frames(), []
    frames.began.connect(lambda: said.append("began"))
    frames.frame.connect(lambda: said.append("frame"))
    frames.painted.connect(lambda: said.append("painted"))
    with qtbot.waitSignal(frames.painted):
        frames.ask()
    assert said == ["began", "frame", "painted"]


def test_an_idle_window_paints_at_once_whatever_the_last_frame_cost(
    qtbot: QtBot, clock: Clock
) -> None:
    frames = Frames()
    painted(qtbot, frames, clock, cost_ms=100)
    assert frames.cost_ns == 100 * MS
    with qtbot.waitSignal(frames.frame, timeout=500):
        frames.ask()


@pytest.mark.parametrize(("cost_ms", "gap_ms"), [(1, 33), (10, 200)])
def test_a_running_model_has_the_time_between_frames(
    qtbot: QtBot, clock: Clock, cost_ms: int, gap_ms: int
) -> None:
    """max(33 ms, 20 x the cost) after the last frame began; the clock is moved by hand."""
    frames = Frames()
    frames.busy = True
    clock.now += 10**9
    painted(qtbot, frames, clock, cost_ms=cost_ms)
    assert frames.wait_ms() == gap_ms
    clock.now += 30 * MS
    assert frames.wait_ms() == gap_ms - 30
    clock.now += 10**9
    assert frames.wait_ms() == 0


def test_a_frame_that_fits_into_the_pace_waits_no_longer_than_a_short_one(
    qtbot: QtBot, clock: Clock
) -> None:
    frames = Frames()
    frames.busy = True
    clock.now += 10**9
    painted(qtbot, frames, clock, cost_ms=10)
    frames.idle_ns = 44 * MS  # 20 tokens a second of which a step takes 6 ms
    assert frames.wait_ms() == 33


def test_a_run_that_begins_has_a_head_start(clock: Clock) -> None:
    frames = Frames()
    frames.begin()
    assert frames.wait_ms() == 60
    frames.end()
    assert frames.wait_ms() == 0


def test_a_pace_leaves_what_the_step_does_not_take(recorded: Trace) -> None:
    scene = Scene(recorded.at(4), Selection(), EMPTY.draft, EMPTY.session)
    forward, sampled = recorded.forwards[4], recorded.samples[4]
    own = forward.span[1] - forward.span[0] + sampled.span[1] - sampled.span[0]
    assert idle_ns(scene, "20") == 50 * MS - own
    assert idle_ns(scene, "full") == 0
    assert idle_ns(EMPTY, "20") == 0
