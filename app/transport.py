"""The tool bar: generate, stop, pause, step; the way through a run; pace, model, device, menu."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QSizePolicy, QToolButton, QWidget

from app import choices, texts
from app.scrubber import Scrubber
from app.selection import EMPTY, Draft, Scene
from app.store import Store
from app.theme import Theme
from app.widgets.icons import SIDE, icon
from app.widgets.key_button import KeyButton
from app.widgets.marks import text_width
from app.widgets.picker import Picker
from app.worker import Loaded

HEIGHT, LEAST_WIDTH = 52, 640
LEVELS = 7  # keys go first, then long words, then buttons and boxes that one can do without
LEAST_MODEL = 84  # pixels of a model's name
SIDES = 30  # of a plain button: padding and border, see window.qss


class Transport(QWidget):
    """Says what the user wants; what is shown comes as a scene."""

    generate_asked = Signal()  # start, or go on after a pause
    stop_asked = Signal()
    step_asked = Signal()
    pace_changed = Signal(object)  # "5", "20", "60" or "full"
    model_asked = Signal(str)  # a known name or a folder
    folder_asked = Signal()  # the user wants to look for a folder
    device_asked = Signal(str, str)  # device and dtype, both "auto" for the automatic choice

    def __init__(self, store: Store, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._scene = EMPTY
        self._paused = False
        self._model_shown: tuple[str, ...] = ()
        self._devices = ["cpu"]
        self.generate = KeyButton(theme)
        self.step = QPushButton(texts.text("toolbar.step"))
        self.stop = QPushButton(texts.text("toolbar.stop"))
        self.scrubber = Scrubber(store, theme)
        self.pace, self.model, self.device = (_picker(id) for id in ("pace", "model", "device"))
        self.menu = QToolButton()
        self.pace.offer(choices.pace_items(), "full")
        self.device.offer(choices.device_items(self._devices), "")
        self._lay_out()
        self._connect()
        self.restyle(theme)
        self.show(EMPTY)

    def show(self, scene: Scene | None = None) -> None:
        """Take a scene; without one, appear, as every widget does."""
        if scene is None:
            super().show()
            return
        self._scene = scene
        self.scrubber.show_scene(scene)
        self._show_run(scene)
        self._show_model(scene.draft, running=scene.running)

    def set_paused(self, paused: bool) -> None:
        """Whether the run that goes on waits for a step: then the first button lets it go on."""
        if paused != self._paused:
            self._paused = paused
            self._show_run(self._scene)

    def set_pace(self, pace: str) -> None:
        """Show a pace as the one in force, and replay at it."""
        self.pace.show_current(pace)
        self.scrubber.player.set_pace(None if pace == "full" else float(pace))

    @Slot(object)
    def set_engine(self, loaded: Loaded) -> None:
        """Show where the model is, and offer that device from now on."""
        if loaded.device not in self._devices:
            self._devices.append(loaded.device)
        items = choices.device_items(self._devices, loaded)
        self.device.offer(items, choices.device_id(loaded.device, loaded.dtype))
        self._fit()

    def set_menu(self, menu: QMenu) -> None:
        """Put the window's menu behind the last button."""
        self.menu.setMenu(menu)
        self.menu.show()

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self._theme = theme
        self.generate.restyle(theme)
        self.scrubber.restyle(theme)
        self.setFixedHeight(theme.pixels(HEIGHT))
        for widget in (self.generate, self.step, self.stop, self.pace, self.model, self.device):
            widget.setFixedHeight(theme.pixels(30))
        self.menu.setIcon(icon("menu", theme))
        self.menu.setIconSize(QSize(theme.pixels(SIDE), theme.pixels(SIDE)))
        self._fit()
        self.update()

    def minimumSizeHint(self) -> QSize:
        return QSize(LEAST_WIDTH, self._theme.pixels(HEIGHT))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("panel"))
        line = self._theme.color("line")
        painter.fillRect(0, self.height() - 1, self.width(), 1, line)
        painter.fillRect(self.scrubber.x() - 14, (self.height() - 24) // 2, 1, 24, line)
        painter.end()

    def _show_run(self, scene: Scene) -> None:
        why_not = None if scene.running else _why_not(scene.draft)
        first = "stop" if self._goes else "go_on" if scene.running else "generate"
        second = "pause" if self._goes else "step"
        self.generate.say(texts.text(f"toolbar.{first}"), texts.text(f"toolbar.{first}_key"))
        self.generate.setToolTip(texts.in_lines(why_not or texts.text(f"toolbar.{first}_tip")))
        self.step.setText(texts.text(f"toolbar.{second}"))
        self.step.setToolTip(texts.in_lines(why_not or texts.text(f"toolbar.{second}_tip")))
        self.generate.setEnabled(why_not is None)
        self.step.setEnabled(why_not is None)
        if self.stop.isHidden() == self._waits:
            self._fit()

    def _show_model(self, draft: Draft, *, running: bool) -> None:
        looks = (draft.model, draft.model_title, draft.model_state)
        if looks != self._model_shown:
            self._model_shown = looks
            self.model.offer(choices.model_items(draft), choices.current_model(draft))
            self._fit()
        settled = draft.model_state != "loading" and not running
        self.model.setEnabled(settled)
        self.device.setEnabled(settled)

    @property
    def _goes(self) -> bool:
        return self._scene.running and not self._paused

    @property
    def _waits(self) -> bool:
        """Whether a run is paused: only then does Stop need a button of its own."""
        return self._scene.running and self._paused

    @Slot()
    def _generate_or_stop(self) -> None:
        if self._goes:
            self.stop_asked.emit()
        else:
            self.generate_asked.emit()

    @Slot(str)
    def _choose_pace(self, pace: str) -> None:
        self.set_pace(pace)
        self.pace_changed.emit(pace)

    @Slot(str)
    def _choose_model(self, id: str) -> None:
        if id == choices.FOLDER:
            self.folder_asked.emit()
        else:
            self.model_asked.emit(id)

    @Slot(str)
    def _choose_device(self, id: str) -> None:
        self.device_asked.emit(*choices.device_of(id))

    def _fit(self) -> None:
        """Give as much as the width allows."""
        for level in range(LEVELS):
            self._give_way(level)
            if self._row.minimumSize().width() <= self.width():
                break
        self._row.activate()  # at once: a frame with parts on top of each other is a blink

    def _give_way(self, level: int) -> None:
        self.generate.show_key(level < 1)
        # As wide as their widest words, so that nothing moves when a run starts.
        ways = ((texts.text(f"toolbar.{id}"), texts.text(f"toolbar.{id}_key")) for id in _FIRST)
        self.generate.setFixedWidth(max(self.generate.width_for(*way) for way in ways))
        font = self._theme.font("ui")
        words = max(text_width(texts.text(f"toolbar.{id}"), font) for id in _SECOND)
        self.step.setFixedWidth(round(words) + SIDES)
        self.pace.make_narrow(level >= 2)
        least = (
            0 if level < 2 else self._theme.pixels(LEAST_MODEL if level < 6 else LEAST_MODEL / 2)
        )
        self.model.make_narrow(level >= 2, least=least)
        self.scrubber.make_narrow(level >= 3)
        self.device.setVisible(level < 4)
        self.pace.setVisible(level < 5)
        self.stop.setVisible(self._waits and level < 6)  # Esc stops as well
        self._row.invalidate()

    def _lay_out(self) -> None:
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(14, 0, 10, 0)
        row.setSizeConstraint(QHBoxLayout.SizeConstraint.SetNoConstraint)  # _fit sees to it
        row.setSpacing(8)
        for widget in (self.generate, self.step, self.stop):
            row.addWidget(widget)
        row.addSpacing(12)
        row.addWidget(self.scrubber, 1)
        row.addSpacing(4)
        for choice in (self.pace, self.model, self.device):
            row.addWidget(choice)
        row.addWidget(self.menu)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.stop.setToolTip(texts.text("toolbar.stop_tip"))
        self.menu.setToolTip(texts.text("toolbar.menu_tip"))
        self.menu.setAccessibleName(texts.text("toolbar.menu"))
        self.menu.setProperty("flat", True)
        self.menu.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu.hide()  # until there is one

    def _connect(self) -> None:
        self.generate.clicked.connect(self._generate_or_stop)
        self.step.clicked.connect(self.step_asked)
        self.stop.clicked.connect(self.stop_asked)
        self.pace.picked.connect(self._choose_pace)
        self.model.picked.connect(self._choose_model)
        self.device.picked.connect(self._choose_device)


_FIRST = ("generate", "go_on", "stop")  # what the first button says
_SECOND = ("step", "pause")


def _why_not(draft: Draft) -> str | None:
    """Why no run can start now, as a sentence."""
    if draft.model_state == "loading":
        return texts.text("toolbar.generate_disabled_tip")
    if draft.model_state == "failed":
        return texts.text("toolbar.no_model_tip")
    return draft.problem


def _picker(id: str) -> Picker:
    return Picker(texts.text(f"toolbar.{id}"), texts.text(f"toolbar.{id}_tip"))
