"""Menus, their keys, and the files they open and write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QFileDialog, QMenu

from app import texts
from app.panels.base import Panel
from engine import __version__
from engine.errors import EngineError

if TYPE_CHECKING:
    from app.main_window import MainWindow

LARGER, SMALLER = 1.1, 1 / 1.1


class Menus(QObject):
    """Every action of the window that has no button; dialogs never block."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._add_keys()

    def whole(self) -> QMenu:
        """The menu behind the tool bar's menu button."""
        menu = QMenu(self._window)
        for fill in (self._fill_file, self._fill_runs, self._fill_view, self._fill_help):
            fill(menu)
        return menu

    def _add_keys(self) -> None:
        window = self._window
        self._key("Ctrl+Return", window.generate)
        self._key("Ctrl+Enter", window.generate)
        self._key("F10", window.step)
        self._key("Esc", window.stop)
        scrubber = window.transport.scrubber
        self._key("Alt+Left", scrubber.back)
        self._key("Alt+Right", scrubber.forward)
        self._key("Alt+Home", scrubber.go_first)
        self._key("Alt+End", scrubber.go_live)

    def _key(self, keys: str, slot: Callable[[], object]) -> None:
        action = QAction(self._window)
        action.setShortcut(QKeySequence(keys))
        action.triggered.connect(slot)
        self._window.addAction(action)

    def _entry(self, menu: QMenu, id: str, slot: Callable[[], object], keys: str = "") -> QAction:
        action = menu.addAction(texts.text(id))
        action.setShortcuts([QKeySequence(key) for key in keys.split()])
        action.triggered.connect(slot)
        self._window.addAction(action)
        return action

    def _fill_file(self, whole: QMenu) -> None:
        menu = whole.addMenu(texts.text("menu.file"))
        self._entry(menu, "menu.file_open", self.open_trace, "Ctrl+O")
        self._entry(menu, "menu.file_save", self.save_trace, "Ctrl+S")
        self._entry(menu, "menu.file_export", self.export_attention, "Ctrl+E")
        menu.addSeparator()
        self._entry(menu, "menu.file_model", self.open_model, "Ctrl+M")
        menu.addSeparator()
        self._entry(menu, "menu.file_quit", self._window.close, "Ctrl+Q")

    def _fill_runs(self, whole: QMenu) -> None:
        menu = whole.addMenu(texts.text("menu.runs"))
        menu.aboutToShow.connect(partial(self._list_runs, menu))

    def _list_runs(self, menu: QMenu) -> None:
        """The session as a tree: a branch stands under its parent."""
        menu.clear()
        session = self._window.store.session
        if not session.runs:
            menu.addAction(texts.text("menu.no_runs")).setEnabled(False)
        for run in session:
            depth = len(session.ancestors(run.id)) - 1
            name = run.name.replace("&", "&&")
            facts = {"id": run.id, "name": name, "n": len(run.trace.samples)}
            entry = menu.addAction("    " * depth + texts.text("menu.run", **facts))
            entry.setCheckable(True)
            entry.setChecked(run.id == session.open_id)
            entry.setEnabled(not self._window.store.running)
            entry.triggered.connect(partial(self._window.store.open_run, run.id))

    def _fill_view(self, whole: QMenu) -> None:
        menu = whole.addMenu(texts.text("menu.view"))
        panels = menu.addMenu(texts.text("menu.view_panels"))
        panels.addActions(list(self._window.desk.toggles()))
        self._entry(menu, "menu.view_reset", self._window.desk.arrange)
        theme = menu.addMenu(texts.text("menu.view_theme"))
        group = QActionGroup(theme)
        for choice in ("system", "dark", "light"):
            entry = theme.addAction(texts.text(f"menu.theme_{choice}"))
            entry.setCheckable(True)
            entry.setChecked(self._window.settings["theme"] == choice)
            entry.triggered.connect(partial(self._choose_theme, choice))
            group.addAction(entry)
        self._entry(menu, "menu.view_larger", partial(self._scale, LARGER), "Ctrl++ Ctrl+=")
        self._entry(menu, "menu.view_smaller", partial(self._scale, SMALLER), "Ctrl+-")

    def _fill_help(self, whole: QMenu) -> None:
        menu = whole.addMenu(texts.text("menu.help"))
        self._entry(menu, "menu.help_shortcuts", self.show_shortcuts, "F1")
        self._entry(menu, "menu.help_glossary", self.show_glossary)
        self._entry(menu, "menu.help_about", self.show_about)

    @Slot()
    def open_trace(self) -> None:
        """Choose a .trace file and show it."""
        dialog = self._dialog("dialog.open_trace", "dialog.trace_filter")
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.take_trace)
        dialog.open()

    @Slot(str)
    def take_trace(self, path: str) -> None:
        """Show the session in a file; what is open stays if the file is refused."""
        from engine import tracefile  # not needed for the first paint

        if self._window.store.running:  # its events would have no run to go to
            self._window.banner.say(texts.text("error.open_running"))
            return
        try:
            session = tracefile.open(path)
        except EngineError as error:
            self._window.banner.say(str(error))
            return
        self._window.store.open_session(session)
        self._window.refresh()  # first, for what it says at the foot
        self._window.say(texts.text("status.opened", file=Path(path).name))

    @Slot()
    def save_trace(self) -> None:
        """Choose where, and save the whole session there."""
        dialog = self._dialog("dialog.save_trace", "dialog.trace_filter")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("trace")
        dialog.fileSelected.connect(self.put_trace)
        dialog.open()

    @Slot(str)
    def put_trace(self, path: str) -> None:
        """Save the whole session to a file."""
        from engine import tracefile  # not needed for the first paint

        try:
            tracefile.save(self._window.store.session, path)
        except EngineError as error:
            self._window.banner.say(str(error))
            return
        self._window.say(texts.text("status.saved", file=Path(path).name))

    @Slot()
    def open_model(self) -> None:
        """Choose a folder with model.safetensors and config.json."""
        dialog = self._dialog("dialog.open_model", "")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(self._window.loader.load_model)
        dialog.open()

    @Slot()
    def export_attention(self) -> None:
        """A picture of the attention panel as it stands, twice as large."""
        panel = self._window.desk.panels["attention"]
        assert isinstance(panel, Panel)
        self.export(panel, 2, panel.pictures()[0])

    @Slot(object, int, str)
    def export(self, panel: Panel, scale: int, picture: str) -> None:
        """Choose where, and write one of a panel's pictures there."""
        from app import export  # not needed for the first paint

        if panel.empty() is not None:
            self._window.banner.say(texts.text("export.nothing"))
            return
        dialog = self._dialog("dialog.export_picture", "dialog.picture_filter")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("png")
        dialog.selectFile(export.suggested_name(panel, picture))
        dialog.fileSelected.connect(partial(self._put_picture, panel, scale, picture))
        dialog.open()

    def _put_picture(self, panel: Panel, scale: int, picture: str, path: str) -> None:
        from app import export  # not needed for the first paint

        try:
            export.write_picture(panel, path, scale=scale, picture=picture)
        except EngineError as error:
            self._window.banner.say(str(error))
            return
        self._window.say(texts.text("status.saved", file=Path(path).name))

    @Slot()
    def show_shortcuts(self) -> None:
        """Every key and what it does."""
        title = texts.text("shortcut.title")
        rows = [
            texts.text(id).split(" | ") for id in texts.group("shortcut") if id != "shortcut.title"
        ]
        lines = [f"- **{keys}**   {does}" for keys, does in rows]
        self._page(title, "\n".join([f"# {title}", "", *lines]))

    @Slot()
    def show_glossary(self) -> None:
        """Every word the window uses."""
        title = texts.text("menu.help_glossary").replace("&", "")
        parts = [
            f"**{term.word}** {term.meaning}" + (f" `{term.formula}`" if term.formula else "")
            for term in texts.glossary()
        ]
        self._page(title, "\n\n".join([f"# {title}", *parts]))

    @Slot()
    def show_about(self) -> None:
        """Which version this is, and its licences."""
        self._page(texts.text("app.name"), texts.text("app.about", version=__version__))

    def _page(self, title: str, markdown: str) -> None:
        self._window.explain.show_page(title, markdown, beside=self._window.transport)

    def _choose_theme(self, choice: str) -> None:
        self._window.settings.set("theme", choice)
        self._window.themes.choose(choice)  # type: ignore[arg-type]  # one of the three above

    def _scale(self, factor: float) -> None:
        settings = self._window.settings
        scale = round(min(2.0, max(0.75, settings["font_scale"] * factor)), 2)
        settings.set("font_scale", scale)
        self._window.themes.resize(scale)

    @Slot(str)
    def _remember(self, path: str) -> None:
        """The next dialog begins where this one ended."""
        with contextlib.suppress(ValueError):  # a folder whose name is no text cannot be kept
            self._window.settings.set("last_folder", str(Path(path).parent))

    def _dialog(self, title: str, filter: str) -> QFileDialog:
        dialog = QFileDialog(self._window, texts.text(title))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        last = self._window.settings["last_folder"]
        if last and Path(last).is_dir():
            dialog.setDirectory(last)
        dialog.fileSelected.connect(self._remember)
        if filter:
            dialog.setNameFilter(texts.text(filter))
        return dialog
