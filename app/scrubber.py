"""The way through a run: first, back, the bar, forward, play, live."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QToolButton, QWidget

from app import texts
from app.player import Player
from app.selection import Scene
from app.store import Store
from app.theme import Theme
from app.widgets.icons import SIDE, icon
from app.widgets.scrub_bar import ScrubBar, Steps


class Scrubber(QWidget):
    """Moves time, and only time; a scene tells where it stands."""

    def __init__(self, store: Store, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.store = store
        self.player = Player(store, self)
        self.bar = ScrubBar(theme)
        self.buttons = {id: _button(id) for id in ("first", "back", "forward", "play")}
        self.live = QPushButton(texts.text("transport.live"))
        self.live.setToolTip(texts.text("transport.live_tip"))
        self.live.setCheckable(True)
        self.live.setProperty("pill", True)
        self._lay_out()
        self._connect()
        self.restyle(theme)

    def show_scene(self, scene: Scene) -> None:
        """Take a scene; whatever else moved the selection stops the replay."""
        self.player.watch(scene)
        steps = steps_of(scene)
        if steps != self.bar.steps:
            self.bar.show_steps(steps)
        last = steps.n_steps - 1
        self.buttons["first"].setEnabled(steps.step > 0)
        self.buttons["back"].setEnabled(steps.step > 0)
        self.buttons["forward"].setEnabled(steps.step < last)
        self.buttons["play"].setEnabled(last > 0)
        self.live.setEnabled(last >= 0)
        self.live.setChecked(last >= 0 and scene.selection.live)

    def make_narrow(self, narrow: bool) -> None:
        """Leave out the buttons that the bar's own keys can do without."""
        for id in ("first", "back", "forward"):
            self.buttons[id].setVisible(not narrow)
        self._row.invalidate()  # at once, so that the bar around can ask how wide this is now
        self.updateGeometry()

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self._theme = theme
        self.bar.restyle(theme)
        self.live.setFixedHeight(theme.pixels(22))
        for id, button in self.buttons.items():
            button.setIcon(icon(id, theme))
            button.setIconSize(QSize(theme.pixels(SIDE), theme.pixels(SIDE)))
        self._show_playing()

    def press(self, key: int) -> bool:
        """Take a key that whoever has the focus did not want; True if it moves time."""
        ways: dict[int, Callable[[], None]] = {
            Qt.Key.Key_Left: self.back,
            Qt.Key.Key_Right: self.forward,
            Qt.Key.Key_Home: self.go_first,
            Qt.Key.Key_End: self.go_live,
            Qt.Key.Key_Space: self.player.toggle,
        }
        if key not in ways:
            return False
        ways[key]()
        return True

    @Slot()
    def back(self) -> None:
        """One step back."""
        self._scrub(self.store.selection.step - 1)

    @Slot()
    def forward(self) -> None:
        """One step on."""
        self._scrub(self.store.selection.step + 1)

    @Slot()
    def go_first(self) -> None:
        """To the end of the prefill."""
        self._scrub(0)

    @Slot()
    def go_live(self) -> None:
        """Follow the newest step."""
        self.player.stop()
        self.store.go_live()
        self.live.setChecked(self.store.selection.live)  # a second click must not uncheck it

    @Slot(int)
    def _scrub(self, step: int) -> None:
        self.player.stop()
        self.store.scrub(max(0, step))

    @Slot()
    def _show_playing(self) -> None:
        id = "pause" if self.player.playing else "play"
        button = self.buttons["play"]
        button.setIcon(icon(id, self._theme))
        button.setToolTip(texts.text(f"transport.{id}_tip"))
        button.setAccessibleName(texts.text(f"transport.{id}"))

    def _lay_out(self) -> None:
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.buttons["first"])
        row.addWidget(self.buttons["back"])
        row.addWidget(self.bar, 1)
        row.addWidget(self.buttons["forward"])
        row.addWidget(self.buttons["play"])
        row.addSpacing(4)
        row.addWidget(self.live, alignment=Qt.AlignmentFlag.AlignVCenter)

    def _connect(self) -> None:
        self.buttons["first"].clicked.connect(self.go_first)
        self.buttons["back"].clicked.connect(self.back)
        self.buttons["forward"].clicked.connect(self.forward)
        self.buttons["play"].clicked.connect(self.player.toggle)
        self.bar.scrubbed.connect(self._scrub)
        self.bar.live_asked.connect(self.go_live)
        self.bar.play_asked.connect(self.player.toggle)
        self.live.clicked.connect(self.go_live)
        self.player.changed.connect(self._show_playing)


def steps_of(scene: Scene) -> Steps:
    """Where a scene stands in its run, and how many steps there may be."""
    moment = scene.moment
    if moment is None:
        return Steps()
    n_steps, n_prompt = moment.trace.n_steps, moment.n_prompt
    room = n_steps
    if scene.running and moment.trace.ended is None:
        # The last token is drawn when the positions are full, so it needs none itself.
        free = moment.trace.dimensions.n_positions - n_prompt + 1
        room = max(n_steps, min(moment.started.request.max_tokens, free))
    return Steps(n_prompt=n_prompt, n_steps=n_steps, step=moment.step, room=room)


def _button(id: str) -> QToolButton:
    button = QToolButton()
    button.setToolTip(texts.text(f"transport.{id}_tip"))
    button.setAccessibleName(texts.text(f"transport.{id}"))
    button.setProperty("flat", True)
    return button
