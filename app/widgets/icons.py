"""The pictures on buttons, from resources/icons, in the colours of a theme."""

from __future__ import annotations

import math
from functools import cache

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app.theme import Theme
from engine import resources

DRAWN = "#7A8695"  # the colour in the files, which each theme replaces by its own
SIDE = 14  # pixels, as designed


@cache
def icon(name: str, theme: Theme) -> QIcon:
    """The icon of resources/icons/<name>.svg: muted, brighter under the mouse, faint when off."""
    looks = {
        QIcon.Mode.Normal: theme.color("muted"),
        QIcon.Mode.Active: theme.color("text"),
        QIcon.Mode.Disabled: theme.color("cut", 150),
    }
    made = QIcon()
    for mode, color in looks.items():
        for density in _densities():
            made.addPixmap(_pixmap(name, color, theme.pixels(SIDE), density), mode)
    return made


def _pixmap(name: str, color: QColor, side: int, density: int) -> QPixmap:
    drawing = _drawing(name).replace(DRAWN, color.name())
    pixmap = QPixmap(side * density, side * density)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setOpacity(color.alphaF())
    QSvgRenderer(QByteArray(drawing.encode())).render(painter)
    painter.end()
    pixmap.setDevicePixelRatio(density)
    return pixmap


def _densities() -> set[int]:
    """Device pixels a pixel, on the screens that there are."""
    return {math.ceil(screen.devicePixelRatio()) for screen in QGuiApplication.screens()}


@cache
def _drawing(name: str) -> str:
    return resources.path("icons", f"{name}.svg").read_text(encoding="utf-8")
