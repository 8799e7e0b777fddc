"""The desk: proportions that follow the window until a person moves something, titles in full."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.panels.base import Panel


def sizes(window: MainWindow) -> tuple[int, int, int, int]:
    """Widths of the left and the right column, heights of the floor and of the tokens."""
    docks = window.desk.docks
    return (
        docks["prompt"].width(),
        docks["next_token"].width(),
        docks["timeline"].height(),
        docks["tokens"].height(),
    )


def near(found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """To a few pixels: Qt hands out what a division leaves."""
    return all(abs(a - b) <= 4 for a, b in zip(found, wanted, strict=True))


def test_a_larger_window_gives_its_room_to_the_middle(window: MainWindow) -> None:
    assert near(sizes(window)[:3], (292, 356, 150))
    window.resize(1800, 1100)
    assert near(sizes(window)[:3], (292, 356, 150))


def test_a_small_window_has_room_for_every_panel(window: MainWindow) -> None:
    """The tokens, between prompt and sliders, have a row of chips and the context meter."""
    window.resize(1024, 640)
    assert near(sizes(window)[:3], (292, 300, 132))
    assert sizes(window)[3] >= 100


def test_what_a_person_moved_is_kept(window: MainWindow) -> None:
    docks = window.desk.docks
    gap = docks["text"].mapTo(window, QPoint(-4, 40))
    QTest.mousePress(window, Qt.MouseButton.LeftButton, pos=gap)
    QTest.mouseRelease(window, Qt.MouseButton.LeftButton, pos=gap)
    window.resizeDocks([docks["prompt"]], [400], Qt.Orientation.Horizontal)
    window.resize(1500, 900)
    assert docks["prompt"].width() > 350
    window.desk.keep()
    assert window.settings["window_layout"]


def test_an_arrangement_that_nobody_touched_is_not_kept(window: MainWindow) -> None:
    """So that the next start makes it anew for the window it gets."""
    window.desk.keep()
    assert window.settings["window_layout"] == ""


def test_a_hidden_panel_is_kept_hidden_and_a_reset_brings_it_back(window: MainWindow) -> None:
    toggle = window.desk.docks["kv_cache"].toggleViewAction()
    toggle.trigger()
    assert window.desk.docks["kv_cache"].isHidden()
    window.desk.keep()
    assert window.settings["window_layout"]
    window.desk.arrange()
    assert window.desk.docks["kv_cache"].isVisible()


def test_no_two_panels_ever_show_different_runs(qtbot: QtBot, window: MainWindow) -> None:
    """At full speed they take turns; where another run begins, they must not."""
    for prompt in ("Once", "Twice"):
        window.store.edit({"prompt": prompt, "max_tokens": 4})
        with qtbot.waitSignal(window.settled):
            window.generate()
        window.refresh()
    first, second = window.store.session
    panels = [p for p in window.desk.panels.values() if isinstance(p, Panel)]
    for run in (first, second):
        window.store.open_run(run.id)
        window.desk.show_some(window.store.scene)
        assert {p.scene.selection.run for p in panels} == {run.id}


@pytest.mark.parametrize("id", ["prompt", "tokens", "sampling", "next_token", "kv_cache"])
def test_a_page_lies_beside_the_panel_that_it_explains(
    qtbot: QtBot, window: MainWindow, id: str
) -> None:
    window.explain_panel(id)
    dock = window.desk.docks[id]
    assert window.rect().contains(window.explain.geometry())
    assert not window.explain.geometry().intersects(dock.geometry())
