"""Tokens without a trained row get one that says what they are made of and is never foretold."""

import numpy as np
import pytest
import torch
from embedded_model import rest_rows
from embedded_model.network import Network, begin
from embedded_model.rest_rows import fill, pieces, untrained
from embedded_model.settings import Settings
from embedded_model.streams import Streams

T, H, E, TH, HE, THE, THEM = 83, 71, 68, 400, 258, 1_169, 18_855  # ids of "t", "h", "e", ...


@pytest.fixture(autouse=True)
def _few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is 32 times 50,257 logits."""
    monkeypatch.setattr(rest_rows, "N_TRAINING", 4)
    monkeypatch.setattr(rest_rows, "N_HELD_OUT", 4)
    monkeypatch.setattr(rest_rows, "N_SETTLING", 5)


def network(small: Settings) -> Network:
    """Random weights large enough to foretell something; all states have the ones in common."""
    found = begin(small.model, small.start, seed=0)
    with torch.no_grad():
        found.wte.weight *= 10
        found.ln_f.bias += 1  # training, too, gives states something in common
    return found


def rows_of(ids: list[int], vocabulary: list[int], rows: list[list[float]]) -> list[list[float]]:
    known = np.array(vocabulary)
    found = pieces(torch.tensor(rows, dtype=torch.float32), known)
    places = np.searchsorted(untrained(known), ids)
    return [[round(x, 5) for x in row] for row in found[places].tolist()]


def test_a_token_is_made_of_the_longest_trained_pieces_from_the_left() -> None:
    """So "the" is "th" and "e", not "t", an "h" that has no row, and "e"; "m" has none either."""
    found = rows_of([THE, THEM, H], [T, E, TH], [[9, 9], [4, 0], [0, 4]])
    assert found == [[2, 2], [2, 2], [0, 0]]


def test_no_row_is_longer_than_the_median_of_the_trained_ones() -> None:
    """Made of "t" (5) and nothing, and of "e" (1); the median is 1."""
    assert rows_of([TH, HE], [T, E, THE], [[3, 4], [1, 0], [0, 1]]) == [[0.6, 0.8], [1, 0]]


def test_trained_rows_stay_and_the_others_are_one_vector_and_a_fifth_of_their_pieces(
    small: Settings, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever vector that is: the search for it is cut short."""
    monkeypatch.setattr(rest_rows, "N_ITERATIONS", 1)
    net = network(small)
    table = fill(net, streams).table
    trained = net.wte.weight.detach()[:-1]
    assert table.shape == (50_257, 16)
    assert torch.equal(table[streams.vocabulary], trained)
    ids = untrained(streams.vocabulary)
    shared = table[ids] - 0.2 * pieces(trained, streams.vocabulary)
    assert len(ids) == 50_157
    # sums and differences of float32 numbers around 1
    torch.testing.assert_close(shared, shared[:1].expand_as(shared), atol=1e-5, rtol=0)


def test_all_of_them_together_are_almost_never_foretold(small: Settings, streams: Streams) -> None:
    """Counted over the first tokens by a softmax of the whole table, and as `fill` tells it.

    50,157 rows against 100 begin with nearly all of the probability.
    """
    net = network(small)
    filled = fill(net, streams)
    for part, told in ((streams.training, filled.training), (streams.held_out, filled.held_out)):
        rows = np.concatenate([s.rows[:96] for s in part.values()])
        with torch.no_grad():
            states = net(torch.from_numpy(rows.astype(np.int64)).view(-1, 32)).flatten(0, 1)
            p = torch.softmax(states @ filled.table.t(), 1)  # (N, 50257)
        share = p[:, untrained(streams.vocabulary)].sum(1)
        assert told is not None
        assert 0 < told.mean < 1e-3
        assert told.mean <= told.largest < 1e-2
        assert share.mean().item() == pytest.approx(told.mean, rel=0.5)  # other windows of it


def test_texts_shorter_than_a_window_are_read_whole_and_none_need_be_held_out(
    small: Settings, streams: Streams
) -> None:
    few = {name: type(s)(s.rows[:9], s.starts[:1]) for name, s in streams.training.items()}
    filled = fill(network(small), Streams(streams.vocabulary, few, {}))
    assert filled.training.mean < 1e-3
    assert filled.held_out is None
