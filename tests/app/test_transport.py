"""The tool bar: what its buttons ask for and when, and what gives way where there is no room."""

import itertools
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from app import choices, theme
from app.store import Store
from app.transport import Transport
from app.worker import Loaded, Wanted
from engine import devices, models
from engine.events import Model
from engine.trace import Trace

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def store(qtbot: QtBot) -> Store:
    """A store with a model that is ready and a prompt that can run."""
    made = Store()
    made.edit({"prompt": "x", "model_state": "ready", "model_title": "Decodescope 6x8"})
    return made


@pytest.fixture
def bar(qtbot: QtBot, store: Store) -> Transport:
    return built(qtbot, store, theme.load("dark"))


def built(qtbot: QtBot, store: Store, look: theme.Theme) -> Transport:
    made = Transport(store, look)
    qtbot.addWidget(made)
    made.setFont(look.font("ui"))
    made.setStyleSheet(look.style_sheet())
    made.set_menu(QMenu(made))
    made.set_engine(Loaded(Wanted(), model(), "cpu", "float32", ()))
    store.changed.connect(lambda: made.show(store.scene))
    made.show(store.scene)
    made.resize(1440, 52)
    made.show()
    return made


def model() -> Model:
    known = next(m for m in models.known() if m.embedded)
    return Model(known.name, known.title, known.dimensions, verified=True)


def run(store: Store, recorded: Trace, n_events: int | None = None) -> None:
    """Let the store take in the recorded run, or its first events: R T F S F S ..."""
    store.run()
    id = store.session.open_id
    assert id is not None
    store.take([(id, event) for event in recorded.events[:n_events]])


# Generate, step, stop.


def test_nothing_can_start_before_the_model_is_ready(qtbot: QtBot) -> None:
    store = Store()
    bar = built(qtbot, store, theme.load("dark"))
    store.edit({"prompt": "x", "model_state": "loading"})
    assert not bar.generate.isEnabled()
    assert bar.generate.toolTip() == "The model is not loaded yet."
    store.edit({"model_state": "failed"})
    assert not bar.generate.isEnabled()
    assert "Ctrl+M" in bar.generate.toolTip()
    store.edit({"model_state": "ready"})
    assert bar.generate.isEnabled()
    assert bar.step.isEnabled()


def test_a_prompt_that_cannot_run_is_named_on_the_button(bar: Transport, store: Store) -> None:
    store.edit({"problem": "602 of 512 tokens: shorten the prompt by 90."})
    assert not bar.generate.isEnabled()
    assert bar.generate.toolTip() == "602 of 512 tokens: shorten the prompt by 90."


def test_generate_turns_into_stop_while_a_run_goes(
    bar: Transport, store: Store, qtbot: QtBot, recorded: Trace
) -> None:
    assert words(bar) == ("Generate", "Step")
    with qtbot.waitSignal(bar.generate_asked):
        qtbot.mouseClick(bar.generate, LEFT)
    widths = bar.generate.width(), bar.step.width()
    run(store, recorded, 8)
    assert words(bar) == ("Stop", "Pause")
    assert (bar.generate.width(), bar.step.width()) == widths
    with qtbot.waitSignal(bar.stop_asked):
        qtbot.mouseClick(bar.generate, LEFT)


def test_a_paused_run_goes_on_steps_or_stops(
    bar: Transport, store: Store, qtbot: QtBot, recorded: Trace
) -> None:
    run(store, recorded, 8)
    bar.set_paused(True)
    assert words(bar) == ("Go on", "Step", "Stop")
    with qtbot.waitSignal(bar.generate_asked):
        qtbot.mouseClick(bar.generate, LEFT)
    with qtbot.waitSignal(bar.step_asked):
        qtbot.mouseClick(bar.step, LEFT)
    with qtbot.waitSignal(bar.stop_asked):
        qtbot.mouseClick(bar.stop, LEFT)
    bar.set_paused(False)
    assert words(bar) == ("Stop", "Pause")


def words(bar: Transport) -> tuple[str, ...]:
    """What the buttons on show say."""
    return tuple(b.text() for b in (bar.generate, bar.step, bar.stop) if b.isVisible())


def test_step_can_be_asked_for_at_rest_and_during_a_run(
    bar: Transport, store: Store, qtbot: QtBot, recorded: Trace
) -> None:
    with qtbot.waitSignal(bar.step_asked):
        qtbot.mouseClick(bar.step, LEFT)
    run(store, recorded, 8)
    with qtbot.waitSignal(bar.step_asked):
        qtbot.mouseClick(bar.step, LEFT)


# Pace, model, device.


def test_a_chosen_pace_is_told_and_shown(bar: Transport, qtbot: QtBot) -> None:
    bar.set_pace("20")
    assert bar.pace.shown == "20 tok/s"
    with qtbot.waitSignal(bar.pace_changed) as said:
        bar.pace.activated.emit(3)
    assert said.args == ["full"]
    assert bar.pace.shown == "full speed"


