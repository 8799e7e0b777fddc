"""The Text panel: the prompt and what the model wrote, as running text, tinted by surprise."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QAction, QGuiApplication, QPainter

from app.panels.base import Panel
from app.selection import Scene
from app.store import Store
from app.text_words import bits, ending, hint, say, written
from app.theme import Theme
from app.widgets.one_of import OneOf
from app.widgets.pieces import Reader
from app.widgets.token_ink import Item
from app.widgets.token_scroll import ScrolledFlow, View
from engine.events import Sampled
from engine.trace import Trace

TINTS = ("surprisal", "probability", "none")
FULL_TINT = 8.0  # bits of surprisal, one in 256, from which on the tint is as strong as it gets
TOP = 3  # pixels above the first line
NOTCH = 3  # lines that one notch of the wheel moves


class Text(Panel):
    """All tokens up to this step; the end is in view while it grows, else the selected token."""

    id = "text"
    order = 30
    saved = ("tint",)

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        self._flow = ScrolledFlow("run", theme)
        self._made: tuple[Trace, str] | None = None  # what the items are made of
        self._items: list[Item] = []
        self._reader = Reader()
        self._tint = OneOf({tint: say(f"by_{tint}") for tint in TINTS}, self)
        self._tint.triggered.connect(self._retint)
        self._between = QAction(self)
        self._between.setSeparator(True)
        self._copies = [QAction(say("copy_written"), self), QAction(say("copy_all"), self)]
        for action, copy in zip(self._copies, (self._copy_written, self._copy_all), strict=True):
            action.triggered.connect(copy)

    @property
    def tint(self) -> str:
        """What the ground of a written token tells."""
        return self._tint.value

    @tint.setter
    def tint(self, tint: str) -> None:
        self._tint.take(tint)
        self._retint()

    def actions(self) -> list[QAction]:
        return [*self._tint.actions(), self._between, *self._copies]

    def subtitle(self) -> str:
        return "" if self.scene.moment is None else say(f"tint_{self.tint}")

    def figure(self) -> str:
        moment = self.scene.moment
        if moment is None:
            return ""
        n = len(moment.tokens) - moment.n_prompt
        tokens = say("figure", n=n) if n != 1 else say("figure_one")
        reason = ending(moment)
        return say("figure_ended", tokens=tokens, reason=reason) if reason else tokens

    def show(self, scene: Scene) -> None:
        if self.scene.moment is not None:
            self._flow.settle(self._view(self.area))
        if _looked_at(scene) != _looked_at(self.scene):
            self._flow.release()
        super().show(scene)

    def key(self, scene: Scene) -> object:
        moment = scene.moment
        if moment is None:
            return None
        return moment, moment.sampled is not None, scene.token, _grows(scene)

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        self._flow.paint(
            painter,
            self._view(rect),
            self.theme,
            selected=self.scene.token,
            hovered=self.store.hover,
            caret=_grows(self.scene),
        )

    def hovered(self, token: object) -> None:
        self.canvas.update()

    def press(self, pos: QPointF) -> None:
        token = self._token_at(pos)
        if token is not None:
            self.store.select(token=token)

    def move(self, pos: QPointF) -> None:
        self.store.point_at(self._token_at(pos))

    def wheel(self, pos: QPointF, steps: float, modifiers: Qt.KeyboardModifier) -> bool:
        self._turn(-steps * NOTCH)
        return True

    def key_pressed(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        if key == Qt.Key.Key_Left:
            self._step_by(-1)
        elif key == Qt.Key.Key_Right:
            self._step_by(1)
        elif key == Qt.Key.Key_PageUp:
            self._turn(-self._view(self.area).n)
        elif key == Qt.Key.Key_PageDown:
            self._turn(self._view(self.area).n)
        else:
            return False
        return True

    def hint(self, pos: QPointF) -> str:
        moment, index = self.scene.moment, self._token_at(pos)
        if moment is None or index is None:
            return ""
        return hint(moment, index, waits=self._items[index].small)

    def spoken(self) -> str:
        moment = self.scene.moment
        return "" if moment is None else f"{super().spoken()}. {written(moment)}"

    def _view(self, rect: QRectF) -> View:
        """Lay out the text for a rect and say which of its lines are in view."""
        items = self._known_items()
        wanted = len(items) if _grows(self.scene) else self.scene.token
        place = rect.adjusted(0, self.theme.pixels(TOP), 0, 0)
        return self._flow.view(items, place, self.theme, wanted=wanted)

    def _known_items(self) -> list[Item]:
        """The tokens of this moment as they are drawn; those of the run so far are kept."""
        moment = self.scene.moment
        assert moment is not None
        if self._made != (moment.trace, self.tint):
            self._made = moment.trace, self.tint
            self._items, self._reader = [], Reader()
        for index in range(len(self._items), len(moment.tokens)):
            text, small = self._reader.push(moment.tokens[index])
            sampled = moment.sample_of(index)
            strength = 0.0 if sampled is None else _strength(sampled, self.tint)
            role = "decode" if self.tint == "probability" else "prefill"
            self._items.append(Item(text, "", strength, role, muted=sampled is None, small=small))
        return self._items[: len(moment.tokens)]

    def _token_at(self, pos: QPointF) -> int | None:
        return self._flow.index_at(pos, self._view(self.area))

    def _step_by(self, n: int) -> None:
        """Select a neighbour; the last token is the step's own, so that it is followed again."""
        moment, token = self.scene.moment, self.scene.token
        assert moment is not None and token is not None
        token = max(0, token + n)
        self.store.select(token=token if token < len(moment.tokens) - 1 else None)

    def _turn(self, n_lines: float) -> None:
        self._flow.turn(n_lines, self._view(self.area))
        self.canvas.update()

    @Slot()
    def _retint(self) -> None:
        self.canvas.update()
        self.retitled.emit()

    @Slot()
    def _copy_written(self) -> None:
        if self.scene.moment is not None:
            QGuiApplication.clipboard().setText(written(self.scene.moment))

    @Slot()
    def _copy_all(self) -> None:
        moment = self.scene.moment
        if moment is not None:
            text = moment.started.request.prompt + written(moment)
            QGuiApplication.clipboard().setText(text)


def _grows(scene: Scene) -> bool:
    """Whether the end is in sight and more is to come."""
    return scene.moment is not None and scene.selection.live and scene.moment.finished is None


def _looked_at(scene: Scene) -> object:
    """What the user chose to look at; it stays the same while a run grows."""
    selection = scene.selection
    return selection.run, selection.token, None if selection.live else selection.step


def _strength(sampled: Sampled, tint: str) -> float:
    """How strong the tint of a written token is, 0 to 1."""
    if tint == "surprisal":
        return min(1.0, bits(sampled.raw_prob) / FULL_TINT)
    return sampled.raw_prob if tint == "probability" else 0.0
