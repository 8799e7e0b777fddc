"""Judging a model from the command line, and what the card of the shipped one says."""

import json
from pathlib import Path

import pytest
from embedded_model import evaluate, figures
from embedded_model.refusal import Refusal

from engine import resources
from engine.models import known
from tests.corpora import tiny_gpt2

SHIPPED = resources.path("models", "decodescope-6x8")
STORY = "Once there was a cat. " * 400  # 2,401 tokens with the end: two windows of 1,024


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A model folder that loads and knows nothing, with a card."""
    (tmp_path / "model.safetensors").write_bytes(tiny_gpt2.safetensors(tiny_gpt2.tensors()))
    (tmp_path / "config.json").write_bytes(tiny_gpt2.config())
    (tmp_path / "README.md").write_text("# Tiny\n<!-- figures -->\n<!-- /figures -->\n")
    return tmp_path


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One held-out text, one story that is shorter than a window, one prompt."""
    few = {"B": [STORY], "stories": ["A cat."]}
    monkeypatch.setattr(evaluate, "held_out_texts", lambda folder: few)
    monkeypatch.setattr(evaluate, "PROMPTS", ("The cat",))


def test_the_card_says_what_figures_json_says() -> None:
    found = json.loads((SHIPPED / "figures.json").read_text(encoding="utf-8"))
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert figures.into_card(card, figures.block(found)) == card


def test_the_shipped_model_goes_on_after_a_token_that_training_never_saw() -> None:
    """Such rows are 3 in 4 of the vocabulary; together they get about a thousandth, also there."""
    found = json.loads((SHIPPED / "figures.json").read_text(encoding="utf-8"))
    for name in ("A", "B"):
        share = found["losses"][name]["share_on_untrained_rows"]
        assert share["after_trained"] < 0.0015
        assert share["after_untrained"] < 0.01


def test_the_figures_are_of_the_weights_that_are_shipped() -> None:
    found = json.loads((SHIPPED / "figures.json").read_text(encoding="utf-8"))
    assert found["model"]["sha256"] == known()[0].sha256
    assert found["model"]["n_params"] == known()[0].dimensions.n_params
    assert list(found["losses"]) == ["A", "B", "stories"]
    assert found["held_out"] == "shipped"


@pytest.mark.usefixtures("texts")
def test_a_model_without_a_list_of_trained_tokens_is_judged(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random weights know nothing: a loss of about ln 50,257 = 10.82 nats."""
    assert evaluate.main([str(tiny), "--card"]) == 0
    said = capsys.readouterr()
    found = json.loads((tiny / "figures.json").read_text(encoding="utf-8"))
    assert list(found["losses"]) == ["B"]
    assert "stories: left out" in said.err
    assert found["losses"]["B"]["tokens"] == 2 * 1_023
    assert found["losses"]["B"]["nats"] == pytest.approx(10.82, abs=0.1)
    assert "share_on_untrained_rows" not in found["losses"]["B"]
    assert "(of the 4,000 first in the vocabulary)" in said.out
    assert said.out.strip() == figures.block(found)
    assert figures.block(found) in (tiny / "README.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("texts")
def test_figures_can_go_elsewhere(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.loads((SHIPPED / "figures.json").read_text(encoding="utf-8"))
    monkeypatch.setattr(evaluate, "evaluate", lambda subject, texts, say: dict(found))
    elsewhere = tmp_path / "mine.json"
    assert evaluate.main([str(tiny), "--json", str(elsewhere)]) == 0
    assert not (tiny / "figures.json").exists()
    assert elsewhere.read_bytes() == (SHIPPED / "figures.json").read_bytes()


def test_held_out_texts_of_the_recipe_are_two_tiers_and_300_stories() -> None:
    found = evaluate.held_out_texts(None)
    assert {name: len(texts) for name, texts in found.items()} == {
        "A": 19,
        "B": 15,
        "stories": 300,
    }


def test_a_stream_is_the_tokens_of_each_text_and_an_end() -> None:
    assert evaluate.stream(["inference", "a"]).tolist() == [259, 4288, 50_256, 64, 50_256]


def test_texts_too_short_to_watch_heads_on_are_refused() -> None:
    with pytest.raises(Refusal, match="the longest has 7"):
        evaluate._sequences({"B": evaluate.stream(["one two three four five six"])})


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        ("config.json", [], "config.json"),
        ("README.md", ["--card"], "README.md cannot be read"),
        ("", ["--corpus", "no-such-folder"], "no-such-folder"),
        ("marks", ["--card"], "no place for the figures"),
        ("list", [], "trained_tokens.txt holds 'x'"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_sentence(
    tiny: Path,
    capsys: pytest.CaptureFixture[str],
    change: str,
    arguments: list[str],
    said: str,
) -> None:
    if change == "marks":
        (tiny / "README.md").write_text("# Tiny")
    elif change == "list":
        (tiny / "trained_tokens.txt").write_text("x")
    elif change:
        (tiny / change).unlink()
    assert evaluate.main([str(tiny), *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tiny / "figures.json").exists()
