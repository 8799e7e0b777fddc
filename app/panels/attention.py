"""The Attention panel: where every head of every layer looks, and one head's map in full."""

from __future__ import annotations

from dataclasses import replace
from typing import cast, get_args

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QAction, QPainter

from app import texts
from app.head_words import Cell, HeadReader, HeadWords, label
from app.panels.base import Panel
from app.selection import Scene
from app.store import Store
from app.theme import Theme
from app.widgets.heads_view import HeadsView, Pointed, Shown
from app.widgets.heat import Scale
from app.widgets.heatmap import CausalMap
from app.widgets.map_plan import View
from app.widgets.marks import draw_wrapped
from app.widgets.one_of import OneOf
from engine.trace import Moment

STEPS: dict[int, tuple[int, int]] = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class Attention(Panel):
    """The mosaic of all heads beside the chosen head's map; without a chosen head, the mosaic.

    A click on a thumbnail chooses that head, a click on the map a token. A double click changes
    between all heads and the chosen one. Arrow keys choose the next head, with Shift the next
    cell of the map, and Return that cell's query.
    """

    id = "attention"
    order = 40
    needs = ("attention",)
    saved = ("scale",)

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        self._reader = HeadReader()
        self._picture = HeadsView()
        self._cell: Cell | None = None  # under the mouse, or where the keys went
        self._thumbnail: tuple[int, int] | None = None  # the head under the mouse
        self._tinted: int | None = None  # the token under the mouse in any panel
        self._last_head = 0  # to come back to from all heads
        self._opened = False  # the first press of a double click chose a head
        words = {scale: _say(f"scale_{scale}") for scale in get_args(Scale)}
        self._scales = OneOf(words, self)
        self._scales.triggered.connect(self._rescale)
        self._views = QAction(_say("views"), self)
        self._views.triggered.connect(self.change_view)

    @property
    def scale(self) -> Scale:
        """How a weight becomes a colour; a name that is no scale is not taken."""
        return cast(Scale, self._scales.value)

    @scale.setter
    def scale(self, name: str) -> None:
        if name in get_args(Scale):
            self._scales.take(name)
            self._rescale()

    def subtitle(self) -> str:
        if self.empty() is not None:
            return ""
        layer, head = self._chosen
        if head is None:
            d = self._moment.trace.dimensions
            return _say("caption_all", n=d.n_layer * d.n_head)
        words, tag = _say("caption", layer=layer, head=head), self._told.tag
        return f"{words} · {tag}" if tag else words

    def figure(self) -> str:
        return "" if self.empty() is not None else _say(f"scale_{self.scale}")

    def actions(self) -> list[QAction]:
        return [*self._scales.actions(), self._views]

    def key(self, scene: Scene) -> object:
        chosen = scene.selection.layer, scene.selection.head
        drawn = scene.moment is not None and scene.moment.sampled is not None
        return scene.moment, drawn, chosen, scene.token

    def show(self, scene: Scene) -> None:
        before = self._chosen
        super().show(scene)
        if self._chosen != before and self.canvas.hasFocus():
            self.canvas.setAccessibleDescription(self.spoken())

    def pictures(self) -> tuple[str, ...]:
        return (self.title, _say("picture_head"), _say("picture_mosaic"))

    def paint_picture(self, name: str, painter: QPainter, rect: QRectF) -> None:
        _, head, mosaic = self.pictures()
        if self.empty() is not None or name not in (head, mosaic):
            self.draw(painter, rect)
        elif name == head and self._chosen[1] is None:
            muted = self.theme.color("muted")
            draw_wrapped(painter, rect, _say("no_head"), self.theme.font("ui", 12), muted)
        else:
            self._paint(painter, rect, "head" if name == head else "mosaic")

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        self._paint(painter, rect, self._view)

    def hovered(self, token: object) -> None:
        self._tinted = token if isinstance(token, int) else None
        self.canvas.update()

    # What the mouse and the keys do.

    def press(self, pos: QPointF) -> None:
        thumbnail, token = self._picture.thumbnail_at(pos), self._token_at(pos)
        self._opened = thumbnail is not None and self._chosen[1] is None
        if thumbnail is not None:
            self.store.select(layer=thumbnail[0], head=thumbnail[1])
        elif token is not None:
            self.store.select(token=token)

    def double(self, pos: QPointF) -> None:
        on_picture = self._picture.on_map(pos) or self._picture.thumbnail_at(pos) is not None
        if on_picture and not self._opened:
            self.change_view()
        self._opened = False

    @Slot()
    def change_view(self) -> None:
        """From the chosen head to all heads, and back."""
        head = self.store.selection.head
        if head is None:
            self.store.select(head=self._last_head)
        else:
            self._last_head = head
            self.store.select(head=None)

    def move(self, pos: QPointF) -> None:
        at = self._picture.thumbnail_at(pos), self._cell_at(pos)
        if at != (self._thumbnail, self._cell):
            self._thumbnail, self._cell = at
            self.canvas.update()
        self.store.point_at(self._token_at(pos))

    def leave(self) -> None:
        self._thumbnail = self._cell = None
        self.canvas.update()
        super().leave()

    def key_pressed(self, key: int, modifiers: Qt.KeyboardModifier) -> bool:
        if modifiers & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier):
            return False
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._cell is not None:
            self.store.select(token=self._cell[0])
        elif key in STEPS and not modifiers & Qt.KeyboardModifier.ShiftModifier:
            self._step_head(*STEPS[key])
        elif key in STEPS and self._view == "both":
            self._step_cell(*STEPS[key])
        else:
            return False
        return True

    def hint(self, pos: QPointF) -> str:
        picture, cell, token = self._picture, self._cell_at(pos), self._token_at(pos)
        thumbnail = picture.thumbnail_at(pos)
        if thumbnail is not None:
            words = HeadReader().words(self._moment, *thumbnail)
            return f"{words.patterns}\n{_say('head_tip')}"
        if self._view == "mosaic":
            return ""
        if cell is not None:
            return self._told.derivation(cell)
        if token is not None:
            return _say("token_tip", token=self._told.labels[token], index=token)
        if picture.on_map(pos):
            return _say("future")
        if picture.on_caption(pos):
            return "\n".join(filter(None, (self._unread, self._told.derivation(self._shown_cell))))
        return ""

    def spoken(self) -> str:
        if self.empty() is not None or self._view == "mosaic":
            return super().spoken()
        return f"{super().spoken()}. {self._told.look(self._shown_cell)}. {self._unread}".strip()

    def _step_head(self, down: int, right: int) -> None:
        layer, head = self._chosen
        head = self._last_head if head is None else head
        d = self._moment.trace.dimensions
        layer, head = _within(layer + down, d.n_layer), _within(head + right, d.n_head)
        self.store.select(layer=layer, head=head)

    def _step_cell(self, down: int, right: int) -> None:
        row, column = self._shown_cell
        if self._cell is not None:  # the first step only shows where the cursor is
            row = _within(row + down, self._moment.n_read)
            column = _within(column + right, row + 1)
        self._cell = row, column
        self.canvas.update()
        self.canvas.setAccessibleDescription(self.spoken())
        self.store.point_at(row)

    @Slot()
    def _rescale(self) -> None:
        self.canvas.update()
        self.retitled.emit()

    def _token_at(self, pos: QPointF) -> int | None:
        """The token that a click here means: a cell's query, a label's own."""
        cell = self._cell_at(pos)
        token = self._picture.label_at(pos) if cell is None else cell[0]
        return None if token is None or token >= self._moment.n_read else token

    def _cell_at(self, pos: QPointF) -> Cell | None:
        """The cell here, unless the scene has changed since it was painted and has none."""
        cell = self._picture.cell_at(pos)
        return None if cell is None or cell[0] >= self._moment.n_read else cell

    # What is shown.

    @property
    def _moment(self) -> Moment:
        assert self.scene.moment is not None
        return self.scene.moment

    @property
    def _chosen(self) -> tuple[int, int | None]:
        return self.scene.selection.layer, self.scene.selection.head

    @property
    def _view(self) -> View:
        return "mosaic" if self._chosen[1] is None else "both"

    @property
    def _told(self) -> HeadWords:
        layer, head = self._chosen
        assert head is not None
        return self._reader.words(self._moment, layer, head)

    @property
    def _hovered_cell(self) -> Cell | None:
        """The cell under the mouse or the keys, if this map has it."""
        return self._cell if self._cell and self._cell[0] < self._moment.n_read else None

    @property
    def _shown_cell(self) -> Cell:
        """The cell that the caption is about."""
        token = self.scene.token
        assert token is not None
        return self._hovered_cell or self._told.strongest(min(token, self._moment.n_read - 1))

    @property
    def _unread(self) -> str:
        """Why the selected token has no row; "" if it has one."""
        token = self.scene.token
        if token is None or token < self._moment.n_read:
            return ""
        return _say("unread", token=label(self._moment.tokens[token].piece))

    def _paint(self, painter: QPainter, rect: QRectF, view: View) -> None:
        thumbnails, (layer, head) = self._reader.thumbnails(self._moment), self._chosen
        shown = Shown(thumbnails, _say("mosaic"), self.scale)
        pointed = Pointed(self._thumbnail)
        if head is not None:
            told, selected = self._told, None if self._unread else self.scene.token
            shown = replace(
                shown,
                map=CausalMap(told.weights, told.labels, scale=self.scale, selected=selected),
                caption=told.caption(self._shown_cell, self._unread),
                chosen=(layer, head),
            )
            pointed = Pointed(self._thumbnail, self._hovered_cell, self._tinted)
        self._picture.paint(painter, rect, view, shown, pointed, self.theme)


def _within(value: int, end: int) -> int:
    return min(max(value, 0), end - 1)


def _say(id: str, **facts: object) -> str:
    return texts.text(f"panel.attention.{id}", **facts)
