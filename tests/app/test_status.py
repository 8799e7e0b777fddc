"""The foot of the window: what goes on, what to look at, and a note that stays until it changes."""

import pytest
from pytestqt.qtbot import QtBot

from app import texts, theme
from app.main_window import MainWindow
from app.status import StatusLine

MARY = "When Mary and John went to the store, John gave a drink to"


def run(qtbot: QtBot, window: MainWindow, prompt: str) -> None:
    window.store.edit({"prompt": prompt, "max_tokens": 3, "seed": 3})
    with qtbot.waitSignal(window.settled):
        window.generate()
    window.refresh()


def test_a_first_start_says_what_to_press(window: MainWindow) -> None:
    window.store.edit({"prompt": texts.examples()[0].prompt})
    window.refresh()
    assert window.foot.sentence.startswith("Press Ctrl+Enter to watch a model read this prompt")


def test_an_example_says_what_to_look_at_before_and_after_its_run(
    qtbot: QtBot, window: MainWindow
) -> None:
    look = "Attention: which heads look back from the last “to” at the two names?"
    window.store.edit({"prompt": MARY})
    window.refresh()
    assert window.foot.sentence == f"Ctrl+Enter runs it. {look}"
    run(qtbot, window, MARY)
    assert window.foot.sentence.startswith("Done: ")
    assert window.foot.sentence.endswith(look)


def test_after_a_run_another_prompt_is_said_to_be_not_the_one_on_show(
    qtbot: QtBot, window: MainWindow
) -> None:
    run(qtbot, window, "Once")
    window.store.edit({"prompt": "Twice"})
    window.refresh()
    assert window.foot.sentence == texts.text("status.draft")
    window.store.edit({"prompt": ""})
    window.refresh()
    assert window.foot.sentence == "The prompt is empty: type at least one character."


def test_a_paused_run_says_how_it_goes_on(qtbot: QtBot, window: MainWindow) -> None:
    window.store.edit({"prompt": "Once", "max_tokens": 12})
    window.step()
    qtbot.waitUntil(lambda: _paused(window))
    window.refresh()
    assert window.foot.sentence == (
        "Paused after token 1: F10 writes one more, Ctrl+Enter goes on, Esc stops."
    )


@pytest.mark.usefixtures("qtbot")
def test_a_note_stays_until_something_else_goes_on() -> None:
    line = StatusLine(theme.load("dark"))
    line.say("Ready")
    line.note("Saved a.trace.")
    line.say("Ready")  # every frame says it again
    assert line.sentence == "Saved a.trace."
    line.say("Writing token 1")
    assert line.sentence == "Writing token 1"


def _paused(window: MainWindow) -> bool:
    window.refresh()
    moment = window.store.scene.moment
    return moment is not None and moment.sampled is not None
