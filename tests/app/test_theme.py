"""The look: every role in both themes, contrast, fonts, the heat map's colours, following along."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyqtgraph
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QPalette
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app import theme
from engine import resources

GROUNDS = ("window", "panel", "raised")
BOTH = pytest.mark.parametrize("name", ["dark", "light"])


@pytest.fixture
def dressed(qapp: QApplication) -> Iterator[theme.Themes]:
    """Themes in force, and the application as it was afterwards."""
    palette, sheet, font = qapp.palette(), qapp.styleSheet(), qapp.font()
    yield theme.Themes()
    qapp.setStyleSheet(sheet)
    qapp.setPalette(palette)
    qapp.setFont(font)


def test_both_themes_have_the_same_roles() -> None:
    assert theme.load("dark").roles.keys() == theme.load("light").roles.keys()


def test_a_role_no_theme_has_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        theme.load("dark").color("chartreuse")


def test_a_color_takes_its_opacity() -> None:
    assert theme.load("dark").color("prefill", 128).getRgb() == (0xF0, 0xA4, 0x3A, 128)


@BOTH
@pytest.mark.parametrize("role", ["text", "muted"])
@pytest.mark.parametrize("ground", GROUNDS)
def test_text_can_be_read_on_every_ground(name: theme.Name, role: str, ground: str) -> None:
    assert contrast(theme.load(name), role, ground) >= 4.5  # WCAG 2.2, 1.4.3


@BOTH
@pytest.mark.parametrize("role", ["faint", "prefill", "decode", "select", "coin", "warn"])
def test_words_in_color_can_be_read_on_panels(name: theme.Name, role: str) -> None:
    assert contrast(theme.load(name), role, "panel") >= 4.5


@BOTH
@pytest.mark.parametrize(
    "role",
    ["primary", "prefill", "decode", "select", "cut", "weights", "coin", "k", "v", "q", "warn"],
)
def test_marks_stand_out_from_panels(name: theme.Name, role: str) -> None:
    assert contrast(theme.load(name), role, "panel") >= 3.0  # WCAG 2.2, 1.4.11


@BOTH
@pytest.mark.parametrize("fill", ["primary", "prefill"])
def test_words_on_a_filled_mark_can_be_read(name: theme.Name, fill: str) -> None:
    assert contrast(theme.load(name), f"on_{fill}", fill) >= 4.5


@BOTH
def test_the_heat_map_has_the_colors_it_is_named_after(name: theme.Name) -> None:
    shown = theme.load(name)
    table = pyqtgraph.colormap.get(shown.colormap).getLookupTable(0, 1, 256)[:, :3]
    red, green, blue = table.astype(np.uint32).T
    assert (shown.lut() == (0xFF000000 | red << 16 | green << 8 | blue)).all()


def test_the_dark_map_is_inferno_and_the_light_one_starts_at_white_paper() -> None:
    dark, light = theme.load("dark"), theme.load("light")
    assert (dark.colormap, hex(dark.lut()[0])) == ("inferno", "0xff000004")
    assert (light.colormap, hex(light.lut()[0])) == ("CET-L17", "0xffffffff")


def test_no_plotting_library_is_loaded_for_the_first_paint() -> None:
    code = "import sys, app.theme; app.theme.load('dark').lut(); print('pyqtgraph' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=resources.root().parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == "False"


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize(
    ("kind", "family", "weight"),
    [
        ("ui", "Inter", QFont.Weight.Normal),
        ("strong", "Inter", QFont.Weight.DemiBold),
        ("mono", "JetBrains Mono", QFont.Weight.Normal),
    ],
)
def test_the_fonts_that_travel_with_the_app_are_the_ones_used(
    kind: theme.FontKind, family: str, weight: QFont.Weight
) -> None:
    info = QFontInfo(theme.load("dark").font(kind, 12))
    assert (info.family(), info.weight(), info.pixelSize()) == (family, weight, 12)


@pytest.mark.usefixtures("qapp")
def test_figures_are_equally_wide_so_that_numbers_do_not_shake() -> None:
    metrics = QFontMetricsF(theme.load("dark").font("ui", 12))
    assert len({metrics.horizontalAdvance(figure) for figure in "0123456789"}) == 1


@pytest.mark.usefixtures("qapp")
def test_fonts_and_lengths_follow_the_scale() -> None:
    large = theme.load("dark", scale=1.5)
    assert (large.font("ui", 12).pixelSize(), large.pixels(14)) == (18, 21)


@pytest.mark.usefixtures("qapp")
def test_changing_a_font_that_was_handed_out_changes_no_other() -> None:
    dark = theme.load("dark")
    dark.font("ui", 12).setPixelSize(99)
    assert dark.font("ui", 12).pixelSize() == 12


def test_every_font_has_its_licence_beside_it() -> None:
    names = {file.name for file in resources.path("fonts").iterdir()}
    assert {"OFL-Inter.txt", "OFL-JetBrainsMono.txt"} <= names
    for name in ("OFL-Inter.txt", "OFL-JetBrainsMono.txt"):
        words = resources.path("fonts", name).read_text(encoding="utf-8")
        assert "SIL OPEN FONT LICENSE Version 1.1" in words
        assert words.startswith("Copyright")


@BOTH
def test_the_sheet_has_no_color_of_its_own(name: theme.Name) -> None:
    """Every color in it is one of the theme's, and every size was filled in."""
    shown = theme.load(name)
    sheet = shown.style_sheet()
    assert set(re.findall(r"#[0-9A-F]{6}", sheet)) <= set(shown.roles.values())
    assert "fpx" not in sheet


