"""KV cache: the ledger's bytes, the formula that must equal them, and positions to click."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from pytestqt.qtbot import QtBot

from app import theme
from app.panels.kv_cache import KvCache
from app.selection import Draft, Scene, Selection
from app.store import Store
from app.widgets.cache_lanes import Lanes, lay_out
from engine.events import Memory
from engine.session import Run, Session
from engine.trace import Trace
from tests.pictures import colors, painted


@pytest.fixture
def store(recorded: Trace) -> Store:
    """A store that shows the recorded run: 6 prompt tokens, 14 written, 19 read."""
    store = Store()
    store.open_session(Session({1: Run(1, "x", recorded)}, open_id=1))
    return store


@pytest.fixture
def panel(qtbot: QtBot, store: Store) -> KvCache:
    """A panel 356 x 290 pixels, as in the right column of the window."""
    panel = KvCache(store, theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(356, 290)
    panel.show(store.scene)
    return panel


def scene(trace: Trace, step: int, *, token: int | None = None) -> Scene:
    return Scene(trace.at(step), Selection(1, step, token), Draft(), Session())


def first_pass(trace: Trace, memory: Memory, *, reused: int = 0) -> Trace:
    """The trace up to its first pass, with another ledger."""
    forward = replace(trace.forwards[0], memory=memory, first=reused, count=6 - reused)
    return Trace([*trace.events[:2], replace(forward, reused=reused)])


def lanes(panel: KvCache) -> Lanes:
    found = panel._lay_out(panel.area).lanes
    assert found is not None
    return found


def test_every_moment_equals_the_formula(panel: KvCache, recorded: Trace) -> None:
    """12,288 bytes a token: 2 (K and V) x 6 layers x 8 heads x 32 numbers x 4 bytes."""
    for step in range(recorded.n_steps):
        panel.show(scene(recorded, step))
        assert recorded.forwards[step].memory.kv_used == 12_288 * (6 + step)
        assert "≠" not in panel.spoken()
        assert not painted(panel, 356, 290).isNull()


def test_it_says_used_reserved_and_the_formula_with_its_numbers(
    panel: KvCache, recorded: Trace
) -> None:
    panel.show(scene(recorded, 10))
    assert (panel.subtitle(), panel.figure()) == ("16 tokens", "12,288 B per token")
    assert panel.spoken() == (
        "192 KiB of 6.0 MiB reserved · 3.1 %. 2 × 6 layers × 8 heads × 32 × 4 B × 16 = 196,608 B"
    )


def test_buffers_that_disagree_with_the_formula_are_both_shown(
    panel: KvCache, recorded: Trace
) -> None:
    odd = replace(recorded.forwards[0].memory, kv_used=70_000)
    panel.show(scene(first_pass(recorded, odd), 0))
    assert panel.spoken().endswith("× 6 = 73,728 B ≠ 70,000 B")
    formula = panel._lay_out(panel.area).formula
    assert formula is not None
    assert panel.hint(formula.center()).endswith("What the buffers count is what is real.")


def test_reused_positions_are_told_apart(panel: KvCache, recorded: Trace) -> None:
    trace = first_pass(recorded, recorded.forwards[0].memory, reused=4)
    panel.show(scene(trace, 0))
    axis = panel._lay_out(panel.area).axis
    assert axis is not None
    assert panel.hint(axis.center()).startswith("hatched: 4 reused, not read again")
    assert "Reused:" in panel.hint(lanes(panel).column(3).center())
    assert "Reused:" not in panel.hint(lanes(panel).column(4).center())


def test_a_click_on_a_column_selects_that_token(panel: KvCache, store: Store, qtbot: QtBot) -> None:
    pos = lanes(panel).column(4).center().toPoint()
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=pos)
    assert store.selection.token == 4
    assert store.selection.step == 13  # selecting never moves time


def test_a_click_where_nothing_is_yet_selects_nothing(panel: KvCache, store: Store) -> None:
    panel.press(lanes(panel).column(20).center())
    assert store.selection.token is None


def test_the_mouse_on_a_column_points_at_its_token(panel: KvCache, store: Store) -> None:
    panel.move(lanes(panel).column(4).center())
    assert store.hover == 4
    panel.move(lanes(panel).column(20).center())
    assert store.hover is None


def test_tips_tell_read_from_drawn_from_reserved(panel: KvCache) -> None:
    """19 positions are read; the token drawn last, at 19, has no K and V yet."""
    read, drawn, free = (panel.hint(lanes(panel).column(i).center()) for i in (0, 19, 20))
    assert read.splitlines()[:2] == [
        "Layer 3, position 0, “Michael”",
        "ƒ K 1,024 B and V 1,024 B: 8 heads × 32 numbers × 4 B each",
    ]
    assert drawn.startswith("“<|endoftext|>” was drawn but not read yet")
    assert free == "Reserved: no position is here yet."


def test_the_legend_says_what_a_server_would_not_keep(panel: KvCache, recorded: Trace) -> None:
    k, v, q, weights, residual, process = (
        panel.hint(place.center()) for place in panel._lay_out(panel.area).entries
    )
    assert k.startswith("● 116,736 B of 3,145,728 B reserved: the keys")  # 19 x 6 x 8 x 32 x 4
    assert v.startswith("● 116,736 B of 3,145,728 B reserved: the values")
    assert q.startswith("● 116,736 B")
    assert "A server would not keep them" in q
    assert residual.startswith("● 252,928 B")  # 19 x 13 rows x 256 x 4
    assert weights.startswith(f"● {recorded.forwards[13].memory.weights:,} B: all weights")
    assert process.startswith("● ")


def test_on_an_accelerator_its_memory_is_shown(panel: KvCache, recorded: Trace) -> None:
    on_card = replace(recorded.forwards[0].memory, device=7_000_000_000)
    panel.show(scene(first_pass(recorded, on_card), 0))
    last = panel._lay_out(panel.area).entries[-1]
    assert panel.hint(last.center()).startswith("● 7,000,000,000 B: in use on the accelerator")


def test_the_lanes_hold_what_the_run_asked_for_and_say_so(panel: KvCache) -> None:
    """6 + 24 tokens asked for: 32 positions wide, of 512."""
    assert lanes(panel).n_shown == 32
    axis = panel._lay_out(panel.area).axis
    assert axis is not None
    assert panel.hint(axis.center()).splitlines() == [
        "38 KiB of 1.0 MiB a layer",
        "first 32 of 512 positions",
    ]


def test_used_columns_are_painted_and_the_rest_is_ground(panel: KvCache, recorded: Trace) -> None:
    """K in its colour up to the 16th of 32 positions, measured in the middle of layer 0's K."""
    panel.show(scene(recorded, 10, token=3))
    image = painted(panel, 356, 290)
    found = lay_out(QRectF(14, 0, 328, 278), panel.theme, n_layer=6, n_shown=32, n_entries=6).lanes
    assert found is not None
    y = int(found.rect.top() + found.pitch / 4)
    names = [image.pixelColor(int(found.column(i).center().x()), y).name() for i in (15, 16)]
    assert names == [panel.theme.color("k").name(), panel.theme.color("raised").name()]
    edge = image.pixelColor(int(found.column(3).left()) - 1, int(found.rect.center().y()))
    assert edge.red() > 200 > edge.green()  # one pink frame around the selected column


