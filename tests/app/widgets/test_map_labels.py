"""Labels along a map: where they end, what is kept of them."""

import pytest
from PySide6.QtCore import QPointF, QRect
from PySide6.QtGui import QColor, QImage, QPainter

from app import theme
from app.widgets import map_labels
from app.widgets.map_labels import MapLabels

pytestmark = pytest.mark.usefixtures("qapp")

CORNER = QPointF(80, 60)  # of the map
WHITE = QColor("#FFFFFF")


def drawn(labels: MapLabels, *texts: str, selected: int | None = None) -> QImage:
    image = QImage(200, 200, QImage.Format.Format_RGB32)
    image.fill(WHITE)
    painter = QPainter(image)
    places = [(i, 10.0 + 20 * i) for i in range(len(texts))]
    labels.draw(painter, CORNER, texts, places, theme.load("light"), selected=selected, factor=1.0)
    painter.end()
    return image


def is_blank(image: QImage, *rect: int) -> bool:
    part = image.copy(QRect(*rect))
    white = QImage(part.size(), part.format())
    white.fill(WHITE)
    return part == white


def test_labels_lie_before_and_above_the_map_and_never_on_it() -> None:
    image = drawn(MapLabels(), "·Jordan", "·a_much_longer_label_than_there_is_room_for")
    assert is_blank(image, 75, 55, 125, 145)  # the map, and the gap around it
    assert not is_blank(image, 0, 60, 74, 20)  # the first row's
    assert not is_blank(image, 80, 0, 20, 54)  # the first column's


def test_a_standing_label_is_the_lying_one_turned() -> None:
    """Both are as high as their text is wide; in 74 and 54 pixels "·of" is not cut."""
    image = drawn(MapLabels(), "·of")
    lying = image.copy(QRect(40, 60, 34, 20))
    standing = image.copy(QRect(80, 20, 20, 34))
    ink = [
        sum(part.pixelColor(x, y).black() for x in range(w) for y in range(h))
        for part, w, h in ((lying, 34, 20), (standing, 20, 34))
    ]
    assert ink[0] == ink[1] > 0


def test_the_selected_label_has_the_colour_of_the_selection() -> None:
    plain, chosen = drawn(MapLabels(), "·of"), drawn(MapLabels(), "·of", selected=0)
    assert plain != chosen


def test_a_label_drawn_again_looks_the_same_from_what_was_kept() -> None:
    labels = MapLabels()
    first = drawn(labels, "·of", "·the")
    assert drawn(labels, "·of", "·the") == first
    assert drawn(MapLabels(), "·of", "·the") == first


def test_the_widest_label_decides_the_room() -> None:
    light = theme.load("light")
    assert map_labels.widest(["·a", "·basketball"], light) > map_labels.widest(["·a"], light)
    assert map_labels.widest([], light) == 8  # the gap
