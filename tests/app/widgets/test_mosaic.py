"""All heads at once: equal thumbnails on device pixels, and which head is where."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QImage, QPainter

from app import theme
from app.widgets import mosaic
from app.widgets.heat import Values
from app.widgets.mosaic import Mosaic

pytestmark = pytest.mark.usefixtures("qapp")

RECT = QRectF(8, 4, 22 + 8 * 30, 16 + 6 * 30)  # cells of exactly 30


def painted(widget: Mosaic, thumbnails: Values, **marks: tuple[int, int]) -> QImage:
    image = QImage(300, 220, QImage.Format.Format_RGB32)
    image.fill(theme.load("dark").color("panel"))
    painter = QPainter(image)
    widget.paint(painter, RECT, thumbnails, theme.load("dark"), **marks)  # type: ignore[arg-type]
    painter.end()
    return image


def center(layer: int, head: int) -> QPointF:
    return QPointF(8 + 22 + 30 * head + 15, 4 + 16 + 30 * layer + 15)


def test_rows_are_layers_and_columns_heads() -> None:
    widget = Mosaic()
    assert widget.head_at(center(2, 5)) is None  # nothing was painted yet
    painted(widget, np.zeros((6, 8, 4, 4), dtype=np.uint8))
    assert widget.head_at(center(2, 5)) == (2, 5)
    assert widget.head_at(center(5, 7)) == (5, 7)
    assert widget.head_at(QPointF(10, 50)) is None  # on the layer numbers
    assert widget.head_at(center(6, 0)) is None


def test_a_bright_head_is_bright_in_its_place_only() -> None:
    thumbnails = np.zeros((6, 8, 4, 4), dtype=np.float32)
    thumbnails[2, 5] = 1.0
    image = painted(Mosaic(), thumbnails)
    lut = theme.load("dark").lut()
    below = QPointF(-5, 5)  # off the diagonal, in the past
    assert image.pixelColor((center(2, 5) + below).toPoint()) == QColor(int(lut[255]))
    assert image.pixelColor((center(5, 2) + below).toPoint()) == QColor(int(lut[0]))


def test_the_future_half_of_a_thumbnail_is_ground() -> None:
    image = painted(Mosaic(), np.ones((6, 8, 4, 4), dtype=np.float32))
    ahead = (center(0, 0) + QPointF(9, -9)).toPoint()
    assert image.pixelColor(ahead) == theme.load("dark").color("raised")


def test_thumbnails_larger_than_their_place_keep_their_spikes() -> None:
    thumbnails = np.zeros((6, 8, 100, 100), dtype=np.uint8)
    thumbnails[0, 0, 99, 0] = 255
    image = painted(Mosaic(), thumbnails)
    lowest_left = QPointF(8 + 22 + 1, 4 + 16 + 27)  # a gap of 1 before the thumbnail, 27 high
    assert image.pixelColor(lowest_left.toPoint()) == QColor(int(theme.load("dark").lut()[255]))


def test_the_selected_head_has_the_frame_that_means_selected() -> None:
    image = painted(Mosaic(), np.zeros((6, 8, 4, 4), dtype=np.uint8), selected=(1, 1))
    dark = theme.load("dark")
    edge = [image.pixelColor(8 + 22 + 30 + x, 4 + 16 + 45) for x in range(3)]
    assert dark.color("select") in edge


def test_all_thumbnails_have_whole_pixels_and_one_size() -> None:
    grid = mosaic.layout(QSizeF(307, 223), (12, 12), theme.load("dark"), factor=2)
    assert (grid.cell * 2).is_integer()
    assert grid.rect(0, 0).size() == grid.rect(11, 11).size()


def test_another_array_is_another_picture() -> None:
    widget = Mosaic()
    dark = painted(widget, np.zeros((6, 8, 4, 4), dtype=np.uint8))
    assert painted(widget, np.full((6, 8, 4, 4), 255, dtype=np.uint8)) != dark