def test_every_picture_the_sheet_names_is_there() -> None:
    files = re.findall(r'url\("(.+?)"\)', theme.load("dark").style_sheet())
    assert files
    assert all(resources.path("icons", file.rsplit("/", 1)[1]).is_file() for file in files)


def test_choosing_a_theme_dresses_the_application(dressed: theme.Themes, qtbot: QtBot) -> None:
    dressed.choose("dark")
    with qtbot.waitSignal(dressed.changed) as told:
        dressed.choose("light")
    assert told.args == [theme.load("light")]
    window = QApplication.palette().color(QPalette.ColorRole.Window)
    assert window == QColor("#EEF1F5")


def test_choosing_what_is_there_already_says_nothing(dressed: theme.Themes, qtbot: QtBot) -> None:
    dressed.choose("light")
    with qtbot.assertNotEmitted(dressed.changed):
        dressed.choose("light")


def test_the_system_is_dark_unless_it_says_light(dressed: theme.Themes) -> None:
    dressed.choose("system")  # the screen of the tests has no opinion
    assert dressed.current.name == "dark"


def test_resizing_scales_fonts_and_keeps_the_theme(dressed: theme.Themes) -> None:
    dressed.choose("light")
    dressed.resize(1.25)
    assert dressed.current == replace(theme.load("light"), scale=1.25)
    assert QApplication.font().pixelSize() == 15


def test_the_one_filled_button_is_filled(dressed: theme.Themes, qtbot: QtBot) -> None:
    dressed.choose("dark")
    dressed.apply()
    parent = QWidget()
    qtbot.addWidget(parent)
    button = QPushButton("Generate", parent)
    button.setProperty("primary", "true")
    button.resize(148, 30)
    assert button.grab().toImage().pixelColor(QPoint(10, 15)) == QColor("#2A74DD")


def contrast(shown: theme.Theme, role: str, ground: str) -> float:
    """The contrast ratio of two colors, as WCAG defines it."""
    light, dark = sorted((luminance(shown.color(role)), luminance(shown.color(ground))))[::-1]
    return (light + 0.05) / (dark + 0.05)


def luminance(color: QColor) -> float:
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.getRgbF()[:3]
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
