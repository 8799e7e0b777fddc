"""Pictures of panels: exact sizes, facts inside, whole files only, names any system takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from app import export, theme
from app.panels.attention import Attention
from app.store import Store
from engine.errors import EngineError
from engine.session import Run, Session
from engine.trace import Trace


@pytest.fixture
def panel(qtbot: QtBot, recorded: Trace) -> Attention:
    """The attention panel, dark, 500 x 340, with layer 2, head 1 of the recorded run."""
    store = Store()
    store.open_session(Session({1: Run(1, "x", recorded)}, open_id=1))
    store.select(layer=2, head=1)
    panel = Attention(store, theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(500, 340)
    panel.show(store.scene)
    return panel


def small(color: str = "#123456") -> QImage:
    image = QImage(4, 3, QImage.Format.Format_RGB32)
    image.fill(QColor(color))
    return image


@pytest.mark.parametrize("scale", [1, 2, 4, 1.5])
def test_a_picture_has_exactly_the_pixels_asked_for(panel: Attention, scale: float) -> None:
    image = export.painted(panel, size=QSize(600, 401), scale=scale)
    assert (image.width(), image.height()) == (round(600 * scale), round(401 * scale))
    assert image.devicePixelRatio() == 1


def test_without_a_size_it_is_the_panel_and_its_title_row(panel: Attention) -> None:
    image = export.painted(panel)
    assert (image.width(), image.height()) == (500, 340 + 36)


def test_on_paper_it_is_as_large_at_every_scale(panel: Attention) -> None:
    """96 dots an inch, 3,780 a metre, at scale 1."""
    assert export.painted(panel, scale=1).dotsPerMeterX() == 3780
    assert export.painted(panel, scale=2).dotsPerMeterY() == 7559


def test_paper_is_white_unless_a_theme_is_given(panel: Attention) -> None:
    corner = QPointF(2, 2).toPoint()
    assert export.painted(panel).pixelColor(corner) == QColor("#FFFFFF")
    dark = theme.load("dark")
    assert export.painted(panel, theme=dark).pixelColor(corner) == dark.color("panel")


def test_a_picture_leaves_the_shown_panel_as_it_was(panel: Attention) -> None:
    before = panel.canvas.grab().toImage()
    export.painted(panel, size=QSize(900, 700), scale=2, picture=panel.pictures()[2])
    assert panel.theme.name == "dark"
    assert panel.canvas.grab().toImage() == before


def test_cells_are_crisp_at_every_scale(panel: Attention) -> None:
    """The cell of query 18 and key 0 is one colour from edge to edge, next to no half tones."""
    image = export.painted(panel, size=QSize(500, 376), scale=4, picture=panel.pictures()[1])
    square = panel._picture._heatmap.square()
    side = square.width() / 19
    top, left = round((square.bottom() - side) * 4) + 4, round(square.left() * 4) + 4
    inner = {image.pixel(left + x, top + y) for x in range(int(side * 4) - 8) for y in range(8)}
    assert len(inner) == 1


@pytest.mark.parametrize("which", [0, 1, 2])
def test_each_picture_of_a_panel_can_be_written(
    panel: Attention, tmp_path: Path, which: int
) -> None:
    name = panel.pictures()[which]
    export.write_picture(panel, tmp_path / "p.png", scale=2, picture=name)
    image = QImage(str(tmp_path / "p.png"))
    assert (image.width(), image.height()) == (1000, 752)
    assert image.text("Title") == f"Attention: {name}"


def test_a_picture_file_says_what_it_shows(panel: Attention, tmp_path: Path) -> None:
    export.write_picture(panel, tmp_path / "p.png")
    image = QImage(str(tmp_path / "p.png"))
    told = {key: image.text(key) for key in image.textKeys()}
    assert told["Prompt"] == "Michael Jordan played the sport of"
    assert (told["Layer"], told["Head"], told["Step"]) == ("2", "1", "14")
    assert told["SHA-256"].startswith("76f2f804ab240bd2")  # of the embedded weights
    assert told["Model"] == "Decodescope 6x8"
    assert told["Software"].startswith("Decodescope ")
    assert image.dotsPerMeterX() == 3780


def test_facts_in_any_script_survive(tmp_path: Path) -> None:
    prompt = "zwölf Boxkämpfer\n日本語 🦊 and <b>&amp; \0 end"
    export.save_png(small(), tmp_path / "p.png", {"Prompt": prompt})
    assert QImage(str(tmp_path / "p.png")).text("Prompt") == prompt.replace("\0", "␀")


def test_an_empty_panel_gives_a_picture_of_its_sentence(qtbot: QtBot, tmp_path: Path) -> None:
    panel = Attention(Store(), theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    export.write_picture(panel, tmp_path / "p.png")
    assert QImage(str(tmp_path / "p.png")).textKeys() == [
        "Head",
        "Layer",
        "Software",
        "Title",
    ]


@pytest.mark.parametrize("name", ["p.jpg", "p.svg", "p", ".png"])
def test_a_name_of_another_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineError) as error:
        export.save_png(small(), tmp_path / name, {})
    assert error.value.kind == "export_format"
    assert "ends in .png" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no" / "p.png"
    with pytest.raises(EngineError) as error:
        export.save_png(small(), path, {})
    assert (error.value.kind, error.value.facts["path"]) == ("export_write", path)


def test_an_older_file_stays_whole_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.png"
    export.save_png(small("#111111"), path, {})
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(EngineError) as error:
        export.save_png(small("#EEEEEE"), path, {})
    assert "No space left on device" in str(error.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]  # and nothing half written lies beside it


def test_a_picture_beyond_memory_is_refused_with_its_size(panel: Attention) -> None:
    with pytest.raises(EngineError) as error:
        export.painted(panel, size=QSize(60_000, 60_000), scale=4)
    assert error.value.kind == "export_size"
    assert "240,000 x 240,000" in str(error.value)


def test_the_suggested_name_says_panel_head_prompt_and_step(panel: Attention) -> None:
    assert export.suggested_name(panel) == (
        "attention layer 2 head 1 - Michael Jordan played the sport of - step 14.png"
    )
    assert export.suggested_name(panel, "All heads").startswith("attention all heads layer 2")


@pytest.mark.parametrize(
    ("prompt", "part"),
    [
        ("../../etc/passwd", " - etc passwd - "),
        ("a\0b\nc\u202ed: <x>|y?", " - a b c d x y - "),
        ("日" * 100, " - " + "日" * 39 + "… - "),
        ("///", "head 1 - step"),
    ],
)
def test_the_suggested_name_is_one_that_every_system_takes(
    panel: Attention, recorded: Trace, prompt: str, part: str
) -> None:
    assert recorded.started is not None
    request = replace(recorded.started.request, prompt=prompt)
    trace = Trace([replace(recorded.started, request=request), *recorded.events[1:4]])
    panel.show(replace(panel.scene, moment=trace.at(0)))
    name = export.suggested_name(panel)
    assert part in name
    assert len(name.encode()) < 255
