"""Attention: which head and which token a click means, what is said of a cell, what is painted."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QImage, QPainter
from pytestqt.qtbot import QtBot

from app import texts, theme
from app.panels.attention import Attention
from app.selection import Draft, Scene, Selection
from app.store import Store
from app.theme import Theme
from engine.session import Run, Session
from engine.trace import Trace
from tests.pictures import colors

SIZES = [(280, 120), (300, 400), (300, 700), (476, 310), (732, 476), (1200, 300), (1200, 800)]
NONE, SHIFT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def store(recorded: Trace) -> Store:
    """A store that shows the recorded run: 6 prompt tokens, 14 written, 19 read."""
    store = Store()
    store.open_session(Session({1: Run(1, "x", recorded)}, open_id=1))
    return store


@pytest.fixture
def panel(qtbot: QtBot, store: Store) -> Attention:
    """The panel as in the window, 732 x 476, following the store, painted once."""
    panel = Attention(store, theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(732, 476)
    store.changed.connect(lambda: look(panel, store))
    store.select(layer=2, head=1)
    return panel


def look(panel: Attention, store: Store) -> None:
    panel.show(store.scene)
    painted(panel)


def painted(panel: Attention, look: Theme | None = None) -> QImage:
    if look is not None:
        panel.restyle(look)
    image = QImage(panel.canvas.size(), QImage.Format.Format_RGB32)
    image.fill(panel.theme.color("panel"))
    painter = QPainter(image)
    panel.draw(painter, panel.area)
    painter.end()
    return image


def cell(panel: Attention, row: int, column: int) -> QPointF:
    return panel._picture._heatmap.cell_rect(row, column).center()


def thumbnail(panel: Attention, layer: int, head: int) -> QPointF:
    """A point on the mosaic, which starts where the panel's body does."""
    grid = panel._picture._mosaic._grid
    assert grid is not None
    return panel.area.topLeft() + grid.rect(layer, head).center()


def click(panel: Attention, qtbot: QtBot, pos: QPointF) -> None:
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=pos.toPoint())


@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("size", SIZES)
def test_every_moment_is_painted_at_every_size(
    panel: Attention, store: Store, recorded: Trace, size: tuple[int, int], name: theme.Name
) -> None:
    panel.canvas.resize(*size)
    panel.restyle(theme.load(name))
    for step in range(recorded.n_steps):
        store.scrub(step)
    image = painted(panel)
    assert len(colors(image)) > 50  # cells, labels, numbers
    assert theme.load(name).color("select").rgb() in colors(image)  # the chosen head's frame


@pytest.mark.parametrize("scale", [0.8, 1.6])
def test_larger_and_smaller_text_is_painted_too(panel: Attention, scale: float) -> None:
    assert len(colors(painted(panel, theme.load("dark", scale)))) > 50


def test_the_map_is_square_and_as_many_cells_as_were_read(panel: Attention, store: Store) -> None:
    store.scrub(4)  # 6 of the prompt and 4 that were written and read
    square = panel._picture._heatmap.square()
    assert square.width() == square.height()
    assert panel._picture.cell_at(square.bottomLeft() + QPointF(1, -1)) == (9, 0)


def test_the_hatched_future_has_no_cells_and_says_why(panel: Attention) -> None:
    corner = panel._picture._heatmap.square().topRight() + QPointF(-3, 3)
    assert panel._picture.cell_at(corner) is None
    assert panel.hint(corner).startswith("The future: a query cannot look at a key")


def test_the_title_row_names_the_head_and_its_pattern(panel: Attention, store: Store) -> None:
    """Layer 2, head 1 of the embedded model looks one token back, 0.88 on the mean of 18 rows."""
    assert panel.subtitle() == "layer 2 · head 1 · previous token 0.88 ƒ"
    store.select(layer=4, head=4)
    assert panel.subtitle() == "layer 4 · head 4"  # no pattern takes half of its attention
    store.select(head=None)
    assert panel.subtitle() == "all 48 heads"


def test_a_click_on_a_thumbnail_chooses_that_head(
    panel: Attention, store: Store, qtbot: QtBot
) -> None:
    step = store.selection.step
    click(panel, qtbot, thumbnail(panel, 5, 7))
    assert (store.selection.layer, store.selection.head) == (5, 7)
    assert store.selection.step == step  # selecting never moves time


