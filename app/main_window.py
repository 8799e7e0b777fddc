"""The window: docks, tool bar, menus and status bar around one store, one door and one clock."""

from __future__ import annotations

import base64
from functools import partial

from PySide6.QtCore import QByteArray, QSize, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QIcon, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget

from app import texts
from app.desk import Desk
from app.errors import Banner
from app.frames import Frames, idle_ns
from app.gauge import Gauge
from app.kept import draft_from, keep
from app.loader import Loader
from app.menus import Menus
from app.settings import Settings
from app.status import StatusLine, status
from app.store import Ask, Store
from app.theme import Theme, Themes
from app.transport import Transport
from app.widgets.explain import Explain
from app.worker import Door, LoadEngine, Wanted, load_engine
from engine import kept_file, resources
from engine.events import RunFailed, RunFinished

FIRST = QSize(1440, 900)
LEAST = QSize(1024, 640)
PROGRESS_MS = 100  # how often a prefill says how far it is
GAP = 8  # between panels, and between them and the window's edge


class MainWindow(QMainWindow):
    """Everything on the screen. It wires; what it shows, the panels know."""

    painted = Signal()  # once: the window has been seen
    settled = Signal(object)  # the run's terminal event, after it has been taken in

    def __init__(
        self, settings: Settings, themes: Themes, *, load: LoadEngine = load_engine
    ) -> None:
        super().__init__()
        self.settings = settings
        self.themes = themes
        budget = int(settings["trace_budget_mib"]) * 2**20
        self.store = Store(budget=budget, cache=kept_file.folder(), parent=self)
        self.door = Door(load=load, parent=self)
        self.gauge = Gauge(self.store, self.door, self)
        self.frames = Frames(self)
        self._progress = QTimer(self, interval=PROGRESS_MS)
        self._paused_start = False
        self._seen = False
        self._closed = False
        self._build(themes.current)
        self._connect()
        self._take_settings()

    def _build(self, theme: Theme) -> None:
        self.setObjectName("main_window")
        self.setWindowTitle(texts.text("app.name"))
        self.setWindowIcon(QIcon(str(resources.path("icons", "decodescope.svg"))))
        self.setMinimumSize(LEAST)
        self.setDockNestingEnabled(True)
        self.setContentsMargins(GAP, 0, GAP, 0)
        self.transport = Transport(self.store, theme)
        self.banner = Banner()
        self.desk = Desk(self, self.store, self.settings, theme)
        self.explain = Explain(theme, self)
        self.loader = Loader(self.store, self.door, self.settings, self.banner, self)
        self.menus = Menus(self)
        self.transport.set_menu(self.menus.whole())
        head = QWidget()
        column = QVBoxLayout(head)
        column.setContentsMargins(0, 0, 0, GAP)
        column.setSpacing(0)
        column.addWidget(self.transport)
        column.addWidget(self.banner)
        self.setMenuWidget(head)
        self.foot = StatusLine(theme)
        self.setStatusBar(self.foot)

    def _connect(self) -> None:
        store, door, frames, transport = self.store, self.door, self.frames, self.transport
        store.changed.connect(frames.ask)
        store.asked.connect(self._run)
        store.ordered.connect(door.order)
        store.ended.connect(self._end)
        store.refused.connect(self.banner.say)
        store.dropped.connect(self._say_dropped)
        door.woke.connect(self._hear)
        self.loader.loaded.connect(transport.set_engine)
        frames.began.connect(partial(self.door.reins.paint, painting=True))
        frames.frame.connect(self._frame)
        frames.painted.connect(partial(self.door.reins.paint, painting=False))
        self._progress.timeout.connect(self._say_progress)
        transport.generate_asked.connect(self.generate)
        transport.stop_asked.connect(self.stop)
        transport.step_asked.connect(self.step)
        transport.pace_changed.connect(self.set_pace)
        transport.model_asked.connect(self.loader.load_model)
        transport.folder_asked.connect(self.menus.open_model)
        transport.device_asked.connect(self.loader.load_device)
        self.banner.model_asked.connect(self.menus.open_model)
        self.desk.page_asked.connect(self.explain_panel)
        self.desk.export_asked.connect(self.menus.export)
        self.themes.changed.connect(self._restyle)

    def _take_settings(self) -> None:
        s = self.settings
        self.store.edit(draft_from(s))
        self.set_pace(s["pace"])
        self.desk.show(self.store.scene)
        self.transport.show(self.store.scene)
        if s.notes:
            self.banner.say("\n".join(s.notes))

    # What a person does.

    @Slot()
    def generate(self) -> None:
        """Start a run, or let a paused one go on."""
        if self.store.running:
            self.door.reins.resume()
            self._refresh_status()
        else:
            self._begin()

    @Slot()
    def step(self) -> None:
        """One more token, then wait."""
        if self.store.running:
            if not self.door.reins.holds:
                self.door.reins.pause()
            else:
                self.door.reins.step()
            self._refresh_status()
        else:
            self._begin(paused=True)

    def _begin(self, *, paused: bool = False) -> None:
        problem = self.store.draft.problem
        if problem is not None:
            self.banner.say(problem)
        elif self.loader.current is None:
            self.say(texts.text("toolbar.generate_disabled_tip"))
        else:
            if self.banner.sentence != self.loader.lasting:
                self.banner.hide()
            self._paused_start = paused
            self.store.run()

    @Slot()
    def stop(self) -> None:
        """End the run after the step in progress."""
        if self.store.running:
            self.door.reins.stop()
            self.say(texts.text("status.stopping"))

    @Slot(object)
    def set_pace(self, pace: str) -> None:
        """Tokens a second at most: "5", "20", "60" or "full"."""
        self.settings.set("pace", pace)
        self.transport.set_pace(pace)
        self.door.reins.set_pace(None if pace == "full" else float(pace))

    @Slot(str, str)
    def report(self, sentence: str, detail: str) -> None:
        """Say what should not have happened, with its details to copy."""
        self.banner.say(sentence, detail=detail)

    def say(self, sentence: str) -> None:
        """Put a sentence at the foot of the window until something else happens."""
        self.foot.note(sentence)

    def refresh(self) -> None:
        """Show all there is to show now, without waiting for a frame."""
        self._frame()

    @Slot(str)
    def explain_panel(self, id: str) -> None:
        """Open the page about a panel."""
        panel = self.desk.panels[id]
        self.explain.show_page(panel.title, texts.page(id), beside=self.desk.docks[id])

    # What comes back.

    def start(self, wanted: Wanted | None = None) -> None:
        """Fill the docks, load tokenizer and engine: after the first paint, in this order."""
        self.desk.fill()
        self.desk.show(self.store.scene)
        QTimer.singleShot(0, self, partial(self._start_engine, wanted))  # the panels paint first

    def _start_engine(self, wanted: Wanted | None) -> None:
        from engine import tokenizer  # its ranks take longer to read than the window to paint

        if not self._closed:
            self.desk.prompt.set_tokenizer(tokenizer.load())
            self.loader.start(wanted)

    @Slot(object)
    def _run(self, ask: Ask) -> None:
        self.frames.begin()
        self._progress.start()
        self.door.run(ask, paused=self._paused_start)
        self._paused_start = False

    @Slot()
    def _hear(self) -> None:
        """Something came: show it with the next frame, but never let the worker wait for that."""
        self.frames.ask()
        if self.door.reins.half_full:
            self.store.take(self.door.take())

    @Slot()
    def _frame(self) -> None:
        """Take in what came, and show it."""
        self.store.take(self.door.take())
        scene = self.store.scene
        self.frames.idle_ns = idle_ns(scene, self.settings["pace"])
        show = self.desk.show_some if scene.running and self.frames.idle_ns <= 0 else self.desk.show
        show(scene)
        self.transport.show(scene)
        self._refresh_status()

    @Slot(object)
    def _end(self, event: RunFinished | RunFailed) -> None:
        self.frames.end()
        if isinstance(event, RunFailed):
            self.banner.say(event.message, detail=event.detail)
        self.settled.emit(event)

    @Slot(str)
    def _say_dropped(self, kind: str) -> None:
        what = texts.text(f"recorded.{kind}")
        self.banner.say(texts.text("error.dropped", what=what))

    @Slot(object)
    def _restyle(self, theme: Theme) -> None:
        self.desk.restyle(theme)
        self.transport.restyle(theme)
        self.explain.restyle(theme)
        self.foot.restyle(theme)

    @Slot()
    def _say_progress(self) -> None:
        """How many prompt tokens are read, until the first pass is done."""
        if self.store.running and self.store.scene.moment is None:
            self._refresh_status()
        else:
            self._progress.stop()

    def _refresh_status(self) -> None:
        self.transport.set_paused(self.store.running and self.door.reins.holds)
        self.foot.say(status(self.store.scene, self.door, self.loader.current))

    # Qt.

    def restore(self) -> None:
        """Where the window was and how it was arranged, if that is still possible."""
        geometry = base64.b64decode(self.settings["window_geometry"])
        if not (geometry and self.restoreGeometry(QByteArray(geometry))):
            self.resize(FIRST.boundedTo(self.screen().availableSize()))
        if not self.desk.restore():
            self.desk.arrange()
        self.desk.prompt.editor.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.modifiers() or not self.transport.scrubber.press(event.key()):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)  # the tool bar's ground runs from edge to edge
        bar, theme = self.transport.height(), self.themes.current
        painter.fillRect(0, 0, self.width(), bar, theme.color("panel"))
        painter.fillRect(0, bar - 1, self.width(), 1, theme.color("line"))
        painter.end()
        if not self._seen:
            self._seen = True
            self.painted.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop, quit, wait, then accept; no dialog."""
        self._closed = True
        self._keep()
        self.store.tidy()
        self.hide()
        self.door.close()  # a model that is being read may take longer: then `start` waits on
        event.accept()

    def _keep(self) -> None:
        s = self.settings
        keep(s, self.store.draft)
        s.set("window_geometry", base64.b64encode(self.saveGeometry().data()).decode())
        self.desk.keep()
        s.save()
