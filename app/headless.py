"""A run by itself: the real window starts it, writes what it showed to files, and leaves.

Off screen nothing is painted until the end; the text streams to the terminal instead.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app import export, texts
from app.main_window import MainWindow
from app.panels.base import Panel
from app.worker import Unloaded
from engine import tracefile
from engine.errors import EngineError
from engine.events import RunFailed, RunFinished
from engine.report import report, summary
from engine.tokenizer import END_OF_TEXT, load
from engine.trace import Trace

FILES = ("window.png", "attention.png", "run.trace", "run.json")


class Errand(QObject):
    """Waits for the model, runs the draft, writes the four files: once.

    If it does not leave, the window is its user's from then on: what runs later is no errand.
    """

    DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130

    done = Signal(int)  # the exit code

    def __init__(
        self, window: MainWindow, *, out: Path | None, as_json: bool, hidden: bool, leaves: bool
    ) -> None:
        super().__init__(window)
        self._window = window
        self._out = out
        self._as_json = as_json
        self._hidden = hidden
        self.leaves = leaves
        self._stream = load().stream()
        self._n_said = 0
        self._interrupted = False
        window.door.loaded.connect(self._begin)
        window.store.refused.connect(self._refuse)
        window.store.changed.connect(self._say)
        window.settled.connect(self._finish)
        self._listen_for_interrupt()

    @Slot(object)
    def _begin(self, said: object) -> None:
        if isinstance(said, Unloaded):
            self._refuse(said.message)
            return
        if not self._as_json:
            print(self._window.store.draft.prompt, end="", flush=True)
        QTimer.singleShot(0, self._window.generate)  # after the window has taken the model in

    @Slot(str)
    def _refuse(self, sentence: str) -> None:
        print(sentence, file=sys.stderr)
        self._end(self.REFUSED)

    def _end(self, code: int) -> None:
        """Leave, or never act again."""
        window = self._window
        window.door.loaded.disconnect(self._begin)
        window.store.refused.disconnect(self._refuse)
        window.store.changed.disconnect(self._say)
        window.settled.disconnect(self._finish)
        if self.leaves:
            self.done.emit(code)
        else:
            self._awake.stop()
            signal.signal(signal.SIGINT, self._before)

    @Slot()
    def _say(self) -> None:
        """Print the tokens that are new."""
        trace = self._trace
        if trace is None or self._as_json:
            return
        for sampled in trace.samples[self._n_said :]:
            if sampled.token.id != END_OF_TEXT:
                print(self._stream.push(sampled.token.id), end="", flush=True)
        self._n_said = len(trace.samples)

    @Slot(object)
    def _finish(self, event: RunFinished | RunFailed) -> None:
        trace = self._trace
        if trace is None or trace.started is None:
            assert isinstance(event, RunFailed)
            self._refuse(event.message)
            return
        if not self._as_json:
            print(self._stream.finish())
            print(summary(trace))
        try:
            self._write(trace)
        except (EngineError, OSError) as error:
            print(error, file=sys.stderr)
            self._end(self.FAILED)
            return
        if self._as_json:
            print(json.dumps(report(trace)))
        if isinstance(event, RunFailed):
            print(event.message, file=sys.stderr)
        code = self.FAILED if isinstance(event, RunFailed) else self.DONE
        self._end(self.INTERRUPTED if self._interrupted else code)

    def _write(self, trace: Trace) -> None:
        """The four files, and where they are."""
        out = self._out
        if out is None:
            return
        out.mkdir(parents=True, exist_ok=True)
        if self._hidden:
            self._window.show()
        self._window.refresh()
        export.save_png(self._window.grab().toImage(), out / FILES[0], export.facts(trace))
        attention = self._window.desk.panels["attention"]
        assert isinstance(attention, Panel)
        export.write_picture(attention, out / FILES[1], scale=2)
        tracefile.save(self._window.store.session, out / FILES[2])
        (out / FILES[3]).write_text(json.dumps(report(trace), indent=2) + "\n", encoding="utf-8")
        if not self._as_json:
            print(texts.text("headless.wrote", files=", ".join(FILES), folder=out.resolve()))

    @property
    def _trace(self) -> Trace | None:
        run = self._window.store.session.open_run
        return run.trace if run is not None else None

    def _listen_for_interrupt(self) -> None:
        """Ctrl-C stops the run; Python hears it only when the event loop lets it, so wake it."""
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        self._awake = QTimer(self)
        self._awake.timeout.connect(_nothing)
        self._awake.start(100)

    def _interrupt(self, *_: object) -> None:
        if self._interrupted or not self._window.store.running:
            self.done.emit(self.INTERRUPTED)
        self._interrupted = True
        self._window.stop()


def _nothing() -> None:
    """Run one line of Python, in which signals are heard."""
