"""The menus: the runs of the session, and dialogs that begin where the last one ended."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow


def submenu(window: MainWindow, title: str) -> QMenu:
    whole = window.transport.menu.menu()
    found = next(a.menu() for a in whole.actions() if a.text().replace("&", "") == title)
    assert isinstance(found, QMenu)
    found.aboutToShow.emit()  # as opening it does
    return found


def runs(window: MainWindow) -> list[QAction]:
    return submenu(window, "Runs").actions()


def test_before_a_run_the_list_of_runs_says_so(window: MainWindow) -> None:
    assert [(run.text(), run.isEnabled()) for run in runs(window)] == [("No run yet", False)]


def test_runs_are_listed_and_the_parent_of_a_branch_can_be_opened_again(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.store.edit({"prompt": "Salt & pepper", "max_tokens": 4})
    with qtbot.waitSignal(window.settled):
        window.generate()
    first = window.store.session.open_id
    with qtbot.waitSignal(window.settled):
        window.store.branch(262, step=1)
    parent, branch = runs(window)
    assert parent.text().startswith("1  Salt && pepper  (")
    assert branch.text().startswith("    2  Salt && pepper  (")
    assert (parent.isChecked(), branch.isChecked()) == (False, True)
    parent.trigger()
    assert window.store.session.open_id == first


def test_no_trace_is_opened_while_a_run_goes_on(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    window.store.edit({"prompt": "Once", "max_tokens": 3})
    with qtbot.waitSignal(window.settled):
        window.generate()
    window.menus.put_trace(str(tmp_path / "a.trace"))
    window.step()  # runs until its first token, and waits
    session = window.store.session
    window.menus.take_trace(str(tmp_path / "a.trace"))
    assert window.store.session is session
    assert window.banner.sentence.startswith("A run is still going")


def test_what_was_opened_is_said_at_the_foot(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    window.store.edit({"prompt": "Once", "max_tokens": 3})
    with qtbot.waitSignal(window.settled):
        window.generate()
    window.menus.put_trace(str(tmp_path / "a.trace"))
    window.menus.take_trace(str(tmp_path / "a.trace"))
    assert window.foot.sentence == "Opened a.trace."


def test_the_text_grows_and_shrinks_by_keys(qtbot: QtBot, window: MainWindow) -> None:
    control = Qt.KeyboardModifier.ControlModifier
    for key, scale in ((Qt.Key.Key_Plus, 1.1), (Qt.Key.Key_Equal, 1.21), (Qt.Key.Key_Minus, 1.1)):
        qtbot.keyClick(window, key, control)
        assert window.themes.current.scale == pytest.approx(scale)


def test_a_dialog_begins_in_the_folder_of_the_last_one(window: MainWindow, tmp_path: Path) -> None:
    window.menus.save_trace()
    asked = window.findChild(QFileDialog)
    assert isinstance(asked, QFileDialog)
    asked.fileSelected.disconnect(window.menus.put_trace)
    asked.fileSelected.emit(str(tmp_path / "a.trace"))
    asked.close()
    window.menus.open_trace()
    again = [d for d in window.findChildren(QFileDialog) if d.isVisible()]
    assert [d.directory().absolutePath() for d in again] == [str(tmp_path)]
    again[0].close()
