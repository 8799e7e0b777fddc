"""The lanes: what gives way in a low panel, what the mouse means, what is seen at any size."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from app import theme
from app.widgets.course import Course, Fold
from app.widgets.lane_plan import Plan, Sheet, lay_out
from app.widgets.lanes import draw_lanes
from app.widgets.zoom import Zoom

pytestmark = pytest.mark.usefixtures("qapp")

MS = 1_000_000
NAMES = ("·a", "·b", "·c")


def sheet(*, selected: int = 2, n: int = 3) -> Sheet:
    """Tokenize 1 ms, prefill 10 and draw 2, then steps of 4 and 1 ms; a wait before the third."""
    lengths = [0, 1, 10, 2] + [4, 1] * (n - 1)
    ends = np.cumsum(lengths) * MS
    spans = np.stack([ends - np.array(lengths) * MS, ends], axis=1)  # (2 + 2n, 2)
    folds = (Fold(18 * MS, 50 * MS),) if n > 2 else ()
    return Sheet(
        course=Course("own", spans, spans, folds),
        selected=selected,
        name=lambda step: NAMES[step % 3],
        inside=lambda step: (("prefill 6 tokens", "prefill") if not step else ("pass",), ("draw",)),
        layers=lambda step: np.array([2, 5], np.int64) * MS,
        time=lambda ns, step: f"{ns / MS:g} ms",
        caption="ms per token",
        clock="model time",
    )


def laid(rect: QRectF, **facts: int) -> Plan:
    return lay_out(sheet(**facts), Zoom(), rect, theme.load("dark"))


def painted(width: int, height: int, *, hovered: int | None = None, **facts: int) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    look = theme.load("dark")
    image.fill(look.color("panel"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    shown = sheet(**facts)
    plan = lay_out(shown, Zoom(), QRectF(0, 0, width, height), look)
    draw_lanes(painter, shown, plan, look, hovered=hovered)
    painter.end()
    return image


def test_blocks_lie_where_their_time_is() -> None:
    plan = laid(QRectF(0, 0, 230, 102))  # 23 ms: 10 px a ms
    # A block ends a pixel early: a hair of ground parts it from the next.
    assert plan.x.tolist() == [
        [10, 110, 110, 129],
        [130, 170, 170, 179],
        [180, 220, 220, 229],
    ]


@pytest.mark.parametrize(
    ("height", "gone"),
    [
        (102, ()),
        (80, ("caption",)),
        (60, ("caption", "bars")),
        (40, ("caption", "bars", "labels")),
        (24, ("caption", "bars", "labels", "axis")),
    ],
)
def test_in_a_low_panel_the_lane_stays_longest(height: int, gone: tuple[str, ...]) -> None:
    rows = laid(QRectF(0, 0, 230, height)).rows
    names = ("caption", "bars", "labels", "axis", "lane")
    assert tuple(name for name in names if getattr(rows, name).height() == 0) == gone
    assert rows.axis.bottom() <= height


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.6])
def test_strips_follow_each_other_and_end_with_the_panel(scale: float) -> None:
    look = theme.load("dark", scale)
    rows = lay_out(sheet(), Zoom(), QRectF(14, 0, 900, 300), look).rows
    order = [rows.labels, rows.lane, rows.waits, rows.caption, rows.bars, rows.axis]
    for above, below in pairwise(order):
        assert above.bottom() == below.top()
    assert rows.axis.bottom() == 300


def test_the_mouse_means_the_block_or_the_bar_or_the_label_there() -> None:
    plan = laid(QRectF(0, 0, 230, 102))
    rows = plan.rows
    places = [(rows.lane, 60), (rows.lane, 175), (rows.bars, 200), (rows.labels, 133)]
    found = [plan.step_at(QPointF(x, row.center().y())) for row, x in places]
    assert found == [0, 1, 2, 1]
    assert plan.step_at(QPointF(4, rows.lane.center().y())) is None  # the tokenizing
    assert plan.step_at(QPointF(60, rows.axis.center().y())) is None


def test_a_wait_is_found_near_its_tick_only() -> None:
    plan = laid(QRectF(0, 0, 230, 102))
    y = plan.rows.waits.center().y()
    assert plan.fold_at(QPointF(183, y)) == Fold(18 * MS, 50 * MS)
    assert plan.fold_at(QPointF(190, y)) is None


def test_bars_reach_to_the_next_round_number() -> None:
    low, high = laid(QRectF(0, 0, 230, 102)).grid, laid(QRectF(0, 0, 230, 300)).grid
    assert (low.top, low.words, low.gutter) == (6 * MS, ("6 ms",), False)  # 5 ms in steps of 2
    assert (high.top, high.words, high.gutter) == (6 * MS, ("0 ms", "2 ms", "4 ms", "6 ms"), True)


def test_the_prefill_and_the_decode_have_two_colours_and_the_selected_a_third() -> None:
    image, look = painted(230, 102), theme.load("dark")
    lane = laid(QRectF(0, 0, 230, 102)).rows.lane
    top = int(lane.top()) + 4
    assert image.pixelColor(60, top) == look.color("prefill")
    assert image.pixelColor(150, top) == look.color("decode")
    assert image.pixelColor(200, top) == look.color("select")
    assert image.pixelColor(174, top).name() == look.color("decode").darker(135).name()  # the draw
    assert image.pixelColor(4, top) == look.color("weights")  # the tokenizing


def test_the_selected_block_has_a_frame_the_others_have_none() -> None:
    image, look = painted(230, 102, selected=0), theme.load("dark")
    lane = laid(QRectF(0, 0, 230, 102)).rows.lane
    above = int(lane.top()) - 1
    assert image.pixelColor(60, above) == look.color("select")
    assert image.pixelColor(150, above) == look.color("panel")
    inside = image.pixelColor(60, int(lane.top()) + 4)
    assert inside == look.color("prefill")  # it still says what it is


def test_the_first_token_has_no_bar() -> None:
    image = painted(230, 102)
    bars = laid(QRectF(0, 0, 230, 102)).rows.bars
    y = int(bars.bottom()) - 3
    assert image.pixelColor(60, y) == theme.load("dark").color("panel")
    assert image.pixelColor(150, y) != theme.load("dark").color("panel")


def test_pointing_at_a_block_changes_it_and_no_other() -> None:
    plain, tinted = painted(230, 102), painted(230, 102, hovered=1)
    y = int(laid(QRectF(0, 0, 230, 102)).rows.lane.center().y()) + 8
    assert plain.pixelColor(150, y) != tinted.pixelColor(150, y)
    assert plain.pixelColor(60, y) == tinted.pixelColor(60, y)


def test_a_thousand_blocks_fill_the_lane_without_a_hole() -> None:
    image, look = painted(400, 102, n=1_000, selected=0), theme.load("dark")
    y = int(laid(QRectF(0, 0, 400, 102)).rows.lane.center().y())
    colors = {QColor(image.pixel(x, y)).name() for x in range(10, 400)}
    assert colors == {look.color("decode").name()}
