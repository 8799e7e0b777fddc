"""From options to a window on the screen, and to the exit code."""

from __future__ import annotations

import argparse
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app import texts
from app.main_window import MainWindow
from app.settings import Settings
from app.theme import Themes
from app.worker import Wanted
from engine.request import Request

if TYPE_CHECKING:
    from app.headless import Errand

NAME = "decodescope"


def start(options: argparse.Namespace, wish: Request) -> int:
    """Make the window as the options say and run until it is closed."""
    application = QApplication(sys.argv[:1])
    application.setApplicationName(NAME)
    application.setApplicationDisplayName(texts.text("app.name"))
    QGuiApplication.setDesktopFileName(NAME)
    settings = Settings(kept=not options.headless)
    themes = Themes(scale=settings["font_scale"])
    themes.choose(options.theme or ("dark" if options.headless else settings["theme"]))
    themes.apply()
    window = MainWindow(settings, themes)
    reporter = Reporter(window)
    reporter.said.connect(window.report)
    _dress(window, options, wish)
    errand = _errand(window, options)
    if options.headless:
        window.resize(*(options.size or (1440, 900)))
        window.desk.arrange()
        QTimer.singleShot(0, lambda: window.start(_wanted(options)))
    else:
        _place(window, options)
        window.painted.connect(lambda: QTimer.singleShot(0, lambda: window.start(_wanted(options))))
        window.show()
    if errand is not None:
        errand.done.connect(lambda code: _leave(window, code))
        if errand.leaves:
            reporter.said.connect(lambda *_: _leave(window, errand.FAILED))
    code = application.exec()
    while not window.door.close():
        pass  # reading a model cannot be broken off, and a thread must not outlive the application
    reporter.close()
    return code


class Reporter(QObject):
    """Exceptions that nobody caught are said in the window; it may be asked from any thread."""

    said = Signal(str, str)  # a sentence and its details

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._hook
        threading.excepthook = self._thread_hook

    def close(self) -> None:
        """Put the hooks back."""
        sys.excepthook, threading.excepthook = self._before

    def _hook(
        self, kind: type[BaseException], error: BaseException, trail: TracebackType | None
    ) -> None:
        detail = "".join(traceback.format_exception(kind, error, trail))
        if sys.stderr is not None:
            sys.stderr.write(detail)
        self.said.emit(texts.text("error.unexpected", reason=f"{kind.__name__}: {error}"), detail)

    def _thread_hook(self, said: threading.ExceptHookArgs) -> None:
        if said.exc_value is not None:
            self._hook(said.exc_type, said.exc_value, said.exc_traceback)


def _dress(window: MainWindow, options: argparse.Namespace, wish: Request) -> None:
    """Let what was said on the command line win over what was kept."""
    changes: dict[str, object] = {}
    if options.headless or "--prompt" in options.said:
        changes["prompt"] = wish.prompt
    if options.headless or options.said & {"--temperature", "--top-k", "--top-p"}:
        changes["sampling"] = wish.sampling
    for name in ("max_tokens", "seed", "special"):
        if options.headless or f"--{name.replace('_', '-')}" in options.said:
            changes[name] = getattr(wish, name)
    window.store.edit(changes)
    pace = "full" if options.headless else options.pace
    if pace:
        window.set_pace(pace)
    if options.open:
        window.menus.take_trace(options.open)


def _wanted(options: argparse.Namespace) -> Wanted | None:
    """The engine that the options name; None: the one that the settings name."""
    if options.headless or options.said & {"--model", "--device", "--dtype"}:
        return Wanted(options.model, options.device, options.dtype)
    return None


def _errand(window: MainWindow, options: argparse.Namespace) -> Errand | None:
    if not (options.headless or options.run):
        return None
    from app.headless import Errand  # not needed for the first paint

    out = Path(options.out) if options.out else None
    leaves = options.headless or options.quit
    return Errand(window, out=out, as_json=options.json, hidden=options.headless, leaves=leaves)


def _place(window: MainWindow, options: argparse.Namespace) -> None:
    window.restore()
    if options.size:
        window.resize(*options.size)
        window.desk.arrange()


def _leave(window: MainWindow, code: int) -> None:
    window.close()
    QApplication.exit(code)
