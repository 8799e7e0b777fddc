"""The attention map: which cell is where, what is painted, what is kept."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF
from PySide6.QtGui import QColor, QImage, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator

from app import theme
from app.widgets import heatmap
from app.widgets.heat import cell_span
from app.widgets.heatmap import CausalMap, Heatmap

pytestmark = pytest.mark.usefixtures("qapp")

LABELS = ("Michael", "·Jordan", "·played", "·the", "·sport", "·of")
RECT = QRectF(10, 10, 400, 380)


def example(n: int = 6, **look: object) -> CausalMap:
    """A[5, 0] = 0.9 and A[5, 5] = 0.1, each other row on itself."""
    values = np.eye(n, dtype=np.float32)
    values[n - 1, 0], values[n - 1, n - 1] = 0.9, 0.1
    labels = LABELS if n == 6 else tuple(f"·t{i}" for i in range(n))
    return CausalMap(values, labels, **look)  # type: ignore[arg-type]


def painted(
    widget: Heatmap,
    shown: CausalMap,
    *,
    rect: QRectF = RECT,
    factor: float = 1.0,
    hovered: tuple[int, int] | None = None,
) -> QImage:
    image = QImage(QSize(420, 400) * factor, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(factor)
    image.fill(theme.load("dark").color("panel"))
    painter = QPainter(image)
    widget.paint(painter, rect, shown, theme.load("dark"), hovered=hovered)
    painter.end()
    return image


def middle(widget: Heatmap, row: int, column: int, n: int) -> QPointF:
    square = widget.square()
    return square.topLeft() + QPointF(column + 0.5, row + 0.5) * (square.width() / n)


def test_rows_are_queries_from_the_top_and_columns_keys_from_the_left() -> None:
    widget, dark = Heatmap(), theme.load("dark")
    image = painted(widget, example(scale="linear"))
    at = middle(widget, 5, 0, 6).toPoint()
    assert image.pixelColor(at) == QColor(int(dark.lut()[round(0.9 * 255)]))
    assert widget.cell_at(QPointF(at)) == (5, 0)


def test_every_cell_of_the_past_is_found_and_none_of_the_future() -> None:
    widget = Heatmap()
    painted(widget, example())
    found = {
        (row, column): widget.cell_at(middle(widget, row, column, 6))
        for row in range(6)
        for column in range(6)
    }
    assert found == {
        (row, column): (row, column) if column <= row else None for row, column in found
    }


def test_outside_the_square_there_is_no_cell() -> None:
    widget = Heatmap()
    assert widget.cell_at(QPointF(50, 50)) is None  # nothing was painted yet
    painted(widget, example())
    square = widget.square()
    assert widget.cell_at(square.bottomRight() + QPointF(1, 1)) is None
    assert widget.cell_at(square.topLeft() - QPointF(1, 1)) is None


def test_labels_on_both_axes_lead_to_their_token() -> None:
    widget = Heatmap()
    painted(widget, example())
    square = widget.square()
    of_row = QPointF(square.left() - 20, middle(widget, 4, 0, 6).y())
    of_column = QPointF(middle(widget, 0, 2, 6).x(), square.top() - 20)
    assert (widget.label_at(of_row), widget.label_at(of_column)) == (4, 2)
    assert widget.label_at(middle(widget, 5, 0, 6)) is None


def test_the_future_is_hatched_and_never_the_colour_of_zero() -> None:
    widget, dark = Heatmap(), theme.load("dark")
    image = painted(widget, example(6))
    square = widget.square().toRect()
    corner = {
        image.pixelColor(x, y).name()
        for x in range(square.right() - 40, square.right() - 4)
        for y in range(square.top() + 4, square.top() + 40)
    }
    assert dark.color("raised").name() in corner
    assert len(corner) > 1  # the hatch
    assert QColor(int(dark.lut()[0])).name() not in corner


def test_the_selected_row_has_the_frame_that_means_selected() -> None:
    widget, dark = Heatmap(), theme.load("dark")
    image = painted(widget, example(selected=2))
    square = widget.square()
    left = QPointF(square.left() - 1, middle(widget, 2, 0, 6).y()).toPoint()
    assert image.pixelColor(left) == dark.color("select")
    above = QPointF(square.left() - 1, middle(widget, 0, 0, 6).y()).toPoint()
    assert image.pixelColor(above) != dark.color("select")


def test_cells_have_crisp_edges_wherever_the_rect_starts() -> None:
    """No mixed colours along a line through a row: every pixel is one cell's."""
    widget, dark = Heatmap(), theme.load("dark")
    image = painted(widget, example(scale="linear"), rect=QRectF(10.37, 10.71, 391.3, 371.9))
    square = widget.square()
    y = int(middle(widget, 5, 0, 6).y())
    row = {image.pixelColor(x, y).rgb() for x in range(int(square.left()), int(square.right()))}
    shown = {int(dark.lut()[i]) for i in (0, round(0.1 * 255), round(0.9 * 255))}
    assert row == shown