def test_the_models_on_this_disk_are_offered_and_a_folder_of_one_s_own(
    bar: Transport, store: Store, qtbot: QtBot
) -> None:
    assert bar.model.shown == "Decodescope 6x8 · 18 M"  # 17.7 million parameters
    last = bar.model.count() - 1
    assert bar.model.itemText(last) == "Open a model folder…"
    with qtbot.waitSignal(bar.folder_asked), qtbot.assertNotEmitted(bar.model_asked):
        bar.model.activated.emit(last)
    assert bar.model.shown == "Decodescope 6x8 · 18 M"


def test_a_known_model_is_offered_once_its_folder_is_there(
    store: Store, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gpt2").mkdir()
    monkeypatch.setenv("DECODESCOPE_MODELS", str(tmp_path))
    bar = built(qtbot, store, theme.load("dark"))
    words = [bar.model.itemText(i) for i in range(bar.model.count())]
    assert "GPT-2 124M" in words  # its title says how large it is
    with qtbot.waitSignal(bar.model_asked) as said:
        bar.model.activated.emit(words.index("GPT-2 124M"))
    assert said.args == ["gpt2"]
    assert bar.model.shown == "Decodescope 6x8 · 18 M"  # until the window says otherwise
    store.edit({"model": "gpt2", "model_state": "loading"})
    assert (bar.model.shown, bar.model.isEnabled()) == ("GPT-2 124M", False)


def test_a_folder_of_one_s_own_is_shown_by_its_title(bar: Transport, store: Store) -> None:
    store.edit({"model": "/somewhere/mine", "model_title": "mine"})
    assert bar.model.shown == "mine"
    assert "/somewhere/mine" in bar.model.toolTip()


def test_the_device_that_the_model_is_on_is_offered_from_then_on(
    bar: Transport, qtbot: QtBot
) -> None:
    assert bar.device.shown == "CPU fp32"
    bar.set_engine(Loaded(Wanted(), model(), "cuda", "float16", ()))
    assert bar.device.shown == "CUDA fp16"
    words = [bar.device.itemText(i) for i in range(bar.device.count())]
    cpu = ["CPU fp32", "CPU bf16", "CPU fp16", "CPU int8"]
    assert words == ["Automatic", *cpu, "CUDA fp16", "CUDA fp32", "CUDA bf16"]
    with qtbot.waitSignal(bar.device_asked) as said:
        bar.device.activated.emit(2)
    assert said.args == ["cpu", "bfloat16"]


def test_what_was_noted_when_the_model_was_loaded_stays_with_its_format(bar: Transport) -> None:
    said = "int8 weights: on 64 tokens of a fixed text KL 0.0027 nats from float32."
    bar.set_engine(Loaded(Wanted(), model(), "cpu", "int8", (said,)))
    assert bar.device.shown == "CPU int8"
    assert said in bar.device.toolTip().replace("\n", " ")
    bar.set_engine(Loaded(Wanted(), model(), "cpu", "float32", ()))
    assert "KL" not in bar.device.toolTip()


def test_the_formats_offered_are_those_that_the_engine_takes() -> None:
    assert choices.DTYPES_ON == devices.DTYPES_ON


def test_model_and_device_rest_during_a_run(bar: Transport, store: Store, recorded: Trace) -> None:
    run(store, recorded, 8)
    assert (bar.model.isEnabled(), bar.device.isEnabled()) == (False, False)
    assert bar.pace.isEnabled()


# Room.


@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("scale", [0.8, 1.0, 1.4, 1.6])
@pytest.mark.parametrize("width", [1024, 1100, 1440])
def test_nothing_overlaps_and_nothing_sticks_out(
    qtbot: QtBot, store: Store, recorded: Trace, name: theme.Name, scale: float, width: int
) -> None:
    look = theme.load(name, scale)
    bar = built(qtbot, store, look)
    run(store, recorded)
    bar.resize(width, look.pixels(52))
    parts = (bar.generate, bar.step, bar.stop, bar.scrubber, bar.pace, bar.model, bar.device)
    places = [part.geometry() for part in (*parts, bar.menu) if part.isVisibleTo(bar)]
    assert [a.right() < b.left() for a, b in itertools.pairwise(places)].count(False) == 0
    assert places[-1].right() < width
    assert bar.scrubber.bar.width() >= look.pixels(120)
    image = bar.grab().toImage()
    assert (image.width(), image.height()) == (width, look.pixels(52))


def test_keys_go_before_words_and_words_before_buttons(bar: Transport, qtbot: QtBot) -> None:
    def state(width: int) -> tuple[bool, str, bool, bool]:
        bar.resize(width, 52)
        back = bar.scrubber.buttons["back"]
        roomy = bar.generate.width() > 120
        return roomy, bar.pace.shown, back.isVisible(), bar.device.isVisible()

    assert state(1440) == (True, "full speed", True, True)
    assert state(1060) == (False, "full speed", True, True)
    assert state(980) == (False, "full", True, True)
    assert state(860) == (False, "full", False, True)
    assert state(740) == (False, "full", False, False)
    assert state(1440) == (True, "full speed", True, True)


def test_every_control_has_a_name_and_a_tool_tip(bar: Transport) -> None:
    buttons = [bar.generate, bar.step, bar.stop, bar.menu, bar.scrubber.live]
    buttons += bar.scrubber.buttons.values()
    for part in (*buttons, bar.pace, bar.model, bar.device, bar.scrubber.bar):
        assert part.toolTip()
        assert part.accessibleName() or part.text()
