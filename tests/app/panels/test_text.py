"""Text: what is read and what is written told apart, tinted, in view, and said in numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app import theme
from app.panels.text import Text
from app.selection import Draft, Scene, Selection
from app.store import Store
from engine.events import RunFailed, Sampled
from engine.session import Run, Session
from engine.trace import Trace
from tests.corpora.short_run import START, events
from tests.pictures import painted, shows

EM = 8.4  # JetBrains Mono is 0.6 wide; 14 pixels in running text
LEFT, FIRST_LINE, PITCH = 14, 13, 25  # where the text begins; a line's middle; to the next


@pytest.fixture
def panel(qtbot: QtBot) -> Text:
    """As in the middle of the window: three lines of 84 characters."""
    panel = Text(Store(), theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(734, 92)
    return panel


def scene(
    trace: Trace,
    step: int | None = None,
    *,
    token: int | None = None,
    live: bool = True,
    running: bool = False,
) -> Scene:
    step = trace.n_steps - 1 if step is None else step
    return Scene(trace.at(step), Selection(1, step, token, live=live), Draft(), Session(), running)


def at(character: float, line: int = 0) -> QPointF:
    """The place of a character."""
    return QPointF(LEFT + (character + 0.5) * EM, FIRST_LINE + line * PITCH)


def with_draws(pieces: list[bytes], **changes: object) -> Trace:
    """The short run with other tokens written, or drawn otherwise."""
    kept = iter(pieces)
    made = [
        replace(event, token=replace(event.token, piece=next(kept)), **changes)  # type: ignore[arg-type]
        if isinstance(event, Sampled)
        else event
        for event in events()
    ]
    return Trace(made)


def test_the_title_row_says_the_tint_how_many_tokens_and_why_it_ended(
    panel: Text, recorded: Trace
) -> None:
    panel.show(scene(recorded))
    assert panel.subtitle() == "tint: surprisal"
    assert panel.figure() == "14 tokens · end of text"
    panel.show(scene(recorded, 4))
    assert panel.figure() == "5 tokens"  # it went on
    panel.show(scene(recorded, 0))
    assert panel.figure() == "1 token"


def test_a_run_that_failed_says_so(panel: Text) -> None:
    panel.show(scene(Trace([*events()[:-1], RunFailed("busy", "", "", START)])))
    assert panel.figure() == "3 tokens · failed"


@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("size", [(280, 120), (476, 176), (1200, 800)])
def test_the_selected_token_is_in_view_at_every_step(
    panel: Text, story: Trace, name: theme.Name, size: tuple[int, int]
) -> None:
    panel.restyle(theme.load(name))
    panel.canvas.resize(*size)
    for step in range(story.n_steps):
        panel.show(scene(story, step))
        assert shows(painted(panel, *size), panel, "select")


@pytest.mark.parametrize("scale", [0.8, 1.6])
def test_it_can_be_read_with_other_font_sizes(panel: Text, story: Trace, scale: float) -> None:
    panel.restyle(theme.load("light", scale))
    panel.show(scene(story))
    assert shows(painted(panel), panel, "select")


def test_the_prompt_is_muted_and_what_was_written_is_not(panel: Text) -> None:
    """Prompt "Hello you", 9 characters; then " are a cat"."""
    panel.tint = "none"
    panel.show(scene(Trace(events()), token=0))
    image = painted(panel)
    prompt, written = round(LEFT + 9 * EM), round(LEFT + 19 * EM)
    brightest = [
        max(image.pixelColor(x, y).red() for x in range(start, end) for y in range(5, 22))
        for start, end in ((round(LEFT + 6 * EM), prompt), (prompt + 2, written))
    ]
    # #9BA7B6 and #E7ECF2; antialiasing only makes them darker
    assert brightest[0] <= 0x9B < 0xC0 < brightest[1]


def test_a_click_selects_the_token_and_does_not_move_time(qtbot: QtBot, recorded: Trace) -> None:
    store = Store()
    store.open_session(Session({1: Run(1, "Michael", recorded)}, 1))
    panel = Text(store, theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(734, 92)
    panel.show(store.scene)
    # The prompt has 34 characters and six tokens, so character 40 is in the seventh, " basketball".
    qtbot.mouseClick(
        panel.canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(at(40).x()), FIRST_LINE)
    )
    assert (store.selection.token, store.selection.step) == (6, 13)
    panel.show(store.scene)
    qtbot.keyClick(panel.canvas, Qt.Key.Key_Left)
    assert store.selection.token == 5
    panel.show(store.scene)
    qtbot.keyClick(panel.canvas, Qt.Key.Key_Right)
    panel.show(store.scene)
    qtbot.keyClick(panel.canvas, Qt.Key.Key_Right)
    assert store.selection.token == 7


def test_right_of_the_last_token_the_step_is_followed_again(panel: Text, recorded: Trace) -> None:
    panel.store.open_session(Session({1: Run(1, "Michael", recorded)}, 1))
    panel.store.select(token=18)
    panel.show(panel.store.scene)
    assert panel.key_pressed(Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier)
    assert (panel.store.selection.token, panel.store.scene.token) == (None, 19)


def test_the_mouse_over_a_token_is_told_to_the_other_panels(panel: Text, recorded: Trace) -> None:
    panel.show(scene(recorded))
    panel.move(at(1))
    assert panel.store.hover == 0
    panel.move(QPointF(400, 80))
    assert panel.store.hover is None


def test_a_prompt_token_was_read_not_drawn(panel: Text) -> None:
    panel.show(scene(Trace(events())))
    assert panel.hint(at(0)) == (
        "“Hello”   id 15496   bytes 48 65 6c 6c 6f\n"
        "● Read in the prefill, not drawn: 2 tokens in 10.00 ms."
    )


def test_a_prompt_token_that_was_kept_from_the_run_before_says_so(panel: Text) -> None:
    made = events()
    made[2] = replace(made[2], first=1, count=1, reused=1)  # type: ignore[type-var]
    panel.show(scene(Trace(made)))
    assert "the prefill did not read it" in panel.hint(at(0))
    assert "1 tokens in 10.00 ms" in panel.hint(at(6))


def test_a_written_token_says_how_it_was_drawn_and_how_long_that_took(panel: Text) -> None:
    panel.show(scene(with_draws([b" are", b" a", b" cat"], raw_prob=0.25, final_prob=0.5, rank=2)))
    assert panel.hint(at(10)) == (
        "“·are”   id 102   bytes 20 61 72 65\n"
        "ƒ raw p = exp(z) / Σ exp(z) = 25.0 %, rank 3 of 50,257\n"
        "ƒ surprisal = −log₂ 0.25 = 2.000 bit\n"
        "ƒ 50.0 % after temperature 0.8, top-k 40, top-p 0.95\n"
        "● prefill of 2 tokens 10.00 ms + draw 2.00 ms"  # the first token's pass is the prefill
    )
    assert "● pass 6.00 ms + draw 1.00 ms" in panel.hint(at(17))


def test_a_token_picked_by_hand_says_so(panel: Text) -> None:
    panel.show(scene(with_draws([b" are", b" a", b" cat"], coin=None)))
    assert panel.hint(at(10)).endswith("Picked by hand: no coin was thrown.")


def test_a_character_stands_where_its_last_token_is(panel: Text) -> None:
    """😀 is f0 9f 98 80: the space and three bytes, then the last one, then a word."""
    panel.show(scene(with_draws([b" \xf0\x9f\x98", b"\x80", b" cat"])))
    assert panel.hint(at(10)).startswith("“·\\xf0\\x9f\\x98”   id 102")
    assert "ends inside a character" in panel.hint(at(10))
    assert panel.spoken().endswith("😀 cat")


def test_the_end_of_a_text_is_a_mark_without_bytes(panel: Text, recorded: Trace) -> None:
    panel.show(scene(recorded))
    # "The quick brown fox jumps over the lazy dog." has 44 characters, on the second line.
    assert panel.hint(at(45, line=1)).startswith("“<|endoftext|>”   id 50256\nIt marks where")


def test_surprising_tokens_are_tinted_and_certain_ones_are_not(panel: Text) -> None:
    """Two spaces are ground alone."""
    surprising = with_draws([b"  ", b" a", b" cat"], raw_prob=2**-8)
    panel.show(scene(surprising, token=0))
    ground = painted(panel).pixelColor(round(at(9).x()), FIRST_LINE)
    # Half of #F0A43A, the strongest tint, on #151A21.
    assert ground.getRgb()[:3] == pytest.approx((0x82, 0x5F, 0x2D), abs=2)
    panel.show(scene(with_draws([b"  ", b" a", b" cat"]), token=0))  # p = 1
    ground = painted(panel).pixelColor(round(at(9).x()), FIRST_LINE)
    assert ground == panel.theme.color("panel")


def test_the_tint_is_a_choice_in_the_menu_that_is_kept(panel: Text, recorded: Trace) -> None:
    panel.show(scene(recorded))
    words = {action.text(): action for action in panel.actions()}
    assert [text for text in words if text] == [
        "Tint by surprisal",
        "Tint by probability",
        "No tint",
        "Copy what was written",
        "Copy prompt and answer",
    ]
    words["Tint by probability"].trigger()
    assert panel.subtitle() == "tint: probability"
    assert panel.options() == {"tint": "probability"}
    panel.take_options({"tint": "none"})
    assert words["No tint"].isChecked()
    panel.take_options({"tint": "loudness"})
    assert panel.tint == "surprisal"


def test_what_was_written_can_be_copied_alone_or_with_its_prompt(
    panel: Text, recorded: Trace
) -> None:
    panel.show(scene(recorded))
    alone, whole = panel.actions()[-2:]
    alone.trigger()
    written = (
        " basketball.\nThe quick brown fox jumps over the lazy dog."  # the end mark is no text
    )
    assert QGuiApplication.clipboard().text() == written
    whole.trigger()
    assert QGuiApplication.clipboard().text() == "Michael Jordan played the sport of" + written


def test_the_caret_is_there_only_while_more_is_to_come(panel: Text) -> None:
    growing = Trace(events()[:-1])
    panel.show(scene(growing, running=True))
    assert shows(painted(panel), panel, "decode")
    panel.show(scene(growing, live=False))
    assert not shows(painted(panel), panel, "decode")
    panel.show(scene(Trace(events())))
    assert not shows(painted(panel), panel, "decode")


def test_a_draw_that_arrives_makes_another_picture(panel: Text) -> None:
    """A moment is equal before and after its draw."""
    trace = Trace(events()[:3])
    before = panel.key(scene(trace))
    trace.append(events()[3])
    assert panel.key(scene(trace)) != before


def test_the_wheel_holds_the_text_until_something_else_is_selected(
    panel: Text, story: Trace
) -> None:
    panel.canvas.resize(300, 92)
    panel.show(scene(story))
    assert panel.wheel(QPointF(50, 30), 30.0, Qt.KeyboardModifier.NoModifier)
    assert panel.hint(at(0)).startswith("“Once”")
    assert not shows(painted(panel, 300), panel, "select")  # the last token, out of view
    panel.show(scene(story, token=50))
    assert shows(painted(panel, 300), panel, "select")


def test_the_wheel_lets_go_of_a_growing_text_and_takes_hold_of_its_end(
    panel: Text, story: Trace
) -> None:
    panel.canvas.resize(300, 92)
    panel.show(scene(story, 30, running=True))
    panel.wheel(QPointF(50, 30), 30.0, Qt.KeyboardModifier.NoModifier)
    panel.show(scene(story, 31, running=True))
    assert panel.hint(at(0)).startswith("“Once”")
    panel.wheel(QPointF(50, 30), -30.0, Qt.KeyboardModifier.NoModifier)
    for step in (35, 38):
        panel.show(scene(story, step, running=True))
        assert shows(painted(panel, 300), panel, "decode")  # the caret


def test_a_picture_of_another_size_leaves_what_is_in_view(panel: Text, story: Trace) -> None:
    panel.canvas.resize(300, 92)
    panel.show(scene(story))
    panel.wheel(QPointF(50, 30), 2.0, Qt.KeyboardModifier.NoModifier)
    before = painted(panel, 300)
    painted(panel, 900, 600)
    assert painted(panel, 300) == before


def test_without_a_moment_it_says_what_to_do(panel: Text) -> None:
    assert panel.empty() == "Press Generate (Ctrl+Enter): the answer appears here token by token."
    panel.show(Scene(None, Selection(), Draft(), Session(), running=True))
    assert (panel.empty() or "").startswith("The model reads the prompt.")
    panel.show(Scene(None, Selection(), Draft(model_state="failed"), Session()))
    assert panel.empty() == "No model is loaded: load a model (Ctrl+M)."
    assert panel.subtitle() == panel.figure() == panel.spoken() == ""


def test_markup_in_a_token_is_drawn_as_it_is(panel: Text) -> None:
    panel.show(scene(with_draws([b"<b>", b"</b>", b"&amp;"])))
    assert panel.hint(at(9)).startswith("“<b>”")
    assert panel.spoken().endswith("<b></b>&amp;")


def test_a_run_is_not_mixed_up_with_another(panel: Text) -> None:
    panel.show(scene(Trace(events())))
    panel.hint(at(0))
    panel.show(scene(with_draws([b" were", b" two", b" dogs"])))
    assert panel.hint(at(10)).startswith("“·were”")
