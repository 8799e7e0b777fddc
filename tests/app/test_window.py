"""The window as a person uses it: type, generate, stop, scrub, ask what if, select, close."""

import gc
import sys
import threading
import time
from dataclasses import replace
from functools import partial

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.panels.base import Panel
from app.settings import Settings
from app.theme import Themes
from engine import probe
from engine.events import RunFinished
from engine.floors import Limits
from engine.generate import Engine
from engine.request import Sampling

STORY = "Once upon a time"


def run(qtbot: QtBot, window: MainWindow, prompt: str = STORY, *, max_tokens: int = 12) -> None:
    window.store.edit({"prompt": prompt, "max_tokens": max_tokens})
    with qtbot.waitSignal(window.settled):
        window.generate()
    window.refresh()


def panel(window: MainWindow, id: str) -> Panel:
    found = window.desk.panels[id]
    assert isinstance(found, Panel)
    return found


def picture(widget_panel: Panel) -> QImage:
    return widget_panel.canvas.grab().toImage()


def test_before_a_run_every_panel_says_what_to_do(window: MainWindow) -> None:
    window.refresh()
    for id in ("text", "attention", "next_token", "kv_cache", "timeline"):
        sentence = panel(window, id).empty()
        assert sentence is not None
        assert "Ctrl+Enter" in sentence


def test_typing_splits_the_prompt_as_it_is_typed(qtbot: QtBot, window: MainWindow) -> None:
    editor = window.desk.prompt.editor
    editor.setFocus()
    editor.selectAll()
    QTest.keyClicks(editor, "the dog bit the man")
    tokens = window.store.draft.tokens
    assert tokens is not None
    assert [token.id for token in tokens] == [1169, 3290, 1643, 262, 582]


