"""The largest of many numbers: as a stable sort has them, however few are looked at."""

import numpy as np
import pytest

from engine.order import ranking, ranking_of_logits


@pytest.mark.parametrize("n", [1, 4, 700, 3_000, 5_000])
def test_a_ranking_begins_as_a_stable_sort(n: int) -> None:
    values = np.random.default_rng(0).normal(0, 1, 3_000).round(1)  # rounding makes ties
    assert ranking(values, n).tolist() == np.argsort(-values, kind="stable")[:n].tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_logits", [100, 8_192, 50_257])
def test_logits_are_ranked_as_their_distances_from_the_largest(
    n_logits: int, dtype: type[np.floating]
) -> None:
    logits = np.random.default_rng(0).normal(-30, 4, n_logits).astype(dtype)
    whole = np.argsort(-logits.astype(np.float64), kind="stable")
    assert ranking_of_logits(logits, float(logits.max()), 256).tolist() == whole[:256].tolist()


def test_logits_alike_once_the_largest_is_taken_off_are_tied() -> None:
    """1e10 is so far from -1 and -1.0000001 that float64 cannot tell them apart from there."""
    logits = np.full(10_000, -1.0000001, np.float32)
    logits[5_000:] = -1.0  # larger, but no longer once 1e10 is taken off
    logits[9_999] = 1e10
    assert ranking_of_logits(logits, 1e10, 256).tolist() == [9_999, *range(255)]


def test_the_lowest_logit_there_is_makes_all_of_them_candidates() -> None:
    lowest = float(np.finfo(np.float32).min)
    logits = np.full(10_000, lowest, np.float32)
    assert ranking_of_logits(logits, lowest, 256).tolist() == list(range(256))


def test_masked_logits_follow_by_id() -> None:
    logits = np.full(10_000, -np.inf, np.float32)
    logits[7_777] = 0.0
    assert ranking_of_logits(logits, 0.0, 256).tolist() == [7_777, *range(255)]
