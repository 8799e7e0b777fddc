"""Shares of a draw: recorded and what-if agree, the rest is what is left, why an id was cut."""

from dataclasses import replace

import numpy as np
import pytest

from app.widgets import shares
from engine.request import Sampling
from engine.trace import Trace

QUICK = 4  # " quick": rank 15 of 17 kept, drawn with T 0.8, top-k 40, top-p 0.95


def test_the_same_sampling_computed_again_gives_what_was_recorded(recorded: Trace) -> None:
    for forward, sampled in zip(recorded.forwards, recorded.samples, strict=True):
        assert forward.logits is not None
        was = shares.recorded(sampled, n_vocab=50_257)
        again = shares.what_if(sampled, forward.logits, sampled.sampling)
        assert was == again
        assert np.array_equal(was.ids, again.ids)
        assert np.array_equal(was.final, again.final)


def test_the_coin_lies_under_the_token_it_chose(recorded: Trace) -> None:
    for sampled in recorded.samples:
        assert sampled.coin is not None
        found = shares.recorded(sampled, n_vocab=50_257)
        assert found.under(sampled.coin) == found.written


def test_listed_are_the_most_probable_but_the_chosen_one_always(recorded: Trace) -> None:
    found = shares.recorded(recorded.samples[QUICK], n_vocab=50_257)
    assert [c.rank for c in found.listed(1)] == [15]
    assert [c.rank for c in found.listed(4)] == [0, 1, 2, 15]
    assert [c.rank for c in found.listed(20)] == list(range(20))
    assert len(found.listed(1_000)) == 256  # as many as a draw records


def test_a_rest_of_which_nothing_is_kept_is_nothing(recorded: Trace) -> None:
    found = shares.recorded(recorded.samples[QUICK], n_vocab=50_257)
    raw, final = found.rest(found.listed(17))
    assert final == 0.0  # all 17 kept are listed: not a rounding error, but 0
    assert 0 < raw < 1


def test_a_raw_rest_is_never_nothing(recorded: Trace) -> None:
    """Softmax leaves no id out, though 1 minus the listed may round to 0."""
    sampled = recorded.samples[1]  # "." with a probability of 0.9999
    sure = replace(sampled, raw_prob=1.0)
    assert shares.recorded(sure, n_vocab=50_257).rest([shares.Candidate(13, 0, 1.0, 1.0)])[0] > 0


@pytest.mark.parametrize(
    ("sampling", "rank", "why"),
    [
        (Sampling(0.8, 40, 0.95), 15, None),
        (Sampling(0.8, 10, 0.95), 15, "top_k"),
        (Sampling(0.8, 40, 0.10), 15, "top_p"),
        (Sampling(0.0, 40, 0.95), 15, "greedy"),
        (Sampling(0.001, 0, 1.0), 255, "tiny"),  # exp of a thousandfold distance is 0 in float64
    ],
)
def test_the_part_of_the_rule_that_cut_an_id_is_named(
    recorded: Trace, sampling: Sampling, rank: int, why: str | None
) -> None:
    logits = recorded.forwards[QUICK].logits
    assert logits is not None
    found = shares.what_if(recorded.samples[QUICK], logits, sampling)
    assert found.cut_by(found.at(rank)) == why


def test_what_was_picked_by_hand_has_no_choice_of_a_coin(recorded: Trace) -> None:
    picked = replace(recorded.samples[QUICK], coin=None)
    logits = recorded.forwards[QUICK].logits
    assert logits is not None
    assert shares.recorded(picked, n_vocab=50_257).choice is None
    assert shares.what_if(picked, logits, Sampling(1.0)).choice is None
