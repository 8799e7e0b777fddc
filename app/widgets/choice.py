"""One of several names, as entries of a menu of which one is checked."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup


class Choice(QActionGroup):
    """Holds the entries; says what was chosen by hand."""

    chosen = Signal(str)

    def __init__(self, words: Mapping[str, str], checked: str, parent: QObject) -> None:
        """Make an entry for each name, saying its words."""
        super().__init__(parent)
        self._entries: dict[str, QAction] = {}
        for name, said in words.items():
            entry = self._entries[name] = self.addAction(said)
            entry.setCheckable(True)
            entry.setData(name)
        self.check(checked)
        self.triggered.connect(self._tell)

    def check(self, name: str) -> None:
        """Show that this name is in force."""
        self._entries[name].setChecked(True)

    @Slot(QAction)
    def _tell(self, entry: QAction) -> None:
        self.chosen.emit(entry.data())
