"""Entries of a menu of which exactly one holds."""

from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.widgets.one_of import OneOf


def test_the_first_holds_until_another_is_taken(qtbot: QtBot) -> None:
    owner = QObject()
    choice = OneOf({"a": "First", "b": "Second"}, owner)
    assert choice.value == "a"
    choice.actions()[1].trigger()
    assert choice.value == "b"
    assert [action.isChecked() for action in choice.actions()] == [False, True]


def test_a_value_taken_by_name_says_nothing_and_an_unknown_one_is_the_first(qtbot: QtBot) -> None:
    owner = QObject()
    choice = OneOf({"a": "First", "b": "Second"}, owner)
    with qtbot.assertNotEmitted(choice.triggered):
        choice.take("b")
    assert choice.value == "b"
    choice.take("z")
    assert choice.value == "a"
