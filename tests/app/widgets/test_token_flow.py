"""Tokens in lines: where they lie, how lines break, what is under a point, what is painted."""

from collections.abc import Sequence

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from app import theme
from app.widgets.token_flow import Flow, Item, Style

pytestmark = pytest.mark.usefixtures("qapp")

EM = 8.4  # JetBrains Mono is 0.6 wide; 14 pixels in running text


def flow(style: Style, texts: Sequence[str], width: float) -> Flow:
    made = Flow(style, theme.load("dark"))
    made.show([Item(text, sub="1") for text in texts], width=width, theme=theme.load("dark"))
    return made


def lines(made: Flow) -> list[list[int]]:
    """Which items lie on which line, from the rects alone."""
    found: dict[float, list[int]] = {}
    for index in range(len(made.items)):
        for rect in made.rects(index):
            found.setdefault(rect.top(), []).append(index)
    return [found[top] for top in sorted(found)]


def painted(made: Flow, **marks: object) -> QImage:
    image = QImage(300, 200, QImage.Format.Format_RGB32)
    image.fill(theme.load("dark").color("panel"))
    painter = QPainter(image)
    made.paint(painter, QRectF(0, 0, 300, 200), **marks)  # type: ignore[arg-type]
    painter.end()
    return image


def test_chips_are_40_high_and_their_lines_46_apart() -> None:
    made = flow("chip", ["Once", "·upon", "·a", "·time"], 100)
    assert lines(made) == [[0, 1], [2, 3]]
    first, third = made.rects(0)[0], made.rects(2)[0]
    assert (first.height(), third.top() - first.top()) == (40, 46)
    assert made.height == 86


def test_a_chip_is_as_wide_as_its_wider_line_and_padding() -> None:
    made = Flow("chip", theme.load("dark"))
    made.show([Item("a", sub="50256")], width=200, theme=theme.load("dark"))
    assert made.rects(0)[0].width() == pytest.approx(5 * 6.0 + 14, abs=0.5)  # 10 pixel figures


def test_a_chip_wider_than_the_line_is_cut_to_it() -> None:
    made = flow("chip", ["x" * 200], 150)
    assert made.rects(0) == [QRectF(0, 0, 150, 40)]


def test_running_text_breaks_before_a_space_and_drops_it() -> None:
    made = flow("run", ["Once", " upon", " a", " time"], 11 * EM + 1)
    assert lines(made) == [[0, 1, 2], [3]]
    assert made.rects(3)[0].left() == 0
    assert made.rects(3)[0].width() == pytest.approx(4 * EM, abs=0.5)  # "time" without its space


def test_a_word_of_several_tokens_stays_together() -> None:
    made = flow("run", ["the", " in", "fer", "ence"], 10 * EM + 1)
    assert lines(made) == [[0], [1, 2, 3]]


def test_a_word_longer_than_a_line_breaks_between_its_tokens() -> None:
    made = flow("run", ["abcd", "efgh", "ijkl"], 9 * EM)
    assert lines(made) == [[0, 1], [2]]


def test_a_token_longer_than_a_line_goes_on_below() -> None:
    made = flow("run", ["x" * 25], 10 * EM + 1)
    assert [round(rect.width() / EM) for rect in made.rects(0)] == [10, 10, 5]
    assert made.index_at(QPointF(2, 2 * 25 + 5)) == 0


def test_letters_of_cjk_may_begin_a_line() -> None:
    made = flow("run", ["Hello", " 東", "京", "都"], 1)
    assert len(lines(made)) >= 4


def test_a_line_end_breaks_the_line_and_can_be_clicked() -> None:
    made = flow("run", ["one", "\n", "\n", "two"], 200)
    assert lines(made) == [[0, 1], [2], [3]]
    assert made.rects(1)[0].width() > 0
    assert made.index_at(made.rects(1)[0].center()) == 1


def test_text_may_go_on_behind_a_line_end_within_a_token() -> None:
    made = flow("run", ["a\n\nb", "c"], 200)
    assert lines(made) == [[0], [0], [0, 1]]


def test_what_is_under_a_point_is_found_and_nothing_between_lines() -> None:
    made = flow("run", ["Once", " upon"], 200)
    origin = QPointF(50, 30)
    assert made.index_at(QPointF(52, 35), origin) == 0
    assert made.index_at(QPointF(50 + 5 * EM, 35), origin) == 1
    assert made.index_at(QPointF(52, 53), origin) is None  # below the 20 high box
    assert made.index_at(QPointF(49, 35), origin) is None
    assert made.index_at(QPointF(52, 29), origin) is None


def test_an_item_without_text_takes_no_place() -> None:
    """The first bytes of a character that is not complete yet."""
    made = flow("run", ["a", "", "b"], 200)
    assert made.rects(2)[0].left() == pytest.approx(EM, abs=0.5)