def test_ctrl_enter_generates_and_every_panel_is_filled(qtbot: QtBot, window: MainWindow) -> None:
    window.store.edit({"prompt": STORY, "max_tokens": 12})
    window.refresh()
    with qtbot.waitSignal(window.settled) as said:
        QTest.keyClick(window, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert isinstance(said.args[0], RunFinished)
    window.refresh()
    for id in ("text", "tokens", "attention", "next_token", "kv_cache", "timeline"):
        assert panel(window, id).empty() is None, id
        image = picture(panel(window, id))
        colors = {image.pixelColor(x, y).name() for x in range(0, 280, 3) for y in range(0, 80, 2)}
        assert len(colors) > 5, f"{id} is blank"
    assert "12 tokens" in window.foot.sentence


def test_esc_stops_within_one_step(qtbot: QtBot, window: MainWindow) -> None:
    window.set_pace("60")
    window.store.edit({"prompt": STORY, "max_tokens": 200})
    window.generate()
    qtbot.waitUntil(lambda: len(_samples(window)) >= 3)
    with qtbot.waitSignal(window.settled):
        QTest.keyClick(window, Qt.Key.Key_Escape)
        stopped_ns = time.perf_counter_ns()
    run_ = window.store.session.open_run
    assert run_ is not None
    begun_after = [f for f in run_.trace.forwards if f.span[0] > stopped_ns]
    assert len(begun_after) <= 1
    assert _ended(window) == RunFinished("stopped", _ended(window).at_ns)


def test_generate_works_at_once_after_a_stop(qtbot: QtBot, window: MainWindow) -> None:
    window.store.edit({"prompt": STORY, "max_tokens": 200})
    window.generate()
    qtbot.waitUntil(lambda: bool(_samples(window)))
    with qtbot.waitSignal(window.settled):
        window.stop()
    run(qtbot, window, max_tokens=3)
    assert len(_samples(window)) == 3


@pytest.mark.parametrize(("dtype", "stays"), [("int8", True), ("float32", False)])
def test_how_far_int8_weights_deviate_stays_in_sight_while_a_run_goes_on(
    dtype: str, stays: bool, qtbot: QtBot, window: MainWindow
) -> None:
    """Other notes have been read once somebody goes on."""
    loaded = window.loader.current
    assert loaded is not None
    window.door.loaded.emit(replace(loaded, dtype=dtype, notes=("It deviates by 0.01 nats.",)))
    assert window.banner.sentence == "It deviates by 0.01 nats."
    run(qtbot, window, max_tokens=3)
    assert window.banner.sentence == ("It deviates by 0.01 nats." if stays else "")


def test_step_when_idle_writes_one_token_and_waits(qtbot: QtBot, window: MainWindow) -> None:
    window.store.edit({"prompt": STORY, "max_tokens": 3})
    window.step()
    qtbot.waitUntil(lambda: len(_samples(window)) == 1)
    qtbot.wait(60)
    assert len(_samples(window)) == 1
    window.step()
    qtbot.waitUntil(lambda: len(_samples(window)) == 2)
    with qtbot.waitSignal(window.settled):
        window.generate()  # goes on
    assert len(_samples(window)) == 3


def test_fifty_presses_start_one_run(qtbot: QtBot, window: MainWindow) -> None:
    window.store.edit({"prompt": STORY, "max_tokens": 5})
    with qtbot.waitSignal(window.settled):
        for _ in range(50):
            window.generate()
    assert len(window.store.session.runs) == 1


def test_scrubbing_back_shows_what_was_and_live_comes_back(
    qtbot: QtBot, window: MainWindow
) -> None:
    run(qtbot, window)
    window.store.scrub(2)
    window.refresh()
    assert panel(window, "text").scene.moment == window.store.session.runs[1].trace.at(2)
    assert "step 3 of 12" in window.foot.sentence.lower()
    window.store.go_live()
    window.refresh()
    assert window.store.selection.step == 11


def test_a_slider_moved_after_the_run_redraws_without_running(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(qtbot, window)
    before = picture(panel(window, "next_token"))
    monkeypatch.setattr(Engine, "generate", None)  # it would fail if it were called
    window.store.edit({"sampling": Sampling(2.0, 0, 1.0)})
    window.refresh()
    assert window.store.scene.what_if
    assert picture(panel(window, "next_token")) != before


def test_a_token_clicked_in_the_text_is_selected_everywhere(
    qtbot: QtBot, window: MainWindow
) -> None:
    run(qtbot, window)
    before = {id: picture(panel(window, id)) for id in ("attention", "kv_cache", "timeline")}
    canvas = panel(window, "text").canvas
    QTest.mouseClick(
        canvas, Qt.MouseButton.LeftButton, pos=QPointF(60, 14).toPoint()
    )  # the second word: " upon"
    assert window.store.selection.token == 1
    window.refresh()
    for id, old in before.items():
        assert picture(panel(window, id)) != old, f"{id} does not show the selection"
    assert window.store.selection.step == 11  # selecting never moves time


def test_after_the_first_run_the_timeline_says_how_near_the_pass_came(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(device: str, dtype: str, n_threads: int, **_: object) -> Limits:
        return Limits(device, dtype, n_threads, 1e15, 1e18, "linear", 1.0, None)  # of no machine

    monkeypatch.setattr(probe, "measure", measure)
    window.gauge._idle.setInterval(0)
    timeline = panel(window, "timeline")
    run(qtbot, window, max_tokens=3)
    qtbot.waitUntil(lambda: "held by no floor" in timeline.spoken())
    window.store.scrub(0)  # the prefill is counted when it is looked at
    qtbot.waitUntil(lambda: "held by no floor" in timeline.spoken())
    run(qtbot, window, max_tokens=2)
    assert "held by no floor" in timeline.spoken()  # known from now on


def test_closing_while_generating_leaves_nothing_running(qtbot: QtBot, window: MainWindow) -> None:
    window.store.edit({"prompt": STORY, "max_tokens": 300})
    window.generate()
    qtbot.waitUntil(lambda: bool(_samples(window)))
    assert window.close()
    assert not window.door._thread.isRunning()


def test_a_prompt_too_long_is_said_and_nothing_is_lost(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window, max_tokens=2)
    window.store.edit({"prompt": "the" + " the" * 600})
    with qtbot.waitSignal(window.settled):
        window.generate()
    assert "601 tokens" in window.banner.sentence
    assert len(_samples(window)) == 2  # the run before is still shown


def test_a_broken_model_folder_leaves_a_working_window(
    qtbot: QtBot, engine: Engine, tmp_path: object
) -> None:
    from app.worker import load_engine

    themes = Themes()
    window = MainWindow(Settings(kept=False), themes, load=load_engine)
    qtbot.addWidget(window)
    window.settings.set("model", str(tmp_path))
    with qtbot.waitSignal(window.door.loaded):
        window.start()
    window.refresh()
    assert window.banner.sentence
    assert panel(window, "text").empty() == "No model is loaded: load a model (Ctrl+M)."
    assert window.close()


def test_a_saved_session_opens_to_the_same_pictures(
    qtbot: QtBot, window: MainWindow, tmp_path: object
) -> None:
    run(qtbot, window)
    before = {id: picture(panel(window, id)) for id in ("attention", "next_token", "kv_cache")}
    window.menus.put_trace(f"{tmp_path}/a.trace")
    run(qtbot, window, "Another one", max_tokens=2)
    window.menus.take_trace(f"{tmp_path}/a.trace")
    window.store.edit({"prompt": STORY, "max_tokens": 12})
    window.refresh()
    for id, old in before.items():
        assert picture(panel(window, id)) == old, id


def test_a_trace_that_cannot_be_opened_changes_nothing(
    qtbot: QtBot, window: MainWindow, tmp_path: object
) -> None:
    run(qtbot, window, max_tokens=2)
    window.menus.take_trace(f"{tmp_path}/none.trace")
    assert "no trace file" in window.banner.sentence
    assert len(_samples(window)) == 2


def test_both_themes_and_text_sizes_paint_without_a_warning(
    qtbot: QtBot, window: MainWindow
) -> None:
    run(qtbot, window)
    for theme in ("light", "dark"):
        window.themes.choose(theme)  # type: ignore[arg-type]
        for scale in (0.8, 1.0, 1.6):
            window.themes.resize(scale)
            assert not window.grab().isNull()


def test_the_keys_of_the_steps_work_from_any_panel_that_has_no_use_for_them(
    qtbot: QtBot, window: MainWindow
) -> None:
    run(qtbot, window, max_tokens=8)
    canvas = panel(window, "kv_cache").canvas
    canvas.setFocus()
    for key, step in ((Qt.Key.Key_Left, 6), (Qt.Key.Key_Home, 0), (Qt.Key.Key_Right, 1)):
        QTest.keyClick(canvas, key)
        assert window.store.selection.step == step
    QTest.keyClick(canvas, Qt.Key.Key_End)
    assert window.store.selection.live


def test_the_focus_is_seen_where_the_keyboard_took_it(qtbot: QtBot, window: MainWindow) -> None:
    canvas = panel(window, "kv_cache").canvas
    frame = window.themes.current.color("primary").name()

    def framed() -> bool:
        return canvas.grab().toImage().pixelColor(canvas.width() // 2, 0).name() == frame

    canvas.setFocus(Qt.FocusReason.MouseFocusReason)
    assert not framed()
    canvas.clearFocus()
    canvas.setFocus(Qt.FocusReason.TabFocusReason)
    assert framed()
    canvas.clearFocus()
    assert not framed()


def test_with_alt_they_work_from_inside_the_prompt(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window, max_tokens=8)
    editor = window.desk.prompt.editor
    editor.setFocus()
    QTest.keyClick(editor, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert window.store.selection.step == 6
    QTest.keyClick(editor, Qt.Key.Key_Left)  # without it they move the cursor
    assert window.store.selection.step == 6


def test_every_control_has_a_name_for_a_screen_reader(window: MainWindow) -> None:
    for canvas in (p.canvas for p in window.desk.panels.values() if isinstance(p, Panel)):
        assert canvas.accessibleName()
    for button in (window.transport.generate, window.transport.step, window.transport.stop):
        assert button.text() or button.accessibleName()


def test_closing_while_a_model_is_read_hides_the_window_and_waits_for_the_thread(
    qtbot: QtBot, engine: Engine
) -> None:
    begun, read = threading.Event(), threading.Event()

    def slow(*_: object) -> Engine:
        begun.set()
        read.wait()
        return engine

    window = MainWindow(Settings(kept=False), Themes(), load=slow)
    qtbot.addWidget(window)
    window.show()
    window.start()
    qtbot.waitUntil(begun.is_set)
    window.door.close = partial(window.door.close, wait_ms=20)  # type: ignore[method-assign]
    assert window.close()
    assert window.isHidden()
    assert not window.door.close()
    read.set()
    window.door.close = partial(window.door.close, wait_ms=5_000)  # type: ignore[method-assign]
    assert window.door.close()


def test_qt_calls_keep_their_reference_to_none(window: MainWindow) -> None:
    """PySide6 6.12 on Python 3.11 drops one with every call, and aborts some minutes later."""
    label = QLabel()
    before = sys.getrefcount(None)
    for i in range(1_000):
        label.setText(str(i))
        label.setEnabled(True)
    assert sys.getrefcount(None) - before > -100


@pytest.mark.slow
def test_two_thousand_frames_leak_nothing(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window, max_tokens=24)
    attention = panel(window, "attention")
    for frame in range(2_000):
        window.store.scrub(frame % 24)
        window.store.select(layer=frame % 6, head=frame % 8)
        window.refresh()
        attention.canvas.repaint()
        if frame == 500:
            before = _resident()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect()
    assert _resident() - before < 20 * 2**20


def _resident() -> int:
    from engine.meter import process_bytes

    return process_bytes() or 0


def _samples(window: MainWindow) -> list[object]:
    run_ = window.store.session.open_run
    return list(run_.trace.samples) if run_ is not None else []


def _ended(window: MainWindow) -> RunFinished:
    run_ = window.store.session.open_run
    assert run_ is not None
    assert isinstance(run_.trace.ended, RunFinished)
    return run_.trace.ended
