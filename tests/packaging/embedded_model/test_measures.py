"""The measures on models whose answers can be worked out by hand."""

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from embedded_model.measures import Floats, Ids, copying, head_scores, loss, repeats

from engine.tokenizer import END_OF_TEXT, N_VOCAB

A, THE = 0, 262  # "!", 1 byte, and " the", 4 bytes


class Fake:
    """Says the same after the same token, or at the same place; looks where it is told."""

    def __init__(
        self, rows: Mapping[int, Mapping[int, float]], *, n_positions: int = 3, piece: int = 64
    ) -> None:
        self.n_positions = n_positions
        self.rows = rows  # probabilities by id, by the token they come after
        self.by_place = False
        self.piece = piece

    def logits(self, ids: Ids) -> Iterator[Floats]:
        z = np.full((len(ids), N_VOCAB), -np.inf, np.float32)
        for i, key in enumerate(range(len(ids)) if self.by_place else ids.tolist()):
            for id, probability in self.rows[key].items():
                z[i, id] = np.log(probability) + 5  # whatever is added to all says nothing
        for first in range(0, len(z), self.piece):
            yield z[first : first + self.piece]

    def maps(self, ids: Ids) -> Floats:
        """Head 0 looks at the token before, head 1 at all it may see alike."""
        n = len(ids)
        before = np.eye(n, k=-1, dtype=np.float32)
        before[0, 0] = 1
        alike = (
            np.tril(np.ones((n, n), np.float32)) / np.arange(1, n + 1, dtype=np.float32)[:, None]
        )
        return np.stack([before, alike])[None]  # (1, 2, n, n)


STEADY = {A: {A: 0.25, THE: 0.75}, THE: {A: 0.25, THE: 0.75}}


@pytest.mark.parametrize("piece", [1, 2, 64])
def test_a_loss_is_the_mean_over_windows_side_by_side_in_which_the_first_token_is_given(
    piece: int,
) -> None:
    """Windows of 3 are [A THE A] and [THE A A]; the 7th token is left over.

    Foretold are THE, A, A, A: (ln(4/3) + 3 ln 4) / 4 nats; they have 4 + 1 + 1 + 1 bytes.
    """
    ids = np.array([A, THE, A, THE, A, A, THE])
    found = loss(Fake(STEADY, piece=piece), ids)
    assert found.n_tokens == 4
    assert found.nats == pytest.approx(1.111641, abs=1e-5)
    assert found.perplexity == pytest.approx(3.039342, abs=1e-5)
    assert found.bits_per_byte == pytest.approx(4.446565 / 0.693147 / 7, abs=1e-5)
    assert found.untrained is None


def test_the_end_of_a_text_has_to_be_foretold_but_has_no_bytes() -> None:
    """Foretold are the end, at 1/2, and A, at 1/8: 1 + 3 bits for one byte."""
    rows = {A: {END_OF_TEXT: 0.5, A: 0.5}, END_OF_TEXT: {A: 0.125, THE: 0.875}}
    found = loss(Fake(rows), np.array([A, END_OF_TEXT, A]))
    assert found.n_tokens == 2
    assert found.bits_per_byte == pytest.approx(4, abs=1e-5)


def test_the_share_of_untrained_rows_is_told_by_the_token_it_comes_after() -> None:
    """THE is untrained. It gets 1/5 after A and 9/10 after itself; A comes 3 times, THE once."""
    rows = {A: {A: 0.8, THE: 0.2}, THE: {A: 0.1, THE: 0.9}}
    untrained = np.zeros(N_VOCAB, np.bool_)
    untrained[THE] = True
    share = loss(Fake(rows), np.array([A, THE, A, A, A, A]), untrained=untrained).untrained
    assert share is not None
    assert share.mean == pytest.approx((3 * 0.2 + 0.9) / 4)
    assert share.after_trained == pytest.approx(0.2)
    assert share.largest_after_trained == pytest.approx(0.2)
    assert share.after_untrained == pytest.approx(0.9)


def test_where_no_untrained_token_is_read_nothing_is_said_of_after_it() -> None:
    untrained = np.zeros(N_VOCAB, np.bool_)
    untrained[THE] = True
    share = loss(Fake(STEADY), np.array([A, A, A]), untrained=untrained).untrained
    assert share is not None
    assert share.after_trained == pytest.approx(0.75)
    assert share.after_untrained is None


def test_copying_compares_the_two_times_without_the_first_token_of_each() -> None:
    """[1 2 3 1 2 3]: places 0 and 1 foretell the first time, 3 and 4 the second.

    First: (ln 2 + ln 4) / 2. Second: (ln(4/3) + ln 4) / 2; at place 4 another token is likelier.
    """
    model = Fake(
        {
            0: {2: 0.5, 9: 0.5},
            1: {3: 0.25, 9: 0.75},
            2: {1: 0.001, 9: 0.999},  # the first token of the second time
            3: {2: 0.75, 9: 0.25},
            4: {3: 0.25, 9: 0.75},
            5: {9: 1.0},
        }
    )
    model.by_place = True
    found = copying(model, np.array([[1, 2, 3, 1, 2, 3]]))
    assert found.first == pytest.approx(1.039721, abs=1e-5)
    assert found.second == pytest.approx(0.836988, abs=1e-5)
    assert found.right == 0.5


def test_random_sequences_come_twice_and_are_always_the_same() -> None:
    found = repeats(np.arange(10_000, 20_000))
    assert found.shape == (16, 96)
    assert (found[:, :48] == found[:, 48:]).all()
    assert 10_000 <= found.min() <= found.max() < 14_000  # the 4,000 most frequent
    assert found[0, :4].tolist() == [12986, 11048, 13737, 11667]  # torch's generator of seed 3


def test_few_frequent_tokens_are_all_drawn_from() -> None:
    assert set(repeats(np.array([5, 6])).ravel().tolist()) == {5, 6}


def test_heads_are_scored_on_text_and_on_repeats_each_query_alike() -> None:
    """Head 1, which sees everything alike, gives 1/2 and 1/3 to the token before, of 3 tokens.

    On [7 8 7 8] a copy is seen by two queries, with 1/3 and 1/4; on [7 7 7 7] by three, with 1/2,
    2/3 and 3/4: five queries, 5/2 in all. What followed a copy: 1/3 and 1/4, then of [7 7 7 7]
    1/3 and 2/4 (the query itself does not count): four queries, 17/12 in all.
    """
    natural, repeated = np.array([[1, 2, 3]]), np.array([[7, 8, 7, 8], [7, 7, 7, 7]])
    found = head_scores(Fake({}), natural, repeated)
    assert found["previous"].tolist() == [[1, pytest.approx(5 / 12)]]
    assert found["first"].tolist() == [[0.5, pytest.approx(5 / 12)]]
    assert found["current"].tolist() == [[0, pytest.approx(5 / 12)]]
    assert found["duplicate"].tolist() == [[pytest.approx(3 / 5), pytest.approx(1 / 2)]]
    assert found["induction"].tolist() == [[1, pytest.approx(17 / 48)]]
