"""Colours by role, fonts by kind, and the look of Qt's own widgets, all from the theme files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from string import Template
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from engine import resources

FontKind = Literal["ui", "strong", "mono"]
Name = Literal["dark", "light"]
Choice = Literal["dark", "light", "system"]

_PIXELS = re.compile(r"(\d+)fpx")  # a size in window.qss that follows the font scale


@dataclass(frozen=True)
class Theme:
    """One look: what a panel needs to paint, as a value."""

    name: Name
    scale: float  # of all fonts, 1.0 = as designed
    colormap: str  # the heat map's name, for captions
    roles: Mapping[str, str] = field(hash=False)  # role -> "#RRGGBB"
    heat: tuple[int, ...] = field(hash=False, repr=False)  # 256 colours, 0xAARRGGBB

    def color(self, role: str, alpha: int = 255) -> QColor:
        """The colour of a role; KeyError for a role that no theme has."""
        color = QColor(self.roles[role])
        color.setAlpha(alpha)
        return color

    def font(self, kind: FontKind, size: int = 12) -> QFont:
        """The font of a kind at `size` pixels times the scale."""
        return QFont(_font(kind, self.pixels(size)))

    def pixels(self, size: float) -> int:
        """A length that grows with the fonts, in whole pixels."""
        return max(1, round(size * self.scale))

    def lut(self) -> NDArray[np.uint32]:
        """(256,) ARGB32 colours of the heat map from 0 to 1; read-only."""
        return _lut(self.heat)

    def palette(self) -> QPalette:
        """The palette that Fusion and our own controls paint with."""
        palette = QPalette()
        for part, role in _PALETTE.items():
            palette.setColor(part, self.color(role))
        for part in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text):
            palette.setColor(QPalette.ColorGroup.Disabled, part, self.color("faint"))
        palette.setColor(
            QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText, self.color("faint")
        )
        palette.setColor(
            QPalette.ColorGroup.Disabled, QPalette.ColorRole.Highlight, self.color("cut")
        )
        return palette

    def style_sheet(self) -> str:
        """The sheet of resources/themes/window.qss in this theme's colours and sizes."""
        sheet = resources.path("themes", "window.qss").read_text(encoding="utf-8")
        sheet = _PIXELS.sub(lambda found: f"{self.pixels(int(found[1]))}px", sheet)
        icons = resources.path("icons").as_posix()
        return Template(sheet).substitute(self.roles, icons=icons)


def load(name: Name, scale: float = 1.0) -> Theme:
    """Read one theme file."""
    roles, colormap, heat = _read(name)
    return Theme(name=name, scale=scale, colormap=colormap, roles=roles, heat=heat)


@cache
def load_fonts() -> None:
    """Make the fonts that travel with the app known to Qt; needs a QGuiApplication."""
    for file in sorted(resources.path("fonts").iterdir()):
        if file.suffix in (".otf", ".ttf"):
            QFontDatabase.addApplicationFont(str(file))


class Themes(QObject):
    """The theme in force; follows the system while that is what the user chose."""

    changed = Signal(object)  # the new Theme

    def __init__(self, *, scale: float = 1.0, parent: QObject | None = None) -> None:
        super().__init__(parent)
        load_fonts()
        # Kept: asked for in passing, the hints object is deleted under our hands.
        self._hints = QGuiApplication.styleHints()
        self._choice: Choice = "system"
        self._current = load(self._resolved(), scale)
        self._hints.colorSchemeChanged.connect(self._follow)

    @property
    def current(self) -> Theme:
        return self._current

    def choose(self, choice: Choice) -> None:
        """Take the dark or the light theme, or whichever the system has."""
        self._choice = choice
        self._take(load(self._resolved(), self._current.scale))

    def resize(self, scale: float) -> None:
        """Scale all fonts."""
        self._take(replace(self._current, scale=scale))

    def apply(self) -> None:
        """Dress the application: Fusion, then font, palette and sheet."""
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        if app.style().name() != "fusion":
            app.setStyle("Fusion")
        app.setFont(self._current.font("ui"))
        app.setPalette(self._current.palette())
        app.setStyleSheet(self._current.style_sheet())

    @Slot()
    def _follow(self) -> None:
        if self._choice == "system":
            self._take(load(self._resolved(), self._current.scale))

    def _take(self, theme: Theme) -> None:
        if theme == self._current:
            return
        self._current = theme
        self.apply()
        self.changed.emit(theme)

    def _resolved(self) -> Name:
        if self._choice != "system":
            return self._choice
        return "light" if self._hints.colorScheme() == Qt.ColorScheme.Light else "dark"


_PALETTE = {
    QPalette.ColorRole.Window: "window",
    QPalette.ColorRole.WindowText: "text",
    QPalette.ColorRole.Base: "raised",
    QPalette.ColorRole.AlternateBase: "panel",
    QPalette.ColorRole.Text: "text",
    QPalette.ColorRole.Button: "raised",
    QPalette.ColorRole.ButtonText: "text",
    QPalette.ColorRole.BrightText: "warn",
    QPalette.ColorRole.ToolTipBase: "raised",
    QPalette.ColorRole.ToolTipText: "text",
    QPalette.ColorRole.PlaceholderText: "muted",
    QPalette.ColorRole.Highlight: "primary",
    QPalette.ColorRole.HighlightedText: "on_primary",
    QPalette.ColorRole.Accent: "primary",
    QPalette.ColorRole.Link: "primary",
    QPalette.ColorRole.LinkVisited: "primary",
    QPalette.ColorRole.Light: "raised",
    QPalette.ColorRole.Midlight: "grid",
    QPalette.ColorRole.Mid: "line",
    QPalette.ColorRole.Dark: "line",
    QPalette.ColorRole.Shadow: "window",
}


@cache
def _read(name: Name) -> tuple[Mapping[str, str], str, tuple[int, ...]]:
    with resources.path("themes", f"{name}.toml").open("rb") as file:
        table = tomllib.load(file)
    heat = tuple(0xFF000000 | int(color, 16) for color in table["colormap"]["table"].split())
    return MappingProxyType(table["roles"]), table["colormap"]["name"], heat


@cache
def _lut(heat: tuple[int, ...]) -> NDArray[np.uint32]:
    colors = np.array(heat, dtype=np.uint32)  # (256,)
    colors.flags.writeable = False
    return colors


@cache
def _font(kind: FontKind, pixels: int) -> QFont:
    load_fonts()
    font = QFont("JetBrains Mono" if kind == "mono" else "Inter")
    font.setPixelSize(pixels)
    if kind == "mono":
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setFeature(QFont.Tag("calt"), 0)  # "!=" must show two characters, not one sign
    else:
        font.setFeature(QFont.Tag("tnum"), 1)  # figures that change must not shake
    if kind == "strong":
        font.setWeight(QFont.Weight.DemiBold)
    return font
