"""A model card tells the facts of a run and nothing else, and has a place for the figures."""

from dataclasses import replace

import pytest
import torch
from embedded_model.card import card, count, percent
from embedded_model.checkpoint import Checkpoint
from embedded_model.figures import into_card
from embedded_model.network import begin
from embedded_model.rest_rows import Filled, Share
from embedded_model.settings import Settings, settled
from embedded_model.streams import Streams

LINE = {"A": 3.514, "stories": 0.341, "copy_first": 11.7, "copy_second": 0.52}
LOG = {"step": 8, "tokens": 512, "loss": 2.358, **LINE}


def made(
    settings: Settings,
    streams: Streams,
    *,
    step: int = 8,
    read_before: int = 0,
    held_out: Share | None = None,
) -> str:
    network = begin(settings.model, settings.start, seed=0)
    run = Checkpoint(
        settings=settings,
        step=step,
        read_before=read_before,
        arithmetic="bfloat16",
        n_threads=1,
        digest=streams.digest,
        losses=(),
        log=(LOG,) if step == 8 else (),
        weights=network.state_dict(),
        optimizer={},
    )
    filled = Filled(torch.zeros(50_257, 16), Share(0.00018667, 0.21), held_out)
    return card("Small", run=run, streams=streams, filled=filled, n_bytes=1_630_000, sha256="ab12")


def changed(settings: Settings, section: str, **values: float) -> Settings:
    plain = settings.plain()
    plain[section] |= values
    return settled(plain, source="test")


def test_facts_of_the_run_and_of_the_file_are_told(small: Settings, streams: Streams) -> None:
    """804,112 of the table, 512 of positions, 2 x 3,280 of layers, 32 of the last LayerNorm."""
    told = made(small, streams, held_out=Share(0.0005, 1.0))
    assert told.startswith("# Small\n")
    for fact in (
        "2 layers, 2 heads, 16 numbers a token, 32 positions",
        "811,216, of which 804,112 are the token embedding and 6,560 the layers",
        "float16, 1,630,000 bytes, sha256 `ab12`",
        "8 steps of 64 tokens, 512 in all.",
        "learning rate 0.02, weight decay 0.1), all else by AdamW (0.003)",
        "over the first 2 % of the run and fall along a cosine to 2 %",
        "Arithmetic in bfloat16, 1 thread, seed 3.",
        "**Only 100 tokens have rows of their own**",
        "The other 50,157 rows",
        "0.0187 % of the probability (in one place 21 %) on its texts, "
        "0.05 % of the probability (in one place 100 %) on held-out texts together.",
        "at step 8, in nats a token over the small vocabulary: 2.36 while training, held out "
        "3.51 on tier A, 0.34 on stories; random tokens 11.70 the first time and 0.52",
        "tier A (4 documents, 200 tokens), stories (2 documents, 100 tokens)",
    ):
        assert fact in told
    assert "unfinished" not in told
    assert "$" not in told  # nothing was left to fill in


def test_texts_are_told_with_their_shares_by_stage(small: Settings, streams: Streams) -> None:
    """Of 400 tokens of tier A, as many lack a row as are at place 100."""
    streams.training["A"].rows[:] = 5
    streams.training["A"].rows[:6] = 100
    lines = made(small, streams).splitlines()
    stages = "to 256 tokens, 16 at once | to 512 tokens, 32 at once"
    assert f"| Text | Documents | Tokens | of them without a row | {stages} |" in lines
    assert "| Texts of tier A, the plainest | 8 | 400 | 1.5 % | 50 % | 50 % |" in lines
    assert any(x.startswith("| Copying") and x.endswith("| – | 20 % | 20 % |") for x in lines)
    assert not any(line.startswith("| Drills") for line in lines)


def test_a_text_that_is_absent_leaves_its_share_to_the_others(
    small: Settings, streams: Streams
) -> None:
    """50 % of 70 % are 71.4 %."""
    rest = replace(streams, training={"A": streams.training["A"]})
    told = made(small, rest)
    assert "| 71.4 % | 71.4 % |" in told
    assert "Short stories" not in told


@pytest.mark.parametrize(
    ("step", "read"), [(0, "0 steps with 0 tokens"), (4, "4 steps with 256 tokens")]
)
def test_an_unfinished_run_says_so_and_tells_only_what_it_came_to(
    small: Settings, streams: Streams, step: int, read: str
) -> None:
    """The second stage begins with the fifth step."""
    told = made(small, streams, step=step)
    assert f"**It is unfinished:** it was exported after {step} of 8 steps of its run." in told
    assert f"{read}, of a run of 8 steps of 64 tokens, 512 in all." in told
    assert "16 at once |\n" in told
    assert "32 at once" not in told
    assert "Nothing was measured on the way." in told


def test_what_the_weights_were_given_before_training_is_told(
    small: Settings, streams: Streams
) -> None:
    assert 'and head 0.0 (layer.head, from 0) began as "look one' in made(small, streams)
    two = made(changed(small, "start", look_back_heads=2), streams)
    assert "and heads 0.0 to 0.1 (layer.head, from 0) began" in two
    none = made(changed(small, "start", look_back_heads=0), streams)
    assert "smooth waves" in none
    assert "look one token back" not in none
    assert "smooth waves" not in made(changed(small, "start", position_scale=0), streams)


def test_figures_have_their_place(small: Settings, streams: Streams) -> None:
    told = made(small, replace(streams, held_out={}))
    assert "<!-- figures -->\nHERE\n<!-- /figures -->" in into_card(told, "HERE")
    assert "Nothing was held out." in told


def test_numbers_are_for_people() -> None:
    assert [count(n) for n in (4_096, 4_738_560, 12_865_792)] == [
        "4,096",
        "4.74 million",
        "12.9 million",
    ]
    assert [percent(x) for x in (0, 0.3, 0.996, 1, 0.00018667, 3e-9)] == [
        "0 %",
        "30 %",
        "99.6 %",
        "100 %",
        "0.0187 %",
        "less than 0.0001 %",
    ]


def test_a_run_that_began_with_other_weights_says_so(small: Settings, streams: Streams) -> None:
    told = made(small, streams, read_before=32_768_000)
    assert "512 in all, from weights that had read 32.8 million tokens before." in told
