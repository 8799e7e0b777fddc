"""Rows: the same for a seed and a step, cut from the texts, or copies that can be foretold."""

import numpy as np
import pytest
from embedded_model.batches import Batches, copying, cut
from embedded_model.loss import UNSCORED
from embedded_model.refusal import Refusal
from embedded_model.settings import Settings, settled
from embedded_model.streams import Stream, Streams


def test_a_step_draws_the_same_rows_whenever_it_is_asked_for(
    small: Settings, streams: Streams
) -> None:
    forward, backward = Batches(small, streams), Batches(small, streams)
    first = [forward.at(step) for step in range(8)]
    again = [backward.at(step) for step in reversed(range(8))][::-1]
    for (x, y), (x2, y2) in zip(first, again, strict=True):
        assert np.array_equal(x, x2)
        assert np.array_equal(y, y2)
    assert not np.array_equal(first[0][0], first[1][0])


def test_a_batch_has_its_stages_shape_and_targets_one_ahead(
    small: Settings, streams: Streams
) -> None:
    for step, shape in ((0, (4, 16)), (4, (2, 32))):
        x, y = Batches(small, streams).at(step)
        assert x.shape == y.shape == shape
        ahead, counted = y[:, :-1], y[:, :-1] != UNSCORED
        assert np.array_equal(ahead[counted], x[:, 1:][counted])
        assert not (y == 100).any(), "a token without a row of its own is not to be learned"


def test_half_of_the_cuts_begin_where_a_document_does() -> None:
    """Rows 0 to 999 in a row tell where a cut began; documents begin at 0, 100, ... 900."""
    stream = Stream(np.arange(1_000, dtype=np.uint16), np.arange(0, 1_000, 100))
    random = np.random.default_rng(0)
    cuts = [cut(stream, 20, random) for _ in range(400)]
    assert all(np.array_equal(found, np.arange(found[0], found[0] + 20)) for found in cuts)
    at_start = sum(int(found[0]) % 100 == 0 for found in cuts)
    assert 170 <= at_start <= 240  # 200 by the coin, and one in a hundred of the others


def test_what_is_scored_in_a_copying_row_stood_there_before() -> None:
    """Each scored token came before, right after the same token: it can be copied."""
    random = np.random.default_rng(1)
    n_scored = 0
    for _ in range(200):
        x, y = copying(129, 12_288, random)
        assert x.shape == y.shape == (129,)
        assert (x >= 0).all()
        assert (x < 12_288).all()
        pairs: set[tuple[int, int]] = set()
        for at in range(1, 129):
            if y[at] != UNSCORED:
                n_scored += 1
                assert y[at] == x[at]
                assert (x[at - 1], x[at]) in pairs
            pairs.add((int(x[at - 1]), int(x[at])))
    assert n_scored > 200 * 40


def test_a_copying_row_fits_the_shortest_context() -> None:
    random = np.random.default_rng(2)
    for _ in range(200):
        x, _ = copying(9, 64, random)
        assert x.max() < 64


def test_the_share_of_a_text_that_is_not_there_goes_to_the_others(
    small: Settings, streams: Streams
) -> None:
    alone = Streams(streams.vocabulary, {"A": streams.training["A"]}, {})
    Batches(small, alone).at(0)
    plain = small.plain()
    for stage in plain["stage"]:
        stage["shares"] = {"stories": 1.0}
    with pytest.raises(Refusal, match="hold nothing"):
        Batches(settled(plain, source="x"), alone)


def test_a_text_too_short_for_a_row_is_refused(small: Settings, streams: Streams) -> None:
    short = Stream(np.zeros(33, np.uint16), np.zeros(1, np.int64))
    with pytest.raises(Refusal, match="The texts of A are 33 tokens, too few for rows of 32"):
        Batches(small, Streams(streams.vocabulary, {"A": short}, {}))
