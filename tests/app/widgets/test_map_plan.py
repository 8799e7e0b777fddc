"""Mosaic and map share a panel of any size without touching."""

import pytest
from PySide6.QtCore import QRectF

from app import theme
from app.widgets.map_plan import plan

SIZES = [(252, 108), (272, 688), (448, 262), (704, 440), (1172, 752), (1172, 288), (120, 60)]
HEADS = [(6, 8), (12, 12), (24, 16), (1, 1)]


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.6])
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("size", SIZES)
def test_parts_lie_inside_and_apart(
    size: tuple[int, int], heads: tuple[int, int], scale: float
) -> None:
    rect = QRectF(14, 0, *size)
    places = plan("both", rect, heads, theme.load("dark", scale))
    parts = [part for part in (places.mosaic, places.note, places.map) if part is not None]
    assert places.map is not None
    for part in parts:
        assert rect.contains(part)
        assert part.isValid()
    for part in parts[:-1]:
        assert not part.intersects(places.map)


def test_a_wide_panel_has_them_side_by_side_a_tall_one_stacked() -> None:
    dark = theme.load("dark")
    wide = plan("both", QRectF(0, 0, 704, 440), (6, 8), dark)
    tall = plan("both", QRectF(0, 0, 272, 688), (6, 8), dark)
    assert wide.mosaic is not None
    assert wide.map is not None
    assert tall.mosaic is not None
    assert tall.map is not None
    assert wide.map.left() > wide.mosaic.right()
    assert tall.map.top() > tall.mosaic.bottom()


def test_where_thumbnails_would_be_specks_the_map_has_it_all() -> None:
    places = plan("both", QRectF(0, 0, 120, 60), (12, 12), theme.load("dark"))
    assert places.mosaic is None
    assert places.map == QRectF(0, 0, 120, 60)
    assert places.n_lines == 0  # and captions give way to it


@pytest.mark.parametrize(("height", "n_lines"), [(400, 2), (150, 1), (60, 0)])
def test_a_lower_panel_has_fewer_lines_of_captions(height: int, n_lines: int) -> None:
    places = plan("head", QRectF(0, 0, 400, height), (6, 8), theme.load("dark"))
    assert places.n_lines == n_lines
    assert places.map is not None
    assert places.map.height() == height - 16 * n_lines


def test_the_mosaic_alone_takes_the_panel() -> None:
    """(704 - 22) / 8 heads is 85 pixels each, (440 - 16 - 20) / 6 layers 67: the smaller counts."""
    places = plan("mosaic", QRectF(0, 0, 704, 440), (6, 8), theme.load("dark"))
    assert places.map is None
    assert places.mosaic == QRectF(0, 0, 22 + 8 * 67, 16 + 6 * 67)
