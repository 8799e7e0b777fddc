"""The sums over all ids: by numpy and by torch, alike to the last bits."""

import math

import numpy as np
import pytest

from engine import softmax, vector_sums
from engine.softmax import Sums

BOTH = pytest.mark.parametrize("sums", [softmax.sums, vector_sums.sums], ids=["numpy", "torch"])


@BOTH
@pytest.mark.parametrize("temperature", [0.3, 0.8, 1.0, 3.0])
def test_the_sums_are_those_of_adding_up_without_rounding(sums: Sums, temperature: float) -> None:
    logits = np.random.default_rng(0).normal(-30, 4, 50_257).astype(np.float32)
    u = (logits.astype(np.float64) - float(logits.max())) / temperature
    total, moment = sums(logits, float(logits.max()), temperature)
    assert total == pytest.approx(math.fsum(np.exp(u)), rel=1e-15)  # a few roundings of 2**-53
    assert moment == pytest.approx(math.fsum(np.exp(u) * u), rel=4e-15)  # one more a number


@BOTH
def test_ids_that_can_never_happen_weigh_nothing(sums: Sums) -> None:
    logits = np.full(40_000, -np.inf, np.float32)
    logits[[3, 39_999]] = 0.0, math.log(0.5)  # whole blocks of nothing between them
    assert sums(logits, 0.0, 1.0) == pytest.approx((1.5, -0.5 * math.log(2)), rel=1e-7)  # float32


@BOTH
def test_a_tiny_temperature_leaves_the_largest_and_no_warning(sums: Sums) -> None:
    assert sums(np.array([2.0, 3.0, 2.5]), 3.0, 1e-300) == (1.0, 0.0)


@BOTH
def test_the_logits_stay_as_they_were(sums: Sums) -> None:
    logits = np.arange(10.0)
    sums(logits, 9.0, 1.0)
    assert logits.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
