"""Text that fits, boxes and marks."""

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from app import theme
from app.widgets import marks

pytestmark = pytest.mark.usefixtures("qapp")

DARK = theme.load("dark")


@pytest.fixture
def canvas() -> QImage:
    image = QImage(200, 120, QImage.Format.Format_RGB32)
    image.fill(DARK.color("panel"))
    return image


def inked(image: QImage) -> QRectF:
    """The box around everything that is not ground."""
    ground = DARK.color("panel").rgb()
    spots = [
        (x, y)
        for x in range(image.width())
        for y in range(image.height())
        if image.pixel(x, y) != ground
    ]
    assert spots, "nothing was drawn"
    xs, ys = [x for x, _ in spots], [y for _, y in spots]
    return QRectF(min(xs), min(ys), max(xs) - min(xs) + 1, max(ys) - min(ys) + 1)


def test_text_that_fits_stays_and_longer_text_ends_in_an_ellipsis() -> None:
    font = DARK.font("mono", 10)  # 6 pixels a letter
    assert marks.elided("basketball", font, 60.5) == "basketball"
    assert marks.elided("basketball", font, 42.5) == "basket…"


def test_the_mono_font_has_no_ligatures() -> None:
    """A token is its characters: "!=" is two of them and looks like two."""
    font = DARK.font("mono", 10)
    assert marks.text_width("!=", font) == pytest.approx(12, abs=0.1)
    assert "calt=0" in font.key()


@pytest.mark.parametrize(("align", "left"), [("left", 100), ("center", 82), ("right", 64)])
def test_x_is_the_edge_that_align_names(canvas: QImage, align: marks.Align, left: int) -> None:
    painter = QPainter(canvas)
    font = DARK.font("mono", 10)
    advance = marks.draw_text(painter, 100, 50, "HHHHHH", font, DARK.color("text"), align)
    painter.end()
    assert advance == pytest.approx(36, abs=0.1)
    assert inked(canvas).left() == pytest.approx(left, abs=1.5)
    assert inked(canvas).bottom() == pytest.approx(50, abs=1)


def test_wrapped_text_stays_in_its_rect_and_says_that_it_is_cut(canvas: QImage) -> None:
    rect = QRectF(20, 10, 100, 40)
    painter = QPainter(canvas)
    height = marks.draw_wrapped(
        painter, rect, "never an invented number " * 9, DARK.font("ui", 12), DARK.color("muted")
    )
    painter.end()
    assert height <= 40
    assert rect.adjusted(-1, -1, 1, 1).contains(inked(canvas))


def test_wrapping_counts_characters_beyond_the_first_plane_once(canvas: QImage) -> None:
    """Qt counts an emoji as two; its lines must not lose a letter for it."""
    lines = marks._wrapped("👋👋👋 three waves and on", DARK.font("mono", 10), 90)
    assert " ".join(lines) == "👋👋👋 three waves and on"


def test_each_mark_is_drawn_and_takes_its_width(canvas: QImage) -> None:
    painter = QPainter(canvas)
    x = 10.0
    for mark in marks.SIGNS:
        width = marks.draw_mark(painter, x, 50, mark, DARK)
        assert width > 3
        x += width
    painter.end()
    assert inked(canvas).right() <= x + 1


def test_a_box_keeps_its_line_inside(canvas: QImage) -> None:
    painter = QPainter(canvas)
    rect = QRectF(20, 20, 50, 30)
    marks.draw_box(painter, rect, radius=0, fill=DARK.color("raised"), line=DARK.color("line"))
    painter.end()
    assert inked(canvas) == rect


def test_the_selected_frame_lies_just_outside(canvas: QImage) -> None:
    painter = QPainter(canvas)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    rect = QRectF(20, 20, 50, 30)
    marks.draw_frame(painter, rect, DARK)
    painter.end()
    assert inked(canvas).contains(rect)
    assert canvas.pixelColor(45, 35) == DARK.color("panel")  # it frames, it does not fill
