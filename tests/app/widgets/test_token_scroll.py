"""Tokens that scroll: whole lines, what is wanted in view, the wheel's choice, the bar."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage, QPainter

from app import theme
from app.widgets.token_ink import Item
from app.widgets.token_scroll import ScrolledFlow, View

pytestmark = pytest.mark.usefixtures("qapp")

DARK = theme.load("dark")
LINES = [Item(f"{i}\n") for i in range(20)]  # one line each, and an empty last one
PLACE = QRectF(10, 5, 200, 90)  # three lines of 20 and two gaps of 5 are 70; four would be 95


@pytest.fixture
def flow() -> ScrolledFlow:
    return ScrolledFlow("run", DARK)


def view(flow: ScrolledFlow, wanted: int | None, items: list[Item] = LINES) -> View:
    """Look, and stay there."""
    seen = flow.view(items, PLACE, DARK, wanted=wanted)
    flow.settle(seen)
    return seen


def test_only_whole_lines_are_in_view(flow: ScrolledFlow) -> None:
    seen = view(flow, None)
    assert (seen.first, seen.n, seen.total) == (0, 3, 21)
    assert seen.rect == QRectF(10, 5, 200, 70)


def test_what_is_wanted_is_in_view_and_moves_the_rest_as_little_as_it_must(
    flow: ScrolledFlow,
) -> None:
    assert [view(flow, wanted).first for wanted in (2, 3, 1, 0, 19)] == [0, 1, 1, 0, 17]


def test_the_caret_is_wanted_as_the_item_behind_the_last(flow: ScrolledFlow) -> None:
    assert view(flow, len(LINES)).first == 18


def test_an_item_of_more_lines_than_fit_shows_its_first(flow: ScrolledFlow) -> None:
    long = [Item("a\n"), Item("b\nc\nd\ne\nf"), Item("\ng")]
    assert view(flow, 1, long).first == 1


def test_the_wheel_chooses_another_place_until_it_is_released(flow: ScrolledFlow) -> None:
    flow.turn(-30, view(flow, 19))
    assert view(flow, 19).first == 0
    flow.release()
    assert view(flow, 19).first == 17


def test_turned_back_to_what_is_wanted_it_is_followed_again(flow: ScrolledFlow) -> None:
    flow.turn(-30, view(flow, 19))
    flow.turn(30, view(flow, 19))
    more = [*LINES, *LINES]
    assert view(flow, 39, more).first == 37


def test_the_small_steps_of_a_touch_pad_add_up(flow: ScrolledFlow) -> None:
    firsts = []
    for _ in range(4):
        flow.turn(0.3, view(flow, None))
        firsts.append(view(flow, None).first)
    assert firsts == [0, 1, 1, 1]  # 0.3, 0.6, 0.9, 1.2, to the nearest line


def test_it_turns_no_further_than_the_ends(flow: ScrolledFlow) -> None:
    flow.turn(100, view(flow, None))
    assert view(flow, None).first == 18
    flow.turn(-1, view(flow, None))
    assert view(flow, None).first == 17


def test_a_point_outside_the_lines_in_view_is_on_no_item(flow: ScrolledFlow) -> None:
    seen = view(flow, 19)
    assert flow.index_at(QPointF(12, 10), seen) == 17
    assert flow.index_at(QPointF(12, 80), seen) is None  # where a fourth line would be


def test_the_bar_is_beside_the_lines_and_only_where_they_do_not_fit(flow: ScrolledFlow) -> None:
    def bar(items: list[Item]) -> list[int]:
        image = QImage(240, 100, QImage.Format.Format_RGB32)
        image.fill(DARK.color("panel"))
        painter = QPainter(image)
        seen = flow.view(items, PLACE, DARK, wanted=None)
        flow.paint(painter, seen, DARK, selected=None, hovered=None)
        painter.end()
        faint = DARK.color("faint")
        return [y for y in range(100) if image.pixelColor(217, y) == faint]  # 210 + 6, 3 wide

    assert bar(LINES[:2]) == []
    rows = bar(LINES)
    assert rows[0] == 5  # at the top
    assert len(rows) == 14  # 3 of 21 lines would be 10 pixels of 70: 14 is the least
