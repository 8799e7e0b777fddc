"""Entries of a menu of which exactly one holds."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject
from PySide6.QtGui import QActionGroup


class OneOf(QActionGroup):
    """A choice among named values; the first holds until another is taken."""

    def __init__(self, words: Mapping[str, str], parent: QObject) -> None:
        super().__init__(parent)
        for value, entry in words.items():
            action = self.addAction(entry)
            action.setCheckable(True)
            action.setData(value)
        self.actions()[0].setChecked(True)

    @property
    def value(self) -> str:
        """What holds."""
        action = self.checkedAction()
        assert action is not None
        return str(action.data())

    def take(self, value: str) -> None:
        """Let another hold; the first where there is none of that name."""
        actions = {str(action.data()): action for action in self.actions()}
        actions.get(value, self.actions()[0]).setChecked(True)
