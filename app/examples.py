"""The example prompts behind one small button."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app import texts
from engine import resources


class ExamplesButton(QToolButton):
    """Opens a menu of prompts worth running; each says what to look at."""

    chosen = Signal(str)  # the prompt

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(texts.text("controls.examples"))
        self.setToolTip(texts.text("controls.examples_tip"))
        self.setIcon(QIcon(str(resources.path("icons", "down.svg"))))
        self.setIconSize(QSize(10, 10))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # the arrow behind the word
        self.setProperty("flat", True)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(texts.text("controls.examples"), self)
        menu.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        menu.setToolTipsVisible(True)
        for example in texts.examples():
            entry = menu.addAction(example.title.replace("&", "&&"))
            entry.setToolTip(texts.in_lines(example.look))
            entry.triggered.connect(partial(self.chosen.emit, example.prompt))
        self.setMenu(menu)