@pytest.mark.parametrize("style", ["chip", "run"])
@pytest.mark.parametrize("width", [60.0, 133.0, 400.0])
def test_growing_gives_what_laying_out_at_once_gives(style: Style, width: float) -> None:
    texts = ["Once", " upon", " a", " time", "\n", " in", "fer", "ence", "s", "x" * 60, "\n\nEnd"]
    dark = theme.load("dark")
    items = [Item(text, sub=str(i)) for i, text in enumerate(texts)]
    grown, whole = Flow(style, dark), Flow(style, dark)
    for n in range(len(items) + 1):
        grown.show(items[:n], width=width, theme=dark)
    whole.show(items, width=width, theme=dark)
    assert [grown.rects(i) for i in range(len(items))] == [
        whole.rects(i) for i in range(len(items))
    ]
    assert (grown.height, grown.caret()) == (whole.height, whole.caret())


def test_other_items_or_another_width_are_laid_out_anew() -> None:
    dark = theme.load("dark")
    made = flow("run", ["Once", " upon"], 200)
    made.show([Item("Two"), Item(" upon")], width=200, theme=dark)
    assert made.rects(1)[0].left() == pytest.approx(3 * EM, abs=0.5)
    made.show([Item("Two"), Item(" upon")], width=4 * EM, theme=dark)
    assert made.rects(1)[0].top() == 25
    made.show([Item("Two")], width=4 * EM, theme=dark)
    assert len(made.items) == 1


def test_a_larger_font_makes_larger_lines() -> None:
    made = flow("run", ["a", "\n", "b"], 200)
    made.show(made.items, width=200, theme=theme.load("dark", scale=2.0))
    assert made.rects(2)[0].top() == 50


def test_the_caret_stands_where_the_next_token_goes() -> None:
    made = flow("run", ["abc"], 200)
    assert made.caret().left() == pytest.approx(3 * EM + 2, abs=0.5)
    assert painted(made, caret=True).pixelColor(made.caret().center().toPoint()) == theme.load(
        "dark"
    ).color("decode")


def test_the_caret_of_a_full_line_stands_on_the_next() -> None:
    made = flow("run", ["abc"], 3 * EM + 1)
    assert (made.caret().left(), made.caret().top()) == (0, 26)


def test_the_selected_item_has_its_frame_on_every_line_it_touches() -> None:
    made = flow("run", ["x" * 15], 10 * EM + 1)
    image, select = painted(made, selected=0), theme.load("dark").color("select")
    for rect in made.rects(0):
        right = image.pixelColor(int(rect.right()) + 1, int(rect.center().y()))
        assert close(right, select)


def test_a_tint_colours_the_ground_and_none_leaves_it() -> None:
    dark = theme.load("dark")
    made = Flow("run", dark)
    made.show([Item("  ", tint=1.0), Item("  ")], width=200, theme=dark)
    image = painted(made)
    assert image.pixelColor(4, 10) != dark.color("panel")
    assert image.pixelColor(4 + int(2 * EM), 10) == dark.color("panel")


def test_only_lines_that_can_be_seen_are_painted() -> None:
    made = flow("run", ["a\n"] * 100, 200)
    image = QImage(300, 200, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    painter = QPainter(image)
    made.paint(painter, QRectF(0, 100, 300, 25), origin=QPointF(0, 0))
    painter.end()
    rows = {y for y in range(200) for x in range(30) if image.pixelColor(x, y) != QColor("black")}
    assert rows
    assert rows <= set(range(100, 150))  # the line at 100, and the one that touches 125


def close(a: QColor, b: QColor) -> bool:
    """Antialiasing mixes a little of the ground into a frame's outermost pixels."""
    pairs = zip(a.getRgb()[:3], b.getRgb()[:3], strict=True)
    return max(abs(one - other) for one, other in pairs) < 120


@pytest.mark.parametrize("style", ["chip", "run"])
@pytest.mark.parametrize("width", [60.0, 133.0, 400.0])
def test_going_back_and_on_another_way_gives_what_laying_out_at_once_gives(
    style: Style, width: float
) -> None:
    """A branch: the same tokens to begin with, and a word that goes on otherwise."""
    dark = theme.load("dark")
    texts = ["Once", " upon", "\n", " in", "fer", "ence", "x" * 30, "京", "都", " a\n\nb", " end"]
    others = ["ring", " it", "self"]
    for cut in range(len(texts) + 1):
        made, whole = Flow(style, dark), Flow(style, dark)
        made.show([Item(text, sub="1") for text in texts], width=width, theme=dark)
        small = Item("\\xf0", small=style == "run")
        items = [*[Item(text, sub="1") for text in texts[:cut]], small, *map(Item, others)]
        for shown in (items, items[:cut], items):
            made.show(shown, width=width, theme=dark)
        whole.show(items, width=width, theme=dark)
        assert [made.rects(i) for i in range(len(items))] == [
            whole.rects(i) for i in range(len(items))
        ]
        assert (made.height, made.caret()) == (whole.height, whole.caret())


def test_a_small_chip_stands_in_its_line_and_a_line_may_end_behind_it() -> None:
    dark = theme.load("dark")
    made = Flow("run", dark)
    made.show([Item("ab"), Item("\\xf0", small=True), Item("cd")], width=60, theme=dark)
    chip = made.rects(1)[0]
    assert chip.left() == pytest.approx(2 * EM, abs=0.5)
    assert chip.width() == pytest.approx(4 * 6.0 + 8, abs=0.5)  # 10 pixel letters and padding
    assert made.rects(2)[0].topLeft() == QPointF(0, 25)