def test_a_click_on_a_cell_selects_its_query(panel: Attention, store: Store, qtbot: QtBot) -> None:
    click(panel, qtbot, cell(panel, 8, 2))
    assert store.selection.token == 8


def test_a_click_on_a_label_selects_its_token(panel: Attention, store: Store, qtbot: QtBot) -> None:
    square = panel._picture._heatmap.square()
    click(panel, qtbot, QPointF(square.left() - 10, cell(panel, 4, 0).y()))
    assert store.selection.token == 4
    click(panel, qtbot, QPointF(cell(panel, 7, 3).x(), square.top() - 10))
    assert store.selection.token == 3


def test_the_selected_tokens_row_is_framed(panel: Attention, store: Store) -> None:
    store.select(token=8)
    row = panel._picture._heatmap.row_rect(8)
    pink = theme.load("dark").color("select").rgb()
    image = painted(panel)
    assert image.pixel(int(row.right()), int(row.center().y())) == pink
    other = panel._picture._heatmap.row_rect(5)
    assert image.pixel(int(other.right()), int(other.center().y())) != pink


def test_a_token_that_was_not_read_has_a_sentence_and_no_row(
    panel: Attention, store: Store
) -> None:
    store.scrub(3)  # " The" was drawn here and is read in the next step
    assert "“The” was written but not read yet" in panel.spoken()
    pink = theme.load("dark").color("select").rgb()
    square = panel._picture._heatmap.square().toRect()
    image = painted(panel)
    assert pink not in colors(image.copy(square.adjusted(-3, -3, 3, 3)))


def test_hovering_a_cell_says_what_looks_where_and_how_much(panel: Attention) -> None:
    """softmax(Q K^T / sqrt(32)) with its numbers; -13.036 + 12.968 = -0.068, exp of it 0.934."""
    at = cell(panel, 5, 4)
    panel.move(at)
    assert panel.hint(at) == (
        "query “·of” (5) looks at key “·sport” (4): 0.934\n"
        "ƒ softmax(Q Kᵀ / √D) of the recorded queries and keys, D = 32:\n"
        "q·k / √32 = -13.036, ln Σ exp over the row's keys 0 to 5 = -12.968, "
        "exp(-13.036 − (-12.968)) = 0.934"
    )
    assert panel.store.hover == 5  # other panels tint the query
    panel.leave()
    assert panel.store.hover is None


def test_hovering_a_thumbnail_says_how_that_head_looks(panel: Attention) -> None:
    lines = panel.hint(thumbnail(panel, 0, 6)).splitlines()
    assert lines[0] == "layer 0 · head 6"
    assert lines[3].startswith("ƒ own token 1.000: ")  # it looks at itself only
    assert lines[3].endswith("18 queries")  # 19 were read, and the first has no choice


def test_without_hover_the_caption_is_the_selected_rows_strongest_key(
    panel: Attention, store: Store
) -> None:
    store.select(token=5)
    assert "query “·of” (5) looks at key “·sport” (4): 0.934" in panel.spoken()


def test_a_token_hovered_elsewhere_tints_its_row(panel: Attention, store: Store) -> None:
    before = painted(panel)
    store.point_at(6)
    after = painted(panel)
    row = panel._picture._heatmap.row_rect(6).toRect()
    assert before.copy(row) != after.copy(row)
    store.point_at(None)
    assert painted(panel) == before


def test_a_double_click_changes_between_all_heads_and_one(
    panel: Attention, store: Store, qtbot: QtBot
) -> None:
    qtbot.mouseDClick(panel.canvas, Qt.MouseButton.LeftButton, pos=cell(panel, 5, 1).toPoint())
    assert store.selection.head is None
    panel.change_view()
    assert store.selection.head == 1  # where it was


def test_a_double_click_among_all_heads_stays_with_the_head_it_chose(
    panel: Attention, store: Store, qtbot: QtBot
) -> None:
    store.select(head=None)
    pos = thumbnail(panel, 3, 2).toPoint()
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=pos)
    qtbot.mouseDClick(panel.canvas, Qt.MouseButton.LeftButton, pos=pos)
    assert (store.selection.layer, store.selection.head) == (3, 2)


