"""Floors as bars: what gives way where there is little room, and where the button is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage, QPainter

from app import theme
from app.widgets.floor_bars import Plan, Row, Sheet, beside, draw_floor_bars, lay_out

pytestmark = pytest.mark.usefixtures("qapp")

ROWS = (
    Row("measured", 8e6, "8.0 ms", "measured", "decode", rank=0),
    Row("predicted", 5e6, "5.0 ms", "theory", "cut", rank=9),
    Row("memory", 4e6, "4.0 ms", "theory", "muted", "MBU 50 %", strong=True, rank=0),
    Row("compute", 1e6, "1.0 ms", "theory", "weights", "MFU 12 %", rank=2),
    Row("dispatch", 0, "0.0 ms", "theory", "weights", rank=3),
)
SHEET = Sheet("memory-bound", "50 % of the floor", "step 3", ROWS)
DARK = theme.load("dark")


def plan(sheet: Sheet, height: float) -> Plan:
    return lay_out(sheet, QRectF(10, 0, 300, height), DARK)


def names(height: float, sheet: Sheet = SHEET) -> list[str]:
    return [row.name for row, _ in plan(sheet, height).rows]


def test_rows_keep_their_order_and_the_least_important_gives_way_first() -> None:
    assert names(95) == ["measured", "predicted", "memory", "compute", "dispatch"]  # 20 + 5 x 15
    assert names(94) == ["measured", "memory", "compute", "dispatch"]
    assert names(66) == ["measured", "memory", "compute"]
    assert names(50) == ["measured", "memory"]
    assert names(30) == []


def test_a_note_takes_the_place_of_a_row_and_its_button_stands_beside_it() -> None:
    noted = replace(SHEET, note="Too low", button="Measure again")
    assert names(95, noted) == ["measured", "memory", "compute", "dispatch"]
    laid = plan(noted, 95)
    assert laid.note.top() == laid.rows[-1][1].bottom()
    assert laid.button.left() >= laid.note.right()
    assert laid.button.right() == 310
    assert laid.on_button(laid.button.center())
    assert not laid.on_button(QPointF(20, 5))


def test_the_button_of_a_sentence_stands_below_it_and_inside() -> None:
    for words in ("Not measured.", "It could not be measured, for this and that reason. " * 4):
        laid = plan(Sheet(words, button="Measure (2 s)"), 84)
        assert laid.head.bottom() <= laid.button.top()
        assert laid.button.bottom() <= 84


def test_without_a_button_there_is_nothing_to_press() -> None:
    for sheet in (SHEET, Sheet("Measuring.")):
        assert not plan(sheet, 95).on_button(QPointF(10, 0))


@pytest.mark.parametrize(("width", "beside_it"), [(1394, 328), (978, 272), (784, 0)])
def test_something_else_keeps_the_larger_part_or_all_of_it(width: int, beside_it: int) -> None:
    rest, place = beside(QRectF(14, 0, width, 106), DARK)
    assert place.width() == beside_it
    assert rest.left() == 14
    if beside_it:
        assert place.right() == 14 + width
        assert place.left() - rest.right() == 33
    else:
        assert rest.width() == width


def test_a_low_panel_has_no_room_beside() -> None:
    assert beside(QRectF(0, 0, 1394, 49), DARK)[1].isEmpty()


def test_bars_are_as_long_as_their_times() -> None:
    image = painted(SHEET)
    lengths = [width_of(image, row.role, rect) for row, rect in plan(SHEET, 95).rows]
    assert lengths[0] > 60
    assert lengths[2] == pytest.approx(lengths[0] / 2, abs=2)
    assert lengths[3] == pytest.approx(lengths[0] / 8, abs=2)
    assert lengths[4] <= 1


def painted(sheet: Sheet) -> QImage:
    image = QImage(320, 100, QImage.Format.Format_RGB32)
    image.fill(DARK.color("panel"))
    painter = QPainter(image)
    draw_floor_bars(painter, sheet, plan(sheet, 95), DARK)
    painter.end()
    return image


def width_of(image: QImage, role: str, rect: QRectF) -> int:
    """Pixels of a colour, pure, along the middle of a row, right of its name."""
    color, y = DARK.color(role).rgb(), round(rect.center().y())
    return sum(image.pixel(x, y) == color for x in range(60, 220))