def test_on_a_fine_screen_the_square_lies_on_device_pixels() -> None:
    widget = Heatmap()
    painted(widget, example(), factor=1.5)
    assert (widget.square().width() * 1.5).is_integer()
    assert widget.cell_at(middle(widget, 5, 4, 6)) == (5, 4)


@pytest.mark.parametrize("n", [1, 2, 63, 255, 1024])
def test_any_number_of_tokens_fits(n: int) -> None:
    widget = Heatmap()
    painted(widget, example(n) if n > 1 else CausalMap(np.ones((1, 1), np.float32), ("a",)))
    assert QRectF(RECT).contains(widget.square())
    assert widget.cell_at(middle(widget, n - 1, 0, n)) == (n - 1, 0)


def test_a_spike_among_a_thousand_tokens_is_still_seen() -> None:
    values = np.zeros((1024, 1024), dtype=np.float32)
    values[1000, 3] = 1.0
    widget, dark = Heatmap(), theme.load("dark")
    image = painted(widget, CausalMap(values, ("a",) * 1024))
    square = widget.square().toRect()
    brightest = QColor(int(dark.lut()[255])).rgb()
    pixels = [
        (x, y)
        for x in range(square.left(), square.right() + 1)
        for y in range(square.top(), square.bottom() + 1)
        if image.pixel(x, y) == brightest
    ]
    assert len(pixels) == 1


def test_a_pixel_of_several_cells_answers_with_the_one_it_shows() -> None:
    values = np.zeros((1024, 1024), dtype=np.float32)
    values[1000, 3] = 1.0
    widget = Heatmap()
    painted(widget, CausalMap(values, ("a",) * 1024))
    pixels = int(widget.square().width())
    row, column = cell_span(1000, 1024, pixels)[0], cell_span(3, 1024, pixels)[0]
    at = widget.square().topLeft() + QPointF(column + 0.5, row + 0.5)
    assert widget.cell_at(at) == (1000, 3)


@pytest.mark.parametrize(
    ("n", "every"),
    [
        (6, 1),  # cells of 50 pixels: a label each
        (50, 2),  # cells of 5 to 6 pixels share one
        (1024, 0),  # far too many: none
    ],
)
def test_labels_thin_out_before_they_touch(n: int, every: int) -> None:
    geometry = heatmap.layout(QSizeF(400, 380), example(n), theme.load("dark"), factor=1)
    assert geometry.every == every


def test_a_map_too_large_for_labels_gets_their_room() -> None:
    dark = theme.load("dark")
    few = heatmap.layout(QSizeF(400, 380), example(6), dark, factor=1)
    many = heatmap.layout(QSizeF(400, 380), example(1024), dark, factor=1)
    assert few.left > 40
    assert (many.left, many.top) == (6, 6)
    assert many.side > few.side


def test_the_same_map_is_painted_from_what_was_kept() -> None:
    widget, shown = Heatmap(), example()
    first = painted(widget, shown)
    shown.values[5, 1] = 1.0  # the same array means the same picture
    assert painted(widget, shown) == first
    changed = CausalMap(shown.values.copy(), shown.labels)
    assert painted(widget, changed) != first


def test_hovering_frames_one_cell_and_leaves_the_rest() -> None:
    widget, shown = Heatmap(), example()
    plain, hovering = painted(widget, shown), painted(widget, shown, hovered=(4, 1))
    changed = [
        (x, y)
        for x in range(plain.width())
        for y in range(plain.height())
        if plain.pixel(x, y) != hovering.pixel(x, y)
    ]
    assert changed
    assert {widget.cell_at(QPointF(x + 0.5, y + 0.5)) for x, y in changed} == {(4, 1)}


def test_a_vector_picture_is_made_of_rectangles(tmp_path: Path) -> None:
    file = tmp_path / "map.svg"
    generator = QSvgGenerator()
    generator.setFileName(str(file))
    generator.setSize(QSize(420, 400))
    painter = QPainter(generator)
    Heatmap().paint(painter, RECT, example(), theme.load("light"))
    painter.end()
    svg = file.read_text(encoding="utf-8")
    assert "·Jordan" in svg  # words stay words
    assert svg.count("<image") == 1  # the colour bar; the map is no image
    assert "#002aa8" in svg  # CET-L17 at 1: the diagonal


def test_a_large_map_in_a_pdf_is_an_image(tmp_path: Path) -> None:
    file = tmp_path / "map.pdf"
    writer = QPdfWriter(str(file))
    writer.setPageSize(QPageSize(QSizeF(420, 400), QPageSize.Unit.Point))
    writer.setResolution(72)
    painter = QPainter(writer)
    Heatmap().paint(painter, RECT, example(100), theme.load("light"))
    painter.end()
    assert file.read_bytes().startswith(b"%PDF")
