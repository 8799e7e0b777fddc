"""Prompt and sampling: what is typed and slid is the draft, and the draft is what is shown."""

from itertools import pairwise

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLineEdit, QSlider
from pytestqt.qtbot import QtBot

from app import theme
from app.controls import LONG, PromptControls, SamplingControls
from app.store import Store
from engine import tokenizer
from engine.request import Sampling
from engine.trace import Trace


@pytest.fixture
def store(qtbot: QtBot) -> Store:
    return Store()


@pytest.fixture
def prompt(qtbot: QtBot, store: Store) -> PromptControls:
    made = PromptControls(store, theme.load("dark"))
    qtbot.addWidget(made.canvas)
    made.set_tokenizer(tokenizer.load())
    store.changed.connect(lambda: made.show(store.scene))
    made.canvas.resize(292, 112)
    return made


@pytest.fixture
def sampling(qtbot: QtBot, store: Store) -> SamplingControls:
    made = SamplingControls(store, theme.load("dark"))
    qtbot.addWidget(made.canvas)
    store.changed.connect(lambda: made.show(store.scene))
    made.canvas.resize(292, 160)
    return made


def ids(store: Store) -> list[int]:
    assert store.draft.tokens is not None
    return [token.id for token in store.draft.tokens]


# The prompt.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello ", [31373, 220]),
        ("hello  world", [31373, 220, 995]),
        ("    x", [220, 220, 220, 2124]),
        ("a\u00a0b", [64, 1849, 65]),
        ("Hello\r\nworld", [15496, 201, 198, 6894]),
        ("<|endoftext|>", [27, 91, 437, 1659, 5239, 91, 29]),
    ],
)
def test_the_draft_holds_exactly_what_the_box_holds(
    prompt: PromptControls, store: Store, text: str, expected: list[int]
) -> None:
    prompt.set_text(text)
    assert store.draft.prompt == text
    assert ids(store) == expected


def test_a_byte_order_mark_is_three_tokens(prompt: PromptControls, store: Store) -> None:
    prompt.set_text("\ufeffx")
    assert ids(store)[:3] == [171, 119, 123]


def test_typing_is_split_into_tokens_at_once(
    prompt: PromptControls, store: Store, qtbot: QtBot
) -> None:
    qtbot.keyClicks(prompt.editor, "inference")
    assert ids(store) == [259, 4288]


def test_one_edit_a_key_reaches_the_store(
    prompt: PromptControls, store: Store, qtbot: QtBot
) -> None:
    told = []
    store.changed.connect(lambda: told.append(store.draft.prompt))
    qtbot.keyClicks(prompt.editor, "abc")
    assert told == ["a", "ab", "abc"]


def test_before_the_tokenizer_is_there_the_tokens_are_unknown(qtbot: QtBot, store: Store) -> None:
    made = PromptControls(store, theme.load("dark"))
    qtbot.addWidget(made.canvas)
    made.set_text("inference")
    assert (store.draft.prompt, store.draft.tokens) == ("inference", None)
    made.set_tokenizer(tokenizer.load())
    assert ids(store) == [259, 4288]


def test_a_prompt_that_another_hand_set_is_shown(prompt: PromptControls, store: Store) -> None:
    store.edit({"prompt": "a\r\nb"})
    assert prompt.editor.text() == "a\r\nb"
    assert ids(store) == [64, 201, 198, 65]


def test_special_tokens_are_read_when_asked_for(prompt: PromptControls, store: Store) -> None:
    prompt.set_text("<|endoftext|>")
    special = prompt.actions()[1]
    special.trigger()
    assert ids(store) == [50256]
    assert prompt.subtitle() == "<|endoftext|> is one token"
    store.edit({"special": False})
    assert (special.isChecked(), len(ids(store)), prompt.subtitle()) == (False, 7, "")


def test_an_empty_prompt_is_a_problem_that_needs_no_warning(
    prompt: PromptControls, store: Store
) -> None:
    prompt.set_text("x")
    assert store.draft.problem is None
    prompt.set_text("")
    assert store.draft.problem == "The prompt is empty: type at least one character."
    assert prompt.line.text == ""  # the placeholder says what to do


def test_a_prompt_longer_than_the_context_says_by_how_much(
    prompt: PromptControls, store: Store
) -> None:
    store.edit({"n_positions": 1024})
    prompt.set_text(" the" * 1025)
    sentence = "1,025 of 1,024 tokens: shorten the prompt by 1."
    assert (store.draft.problem, prompt.line.text) == (sentence, sentence)
    store.edit({"n_positions": 2048})  # another model
    assert (store.draft.problem, prompt.line.text) == (None, "")