def test_arrow_keys_go_through_the_heads_and_stop_at_the_edge(
    panel: Attention, store: Store
) -> None:
    store.select(layer=0, head=6)
    for key, there in (
        (Qt.Key.Key_Right, (0, 7)),
        (Qt.Key.Key_Right, (0, 7)),
        (Qt.Key.Key_Down, (1, 7)),
        (Qt.Key.Key_Left, (1, 6)),
        (Qt.Key.Key_Up, (0, 6)),
        (Qt.Key.Key_Up, (0, 6)),
    ):
        assert panel.key_pressed(key, NONE)
        assert (store.selection.layer, store.selection.head) == there


def test_shift_and_arrow_keys_move_a_cell_that_is_spoken(panel: Attention, store: Store) -> None:
    store.select(token=5)
    assert panel.key_pressed(Qt.Key.Key_Up, SHIFT)  # first: show where the cursor is
    assert panel._cell == (5, 4)
    panel.key_pressed(Qt.Key.Key_Up, SHIFT)
    assert panel._cell == (4, 4)
    panel.key_pressed(Qt.Key.Key_Right, SHIFT)
    assert panel._cell == (4, 4)  # beyond it lies the future
    panel.key_pressed(Qt.Key.Key_Left, SHIFT)
    assert "query “·sport” (4) looks at key “·the” (3)" in panel.canvas.accessibleDescription()
    assert panel.key_pressed(Qt.Key.Key_Return, NONE)
    assert store.selection.token == 4


def test_keys_of_the_window_are_left_to_it(panel: Attention) -> None:
    assert not panel.key_pressed(Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    assert not panel.key_pressed(Qt.Key.Key_Space, NONE)


def test_a_cell_that_an_earlier_moment_lacks_is_forgotten(panel: Attention, store: Store) -> None:
    panel.move(cell(panel, 18, 0))
    store.scrub(0)
    assert "(18)" not in panel.spoken()


def test_the_scale_is_chosen_kept_and_said(panel: Attention) -> None:
    before = painted(panel)
    linear = next(
        a for a in panel.actions() if a.text() == texts.text("panel.attention.scale_linear")
    )
    linear.trigger()
    assert (panel.figure(), panel.options()) == ("linear scale", {"scale": "linear"})
    assert painted(panel) != before
    panel.take_options({"scale": "log"})
    assert panel.figure() == "log scale"
    checked = [action.text() for action in panel.actions() if action.isChecked()]
    assert checked == ["log scale"]


def test_a_scale_that_is_none_is_not_taken(panel: Attention) -> None:
    panel.take_options({"scale": "cubic"})
    assert panel.scale == "sqrt"


def test_the_same_scene_has_the_same_key_until_its_draw_is_there(recorded: Trace) -> None:
    panel = Attention(Store(), theme.load("dark"))
    cut = Trace(recorded.events[:3])  # R T F: the draw is being made
    scene = Scene(cut.at(0), Selection(1, 0), Draft(), Session())
    before = panel.key(scene)
    assert panel.key(scene) == before
    cut.append(recorded.events[3])
    assert panel.key(scene) != before


def test_a_run_without_queries_and_keys_says_so(panel: Attention, recorded: Trace) -> None:
    bare = Trace(recorded.events)
    bare.drop("attention")
    panel.show(Scene(bare.at(0), Selection(1, 0), Draft(), Session()))
    assert panel.empty() is not None
    assert (panel.subtitle(), panel.figure()) == ("", "")
    assert len(colors(painted(panel))) > 5  # the sentence


def test_pictures_of_one_head_and_of_all_can_be_taken(panel: Attention, store: Store) -> None:
    whole, head, mosaic = panel.pictures()
    shots = {name: taken(panel, name) for name in (whole, head, mosaic)}
    assert shots[whole] == painted(panel)
    assert shots[head] != shots[mosaic]
    store.select(head=None)
    assert taken(panel, mosaic) == painted(panel)
    assert len(colors(taken(panel, head))) > 5  # which head? it says what to do


def taken(panel: Attention, name: str) -> QImage:
    image = QImage(panel.canvas.size(), QImage.Format.Format_RGB32)
    image.fill(panel.theme.color("panel"))
    painter = QPainter(image)
    panel.paint_picture(name, painter, panel.area)
    painter.end()
    return image
