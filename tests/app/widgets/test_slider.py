"""A number by sliding, typing, keys and wheel: exact, within its limits, told once."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QSlider
from pytestqt.qtbot import QtBot

from app.widgets.slider import Slider

WIDTH = 300


@pytest.fixture
def temperature(qtbot: QtBot) -> Slider:
    made = Slider(
        "Temperature",
        limits=(0, 100),
        track=(0, 2),
        default=0.8,
        decimals=2,
        off=(0, "greedy"),
        tip="Divides the logits.",
    )
    return shown(made, qtbot)


@pytest.fixture
def top_k(qtbot: QtBot) -> Slider:
    made = Slider(
        "Top-k",
        limits=(0, 50257),
        track=(0, 1000),
        mapping="log",
        default=40,
        off=(0, "off"),
    )
    return shown(made, qtbot)


@pytest.fixture
def seed(qtbot: QtBot) -> Slider:
    return shown(Slider("Seed", limits=(0, 2**64 - 1), track=(0, 100), default=1), qtbot)


def shown(made: Slider, qtbot: QtBot) -> Slider:
    qtbot.addWidget(made)
    made.resize(WIDTH, 24)
    with qtbot.waitExposed(made):
        made.show()
    return made


def box(slider: Slider) -> QLineEdit:
    return slider.findChild(QLineEdit)  # type: ignore[return-value]


def track(slider: Slider) -> QSlider:
    return slider.findChild(QSlider)  # type: ignore[return-value]


def type_in(slider: Slider, words: str, qtbot: QtBot) -> None:
    box(slider).selectAll()
    qtbot.keyClicks(box(slider), words)
    qtbot.keyClick(box(slider), Qt.Key.Key_Return)


def press(slider: Slider, share: float, qtbot: QtBot) -> None:
    line = track(slider)
    x = 7 + round(share * (line.width() - 14))  # the knob's middle stays inside
    qtbot.mousePress(line, Qt.MouseButton.LeftButton, pos=QPoint(x, line.height() // 2))


def test_it_starts_at_its_default_and_says_nothing(temperature: Slider, qtbot: QtBot) -> None:
    assert (temperature.value, box(temperature).text()) == (0.8, "0.80")
    with qtbot.assertNotEmitted(temperature.changed):
        temperature.set_value(1.5)
    assert (temperature.value, box(temperature).text()) == (1.5, "1.50")


def test_an_exact_number_can_be_typed(temperature: Slider, qtbot: QtBot) -> None:
    with qtbot.waitSignal(temperature.changed) as told:
        type_in(temperature, "0.725", qtbot)
    assert (told.args, box(temperature).text()) == ([0.725], "0.725")


def test_a_decimal_comma_is_understood(temperature: Slider, qtbot: QtBot) -> None:
    type_in(temperature, "1,5", qtbot)
    assert temperature.value == 1.5


@pytest.mark.parametrize("words", ["hot", "", "nan", "inf", "1.2.3"])
def test_what_is_no_number_goes_back_to_what_was(
    temperature: Slider, qtbot: QtBot, words: str
) -> None:
    with qtbot.assertNotEmitted(temperature.changed):
        type_in(temperature, words, qtbot)
    assert (temperature.value, box(temperature).text()) == (0.8, "0.80")


def test_a_number_beyond_the_limits_becomes_the_limit(temperature: Slider, qtbot: QtBot) -> None:
    type_in(temperature, "-3", qtbot)
    assert (temperature.value, box(temperature).text()) == (0, "greedy")


def test_the_box_takes_more_than_the_track(temperature: Slider, qtbot: QtBot) -> None:
    type_in(temperature, "10", qtbot)
    assert (temperature.value, track(temperature).value()) == (10, 1000)  # of 1,000 places


def test_off_is_a_word_and_can_be_typed(top_k: Slider, qtbot: QtBot) -> None:
    type_in(top_k, "OFF", qtbot)
    assert (top_k.value, box(top_k).text()) == (0, "off")


def test_whole_numbers_stay_whole(top_k: Slider, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(top_k.changed):
        type_in(top_k, "2.5", qtbot)
    type_in(top_k, "1,000", qtbot)
    assert (top_k.value, type(top_k.value)) == (1000, int)


def test_a_seed_keeps_all_of_its_64_bits(seed: Slider, qtbot: QtBot) -> None:
    with qtbot.waitSignal(seed.changed) as told:
        type_in(seed, "18446744073709551615", qtbot)
    assert told.args == [2**64 - 1]
    assert box(seed).text() == "18446744073709551615"


def test_a_press_on_the_track_goes_there(temperature: Slider, qtbot: QtBot) -> None:
    press(temperature, 0.5, qtbot)
    assert temperature.value == pytest.approx(1.0, abs=0.02)  # a pixel is about 0.015
    press(temperature, 0.0, qtbot)
    assert temperature.value == 0
    press(temperature, 1.0, qtbot)
    assert temperature.value == 2


def test_dragging_tells_every_value_on_the_way(temperature: Slider, qtbot: QtBot) -> None:
    told: list[float] = []
    temperature.changed.connect(told.append)
    press(temperature, 0.5, qtbot)
    line = track(temperature)
    for x in (90, 5000):
        place = QPointF(x, 10)
        move = QMouseEvent(
            QEvent.Type.MouseMove,
            place,
            line.mapToGlobal(place),
            Qt.MouseButton.NoButton,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
        QApplication.sendEvent(line, move)
    assert len(told) == 3
    assert told[-1] == 2  # past the end is the end


def test_a_log_track_gives_small_numbers_room(top_k: Slider, qtbot: QtBot) -> None:
    press(top_k, 0.5, qtbot)
    assert 25 < top_k.value < 40  # the root of 1,001 less 1 is 30.6
    press(top_k, 1.0, qtbot)
    assert top_k.value == 1000


def test_arrows_on_the_track_step_by_a_hundredth(temperature: Slider, qtbot: QtBot) -> None:
    qtbot.keyClick(track(temperature), Qt.Key.Key_Right)
    assert temperature.value == pytest.approx(0.82)
    qtbot.keyClick(track(temperature), Qt.Key.Key_PageDown)
    assert temperature.value == pytest.approx(0.62)
    qtbot.keyClick(track(temperature), Qt.Key.Key_Home)
    assert temperature.value == 0
    qtbot.keyClick(track(temperature), Qt.Key.Key_End)
    assert temperature.value == 2


def test_an_arrow_always_moves_at_least_one(top_k: Slider, qtbot: QtBot) -> None:
    top_k.set_value(1)  # a hundredth of the log track here is less than one
    qtbot.keyClick(track(top_k), Qt.Key.Key_Right)
    assert top_k.value == 2
    qtbot.keyClick(track(top_k), Qt.Key.Key_Left)
    qtbot.keyClick(track(top_k), Qt.Key.Key_Left)
    assert top_k.value == 0


def test_arrows_in_the_box_take_the_finest_step(temperature: Slider, qtbot: QtBot) -> None:
    qtbot.keyClick(box(temperature), Qt.Key.Key_Up)
    assert temperature.value == 0.81
    qtbot.keyClick(box(temperature), Qt.Key.Key_PageDown)
    assert temperature.value == 0.71


def test_stepping_starts_from_what_was_typed(temperature: Slider, qtbot: QtBot) -> None:
    box(temperature).selectAll()
    qtbot.keyClicks(box(temperature), "1.5")
    qtbot.keyClick(box(temperature), Qt.Key.Key_Up)
    assert temperature.value == 1.51


def test_the_wheel_steps(temperature: Slider) -> None:
    for part, value in ((track(temperature), 0.82), (box(temperature), 0.83)):
        event = QWheelEvent(
            QPointF(5, 5),
            QPointF(part.mapToGlobal(QPoint(5, 5))),
            QPoint(),
            QPoint(0, 120),  # one notch up
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(part, event)
        assert temperature.value == pytest.approx(value)


def test_a_double_click_goes_back_to_the_default(temperature: Slider, qtbot: QtBot) -> None:
    temperature.set_value(1.7)
    qtbot.mouseDClick(track(temperature), Qt.MouseButton.LeftButton)
    assert temperature.value == 0.8


def test_a_screen_reader_hears_its_name_and_value(temperature: Slider) -> None:
    for part in (track(temperature), box(temperature)):
        spoken = QAccessible.queryAccessibleInterface(part)
        assert spoken.text(QAccessible.Text.Name) == "Temperature"
    spoken = QAccessible.queryAccessibleInterface(track(temperature))
    assert spoken.text(QAccessible.Text.Description) == "0.80"


def test_it_has_its_tool_tip_everywhere(temperature: Slider) -> None:
    assert temperature.toolTip() == "Divides the logits."
