"""The rule on the device against `engine.sampling`, which is the rule."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch._dynamo.testing import CompileCounter

from engine import sampling
from engine.device_sampling import BLOCK, Coins, Knobs, draw
from engine.request import Sampling

CASES = json.loads((Path(__file__).parents[1] / "corpora" / "sampler.json").read_text())["cases"]
DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.cuda,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card"),
        ],
    ),
]
RANDOM = np.random.default_rng(5)
LOGITS: dict[str, NDArray[np.float32]] = {
    "random": RANDOM.normal(0, 3, 500).astype(np.float32),
    "flat": np.zeros(300, np.float32),
    "tied": np.repeat(RANDOM.normal(0, 2, 40), 5).astype(np.float32),
    "peaked": np.append(RANDOM.normal(0, 1, 200), 60).astype(np.float32),
    "never": np.where(np.arange(120) % 3 == 0, RANDOM.normal(0, 2, 120), -np.inf).astype("f4"),
    "alone": np.array([-3.5], np.float32),
}
SETTINGS = [
    Sampling(temperature, top_k, top_p)
    for temperature, top_k, top_p in product(
        (0.0, 1e-3, 0.8, 1.0, 2.0, 50.0), (0, 1, 7, 45, 10**6), (0.0, 0.2345, 0.9137, 1.0)
    )
]
NEAR = 1e-12  # how near a boundary a coin is that may fall on either side of it


def drawn(logits: NDArray[np.floating[Any]], setting: Sampling, coin: float, device: str) -> int:
    knobs = Knobs(device)
    knobs.turn(setting)
    place = torch.tensor([coin], dtype=torch.float64, device=device)
    found = draw(torch.tensor(logits, device=device), knobs, place)
    assert (found.shape, found.dtype) == ((1,), torch.int64)
    return int(found)


def check(logits: NDArray[np.floating[Any]], setting: Sampling, device: str) -> None:
    """Coins all over, and each side of some boundaries, but none within `NEAR` of one."""
    d = sampling.distribution(logits, setting)
    edges = np.cumsum(d.probs[d.kept])  # (n_kept,)
    some = edges[:: max(1, len(edges) // 4)]
    coins = [0.0, *(sampling.coin(3, n) for n in range(6)), *some - 1e-9, *some + 1e-9, 1 - 1e-9]
    for coin in coins:
        if 0 <= coin < 1 and np.abs(edges[:-1] - coin).min(initial=1) > NEAR:
            assert drawn(logits, setting, coin, device) == d.choose(coin), (setting, coin)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", LOGITS)
def test_a_coin_gives_the_token_that_the_rule_gives(kind: str, device: str) -> None:
    for setting in SETTINGS:
        check(LOGITS[kind], setting, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", [c for c in CASES if "error" not in c], ids=lambda c: c["id"])
def test_the_corpus_of_settings_gives_the_same_tokens(case: dict[str, Any], device: str) -> None:
    setting = Sampling(case["temperature"], case["top_k"], case["top_p"])
    check(np.array(case["logits"], float), setting, device)


@pytest.mark.parametrize("setting", [Sampling(0, 0, 1), Sampling(1, 0, 1), Sampling(0.8, 40, 0.9)])
def test_a_whole_vocabulary_of_half_precise_logits_is_drawn_from_alike(setting: Sampling) -> None:
    """Rounded to float16 as a card gives them, so that many are equal."""
    logits = np.random.default_rng(8).normal(0, 2.5, 50_257).astype(np.float16)
    check(logits.astype(np.float32), setting, "cpu")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("setting", [Sampling(0, 0, 1), Sampling(0.8, 3, 0.9), Sampling(1, 0, 1)])
def test_logits_that_mean_nothing_still_give_an_id(bad: float, setting: Sampling) -> None:
    """The run refuses them when they arrive; until then the device must not look beyond a table."""
    for logits in (np.full(9, bad, np.float32), np.append(np.ones(8, np.float32), np.float32(bad))):
        assert 0 <= drawn(logits, setting, 0.99, "cpu") < 9


def test_greedy_is_what_knobs_are_at_first() -> None:
    coin = torch.tensor([0.9], dtype=torch.float64)
    assert int(draw(torch.tensor([1.0, 3.0, 3.0]), Knobs(), coin)) == 1  # the first of the largest


@pytest.mark.parametrize(
    ("setting", "numbers"),
    [
        (Sampling(0.5, 40, 0.25), [0.5, 40, 0.25]),
        (Sampling(0.5, 10**30, 1), [0.5, 2**63 - 1, math.inf]),  # more than all is all
        (Sampling(2, 0, 1), [2, 2**63 - 1, math.inf]),
        (Sampling(0, 0, 0.5), [1, 1, 0.5]),
    ],
)
def test_turning_knobs_writes_numbers_where_they_were(
    setting: Sampling, numbers: list[float]
) -> None:
    knobs = Knobs()
    buffers = (knobs.temperature, knobs.top_k, knobs.top_p)
    before = [one.data_ptr() for one in buffers]
    knobs.turn(setting)
    assert [one.item() for one in buffers] == numbers
    assert [one.data_ptr() for one in (knobs.temperature, knobs.top_k, knobs.top_p)] == before


def test_a_draw_compiles_into_one_graph_whatever_the_numbers_are() -> None:
    """So nothing in it asks for a number and waits for the answer."""
    counter = CompileCounter()
    compiled = torch.compile(draw, fullgraph=True, backend=counter)
    logits, knobs = torch.tensor(LOGITS["random"]), Knobs()
    for setting, seed in product(SETTINGS[::17], range(3)):
        knobs.turn(setting)
        coin = torch.tensor([sampling.coin(seed, 1)], dtype=torch.float64)
        assert torch.equal(compiled(logits, knobs, coin), draw(logits, knobs, coin))
    assert counter.frame_count == 1


def test_a_coin_lies_where_its_step_reads() -> None:
    coins = Coins(100)
    coins.turn(1)
    coins.reach(5)
    assert coins.numbers[5] == sampling.coin(1, 6) == 0.055322533114339434  # the rule's own


def test_coins_are_thrown_a_block_at_a_time() -> None:
    coins = Coins(100)
    coins.turn(7)
    coins.reach(70)
    assert coins.numbers.count_nonzero() == 100 - BLOCK == 36  # no coin of these is 0
    coins.reach(0)
    assert coins.numbers.tolist() == [sampling.coin(7, place + 1) for place in range(100)]


def test_another_seed_throws_again_and_the_same_one_does_not() -> None:
    coins = Coins(10)
    for seed in (7, 8):
        coins.turn(seed)
        coins.reach(3)
    assert coins.numbers[3] == sampling.coin(8, 4)
    coins.numbers.zero_()
    coins.turn(8)
    coins.reach(3)
    assert coins.numbers.count_nonzero() == 0
