"""One of several names in a menu."""

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.widgets.choice import Choice


def test_an_entry_taken_by_hand_is_said_and_the_others_are_unchecked(qtbot: QtBot) -> None:
    owner = QObject()
    choice = Choice({"a": "First", "b": "Second"}, "a", owner)
    with qtbot.waitSignal(choice.chosen) as said:
        choice.actions()[1].trigger()
    assert said.args == ["b"]
    assert [action.isChecked() for action in choice.actions()] == [False, True]


def test_a_check_from_elsewhere_is_not_said(qtbot: QtBot) -> None:
    owner = QObject()
    choice = Choice({"a": "First", "b": "Second"}, "a", owner)
    with qtbot.assertNotEmitted(choice.chosen):
        choice.check("b")
    assert [action.isChecked() for action in choice.actions()] == [False, True]
