"""Steps on a track: the prefill first, then each decode step its equal part."""

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QAccessible, QColor
from pytestqt.qtbot import QtBot

from app import theme
from app.widgets.scrub_bar import ScrubBar, Steps

ENDED = Steps(n_prompt=6, n_steps=22, step=5, room=22)


@pytest.fixture
def bar(qtbot: QtBot) -> ScrubBar:
    made = ScrubBar(theme.load("dark"))
    qtbot.addWidget(made)
    made.resize(614, 52)  # a line of 600 pixels between the knob's two radii
    return made


def test_the_prefill_takes_the_prompt_s_part_of_all_tokens() -> None:
    assert ENDED.prefill_share == pytest.approx(6 / 28)
    assert ENDED.share(0) == pytest.approx(6 / 28)
    assert ENDED.share(21) == 1.0


def test_a_long_prompt_leaves_room_for_the_steps() -> None:
    assert Steps(n_prompt=1000, n_steps=5, room=5).prefill_share == 0.34
    assert Steps(n_prompt=1, n_steps=500, room=500).prefill_share == 0.08


def test_each_step_is_found_where_it_is_drawn() -> None:
    assert [ENDED.at(ENDED.share(k)) for k in range(22)] == list(range(22))


def test_what_is_not_recorded_yet_cannot_be_gone_to() -> None:
    running = Steps(n_prompt=6, n_steps=3, step=2, room=24)
    assert running.at(1.0) == 2
    assert running.at(0.0) == 0  # inside the prefill


def test_a_single_step_fills_the_track() -> None:
    single = Steps(n_prompt=6, n_steps=1, room=1)
    assert (single.share(0), single.at(0.3)) == (1.0, 0)


def test_the_knob_stands_where_the_step_ends(bar: ScrubBar) -> None:
    bar.show_steps(ENDED)
    assert bar.x_of(0) == pytest.approx(7 + 600 * 6 / 28)
    assert bar.x_of(21) == pytest.approx(607)


def test_prefill_and_decode_have_their_colours(bar: ScrubBar) -> None:
    look = theme.load("dark")
    bar.show_steps(ENDED)
    image = bar.grab().toImage()
    between = round((bar.x_of(1) + bar.x_of(2)) / 2)
    assert image.pixelColor(between, 26) == look.color("decode")
    assert image.pixelColor(round(bar.x_of(5)), 26) == look.color("text")
    prefill = image.pixelColor(60, 26)
    assert prefill.red() > 150 > prefill.blue()  # amber, a little transparent


def test_a_screen_reader_hears_the_step(bar: ScrubBar) -> None:
    bar.show_steps(ENDED)
    heard = QAccessible.queryAccessibleInterface(bar)
    assert heard.text(QAccessible.Text.Name) == "Step"
    assert heard.text(QAccessible.Text.Description) == "step 6 of 22"
    assert heard.valueInterface().currentValue() == 5


@pytest.mark.parametrize("width", [170, 600, 1200])
@pytest.mark.parametrize("step", [0, 3, 21])
def test_the_words_stay_inside(bar: ScrubBar, width: int, step: int) -> None:
    bar.show_steps(Steps(n_prompt=6, n_steps=22, step=step, room=22))
    bar.resize(width, 52)
    image = bar.grab().toImage()
    ground = QColor(image.pixelColor(0, 0))
    bottom = [image.pixelColor(QPoint(x, y)) for x in (0, width - 1) for y in range(36, 52)]
    assert all(color == ground for color in bottom)