def test_a_long_prompt_is_in_the_draft_at_once_and_its_tokens_after_a_rest(
    prompt: PromptControls, store: Store, qtbot: QtBot
) -> None:
    long = " the" * (LONG // 4 + 1)
    prompt.set_text(long)
    assert (store.draft.prompt, ids(store)) == (long, [])
    qtbot.waitUntil(lambda: len(ids(store)) == LONG // 4 + 1)


def test_what_cannot_be_seen_is_said_under_the_prompt(prompt: PromptControls) -> None:
    prompt.set_text("a\u00a0b ")
    assert prompt.line.text == "1 × white space at the end · 1 × no-break space"
    prompt.set_text("a b")
    assert prompt.line.text == ""


def test_a_refused_paste_is_said_until_the_next_edit(prompt: PromptControls) -> None:
    prompt.set_text("x" * 100_001)
    assert "nothing was pasted" in prompt.line.text
    prompt.set_text("x")
    assert prompt.line.text == ""


def test_an_example_is_put_in_and_its_entry_says_what_to_look_at(
    prompt: PromptControls, store: Store
) -> None:
    entry = prompt.actions()[0].menu().actions()[6]
    assert entry.toolTip().startswith("Tokens: without a leading space")
    entry.trigger()
    assert store.draft.prompt == "inference inference"


def test_where_there_is_little_room_the_text_has_it(prompt: PromptControls) -> None:
    prompt.canvas.show()
    assert prompt.examples.isVisible()
    prompt.canvas.resize(292, 60)
    assert (prompt.examples.isVisible(), prompt.line.isVisible()) == (False, False)
    prompt.set_text("a ")
    assert prompt.line.isVisible()


# Sampling.


def test_the_sliders_begin_where_the_draft_does(sampling: SamplingControls, store: Store) -> None:
    values = {name: slider.value for name, slider in sampling.sliders.items()}
    assert values == {
        "temperature": 0.8,
        "top_k": 40,
        "top_p": 0.95,
        "max_tokens": 48,
        "seed": 1,
    }


@pytest.mark.parametrize(
    ("name", "typed", "expected"),
    [
        ("temperature", "0", Sampling(0.0, 40, 0.95)),
        ("temperature", "1.25", Sampling(1.25, 40, 0.95)),
        ("top_k", "50257", Sampling(0.8, 50257, 0.95)),
        ("top_k", "off", Sampling(0.8, 0, 0.95)),
        ("top_p", "1", Sampling(0.8, 40, 1.0)),
    ],
)
def test_a_typed_number_is_the_draft_s(
    sampling: SamplingControls,
    store: Store,
    qtbot: QtBot,
    name: str,
    typed: str,
    expected: Sampling,
) -> None:
    type_in(sampling, qtbot, name, typed)
    assert store.draft.sampling == expected


def test_a_seed_may_be_as_large_as_64_bits_hold(
    sampling: SamplingControls, store: Store, qtbot: QtBot
) -> None:
    type_in(sampling, qtbot, "seed", "18446744073709551615")
    assert store.draft.seed == 2**64 - 1
    assert sampling.sliders["seed"].toolTip().startswith("18446744073709551615\n")


def test_max_tokens_are_the_draft_s(sampling: SamplingControls, store: Store, qtbot: QtBot) -> None:
    type_in(sampling, qtbot, "max_tokens", "1024")
    assert store.draft.max_tokens == 1024


def test_what_another_hand_changed_is_shown_and_not_told_again(
    sampling: SamplingControls, store: Store, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(store.changed):
        store.edit({"sampling": Sampling(0.5, 7, 0.25), "seed": 3})
    with qtbot.assertNotEmitted(store.changed):
        sampling.show(store.scene)
    shown = [slider.value for slider in sampling.sliders.values()]
    assert shown == [0.5, 7, 0.25, 48, 3]


def test_sliders_that_stand_elsewhere_than_in_the_run_are_a_what_if(
    sampling: SamplingControls, store: Store, qtbot: QtBot, recorded: Trace
) -> None:
    store.edit({"prompt": "x"})
    store.run()
    store.take([(1, event) for event in recorded.events])
    assert sampling.subtitle() == ""
    with qtbot.waitSignal(sampling.retitled):
        store.edit({"sampling": Sampling(2.0)})
    assert sampling.subtitle() == "what-if"


def test_the_defaults_come_back(sampling: SamplingControls, store: Store) -> None:
    store.edit({"sampling": Sampling(2.0, 1, 0.1), "max_tokens": 3, "seed": 99})
    sampling.actions()[1].trigger()
    assert (store.draft.sampling, store.draft.max_tokens, store.draft.seed) == (Sampling(), 48, 1)


def test_another_seed_can_be_read_and_told(sampling: SamplingControls, store: Store) -> None:
    sampling.actions()[0].trigger()
    assert 0 <= store.draft.seed < 10_000


@pytest.mark.parametrize("scale", [1.0, 1.4])
def test_five_rows_fit_where_the_window_puts_them(qtbot: QtBot, store: Store, scale: float) -> None:
    look = theme.load("light", scale)
    made = SamplingControls(store, look)
    qtbot.addWidget(made.canvas)
    made.canvas.setFont(look.font("ui"))
    made.canvas.setStyleSheet(look.style_sheet())
    made.canvas.resize(290, look.pixels(196 - 36) - 1)  # less the title row and the frame
    made.canvas.show()
    rows = [made.sliders[name].geometry() for name in made.sliders]
    gaps = [below.top() - above.bottom() for above, below in pairwise(rows)]
    assert min(gaps) > 0
    assert rows[-1].bottom() < made.canvas.height()
    assert made.canvas.minimumSizeHint().width() <= 290
    for slider in made.sliders.values():
        assert slider.findChild(QSlider).width() >= 40


def test_the_rule_is_printed_where_there_is_room(sampling: SamplingControls) -> None:
    sampling.canvas.show()
    assert not sampling.rule.isVisible()
    sampling.canvas.resize(292, 230)
    assert sampling.rule.isVisible()
    assert sampling.rule.text == "temperature → top-k → top-p → renormalise → coin"


@pytest.mark.parametrize("name", ["dark", "light"])
def test_both_show_themselves_in_both_themes(
    prompt: PromptControls, sampling: SamplingControls, name: theme.Name
) -> None:
    for controls in (prompt, sampling):
        controls.restyle(theme.load(name, 1.2))
        assert controls.canvas.grab().size() == QSize(*controls.canvas.size().toTuple())
        assert controls.title in ("Prompt", "Sampling")


def type_in(sampling: SamplingControls, qtbot: QtBot, name: str, words: str) -> None:
    box = sampling.sliders[name].findChild(QLineEdit)
    assert box is not None
    box.setText(words)
    box.editingFinished.emit()
