"""A box to choose from: the owner says what is in force, and words give way."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.widgets.picker import Item, Picker

ITEMS = (Item("a", "A long name", "A", tip="The first."), Item("b", "Another long name"))


@pytest.fixture
def picker(qtbot: QtBot) -> Picker:
    made = Picker("Letter", "Which letter.")
    qtbot.addWidget(made)
    made.offer(ITEMS, "a")
    return made


def test_the_owner_says_what_is_in_force(picker: Picker, qtbot: QtBot) -> None:
    with qtbot.waitSignal(picker.picked) as said:
        picker.activated.emit(1)
    assert said.args == ["b"]
    assert picker.shown == "A long name"
    picker.show_current("b")
    assert picker.shown == "Another long name"


def test_choosing_what_is_in_force_asks_for_nothing(picker: Picker, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(picker.picked):
        picker.activated.emit(0)


def test_an_unknown_id_shows_nothing(picker: Picker) -> None:
    picker.show_current("?")
    assert (picker.shown, picker.currentIndex()) == ("", -1)


def test_a_narrow_box_uses_short_words_where_there_are_any(picker: Picker) -> None:
    wide = picker.sizeHint().width()
    picker.make_narrow(True, least=40)
    assert picker.shown == "A"
    assert picker.minimumSizeHint().width() < wide
    picker.show_current("b")
    assert picker.shown == "Another long name"


def test_the_tool_tip_has_the_words_whole(picker: Picker) -> None:
    assert picker.toolTip() == "A long name\nThe first.\nWhich letter."


def test_a_wheel_that_passes_over_chooses_nothing(picker: Picker, qtbot: QtBot) -> None:
    none = Qt.KeyboardModifier.NoModifier
    turned = QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        QPoint(),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        none,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    with qtbot.assertNotEmitted(picker.picked):
        QApplication.sendEvent(picker, turned)
    assert picker.shown == "A long name"
