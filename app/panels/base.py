"""The panel: shows one scene and paints it, the same way on the screen and in a picture."""

from __future__ import annotations

from typing import Any, ClassVar

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QEnterEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app import texts
from app.selection import EMPTY, Scene
from app.store import Store
from app.theme import Theme
from app.widgets.marks import draw_box, draw_wrapped
from engine.trace import Kind

BY_KEY = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
PADDING = (14.0, 0.0, 14.0, 4.0)  # left, top, right, bottom of a panel's body


class Docked(QObject):
    """What a dock shows: a name, the words of its title row, its menu, and a widget."""

    id: ClassVar[str]  # its texts are panel.<id>.*, its page texts/en/panels/<id>.md
    retitled = Signal()  # the line or the figure in the title row is another

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.store = store
        self.theme = theme

    @property
    def title(self) -> str:
        return texts.text(f"panel.{self.id}.title")

    def subtitle(self) -> str:
        """The one line beside the title: what is shown."""
        return ""

    def figure(self) -> str:
        """The one live number at the right of the title row."""
        return ""

    def actions(self) -> list[QAction]:
        """Its own entries in its menu, before export and "What is this?"."""
        return []


class Panel(Docked):
    """One view of the scene.

    A subclass names itself, says what it needs recorded, and paints. It keeps nothing of a run:
    what it shows is a function of the scene, its size and its own options (`saved`).
    """

    order: ClassVar[int] = 100
    needs: ClassVar[tuple[Kind, ...]] = ()
    saved: ClassVar[tuple[str, ...]] = ()  # attributes kept between starts, plain JSON values

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        self.scene: Scene = EMPTY
        self._shown: object = None
        self.canvas = Canvas(self)
        store.hovered.connect(self.hovered)

    def show(self, scene: Scene) -> None:
        """Take a scene; repaint only if this panel would look different."""
        if scene is self.scene:
            return
        self.scene = scene
        looks = self._looks()
        if looks != self._shown:  # what was shown: the old scene's run may have grown since
            self._shown = looks
            self.canvas.update()
            self.retitled.emit()

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """Draw the scene into rect: pure, no timers, no files."""
        raise NotImplementedError

    def pictures(self) -> tuple[str, ...]:
        """Names of the pictures that can be taken of this panel; the first is what it shows."""
        return (self.title,)

    def paint_picture(self, name: str, painter: QPainter, rect: QRectF) -> None:
        """Draw one of `pictures`."""
        self.draw(painter, rect)

    def key(self, scene: Scene) -> object:
        """What this panel's picture depends on; equal keys paint equal pictures."""
        return id(scene)

    def empty(self) -> str | None:
        """The sentence to show instead of a picture, or None when there is one."""
        moment = self.scene.moment
        if moment is None and self.scene.running:
            return texts.text("empty.reading")
        if moment is None:
            failed = self.scene.draft.model_state == "failed"
            return texts.text("empty.model" if failed else f"panel.{self.id}.empty")
        missing = next((kind for kind in self.needs if not moment.has(kind)), None)
        if missing is None:
            return None
        return texts.text("panel.not_recorded", what=texts.text(f"recorded.{missing}"))

    def draw(self, painter: QPainter, rect: QRectF) -> None:
        """Paint, or say what to do where there is nothing to paint."""
        sentence = self.empty()
        if sentence is None:
            self.paint(painter, rect)
        else:
            color = self.theme.color("muted")
            draw_wrapped(painter, rect, sentence, self.theme.font("ui", 12), color)

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self.theme = theme
        self.canvas.update()

    def hovered(self, token: object) -> None:
        """Another token is under the mouse somewhere; tint only."""

    # What the mouse and the keys do; positions are in the canvas.

    def press(self, pos: QPointF) -> None:
        """The left button went down."""

    def drag(self, pos: QPointF) -> None:
        """The mouse moved with the left button down."""

    def release(self, pos: QPointF) -> None:
        """The left button came up."""

    def double(self, pos: QPointF) -> None:
        """Double click."""

    def move(self, pos: QPointF) -> None:
        """The mouse moved with no button down."""

    def leave(self) -> None:
        """The mouse left the panel."""
        self.store.point_at(None)

    def wheel(self, pos: QPointF, steps: float, modifiers: Qt.KeyboardModifier) -> bool:
        """The wheel turned by steps (up is positive); True if it was used."""
        return False

    def key_pressed(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        """A key; True if it was used."""
        return False

    def hint(self, pos: QPointF) -> str:
        """Plain text for a tooltip at this place; empty for none."""
        return ""

    def spoken(self) -> str:
        """What the panel shows now, in words, for a screen reader."""
        return f"{self.subtitle()} {self.figure()}".strip()

    @property
    def area(self) -> QRectF:
        """The rect that paint gets on the screen: the canvas less its padding."""
        left, top, right, bottom = PADDING
        return QRectF(self.canvas.rect()).adjusted(left, top, -right, -bottom)

    def options(self) -> dict[str, Any]:
        """The saved attributes as they stand."""
        return {name: getattr(self, name) for name in self.saved}

    def take_options(self, kept: object) -> None:
        """Take saved attributes back; one of another type than now is left as it is."""
        if not isinstance(kept, dict):
            return
        for name in self.saved:
            if type(kept.get(name)) is type(getattr(self, name)):
                setattr(self, name, kept[name])

    def _looks(self) -> object:
        return (self.empty(), self.key(self.scene), self.subtitle(), self.figure())


class Canvas(QWidget):
    """The widget that a panel paints on: events go to the panel, pixels come from it."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self.panel = panel
        self._reached = False  # by the keyboard, so that the focus has to be seen
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # nothing below is painted
        self.setObjectName(f"canvas.{panel.id}")
        self.setAccessibleName(panel.title)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.panel.theme.color("panel"))
        painter.setRenderHints(
            QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing
        )
        self.panel.draw(painter, self.panel.area)
        if self._reached:
            frame = QRectF(self.rect()).adjusted(4, 0, -4, 0)
            draw_box(painter, frame, radius=4, line=self.panel.theme.color("primary"))
        painter.end()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._reached = event.reason() in BY_KEY
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._reached = False
        super().focusOutEvent(event)
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._filled:
            self.panel.press(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._filled:
            self.panel.release(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._filled:
            self.panel.double(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self._filled:
            return
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.panel.drag(event.position())
        else:
            self.panel.move(event.position())

    def enterEvent(self, event: QEnterEvent) -> None:
        if self._filled:
            self.panel.move(event.position())

    def leaveEvent(self, event: QEvent) -> None:
        self.panel.leave()

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = event.angleDelta().y() / 120
        used = self._filled and self.panel.wheel(event.position(), steps, event.modifiers())
        event.setAccepted(used)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not (self._filled and self.panel.key_pressed(event.key(), event.modifiers())):
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            words = self.panel.hint(QPointF(event.pos())) if self._filled else ""
            if words:
                QToolTip.showText(event.globalPos(), texts.as_tip(words), self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    @property
    def _filled(self) -> bool:
        return self.panel.empty() is None
