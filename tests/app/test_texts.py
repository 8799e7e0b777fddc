"""The words: every id the code asks for is there, pages and glossary say what the numbers are."""

import ast
import re
from pathlib import Path

import pytest

from app import texts
from engine import resources

PANELS = (
    "prompt",
    "sampling",
    "text",
    "tokens",
    "attention",
    "next_token",
    "kv_cache",
    "timeline",
)


def test_words_come_by_their_dotted_id() -> None:
    assert texts.text("toolbar.generate") == "Generate"


def test_facts_are_filled_in() -> None:
    assert texts.text("panel.next_token.kept", kept=4, vocabulary=50_257) == "4 of 50,257 kept"


def test_an_id_without_words_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        texts.text("toolbar.teleport")


def test_a_page_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        texts.page("crystal_ball")


def test_every_id_that_the_code_asks_for_has_words() -> None:
    asked = {
        (file.name, id) for file in _sources() for id in _asked_ids(ast.parse(file.read_text()))
    }
    assert asked  # the crawl found something
    assert {(file, id) for file, id in asked if id not in texts.ids()} == set()


def test_no_words_are_empty_and_none_carry_a_stray_brace() -> None:
    for id in texts.ids():
        words = texts.text(id)
        assert words.strip(), id
        assert words.count("{") == words.count("}"), id


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_has_a_title_and_a_page_that_starts_with_it(panel: str) -> None:
    title = texts.text(f"panel.{panel}.title")
    assert texts.page(panel).startswith(f"# {title}\n")


@pytest.mark.parametrize("panel", PANELS)
def test_pages_are_plain_markdown(panel: str) -> None:
    """No markup of another kind, no links: a page is ours and leads nowhere."""
    page = texts.page(panel).replace("`<|endoftext|>`", "")
    assert "<" not in page
    assert "](" not in page


def test_the_sampling_rule_is_printed_in_its_order() -> None:
    assert texts.text("controls.rule") == "temperature → top-k → top-p → renormalise → coin"
    assert texts.text("controls.rule") in texts.page("sampling")


@pytest.mark.parametrize(
    ("figure", "formula"),
    [
        ("73,728", 2 * 12 * 12 * 64 * 4),  # K and V, layers, heads, numbers a head, bytes
        ("36,864", 12 * 12 * 64 * 4),  # Q alone
        ("201,028", 50_257 * 4),
        ("50,257", 256 + 50_000 + 1),
    ],
)
def test_the_glossary_has_the_numbers_of_gpt2_small(figure: str, formula: int) -> None:
    assert f"{formula:,}" == figure
    assert any(figure in term.formula for term in texts.glossary())


def test_the_glossary_has_one_entry_a_word() -> None:
    words = [term.word for term in texts.glossary()]
    assert len(words) == len(set(words))
    assert {"token", "coin", "KV cache", "prefill", "decode", "trace"} <= set(words)


def test_the_first_example_is_the_prompt_of_a_first_start() -> None:
    assert texts.examples()[0].prompt == "Michael Jordan played the sport of"


def test_every_example_says_what_to_look_at() -> None:
    for example in texts.examples():
        assert example.title
        assert example.prompt
        assert example.look.endswith((".", "?"))


def test_every_shortcut_is_a_key_and_what_it_does() -> None:
    ids = [id for id in texts.ids() if id.startswith("shortcut.") and id != "shortcut.title"]
    assert ids
    for id in ids:
        assert re.fullmatch(r"[^|]+ \| [^|]+", texts.text(id)), id


def _sources() -> list[Path]:
    return sorted((resources.root().parent / "app").rglob("*.py"))


def _asked_ids(tree: ast.AST) -> list[str]:
    """The literal first arguments of texts.text(...)."""
    return [
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("texts.text", "text")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]
