"""One head: its map grows to what a whole computation gives, and its scores have their numbers."""

import math

import numpy as np
import pytest

from engine.heads import GrowingHead, Score, scores, tag, terms
from engine.trace import Trace


def test_a_map_grown_by_row_equals_the_map_made_at_once(story: Trace) -> None:
    grown = GrowingHead()
    for step in range(story.n_steps):
        moment = story.at(step)
        weights, whole = grown.at(moment, 2, 3), moment.head_map(2, 3)
        assert weights is not None
        assert whole is not None
        np.testing.assert_allclose(weights, whole, atol=1e-5)  # float32 scores reach 10 and more


def test_scores_grown_by_row_equal_the_scores_of_the_whole_map(story: Trace) -> None:
    grown = GrowingHead()
    for step in (0, 7, 30, 12):  # forward, and back
        moment = story.at(step)
        weights = grown.at(moment, 4, 2)
        assert weights is not None
        whole = scores(weights, [token.id for token in moment.tokens[: moment.n_read]])
        assert grown.scores() == {
            pattern: Score(pytest.approx(score.share), score.n_queries)
            for pattern, score in whole.items()
        }


def test_a_map_at_an_earlier_moment_is_the_corner_of_a_later_one(story: Trace) -> None:
    grown = GrowingHead()
    late = grown.at(story.at(20), 0, 1)
    early = grown.at(story.at(5), 0, 1)
    assert late is not None
    assert early is not None
    assert early.shape == (18, 18)  # 13 tokens of the prompt and 5 that were written and read
    assert np.shares_memory(early, late)
    assert early.tolist() == late[:18, :18].tolist()


def test_the_same_moment_and_head_give_the_same_array(story: Trace) -> None:
    grown = GrowingHead()
    first = grown.at(story.at(3), 1, 1)
    assert grown.at(story.at(3), 1, 1) is first
    assert grown.at(story.at(3), 1, 2) is not first


def test_what_is_handed_out_cannot_be_written(story: Trace) -> None:
    weights = GrowingHead().at(story.at(3), 0, 0)
    assert weights is not None
    assert not weights.flags.writeable


def test_another_run_starts_another_map(story: Trace, recorded: Trace) -> None:
    grown = GrowingHead()
    grown.at(story.at(5), 0, 0)
    weights, whole = grown.at(recorded.at(0), 0, 0), recorded.at(0).head_map(0, 0)
    assert weights is not None
    assert whole is not None
    np.testing.assert_allclose(weights, whole, atol=1e-5)


def test_a_run_without_queries_and_keys_has_no_map(recorded: Trace) -> None:
    bare = Trace(recorded.events)
    bare.drop("attention")
    assert GrowingHead().at(bare.at(0), 0, 0) is None


def test_a_head_that_looks_at_the_token_before_scores_one() -> None:
    weights = np.eye(5, k=-1, dtype=np.float32)
    weights[0, 0] = 1
    found = scores(weights, [1, 2, 3, 4, 5])
    assert found["previous"] == Score(1.0, 4)  # the query at 0 has nothing before it
    assert found["first"] == Score(0.25, 4)  # of the query at 1 the token before is the first
    assert found["current"] == Score(0.0, 4)
    assert tag(found) == ("previous", Score(1.0, 4))


def test_induction_looks_at_what_followed_the_earlier_copy() -> None:
    # a b c a b c: the second a looks at the first b, b at c, and c at the second a.
    weights = np.zeros((6, 6), np.float32)
    weights[:3, 0] = 1
    weights[3, 1] = weights[4, 2] = weights[5, 3] = 1
    found = scores(weights, [1, 2, 3, 1, 2, 3])
    assert found["induction"] == Score(1.0, 3)
    assert found["duplicate"] == Score(0.0, 3)


def test_all_earlier_copies_count_together() -> None:
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]], np.float32)
    found = scores(weights, [9, 9, 9])
    assert found["duplicate"].share == pytest.approx((0.5 + 0.5) / 2)  # 0.5, and 0.2 + 0.3
    assert found["induction"] == Score(pytest.approx(0.3), 1)  # only 2 has a copy with a follower


def test_without_a_repetition_there_is_no_score_for_it() -> None:
    found = scores(np.tril(np.full((3, 3), 0.25, np.float32)), [1, 2, 3])
    assert set(found) == {"previous", "first", "current"}


def test_one_token_has_no_scores() -> None:
    assert scores(np.ones((1, 1), np.float32), [5]) == {}


@pytest.mark.parametrize(
    ("share", "n_queries", "tagged"), [(0.5, 3, True), (0.49, 3, False), (1.0, 2, False)]
)
def test_a_tag_takes_half_of_the_attention_and_three_queries(
    share: float, n_queries: int, tagged: bool
) -> None:
    assert (tag({"first": Score(share, n_queries)}) is not None) == tagged


def test_a_weight_is_the_exponential_of_its_score_less_its_rows_log_sum(recorded: Trace) -> None:
    moment = recorded.at(2)
    whole = moment.head_map(1, 5)
    assert whole is not None
    for query, key in ((0, 0), (4, 1), (7, 7)):
        score, log_sum = terms(moment, 1, 5, query=query, key=key)
        assert math.exp(score - log_sum) == pytest.approx(whole[query, key], rel=1e-4)  # float32
