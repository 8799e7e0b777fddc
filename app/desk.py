"""The panels on the desk: one dock each, the default arrangement, and the one that was kept."""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import QByteArray, QObject, Qt, Signal
from PySide6.QtGui import QAction
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
LEFT, FLOOR = 292, 150
WIDE = 1250  # a window narrower than this gives its right column less

_Panel = Panel | WidgetPanel


class Desk(QObject):
    """Owns every panel and its dock; knows their places, not what they show."""

    page_asked = Signal(str)  # a panel's id: "What is this?"
    export_asked = Signal(object, int, str)  # panel, scale, which of its pictures

    def __init__(self, window: QMainWindow, store: Store, settings: Settings, theme: Theme) -> None:
        super().__init__(window)
        self._window = window
        self._settings = settings
        self._turn = 0
        self.prompt = PromptControls(store, theme, self)
        self.sampling = SamplingControls(store, theme, self)
        self.panels: dict[str, _Panel] = {"prompt": self.prompt, "sampling": self.sampling}
        for kind in kinds():
            self.panels[kind.id] = kind(store, theme, self)
        self.docks = {id: self._dock(panel, theme) for id, panel in self.panels.items()}
        self._restore_options()

    def show(self, scene: Scene) -> None:
        """Give every panel the scene; hidden ones keep it for when they are seen."""
        for panel in self.panels.values():
            panel.show(scene)

    def show_some(self, scene: Scene) -> None:
        """Give the scene to the text and to one more panel in its turn, while the model is busy."""
        self._turn += 1
        others = [panel for id, panel in self.panels.items() if id != "text"]
        for panel in (self.panels["text"], others[self._turn % len(others)]):
            panel.show(scene)

    def restyle(self, theme: Theme) -> None:
        for panel in self.panels.values():
            panel.restyle(theme)
        for dock in self.docks.values():
            dock.restyle(theme)

    def arrange(self) -> None:
        """Three columns and a floor; see LOOK: nothing hidden behind tabs."""
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
        self.proportion()

    def proportion(self) -> None:
        """The default sizes for the window as it is."""
        window, d = self._window, self.docks
        width = window.width() - 16
        height = window.height() - 52 - 26 - FLOOR - 24
        right = 356 if window.width() > WIDE else 300
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        columns = [d["prompt"], d["text"], d["next_token"]]
        window.resizeDocks(columns, [LEFT, width - LEFT - right - 16, right], across)
        prompt = 148 if window.height() >= 800 else 104
        left = [d["prompt"], d["tokens"], d["sampling"]]
        window.resizeDocks(left, [prompt, height - prompt - 196 - 16, 196], down)
        window.resizeDocks([d["text"], d["attention"]], [128, height - 136], down)
        upper = round(height * 0.56)
        window.resizeDocks([d["next_token"], d["kv_cache"]], [upper, height - upper - 8], down)
        window.resizeDocks([d["timeline"]], [FLOOR], down)

    def keep(self) -> None:
        """Put the arrangement and the panels' options into the settings."""
        state = bytes(self._window.saveState(LAYOUT_VERSION).data())
        self._settings.set("window_layout", base64.b64encode(state).decode())
        options = {id: p.options() for id, p in self.panels.items() if isinstance(p, Panel)}
        self._settings.set("panel_options", json.dumps({i: o for i, o in options.items() if o}))

    def restore(self) -> bool:
        """The arrangement that was kept; False if there is none that fits."""
        state = base64.b64decode(self._settings["window_layout"])
        return bool(state) and self._window.restoreState(QByteArray(state), LAYOUT_VERSION)

    def toggles(self) -> Iterator[QAction]:
        """An action a dock: hidden or shown."""
        for dock in self.docks.values():
            yield dock.toggleViewAction()

    def _dock(self, panel: _Panel, theme: Theme) -> Dock:
        dock = Dock(panel.id, panel.title, panel.canvas, theme)
        dock.setParent(self._window)
        panel.retitled.connect(partial(self._retitle, panel.id))
        self._fill_menu(panel, dock)
        dock.row.say(panel.subtitle(), panel.figure())
        return dock

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
        menu.addAction(texts.text("panel.close")).triggered.connect(dock.hide)

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


def kinds() -> list[type[Panel]]:
    """Every Panel class in app/panels, in their order."""
    found = []
    for module in pkgutil.iter_modules(panels.__path__):
        names = vars(importlib.import_module(f"app.panels.{module.name}")).values()
        found += [n for n in names if isinstance(n, type) and issubclass(n, Panel)]
    return sorted({kind for kind in found if hasattr(kind, "id")}, key=lambda kind: kind.order)
