"""Timeline: its figures, which token a span means, zoom and clocks; and waits count nowhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app import limits_words, theme
from app.limits import A_STEP, Known, Orders, Place, Shape
from app.panels.timeline import Timeline
from app.selection import Draft, Scene, Selection
from app.store import Store
from app.timeline_words import hint_of_run, hint_of_step
from engine.events import RunFailed, Token
from engine.floors import Limits
from engine.session import Run, Session
from engine.trace import Trace
from tests.corpora.short_run import MS, START, STARTED, TOKENIZED, events, forward, sampled


@pytest.fixture
def panel(qtbot: QtBot) -> Timeline:
    """As on the floor of the window: 278 px of the canvas are the lanes' 250, 10 px a ms."""
    panel = Timeline(Store(), theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(278, 114)
    return panel


def scene(trace: Trace, step: int | None = None, *, token: int | None = None) -> Scene:
    step = trace.n_steps - 1 if step is None else step
    return Scene(trace.at(step), Selection(1, step, token=token), Draft(), Session())


def painted(panel: Timeline, width: int, height: int) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(panel.theme.color("panel"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    panel.draw(painter, QRectF(14, 0, width - 28, height - 12))
    painter.end()
    return image


def in_store(trace: Trace) -> Store:
    store = Store()
    store.open_session(Session({1: Run(1, "Hello you", trace)}, 1))
    return store


def click(qtbot: QtBot, canvas: QWidget, x: int, y: int) -> None:
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(x, y))


def test_the_title_row_says_the_five_figures_and_how_it_ended(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    # TTFT 1 + 10 + 2; 2 tokens in 10 ms; 2 tokens in 5 + 7 ms; between 5 and 7: 6, and 6.9.
    assert panel.subtitle() == (
        "TTFT 13.0 ms   prefill 200 tok/s   decode 167 tok/s   p50 6.0 ms   p95 6.9 ms"
    )
    assert panel.figure() == "25.0 ms · max tokens"  # the wait of 50 ms is not in it


def test_what_is_not_known_yet_is_a_dash(panel: Timeline) -> None:
    panel.show(scene(Trace(events()[:3])))
    assert panel.subtitle() == "TTFT –   prefill 200 tok/s   decode –   p50 –   p95 –"
    assert panel.figure() == "11.0 ms"


def test_a_run_that_failed_says_so(panel: Timeline) -> None:
    failed = RunFailed("internal", "It broke.", "", START + 80 * MS)
    panel.show(scene(Trace([*events()[:8], failed])))
    assert panel.figure() == "25.0 ms · broke off"


def test_before_a_run_the_panel_says_what_to_do(panel: Timeline) -> None:
    assert panel.empty() is not None
    assert (panel.subtitle(), panel.figure()) == ("", "")


def test_a_scrubbed_moment_shows_nothing_that_came_later(panel: Timeline) -> None:
    trace = Trace(events())
    panel.show(scene(trace, 1))
    cut = painted(panel, 278, 114)
    panel.show(scene(Trace(events()[:6])))
    assert painted(panel, 278, 114) == cut
    assert panel.figure() == "18.0 ms"


def test_the_draw_that_arrives_changes_the_picture(panel: Timeline) -> None:
    trace = Trace(events()[:7])
    panel.show(scene(trace))
    before = panel.key(panel.scene)
    trace.append(events()[7])
    assert panel.key(scene(trace)) != before


@pytest.mark.parametrize(
    ("x", "token"),
    [(60, 2), (130, 2), (160, 3), (190, 3), (230, 4)],  # prefill, its draw, then pass and draw
)
def test_a_click_selects_the_token_that_the_step_drew_and_moves_no_time(
    qtbot: QtBot, x: int, token: int
) -> None:
    store = in_store(Trace(events()))
    panel = Timeline(store, theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(278, 114)
    panel.show(store.scene)
    click(qtbot, panel.canvas, x, 30)
    assert (store.selection.token, store.selection.step, store.selection.live) == (token, 2, True)


def test_a_step_that_has_drawn_nothing_yet_means_the_token_it_reads(qtbot: QtBot) -> None:
    store = in_store(Trace(events()[:7]))
    panel = Timeline(store, theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(278, 114)
    panel.show(store.scene)
    click(qtbot, panel.canvas, 255, 30)
    assert store.selection.token == 3


def test_the_mouse_points_at_the_token_for_all_panels(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    panel.move(QPointF(160, 30))
    assert panel.store.hover == 3
    panel.leave()
    assert panel.store.hover is None


def test_the_wheel_zooms_about_the_mouse_and_a_double_click_fits(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    at = QPointF(160, 30)  # in the pass of step 1, 14.6 ms from the start
    for _ in range(8):
        assert panel.wheel(at, 1.0, Qt.KeyboardModifier.NoModifier)
    assert panel._token_at(at) == 3
    assert panel._token_at(QPointF(80, 30)) == 3  # 6 times as wide, it reaches further
    panel.double(at)
    assert panel._token_at(QPointF(80, 30)) == 2


def test_a_drag_moves_a_zoomed_view_and_selects_nothing(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    panel.wheel(QPointF(14, 30), 4.0, Qt.KeyboardModifier.NoModifier)  # to 10.24 ms from 0
    panel.press(QPointF(200, 30))
    panel.drag(QPointF(100, 30))
    panel.release(QPointF(100, 30))
    assert panel._zoom.seen(25 * MS) == (
        pytest.approx(4.1e6, abs=1e5),
        pytest.approx(14.3e6, abs=1e5),
    )
    assert panel.store.selection.token is None


def test_keys_zoom_fit_and_change_the_clock(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    none = Qt.KeyboardModifier.NoModifier
    assert panel.key_pressed(Qt.Key.Key_Plus, none)
    start, end = panel._zoom.seen(25 * MS)
    assert end - start == pytest.approx(16e6)  # 25 ms / 1.25 / 1.25
    assert panel.key_pressed(Qt.Key.Key_Minus, none)
    assert panel._zoom.seen(25 * MS) == (0, 25 * MS)
    assert panel.key_pressed(Qt.Key.Key_W, none)
    assert panel.options() == {"clock": "wall"}
    assert not panel.key_pressed(Qt.Key.Key_A, none)


def test_another_run_is_shown_whole(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    panel.wheel(QPointF(14, 30), 4.0, Qt.KeyboardModifier.NoModifier)
    panel.show(scene(Trace(events()[:6])))
    assert panel._zoom.seen(18 * MS) == (0, 18 * MS)


def test_on_the_wall_clock_the_wait_takes_its_room_but_no_figure(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    before = panel.subtitle(), panel.figure()
    panel.actions()[0].trigger()
    assert panel.clock == "wall"
    assert panel._token_at(QPointF(150, 30)) is None  # 41 of 75 ms: nobody worked
    assert (panel.subtitle(), panel.figure()) == before


def test_a_clock_that_nobody_knows_is_model_time(panel: Timeline) -> None:
    panel.take_options({"clock": "sundial"})
    assert panel.clock == "own"
    panel.take_options({"clock": "wall"})
    assert (panel.clock, panel.actions()[0].isChecked()) == ("wall", True)


def test_the_hint_is_of_the_step_under_the_mouse_or_of_the_run(panel: Timeline) -> None:
    trace = Trace(events())
    panel.show(scene(trace))
    assert panel.hint(QPointF(60, 30)) == hint_of_step(trace.at(2), 0)
    assert panel.hint(QPointF(230, 30)) == hint_of_step(trace.at(2), 2)
    assert panel.hint(QPointF(100, 100)) == hint_of_run(trace.at(2))  # the axis


def test_a_wait_says_how_long_it_was(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    y = panel._plan(panel.area)[1].rows.waits.center().y()
    assert panel.hint(QPointF(194, y)).startswith("Here the run waited 50.0 ms ●")  # 14 + 180


@pytest.mark.parametrize("name", ["dark", "light"])
def test_every_moment_of_a_real_run_is_painted_at_every_size(
    qtbot: QtBot, recorded: Trace, name: theme.Name
) -> None:
    for scale, width, height in ((1.0, 1424, 114), (0.8, 280, 84), (1.6, 1200, 800)):
        panel = Timeline(Store(), theme.load(name, scale))
        qtbot.addWidget(panel.canvas)
        for step in range(recorded.n_steps):
            panel.show(scene(recorded, step))
            image = painted(panel, width, height)
            pixels = np.frombuffer(image.constBits(), np.uint32)  # (height x width,)
            select = panel.theme.color("select").rgb()
            assert select in pixels  # not blank, and the step's token is framed


def test_a_selected_prompt_token_is_named_above_the_prefill_that_read_it(panel: Timeline) -> None:
    panel.show(scene(Trace(events()), token=1))
    labels = panel._plan(panel.area)[1].labels
    assert next(label.words for label in labels if label.index == 0) == "·you"


def test_a_run_of_one_token_has_a_first_token_and_no_more(panel: Timeline) -> None:
    tokenized = replace(TOKENIZED, tokens=(Token(15496, b"Hello"),))
    trace = Trace([STARTED, tokenized, forward(0, 1, 1, 11), sampled(1, b"!", 11, 13)])
    panel.show(scene(trace))
    assert panel.subtitle() == "TTFT 13.0 ms   prefill 100 tok/s   decode –   p50 –   p95 –"
    sheet = panel._plan(panel.area)[0]
    assert sheet.inside(0) == (("prefill 1 token", "prefill"), ("draw 2.0 ms",))


LIMITS = Limits("cpu", "float32", 1, 20e9, 90e9, "onednn", 3_000.0, None)
ORDERS = {A_STEP: Orders(1, 100, 60), Shape("prefill", 0, 2): Orders(1, 110, 70)}
KNOWN = Known(Place.of(STARTED), "measured", (LIMITS,), ORDERS)
STATES = {
    "measured": KNOWN,
    "busy": replace(KNOWN, limits=(replace(LIMITS, quiet=False),)),
    "a card": replace(KNOWN, limits=(replace(LIMITS, device="cuda", launch_ns=1_500.0),)),
    "unmeasured": Known(KNOWN.place, "unmeasured"),
    "measuring": Known(KNOWN.place, "measuring"),
    "failed": Known(KNOWN.place, "failed", reason="It could not be measured: close programs."),
    "elsewhere": replace(KNOWN, place=replace(KNOWN.place, machine="Another processor")),
    "uncounted": replace(KNOWN, orders={}),
}


@pytest.fixture
def wide(qtbot: QtBot) -> Timeline:
    """As wide as in a window of 1,440 px."""
    panel = Timeline(in_store(Trace(events())), theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(1422, 114)
    return panel


def shown(panel: Timeline, known: Known | None, **selected: int) -> None:
    panel.store.know(known)
    if selected:
        panel.store.select(**selected)
    panel.show(panel.store.scene)


def test_before_anything_is_known_of_the_limits_the_lanes_have_all_the_room(
    wide: Timeline,
) -> None:
    shown(wide, None)
    assert wide._plan(wide.area)[1].rows.lane.width() == 1394
    shown(wide, KNOWN)
    assert wide._plan(wide.area)[1].rows.lane.width() == 1394 - 328 - 33


def test_a_narrow_or_low_panel_keeps_its_lanes_alone(panel: Timeline) -> None:
    panel.show(scene(Trace(events())))
    before = painted(panel, 278, 114)
    panel.show(replace(scene(Trace(events())), limits=KNOWN))
    assert painted(panel, 278, 114) == before


def test_the_selected_pass_is_the_one_that_is_judged(wide: Timeline) -> None:
    shown(wide, KNOWN, token=0)
    assert wide.spoken().endswith("held by no floor dispatch explains 3 %")  # 110 x 3 us of 10 ms
    shown(wide, KNOWN, token=3)
    assert wide.spoken().endswith("held by no floor dispatch explains 8 %")  # 100 x 3 us of 4 ms


def test_limits_that_arrive_change_the_picture(wide: Timeline) -> None:
    shown(wide, STATES["unmeasured"])
    before = wide.key(wide.scene)
    wide.store.know(KNOWN)
    assert wide.key(wide.store.scene) != before


def test_the_button_asks_for_the_limits(qtbot: QtBot, wide: Timeline) -> None:
    shown(wide, STATES["unmeasured"])
    button = wide._floors(wide.area)[1].button  # type: ignore[index]
    at = button.center().toPoint()
    assert wide.hint(QPointF(at)).startswith("Measures how fast")
    with qtbot.waitSignal(wide.store.limits_asked):
        click(qtbot, wide.canvas, at.x(), at.y())
    with qtbot.assertNotEmitted(wide.store.limits_asked):  # pressed elsewhere, let go over it
        qtbot.mousePress(wide.canvas, Qt.MouseButton.LeftButton, pos=QPoint(600, 30))
        qtbot.mouseRelease(wide.canvas, Qt.MouseButton.LeftButton, pos=at)


def test_so_do_a_key_and_the_panels_menu(qtbot: QtBot, wide: Timeline) -> None:
    with qtbot.waitSignal(wide.store.limits_asked):
        wide.key_pressed(Qt.Key.Key_M, Qt.KeyboardModifier.NoModifier)
    with qtbot.waitSignal(wide.store.limits_asked):
        wide.actions()[2].trigger()


def test_the_mouse_over_the_floors_moves_and_selects_nothing(qtbot: QtBot, wide: Timeline) -> None:
    shown(wide, KNOWN)
    step = wide.store.selection
    click(qtbot, wide.canvas, 1300, 60)
    assert wide.store.selection == step
    assert not wide.wheel(QPointF(1300, 60), 3.0, Qt.KeyboardModifier.NoModifier)
    assert wide._zoom.seen(25 * MS) == (0, 25 * MS)
    assert wide.hint(QPointF(1300, 60)) == limits_words.hint(wide.scene)


@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("state", STATES)
def test_whatever_is_known_is_painted_at_every_size(
    qtbot: QtBot, name: theme.Name, state: str
) -> None:
    for scale, width, height in (
        (1.0, 1422, 114),
        (1.0, 986, 96),
        (1.6, 1422, 170),
        (1.0, 900, 30),
    ):
        panel = Timeline(Store(), theme.load(name, scale))
        qtbot.addWidget(panel.canvas)
        panel.show(replace(scene(Trace(events())), limits=STATES[state]))
        place = panel._parts(QRectF(14, 0, width - 28, height - 12))[1]
        image = painted(panel, width, height)
        if place.isEmpty():
            assert height == 30
            continue
        ground = panel.theme.color("panel").rgb()
        inside = image.copy(place.toAlignedRect())
        assert {inside.pixel(x, y) for x in range(0, 200, 2) for y in range(0, 60)} != {ground}
        margin = range(int(place.right()) + 2, width)
        assert {image.pixel(x, y) for x in margin for y in range(height)} == {ground}
