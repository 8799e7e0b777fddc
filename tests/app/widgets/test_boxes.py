"""Boxes and words: none is lost below a pixel, none touches another, a thousand are one image."""

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from app import theme
from app.widgets.boxes import Bars, Lane, labelled, merged, spread

pytestmark = pytest.mark.usefixtures("qapp")

RED, BLUE, GROUND = "#ff0000", "#0000ff", "#000000"


def columns(drawn: Lane | Bars, *, y: int, width: int = 10) -> list[str]:
    """The colours of one row of pixels."""
    image = QImage(width, 8, QImage.Format.Format_RGB32)
    image.fill(QColor(GROUND))
    painter = QPainter(image)
    drawn.draw(painter)
    painter.end()
    return [image.pixelColor(x, y).name() for x in range(width)]


def floats(*numbers: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(numbers, float)


def test_blocks_that_begin_in_one_pixel_are_one() -> None:
    firsts, left, right = merged(floats(2, 2, 2, 5), floats(2, 2, 3, 9))
    assert (firsts.tolist(), left.tolist(), right.tolist()) == ([0, 3], [2, 5], [3, 9])


def test_nothing_merges_to_nothing() -> None:
    assert [len(part) for part in merged(floats(), floats())] == [0, 0, 0]


def test_a_block_shorter_than_a_pixel_takes_one() -> None:
    lane = Lane(QRectF(0, 0, 10, 8))
    lane.add(floats(3, 10), floats(3, 10), QColor(RED))  # the last begins at the right edge
    assert columns(lane, y=0) == [GROUND] * 3 + [RED] + [GROUND] * 5 + [RED]


def test_what_is_laid_later_lies_above() -> None:
    lane = Lane(QRectF(2, 0, 6, 8))
    lane.add(floats(2, 5), floats(4, 8), QColor(RED))
    lane.add(floats(6), floats(7), QColor(BLUE))
    expected = [GROUND, GROUND, RED, RED, GROUND, RED, BLUE, RED, GROUND, GROUND]
    assert columns(lane, y=7) == expected


def test_of_bars_in_one_pixel_the_highest_is_seen() -> None:
    bars = Bars(QRectF(0, 0, 10, 8))
    bars.add(floats(1, 1, 4), floats(1, 2, 6), floats(3, 6, 2), QColor(RED))
    assert columns(bars, y=2) == [GROUND, RED, *[GROUND] * 8]  # 6 high reaches row 2
    assert columns(bars, y=1) == [GROUND] * 10
    assert columns(bars, y=7)[3:7] == [GROUND, RED, RED, GROUND]


def label_words(width: float, *, first: int | None = None) -> list[tuple[int, str]]:
    """Labels of ten blocks of one width, all of which are called ·word."""
    x0 = np.arange(10) * width
    named = labelled(
        x0, x0 + width - 1, lambda i: "·word", theme.load("dark"), right=10 * width, first=first
    )
    return [(label.index, label.words) for label in named]


def test_a_block_with_room_has_its_own_label() -> None:
    assert label_words(40) == [(i, "·word") for i in range(10)]


def test_narrow_blocks_share_the_room_and_no_label_is_cut_to_crumbs() -> None:
    assert label_words(12) == [(0, "·word"), (3, "·word"), (6, "·word")]  # 5 letters of 6 px


def test_the_chosen_label_goes_before_its_neighbours() -> None:
    assert label_words(12, first=4) == [(4, "·word"), (0, "·word"), (7, "·word")]


def test_words_on_an_axis_keep_apart_and_inside() -> None:
    names = [(0.0, "0 ms"), (20.0, "5 ms"), (100.0, "25 ms"), (199.0, "50 ms")]
    placed = spread(names, theme.load("dark"), 0, 200)
    assert [label.words for label in placed] == ["0 ms", "25 ms"]
    assert placed[0].x == 0
