"""Numbers as colours: scales, pooling, the causal mask, pixels."""

from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtGui import QColor, QImage

from app.widgets import heat

GREY = np.array([0xFF000000 | i << 16 | i << 8 | i for i in range(256)], dtype=np.uint32)
RED = QColor(255, 0, 0)


@pytest.mark.parametrize(
    ("scale", "value", "place"),
    [
        ("linear", 0.25, 0.25),
        ("sqrt", 0.25, 0.5),
        ("log", 1.0, 1.0),
        ("log", 0.1, 0.75),  # one of the four decades from 1 to 0.0001
        ("log", 0.0001, 0.0),
        ("log", 0.0, 0.0),
        ("sqrt", 2.0, 1.0),  # beyond the ends: as the ends
        ("sqrt", -1.0, 0.0),
    ],
)
def test_a_value_has_its_place_on_the_colour_bar(
    scale: heat.Scale, value: float, place: float
) -> None:
    assert heat.level(value, scale) == pytest.approx(place)


def test_half_of_vmax_lies_where_half_lies() -> None:
    assert heat.level(0.1, "linear", 0.2) == pytest.approx(0.5)


def test_an_image_has_one_pixel_a_value_row_by_row() -> None:
    values = np.array([[0.0, 0.25, 1.0], [1.0, 0.0, 0.04]], dtype=np.float32)
    colors = heat.heat_colors(values, GREY, "sqrt")
    image = heat.colors_image(colors, QImage.Format.Format_RGB32)
    assert (image.width(), image.height()) == (3, 2)
    # The square roots 0, 0.5, 1 of 255; 0.2 of 255 is 51.
    assert [image.pixelColor(x, 0).red() for x in range(3)] == [0, 128, 255]
    assert [image.pixelColor(x, 1).red() for x in range(3)] == [255, 0, 51]


def test_bytes_look_like_the_numbers_they_stand_for() -> None:
    steps = np.arange(256, dtype=np.uint8).reshape(16, 16)
    as_numbers = heat.heat_colors(steps.astype(np.float32) / 255, GREY, "sqrt")
    assert (heat.heat_colors(steps, GREY, "sqrt") == as_numbers).all()


def test_the_future_half_is_background_and_not_the_colour_of_zero() -> None:
    image = heat.causal_image(np.zeros((3, 3), np.float32), GREY, background=RED)
    future = [[image.pixelColor(x, y) == RED for x in range(3)] for y in range(3)]
    assert future == [[False, True, True], [False, False, True], [False, False, False]]
    assert image.pixelColor(0, 0) == QColor(0, 0, 0)


def test_a_transparent_background_lets_the_ground_through() -> None:
    clear = QColor(0, 0, 0, 0)
    image = heat.causal_image(np.ones((2, 2), np.float32), GREY, background=clear)
    assert (image.pixelColor(1, 0).alpha(), image.pixelColor(0, 1).alpha()) == (0, 255)


def test_cells_fill_the_pixels_they_are_given() -> None:
    values = np.array([[1.0, 9.0], [2.0, 3.0]], dtype=np.float32)
    assert heat.at_pixels(values, 5)[:, 0].tolist() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize("n", [301, 512, 1024])
def test_a_spike_survives_when_cells_outnumber_pixels(n: int) -> None:
    values = np.full((n, n), 0.001, dtype=np.float32)
    values[n - 2, 7] = 1.0
    pooled = heat.at_pixels(values, 300)
    assert pooled.shape == (300, 300)
    first, end = heat.cell_span(n - 2, n, 300)
    left, right = heat.cell_span(7, n, 300)
    assert pooled[first:end, left:right].tolist() == [[1.0]]


def test_pooling_keeps_the_last_cells() -> None:
    values = np.zeros((5, 5), dtype=np.float32)
    values[4, 4] = 1.0
    assert heat.at_pixels(values, 2).tolist() == [[0, 0], [0, 1]]


def test_a_pixel_is_future_only_if_all_its_cells_are() -> None:
    # Five cells in three pixels: cells 0 | 1 2 | 3 4.
    assert heat.future(5, 3).tolist() == [
        [False, True, True],
        [False, False, True],
        [False, False, False],
    ]


@pytest.mark.parametrize(("n", "pixels"), [(1, 1), (3, 10), (7, 7), (10, 3), (1024, 333)])
def test_every_cell_has_pixels_and_spans_follow_each_other(n: int, pixels: int) -> None:
    spans = [heat.cell_span(cell, n, pixels) for cell in range(n)]
    assert all(first < end for first, end in spans)
    assert spans[0][0] == 0
    assert spans[-1][1] == pixels
    assert all(after[0] in (before[1], before[0]) for before, after in pairwise(spans))
