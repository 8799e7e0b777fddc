"""Figures as a table and samples, and the place they have in a model card."""

from typing import Any

import numpy as np
import pytest
from embedded_model import figures
from embedded_model.measures import Copying, Loss, Share
from embedded_model.refusal import Refusal

SHARE = Share(
    mean=0.0012345, after_trained=0.000298, largest_after_trained=0.76, after_untrained=None
)


def some(**changes: object) -> dict[str, Any]:
    """Figures of a model of one layer and two heads."""
    loss = Loss(nats=3.44549, bits_per_byte=1.279, n_tokens=32_193, untrained=SHARE)
    alike = np.array([[0.25, 0.0004]])
    return {
        "held_out": "shipped",
        "model": {"n_positions": 512},
        "losses": {"A": figures.of_loss(loss, n_documents=19)},
        "copying": figures.of_copying(Copying(11.634, 0.6581, 0.97340), by_frequency=True),
        "heads": figures.of_heads(
            {
                "previous": np.array([[0.2, 0.93451]]),
                "first": np.array([[0.5, 0.6]]),
                "current": alike,
                "duplicate": alike,
                "induction": alike,
            }
        ),
        "sampling": {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "seed": 1, "max_tokens": 60},
        "samples": [{"prompt": "The cat", "text": " sat.", "end": "end of text"}],
    } | changes


def row(title: str, **changes: object) -> str:
    """What the table says beside a title."""
    lines = figures.table(some(**changes)).splitlines()
    found = [line.removeprefix(f"| {title} | ") for line in lines if f"| {title} |" in line]
    assert len(found) == 1
    return found[0].removesuffix(" |")


def test_a_row_tells_a_loss_in_all_its_units() -> None:
    """exp(3.44549) is 31.36; rounding is to three digits."""
    assert row("Books, tier A, the plainest") == (
        "3.445 nats a token (perplexity 31.4; 1.279 bits a byte) over 32,193 tokens of 19 documents"
    )


def test_rows_tell_how_much_falls_on_untrained_rows() -> None:
    assert (
        row("Probability on token rows that training never saw, after a token it saw")
        == "tier A 0.0298 %"
    )
    assert row("The most of it in one place") == "tier A 76 %"
    assert row("The same, after a token it never saw") == "no such place"


def test_a_model_all_of_whose_rows_were_trained_has_no_such_rows() -> None:
    loss = Loss(nats=3, bits_per_byte=1, n_tokens=9, untrained=None)
    table = figures.table(some(losses={"B": figures.of_loss(loss, n_documents=1)}))
    assert "never saw" not in table
    assert "Books, tier B" in table


def test_copying_says_where_its_tokens_come_from() -> None:
    said = "11.634 nats a token the first time, 0.658 the second; 97.3 % of the second right"
    assert row("48 random tokens and the same again (of the 4,000 most frequent)") == said
    any_of = figures.of_copying(Copying(11.634, 0.6581, 0.97340), by_frequency=False)
    title = "48 random tokens and the same again (of the 4,000 first in the vocabulary)"
    assert row(title, copying=any_of) == said


def test_heads_are_named_from_half_of_their_attention_on_the_strongest_first() -> None:
    assert row("Previous-token heads") == "0.1 (0.935)"
    assert row("First-token heads") == "0.1 (0.600), 0.0 (0.500)"
    assert row("Induction heads") == "none; 0.0 comes closest (0.250)"


def test_of_many_strong_heads_four_are_named() -> None:
    shares = figures.of_heads({"first": np.array([[0.9, 0.8, 0.7], [0.6, 0.55, 0.52]])})
    heads = some()["heads"] | shares
    assert row("First-token heads", heads=heads) == (
        "0.0 (0.900), 0.1 (0.800), 0.2 (0.700), 1.0 (0.600) and 2 more"
    )


def test_every_head_has_its_share_and_the_best_is_named() -> None:
    found = figures.of_heads({"induction": np.array([[0.1, 0.2], [0.92649, 0.0]])})
    assert found["induction"] == {
        "best": "1.0",
        "shares": {"0.0": 0.1, "0.1": 0.2, "1.0": 0.926, "1.1": 0.0},
    }


def test_a_sample_is_one_line_that_markdown_leaves_alone_and_says_where_it_was_cut() -> None:
    samples = [{"prompt": "A_b", "text": " *c*\n\n<d>", "end": "max tokens"}]
    last = figures.samples(some(samples=samples)).splitlines()[-1]
    assert last == r"> **A\_b** \*c\* ↵ \<d\> …"


def test_a_card_gets_a_new_block_between_its_marks_and_keeps_the_rest() -> None:
    card = "# Model\n\n<!-- figures -->\nold\n<!-- /figures -->\n\nMore.\n"
    assert figures.into_card(card, "new") == (
        "# Model\n\n<!-- figures -->\nnew\n<!-- /figures -->\n\nMore.\n"
    )


@pytest.mark.parametrize(
    "card",
    [
        "# Model",
        "<!-- figures --> without an end",
        "<!-- /figures --> turned <!-- figures -->",
        "<!-- figures --><!-- /figures --> twice <!-- figures --><!-- /figures -->",
    ],
)
def test_a_card_without_its_marks_is_refused(card: str) -> None:
    with pytest.raises(Refusal, match="no place for the figures"):
        figures.into_card(card, "new")
