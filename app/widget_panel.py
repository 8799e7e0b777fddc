"""A panel that is made of widgets, where others are painted."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.panels.base import PADDING, Docked
from app.selection import Scene
from app.store import Store
from app.theme import Theme


class WidgetPanel(Docked):
    """To the window a panel like any other; it shows itself."""

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        self.canvas = Body()
        self.canvas.setObjectName(f"canvas.{self.id}")

    def show(self, scene: Scene) -> None:
        """Take a scene."""
        raise NotImplementedError

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        raise NotImplementedError


def column(canvas: QWidget) -> QVBoxLayout:
    """A column of widgets with the padding that panels have."""
    rows = QVBoxLayout(canvas)
    rows.setContentsMargins(*(round(side) for side in PADDING))
    rows.setSpacing(0)
    return rows


class Body(QWidget):
    """What a dock holds; says when its size is another."""

    resized = Signal()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()