@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("scale", [0.8, 1.0, 1.6])
@pytest.mark.parametrize("size", [(280, 120), (300, 190), (356, 290), (1200, 800)])
def test_it_is_painted_at_every_size(
    panel: KvCache, name: theme.Name, scale: float, size: tuple[int, int]
) -> None:
    panel.restyle(theme.load(name, scale))
    assert len(colors(painted(panel, *size))) > 20


@pytest.mark.parametrize("n_layer", [1, 6, 48])
@pytest.mark.parametrize("scale", [0.8, 1.0, 1.6])
def test_parts_follow_each_other_and_stay_inside(n_layer: int, scale: float) -> None:
    for width, height in ((252, 108), (272, 178), (328, 278), (1172, 788)):
        rect = QRectF(14, 0, width, height)
        parts = lay_out(rect, theme.load("dark", scale), n_layer=n_layer, n_shown=64, n_entries=6)
        lanes_rect = parts.lanes.rect if parts.lanes else None
        last = parts.entries[-1] if parts.entries else None
        column = [parts.big, parts.bar, lanes_rect, parts.axis, parts.formula, last]
        found = [part for part in column if part is not None]
        for above, below in pairwise(found):
            assert above.bottom() <= below.top() + 1e-6
        assert found[-1].bottom() <= height + 1e-6


def test_a_place_in_the_lanes_is_a_layer_and_a_position() -> None:
    lanes = Lanes(QRectF(10, 20, 320, 60), n_layer=6, n_shown=32)
    assert (lanes.position_at(QPointF(15, 25)), lanes.layer_at(QPointF(15, 25))) == (0, 0)
    assert (lanes.position_at(QPointF(329.9, 79)), lanes.layer_at(QPointF(329.9, 79))) == (31, 5)
    assert lanes.position_at(QPointF(5, 25)) is None
