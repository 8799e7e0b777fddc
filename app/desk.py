"""The panels on the desk: one dock each, the default arrangement, and the one that was kept."""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import QByteArray, QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QMouseEvent
from PySide6.QtWidgets import QMainWindow

from app import panels, texts
from app.controls import PromptControls, SamplingControls
from app.dock import Dock
from app.panels.base import Panel
from app.selection import Scene
from app.settings import Settings
from app.store import Store
from app.theme import Theme
from app.widget_panel import WidgetPanel

LAYOUT_VERSION = 1
GAP = 8
LEFT, TEXT = 292, 128
WIDE = 1250  # a window narrower than this gives its right column less
TALL = 800  # a window lower than this gives less to what can do with less
MOST = 0.3  # of the window for a side column, of the height for the text: large letters ask more

_Panel = Panel | WidgetPanel


class Desk(QObject):
    """Owns every panel and its dock; knows their places, not what they show."""

    page_asked = Signal(str)  # a panel's id: "What is this?"
    export_asked = Signal(object, int, str)  # panel, scale, which of its pictures

    def __init__(self, window: QMainWindow, store: Store, settings: Settings, theme: Theme) -> None:
        super().__init__(window)
        self._window = window
        self._settings = settings
        self._store = store
        self._theme = theme
        self._turn = 0
        self._stage: object = None  # which run was shown last, and whether it had a pass yet
        self._as_arranged = False  # nobody has moved anything since
        self.prompt = PromptControls(store, theme, self)
        self.sampling = SamplingControls(store, theme, self)
        self.panels: dict[str, _Panel] = {}
        self.docks = {id: self._dock(id) for id in ("prompt", "sampling", *panel_ids())}
        self._take(self.prompt)
        self._take(self.sampling)
        window.installEventFilter(self)

    def fill(self) -> None:
        """Put the painted panels into their docks: after the first paint, a tenth of a second."""
        if len(self.panels) == len(self.docks):
            return
        for kind in kinds():
            self._take(kind(self._store, self._theme, self))
        self._restore_options()

    def show(self, scene: Scene) -> None:
        """Give every panel the scene; hidden ones keep it for when they are seen."""
        self._stage = _stage(scene)
        for panel in self.panels.values():
            panel.show(scene)

    def show_some(self, scene: Scene) -> None:
        """Give the scene to the text and to one more panel in its turn, while the model is busy.

        All of them get it where another run or its first pass comes: no two panels may show
        different runs.
        """
        if _stage(scene) != self._stage:
            self.show(scene)
            return
        self._turn += 1
        others = [panel for id, panel in self.panels.items() if id != "text"]
        for panel in (self.panels["text"], others[self._turn % len(others)]):
            panel.show(scene)

    def restyle(self, theme: Theme) -> None:
        self._theme = theme
        for panel in self.panels.values():
            panel.restyle(theme)
        for dock in self.docks.values():
            dock.restyle(theme)
        if self._as_arranged:
            self.proportion()  # larger letters need more room

    @Slot()
    def arrange(self) -> None:
        """Three columns and a floor, nothing hidden behind tabs."""
        window, d = self._window, self.docks
        top, across, down = (
            Qt.DockWidgetArea.TopDockWidgetArea,
            Qt.Orientation.Horizontal,
            Qt.Orientation.Vertical,
        )
        for dock in d.values():
            dock.setFloating(False)
            window.removeDockWidget(dock)
        window.addDockWidget(top, d["prompt"])
        window.splitDockWidget(d["prompt"], d["text"], across)
        window.splitDockWidget(d["text"], d["next_token"], across)
        window.splitDockWidget(d["prompt"], d["tokens"], down)
        window.splitDockWidget(d["tokens"], d["sampling"], down)
        window.splitDockWidget(d["text"], d["attention"], down)
        window.splitDockWidget(d["next_token"], d["kv_cache"], down)
        window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, d["timeline"])
        placed = {"prompt", "text", "next_token", "tokens", "sampling"}
        placed |= {"attention", "kv_cache", "timeline"}
        for id in d.keys() - placed:
            window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, d[id])
        for dock in d.values():
            dock.show()
        self._as_arranged = True
        self.proportion()

    def proportion(self) -> None:
        """The default sizes for the window as it is; what can grow is in the middle."""
        window, d, pixels = self._window, self.docks, self._theme.pixels
        tall = window.height() >= pixels(TALL)
        floor = pixels(150 if tall else 132)
        width = window.width() - 2 * GAP
        head = window.menuWidget()
        assert head is not None
        ends = head.sizeHint().height() + window.statusBar().sizeHint().height()
        height = window.height() - ends - floor - GAP
        left = min(pixels(LEFT), round(MOST * width))
        right = min(pixels(356 if window.width() > WIDE else 300), round(MOST * width))
        prompt, sampling = pixels(148 if tall else 104), pixels(196 if tall else 164)
        text, upper = min(pixels(TEXT), round(MOST * height)), round(height * 0.56)
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        for ids, sizes, along in (
            (("prompt", "text", "next_token"), (left, 0, right), across),
            (("prompt", "tokens", "sampling"), (prompt, 0, sampling), down),
            (("text", "attention"), (text, 0), down),
            (("next_token", "kv_cache"), (upper, 0), down),
        ):
            room = (width if along is across else height) - sum(sizes) - GAP * (len(ids) - 1)
            window.resizeDocks([d[id] for id in ids], [s or max(1, room) for s in sizes], along)
        window.resizeDocks([d["timeline"]], [floor], down)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """As long as nobody has moved anything, the proportions follow the window."""
        if event.type() == QEvent.Type.Resize and self._as_arranged:
            self.proportion()
            layout = self._window.layout()
            assert layout is not None
            layout.activate()  # at once: Qt's own proportions would be a blink
        elif event.type() == QEvent.Type.MouseButtonPress:
            assert isinstance(event, QMouseEvent)
            if self._window.childAt(event.position().toPoint()) is None:  # between the panels
                self._as_arranged = False
        return super().eventFilter(watched, event)

    @Slot()
    def _move(self) -> None:
        """A person has moved, hidden or brought back a panel."""
        self._as_arranged = False

    def keep(self) -> None:
        """Put the arrangement and the panels' options into the settings."""
        state = b"" if self._as_arranged else self._window.saveState(LAYOUT_VERSION).data()
        self._settings.set("window_layout", base64.b64encode(state).decode())
        options = {id: p.options() for id, p in self.panels.items() if isinstance(p, Panel)}
        if options:
            self._settings.set("panel_options", json.dumps({i: o for i, o in options.items() if o}))

    def restore(self) -> bool:
        """The arrangement that was kept; False if there is none that fits."""
        state = base64.b64decode(self._settings["window_layout"])
        return bool(state) and self._window.restoreState(QByteArray(state), LAYOUT_VERSION)

    def toggles(self) -> Iterator[QAction]:
        """An action a dock: hidden or shown."""
        for dock in self.docks.values():
            yield dock.toggleViewAction()

    def _dock(self, id: str) -> Dock:
        dock = Dock(id, texts.text(f"panel.{id}.title"), self._theme)
        dock.setParent(self._window)
        dock.topLevelChanged.connect(self._move)
        dock.toggleViewAction().triggered.connect(self._move)
        return dock

    def _take(self, panel: _Panel) -> None:
        """Put a panel into its dock."""
        dock = self.docks[panel.id]
        self.panels[panel.id] = panel
        dock.ground.hold(panel.canvas)
        panel.retitled.connect(partial(self._retitle, panel.id))
        self._fill_menu(panel, dock)
        self._retitle(panel.id)

    def _fill_menu(self, panel: _Panel, dock: Dock) -> None:
        menu = dock.row.menu
        own = panel.actions()
        menu.addActions(own)
        if own:
            menu.addSeparator()
        if isinstance(panel, Panel):
            export = menu.addMenu(texts.text("panel.export"))
            for picture in panel.pictures():
                for scale in (1, 2, 4):
                    words = texts.text("panel.export_as", picture=picture, scale=scale)
                    entry = export.addAction(words)
                    entry.triggered.connect(partial(self.export_asked.emit, panel, scale, picture))
        page = menu.addAction(texts.text("panel.explain"))
        page.triggered.connect(partial(self.page_asked.emit, panel.id))
        menu.addSeparator()
        menu.addAction(texts.text("panel.float")).triggered.connect(dock.float)
        close = menu.addAction(texts.text("panel.close"))
        close.triggered.connect(self._move)
        close.triggered.connect(dock.hide)

    def _retitle(self, id: str) -> None:
        panel = self.panels[id]
        self.docks[id].row.say(panel.subtitle(), panel.figure())

    def _restore_options(self) -> None:
        """Options that a panel kept; what does not fit is left at its default."""
        try:
            kept = json.loads(self._settings["panel_options"])
        except ValueError:
            return
        for id, panel in self.panels.items():
            if isinstance(panel, Panel) and isinstance(kept, dict):
                panel.take_options(kept.get(id))


def _stage(scene: Scene) -> object:
    return scene.selection.run, scene.moment is None


def panel_ids() -> list[str]:
    """The panel of every file in app/panels, by its name: known before the file is read."""
    names = [module.name for module in pkgutil.iter_modules(panels.__path__)]
    return [name for name in names if name != "base"]


def kinds() -> list[type[Panel]]:
    """Every Panel class in app/panels, in their order."""
    found = []
    for id in panel_ids():
        names = vars(importlib.import_module(f"app.panels.{id}")).values()
        found += [n for n in names if isinstance(n, type) and issubclass(n, Panel)]
    return sorted({kind for kind in found if hasattr(kind, "id")}, key=lambda kind: kind.order)
