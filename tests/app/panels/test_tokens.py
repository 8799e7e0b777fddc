"""Tokens: the draft or the run's prompt as chips, what each is, and how full the context is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from pytestqt.qtbot import QtBot

from app import theme
from app.panels.tokens import Tokens
from app.selection import Draft, Scene, Selection
from app.store import Store
from engine import tokenizer
from engine.session import Run, Session
from engine.trace import Trace
from tests.corpora.short_run import STARTED, events
from tests.pictures import painted, shows

PROMPT = "Michael Jordan played the sport of"
FIRST = QPointF(40, 20)  # in the first chip


@pytest.fixture
def panel(qtbot: QtBot) -> Tokens:
    """As in the left column of the window: 262 pixels wide inside, room for three lines."""
    panel = Tokens(Store(), theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(290, 220)
    return panel


def typed(prompt: str, **changes: object) -> Scene:
    """A scene before any run."""
    return Scene(None, Selection(), draft(prompt, **changes), Session())


def draft(prompt: str, **changes: object) -> Draft:
    tokens = tokenizer.load().encode(prompt)
    made = Draft(prompt=prompt, tokens=tokens, model_state="ready", n_positions=512)
    return replace(made, **changes)  # type: ignore[arg-type]


def scene(
    trace: Trace, step: int, *, prompt: str = PROMPT, token: int | None = None, **changes: object
) -> Scene:
    """A run, and a draft with the same prompt or another."""
    return Scene(trace.at(step), Selection(1, step, token), draft(prompt, **changes), Session())


def test_the_title_row_counts_tokens_bytes_and_characters(panel: Tokens) -> None:
    panel.show(typed(PROMPT))
    assert (panel.subtitle(), panel.figure()) == ("6 tokens · 34 bytes", "34 chars")
    panel.show(typed("é"))
    assert (panel.subtitle(), panel.figure()) == ("1 token · 2 bytes", "1 char")


def test_a_chip_says_its_id_its_bytes_and_where_they_are(panel: Tokens) -> None:
    panel.show(typed(" inference is"))
    assert panel.hint(FIRST) == (
        "“·inference”   id 32278   bytes 20 69 6e 66 65 72 65 6e 63 65\n"
        "token 0, bytes 0 to 9 of 13, all counted from 0"
    )


def test_below_the_pieces_are_ids_or_bytes(panel: Tokens) -> None:
    panel.show(typed(PROMPT))
    ids = painted(panel)
    assert [action.text() for action in panel.actions()] == ["Show ids", "Show bytes"]
    panel.actions()[1].trigger()
    assert painted(panel) != ids
    assert panel.options() == {"shows": "bytes"}
    panel.take_options({"shows": "pictures"})
    assert panel.shows == "ids"
    assert painted(panel) == ids


def test_beside_the_chips_all_counts_are_said(panel: Tokens) -> None:
    panel.show(typed("日本"))  # two characters of three bytes, two tokens each
    assert panel.hint(QPointF(270, 120)) == (
        "● 2 characters, 6 bytes of UTF-8, 4 tokens\nƒ 6 / 4 = 1.50 bytes a token"
    )


def test_before_a_prompt_it_says_what_to_do(panel: Tokens) -> None:
    assert panel.empty() == "Type a prompt to see how it is split into tokens."
    assert panel.subtitle() == panel.figure() == panel.spoken() == ""


def test_before_there_is_a_tokenizer_it_says_so(panel: Tokens) -> None:
    panel.show(typed("Hello", tokens=None))
    assert panel.empty() == "The tokenizer is being loaded: the split appears in a moment."


def test_splitting_needs_no_model(panel: Tokens) -> None:
    panel.show(typed(PROMPT, model_state="failed", n_positions=None))
    assert panel.empty() is None
    assert panel.subtitle() == "6 tokens · 34 bytes"
    assert panel.hint(QPointF(40, 205)).startswith("● The prompt takes 6 positions.")


def test_a_prompt_that_cannot_be_split_says_why(panel: Tokens) -> None:
    panel.show(typed("Hello", tokens=None, problem="No text at 3."))
    assert panel.empty() is None
    assert panel.hint(QPointF(40, 20)) == "No text at 3."
    assert shows(painted(panel), panel, "warn")


def test_the_chips_of_the_run_select_and_time_stays(qtbot: QtBot, recorded: Trace) -> None:
    store = Store()
    store.open_session(Session({1: Run(1, "Michael", recorded)}, 1))
    store.edit({"prompt": PROMPT, "tokens": tokenizer.load().encode(PROMPT)})
    panel = Tokens(store, theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(290, 220)
    panel.show(store.scene)
    assert not shows(painted(panel), panel, "select")  # the last token, which was written
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=QPoint(40, 20))
    assert (store.selection.token, store.selection.step) == (0, 13)
    panel.show(store.scene)
    assert shows(painted(panel), panel, "select")
    panel.move(FIRST)
    assert store.hover == 0
    for key, token in ((Qt.Key.Key_Right, 1), (Qt.Key.Key_Left, 0), (Qt.Key.Key_Left, 0)):
        qtbot.keyClick(panel.canvas, key)
        panel.show(store.scene)
        assert store.selection.token == token


def test_a_draft_of_another_prompt_is_shown_and_does_not_select(
    panel: Tokens, recorded: Trace
) -> None:
    panel.store.open_session(Session({1: Run(1, "Michael", recorded)}, 1))
    panel.show(scene(recorded, 3, prompt="Hello you", token=0))
    assert (panel.subtitle(), panel.figure()) == ("draft · 2 tokens · 9 bytes", "")
    assert panel.hint(FIRST).startswith("“Hello”   id 15496")
    assert "nothing to select" in panel.hint(FIRST)
    panel.press(FIRST)
    panel.move(FIRST)
    assert (panel.store.selection.token, panel.store.hover) == (None, None)
    assert not shows(painted(panel), panel, "select")
    assert not panel.key_pressed(Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier)


def test_the_context_meter_counts_what_was_read(panel: Tokens, recorded: Trace) -> None:
    """6 of the prompt; of 14 tokens written the last was never fed, so 13."""
    panel.show(scene(recorded, 13))
    assert panel.hint(QPointF(40, 190)).startswith(
        "● 19 of 512 positions: 6 of the prompt + 13 written and read."
    )
    image = painted(panel)
    assert shows(image, panel, "prefill")
    assert shows(image, panel, "decode")
    panel.show(scene(recorded, 0))
    assert "● 6 of 512 positions: 6 of the prompt + 0 written" in panel.hint(QPointF(40, 190))
    assert not shows(painted(panel), panel, "decode")


def test_a_prompt_over_the_limit_warns(panel: Tokens) -> None:
    problem = "6 of 4 tokens: shorten the prompt by 2."
    panel.show(typed(PROMPT, n_positions=4, problem=problem))
    assert panel.hint(QPointF(40, 200)) == "● The prompt has 6 tokens; the model has 4 positions."
    assert panel.hint(QPointF(40, 170)) == problem
    assert shows(painted(panel), panel, "warn")


@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("size", [(280, 84), (280, 120), (292, 250), (1200, 800)])
def test_every_moment_can_be_shown_at_every_size(
    panel: Tokens, story: Trace, name: theme.Name, size: tuple[int, int]
) -> None:
    """The meter is always there, and so is the selected chip."""
    panel.restyle(theme.load(name))
    panel.canvas.resize(*size)
    prompt = story.at(0).started.request.prompt
    for step in range(0, story.n_steps, 3):
        panel.show(scene(story, step, prompt=prompt, token=step % story.n_prompt))
        image = painted(panel, *size)
        assert shows(image, panel, "select")
        assert shows(image, panel, "prefill")


@pytest.mark.parametrize("scale", [0.8, 1.6])
def test_it_can_be_read_with_other_font_sizes(panel: Tokens, recorded: Trace, scale: float) -> None:
    panel.restyle(theme.load("light", scale))
    panel.show(scene(recorded, 3, token=2))
    assert shows(painted(panel), panel, "select")


def test_what_is_edited_is_in_view(panel: Tokens) -> None:
    """A hundred chips do not fit: the eye is where the text changes."""
    panel.show(typed("one " * 100))
    assert panel.hint(FIRST).startswith("“one”")
    panel.show(typed("one " * 100 + "end"))
    assert "token 0," not in panel.hint(FIRST)
    panel.show(typed("two " + "one " * 99 + "end"))
    assert "token 0," in panel.hint(FIRST)


def test_the_wheel_scrolls_by_lines(panel: Tokens) -> None:
    panel.show(typed("one " * 100))
    assert panel.wheel(FIRST, -1.0, Qt.KeyboardModifier.NoModifier)
    # Chips of three letters and a space are 43 wide and 6 apart: five a line.
    assert "token 5," in panel.hint(FIRST)
    assert panel.key_pressed(Qt.Key.Key_PageUp, Qt.KeyboardModifier.NoModifier)
    assert "token 0," in panel.hint(FIRST)
    panel.show(typed("one"))
    assert not panel.wheel(FIRST, -1.0, Qt.KeyboardModifier.NoModifier)  # nothing to scroll


def test_equal_drafts_are_not_painted_twice(panel: Tokens) -> None:
    assert panel.key(typed(PROMPT)) == panel.key(typed(PROMPT))
    assert panel.key(typed(PROMPT)) != panel.key(typed(PROMPT + "!"))


def test_a_screen_reader_hears_pieces_and_ids(panel: Tokens) -> None:
    panel.show(typed("inference"))
    assert panel.spoken() == "2 tokens · 9 bytes 9 chars. in 259, ference 4288"


def test_the_prompt_of_a_run_is_shown_from_the_run(panel: Tokens) -> None:
    """Not from the draft, whose tokens may lag behind a long prompt."""
    trace = Trace(events())
    run_draft = Draft(prompt=STARTED.request.prompt, tokens=None)
    panel.show(Scene(trace.at(0), Selection(1), run_draft, Session()))
    assert panel.empty() is None
    assert panel.hint(FIRST).startswith("“Hello”")
