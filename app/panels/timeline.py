"""Timeline: the prefill and every decode step on one clock, and how long each token took."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QAction, QPainter

from app import limits_words
from app.panels.base import Panel
from app.selection import Scene
from app.store import Store
from app.theme import Theme
from app.timeline_words import duration, figures, hint_of_run, hint_of_step, say, tick
from app.widgets import floor_bars
from app.widgets.course import Clock, Course, Ints, course
from app.widgets.lane_plan import Choices, Plan, Sheet, lay_out
from app.widgets.lanes import draw_lanes
from app.widgets.zoom import Zoom
from engine.events import RunFinished
from engine.timing import length
from engine.tokenizer import visible
from engine.trace import Moment

SLIP = 4.0  # px that the mouse may move between down and up and still click
ZOOM_STEP = 1.25


class Timeline(Panel):
    """A run's spans, to zoom and pan; all of it is in sight, however it grows, until one zooms.

    Beside them, where there is room, what held the selected pass back.
    """

    id = "timeline"
    order = 70
    saved = ("clock",)

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        self._clock: Clock = "own"
        self._zoom = Zoom()
        self._hovered: int | None = None  # step
        self._grip: tuple[float, float] | None = None  # where the mouse went down: px and ns
        self._pans = False
        self._pushes = False  # the mouse went down on the button
        self._said: tuple[object, str] | None = None
        self._known: tuple[object, Course] | None = None
        self._planned: tuple[object, Sheet, Plan] | None = None
        self._wall = QAction(say("wall_action"), self)
        self._wall.setCheckable(True)
        self._wall.triggered.connect(self._switch)
        self._fit = QAction(say("fit_action"), self)
        self._fit.triggered.connect(self._show_all)
        self._measure = QAction(say("limits_action"), self)
        self._measure.triggered.connect(store.ask_limits)

    @property
    def clock(self) -> Clock:
        """Which clock the axis runs on."""
        return self._clock

    @clock.setter
    def clock(self, clock: object) -> None:
        self._clock = "wall" if clock == "wall" else "own"  # a saved value may be anything
        self._wall.setChecked(self._clock == "wall")
        self._show_all()

    def actions(self) -> list[QAction]:
        return [self._wall, self._fit, self._measure]

    def show(self, scene: Scene) -> None:
        if _run(scene) is not _run(self.scene):
            self._zoom.fit()
        super().show(scene)

    def key(self, scene: Scene) -> object:
        moment = scene.moment
        return moment, moment is not None and moment.sampled is not None, scene.token, scene.limits

    def subtitle(self) -> str:
        moment, key = self.scene.moment, self.key(self.scene)
        if moment is None:
            return ""
        if self._said is None or self._said[0] != key:
            self._said = key, figures(moment.timing)
        return self._said[1]

    def figure(self) -> str:
        moment = self.scene.moment
        if moment is None:
            return ""
        own = duration(self._course(moment).own_ns)
        if moment.finished is None:
            return own
        ended = moment.finished
        reason = ended.reason.replace(" ", "_") if isinstance(ended, RunFinished) else "failed"
        return say("figure_ended", time=own, reason=say(f"ended_{reason}"))

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        sheet, plan = self._plan(rect)
        draw_lanes(painter, sheet, plan, self.theme, hovered=self._hovered)
        floors = self._floors(rect)
        if floors is not None:
            floor_bars.draw_floor_bars(painter, *floors, self.theme)

    def hovered(self, token: object) -> None:
        moment = self.scene.moment
        step = max(0, token - moment.n_prompt) if moment and isinstance(token, int) else None
        if step != self._hovered:
            self._hovered = step
            self.canvas.update()

    def press(self, pos: QPointF) -> None:
        _, plan = self._plan(self.area)
        lanes, _ = self._parts(self.area)
        self._grip = (pos.x(), plan.scale.start) if lanes.contains(pos) else None
        self._pans, self._pushes = False, self._on_button(pos)

    def drag(self, pos: QPointF) -> None:
        if self._grip is None:
            return
        x, start = self._grip
        self._pans = self._pans or abs(pos.x() - x) > SLIP
        if self._pans:
            sheet, plan = self._plan(self.area)
            self._zoom.move(start - (pos.x() - x) * plan.scale.ns_per_px, total=sheet.course.total)
            self.canvas.update()

    def release(self, pos: QPointF) -> None:
        clicked, self._grip = self._grip is not None and not self._pans, None
        if self._pushes and self._on_button(pos):
            self.store.ask_limits()
        token = self._token_at(pos) if clicked else None
        if token is not None:
            self.store.select(token=token)

    def double(self, pos: QPointF) -> None:
        self._show_all()

    def move(self, pos: QPointF) -> None:
        self.store.point_at(self._token_at(pos))

    def wheel(self, pos: QPointF, steps: float, modifiers: Qt.KeyboardModifier) -> bool:
        if not self._parts(self.area)[0].contains(pos):
            return False
        self._zoom_by(ZOOM_STEP**steps, pos.x())
        return True

    def key_pressed(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        if key == Qt.Key.Key_W:
            self._switch(self._clock == "own")
        elif key == Qt.Key.Key_0:
            self._show_all()
        elif key == Qt.Key.Key_M:
            self.store.ask_limits()
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self._zoom_by(ZOOM_STEP**2, self.area.center().x())
        elif key == Qt.Key.Key_Minus:
            self._zoom_by(ZOOM_STEP**-2, self.area.center().x())
        else:
            return False
        return True

    def hint(self, pos: QPointF) -> str:
        moment = self.scene.moment
        assert moment is not None
        if self._on_button(pos):
            return say("limits_tip")
        if self._parts(self.area)[1].contains(pos):
            return limits_words.hint(self.scene)
        _, plan = self._plan(self.area)
        fold, step = plan.fold_at(pos), plan.step_at(pos)
        if fold is not None:
            name = "unknown" if fold.length is None else self._clock
            return say(f"hint_fold_{name}", time=duration(fold.length))
        return hint_of_run(moment) if step is None else hint_of_step(moment, step)

    def spoken(self) -> str:
        floors = self._floors(self.area)
        verdict = "" if floors is None else f"{floors[0].head} {floors[0].figure}"
        return f"{super().spoken()} {verdict}".strip()

    @Slot()
    def _show_all(self) -> None:
        self._zoom.fit()
        self.canvas.update()

    @Slot(bool)
    def _switch(self, wall: bool) -> None:
        self.clock = "wall" if wall else "own"

    def _zoom_by(self, factor: float, x: float) -> None:
        sheet, plan = self._plan(self.area)
        self._zoom.zoom(factor, about=plan.scale.ns(x), total=sheet.course.total)
        self.canvas.update()

    def _parts(self, rect: QRectF) -> tuple[QRectF, QRectF]:
        """Where the lanes are, and where the floors; that is empty before anything is known."""
        if self.scene.limits is None:
            return rect, QRectF()
        return floor_bars.beside(rect, self.theme)

    def _floors(self, rect: QRectF) -> tuple[floor_bars.Sheet, floor_bars.Plan] | None:
        place, sheet = self._parts(rect)[1], limits_words.sheet(self.scene)
        if place.isEmpty() or sheet is None:
            return None
        return sheet, floor_bars.lay_out(sheet, place, self.theme)

    def _on_button(self, pos: QPointF) -> bool:
        floors = self._floors(self.area)
        return floors is not None and floors[1].on_button(pos)

    def _token_at(self, pos: QPointF) -> int | None:
        """The token drawn by the step that is there, or that its pass read if none is drawn yet."""
        moment = self.scene.moment
        step = self._plan(self.area)[1].step_at(pos)
        if step is None or moment is None:
            return None
        drawn = moment.n_prompt + step
        return drawn - 1 if moment.sample_at(step) is None else drawn

    def _course(self, moment: Moment) -> Course:
        wanted = (moment, moment.sampled is not None, self._clock)
        if self._known is None or self._known[0] != wanted:
            end, trace = moment.step + 1, moment.trace
            at_ns, tokenized = moment.started.at_ns, moment.tokenized
            passes, draws = trace.forwards[:end], trace.samples[:end]
            self._known = wanted, course(at_ns, tokenized, passes, draws, clock=self._clock)
        return self._known[1]

    def _plan(self, rect: QRectF) -> tuple[Sheet, Plan]:
        moment, token = self.scene.moment, self.scene.token
        assert moment is not None and token is not None
        laid = self._course(moment)
        lanes, _ = self._parts(rect)
        wanted = (laid, token, lanes.getRect(), self._zoom.seen(laid.total), self.theme)
        if self._planned is None or self._planned[0] != wanted:
            sheet = _sheet(moment, token, laid)
            self._planned = wanted, sheet, lay_out(sheet, self._zoom, lanes, self.theme)
        return self._planned[1:]


_visible = lru_cache(maxsize=4096)(visible)  # a live run names the same tokens in every frame


def _run(scene: Scene) -> object:
    return None if scene.moment is None else scene.moment.trace


def _sheet(moment: Moment, token: int, course: Course) -> Sheet:
    """What the lanes are to show, the words made when they are needed."""
    trace, selected = moment.trace, max(0, token - moment.n_prompt)

    def name(step: int) -> str:
        if step == selected:
            return _visible(trace.tokens[token].piece)
        drawn = moment.sample_at(step)
        return "" if drawn is None else _visible(drawn.token.piece)

    def inside(step: int) -> tuple[Choices, Choices]:
        forward, drawn = trace.forwards[step], moment.sample_at(step)
        draw = () if drawn is None else (say("draw_span", time=duration(length(drawn.span))),)
        if step:
            return (say("pass_span", time=duration(length(forward.span))),), draw
        one = forward.count == 1
        words = say("prefill_span_one" if one else "prefill_span", n=forward.count)
        return (words, say("prefill_word")), draw

    def layers(step: int) -> Ints:
        forward = trace.forwards[step]
        starts: Ints = np.array([span[0] for span in forward.layer_spans], np.int64)
        starts += course.edges[step, 0] - forward.span[0]
        return starts  # (L,)

    return Sheet(
        course=course,
        selected=selected,
        name=name,
        inside=inside,
        layers=layers,
        time=tick,
        caption=say("axis"),
        clock=say(f"clock_{course.clock}"),
    )
