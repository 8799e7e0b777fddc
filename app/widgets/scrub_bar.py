"""A bar to move through the steps of a run: the prefill in amber, decode steps in cyan."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from app import texts
from app.theme import Theme
from app.widgets.marks import draw_box, draw_text, text_width

TRACK, KNOB = 4.0, 7.0  # thickness of the line, radius of the knob
PREFILL_SHARES = (0.08, 0.34)  # a long prompt must leave room for the steps to be told apart
LEAST = 170  # pixels of width, as designed
FAR = 10  # steps that a page key goes


@dataclass(frozen=True, slots=True)
class Steps:
    """What the bar shows: step 0 ends the prefill, each later one is a decode step."""

    n_prompt: int = 0  # tokens
    n_steps: int = 0  # recorded
    step: int = 0
    room: int = 0  # steps there may be: all of them once the run has ended

    @property
    def prefill_share(self) -> float:
        """How much of the track the prefill takes."""
        if self.room <= 1:
            return 1.0
        least, most = PREFILL_SHARES
        return min(max(self.n_prompt / (self.n_prompt + self.room), least), most)

    def share(self, step: int) -> float:
        """Where on the track a step ends, 0 to 1."""
        if self.room <= 1:
            return 1.0
        first = self.prefill_share
        return first + (1 - first) * step / (self.room - 1)

    def at(self, share: float) -> int:
        """The recorded step that ends nearest to a place of the track."""
        if self.n_steps <= 1 or self.room <= 1:
            return 0
        first = self.prefill_share
        step = round((share - first) / (1 - first) * (self.room - 1))
        return min(max(step, 0), self.n_steps - 1)


class ScrubBar(QSlider):
    """The track, its knob, and "step 6 of 22" under it. A slider to the eye and to the ear."""

    scrubbed = Signal(int)  # to this step, by the user
    live_asked = Signal()
    play_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme = theme
        self._steps = Steps()
        self.setAccessibleName(texts.text("transport.name"))
        self.setToolTip(texts.text("transport.tip"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.show_steps(Steps())

    @property
    def steps(self) -> Steps:
        return self._steps

    def show_steps(self, steps: Steps) -> None:
        """Show another place or another run; `scrubbed` is for what the user does."""
        self._steps = steps
        self.setEnabled(steps.n_steps > 0)
        self.setRange(0, max(0, steps.n_steps - 1))
        self.setValue(steps.step)
        self.setAccessibleDescription(self.words)
        self.update()

    @property
    def words(self) -> str:
        """What stands under the knob."""
        if not self._steps.n_steps:
            return ""
        return texts.text("transport.step", step=self._steps.step + 1, steps=self._steps.n_steps)

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.pixels(300), self._theme.pixels(44))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.pixels(LEAST), self._theme.pixels(44))

    def x_of(self, step: int) -> float:
        """Where a step's end is drawn."""
        line = self._line
        return line.left() + line.width() * self._steps.share(step)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._scrub_to(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._scrub_to(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._scrub_by(round(event.angleDelta().y() / 120))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        steps: dict[int, int] = {
            keys.Key_Left: -1,
            keys.Key_Down: -1,
            keys.Key_Right: 1,
            keys.Key_Up: 1,
            keys.Key_PageDown: -FAR,
            keys.Key_PageUp: FAR,
            keys.Key_Home: -self._steps.n_steps,
        }
        by = steps.get(event.key())
        if by is not None:
            self._scrub_by(by)
        elif event.key() == keys.Key_End:
            self.live_asked.emit()
        elif event.key() == keys.Key_Space:
            self.play_asked.emit()
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, line, steps = self._theme, self._line, self._steps
        draw_box(painter, line, radius=TRACK / 2, fill=theme.color("line"))
        if steps.n_steps:
            first, now, last = (self.x_of(k) for k in (0, steps.step, steps.n_steps - 1))
            stretches = (
                (first, last, theme.color("decode", 80)),
                (line.left(), first, theme.color("prefill", 170)),
                (first, now, theme.color("decode")),
            )
            for start, end, color in stretches:
                place = QRectF(start, line.top(), end - start, line.height())
                draw_box(painter, place, radius=TRACK / 2, fill=color)
            self._draw_knob(painter, now)
            self._draw_words(painter, first, now)
        painter.end()

    def _draw_knob(self, painter: QPainter, x: float) -> None:
        theme, line = self._theme, self._line
        painter.setPen(QPen(theme.color("primary" if self.hasFocus() else "panel"), 2))
        painter.setBrush(theme.color("text"))
        painter.drawEllipse(QPointF(x, line.center().y()), KNOB - 1, KNOB - 1)

    def _draw_words(self, painter: QPainter, first: float, now: float) -> None:
        """The step under the knob, and "prefill" under its stretch where it fits beside it."""
        theme, font = self._theme, self._theme.font("ui", 10)
        base = self._line.center().y() + theme.pixels(20)
        half = text_width(self.words, font) / 2 + 1
        now = min(max(now, half), self.width() - half)
        draw_text(painter, now, base, self.words, font, theme.color("muted"), "center")
        prefill = texts.text("transport.prefill")
        if self._line.left() + text_width(prefill, font) < min(first, now - half - 8):
            draw_text(painter, self._line.left(), base, prefill, font, theme.color("faint"))

    @property
    def _line(self) -> QRectF:
        y = self.height() / 2 - TRACK / 2
        return QRectF(KNOB, y, max(1.0, self.width() - 2 * KNOB), TRACK)

    def _scrub_to(self, x: float) -> None:
        line = self._line
        self.scrubbed.emit(self._steps.at((x - line.left()) / line.width()))

    def _scrub_by(self, n: int) -> None:
        last = max(0, self._steps.n_steps - 1)
        self.scrubbed.emit(min(max(self._steps.step + n, 0), last))
