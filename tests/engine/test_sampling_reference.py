"""The sampling rule against its plain form, which sorts everything, on hundreds of odd logits."""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import sampling, softmax, vector_sums
from engine.request import Sampling
from engine.softmax import Sums

Logits = NDArray[np.floating[Any]]
Floats = NDArray[np.float64]

N_VOCABS = (1, 5, 300, 9_001)  # the last is cut into groups before it is ordered
TEMPERATURES = (0.0, 1e-300, 1e-3, 0.3, 0.8, 1.0, 2.0, 1e18)
TOP_KS = (0, 1, 7, 40, 999, 10**6)
TOP_PS = (0.0, 0.2345, 0.9137, 1.0)  # no multiple of 1 / 9,001: rounding would decide


@dataclass(frozen=True)
class Plain:
    """What the rule says, one line after the other, all in float64 over all ids."""

    order: list[int]  # by the untouched logits
    kept: list[int]
    raw: Floats
    probs: Floats
    chosen: int
    entropy: float


def plain(logits: Logits, rule: Sampling, coin: float) -> Plain:
    z = logits.astype(np.float64)
    z -= z.max()
    raw = np.exp(z) / math.fsum(np.exp(z))
    if rule.temperature == 0:
        w = np.where(np.arange(len(z)) == z.argmax(), 1.0, 0.0)
    else:
        with np.errstate(over="ignore"):
            w = np.exp(z / rule.temperature)
    ranks = np.argsort(-w, kind="stable")
    ranks = ranks[w[ranks] > 0][: rule.top_k or None]
    shares = w[ranks] / w[ranks].sum()
    cumulated = np.cumsum(shares)
    n = len(ranks)
    if rule.top_p < 1:
        n = min(int(np.searchsorted(cumulated, rule.top_p)), n - 1) + 1
    mass = 1.0 if n == len(ranks) else cumulated[n - 1]
    probs = np.zeros(len(z))
    probs[ranks[:n]] = shares[:n] / mass
    place = min(int(np.searchsorted(cumulated, coin * mass, side="right")), n - 1)
    p = raw[raw > 0]
    return Plain(
        order=np.argsort(-z, kind="stable").tolist(),
        kept=ranks[:n].tolist(),
        raw=raw,
        probs=probs,
        chosen=int(ranks[place]),
        entropy=float(-(p * np.log2(p)).sum()),
    )


def odd_logits(r: np.random.Generator, n: int) -> Logits:
    """Smooth, tied, masked, sorted, all alike, far away or in another format."""
    z = r.normal(r.choice([-100.0, 0.0, 30.0]), r.choice([0.1, 1.0, 4.0, 20.0]), n)
    kind = int(r.integers(8))
    if kind == 0:
        z = z.round(1)  # ties
    elif kind == 1:
        z[r.random(n) < r.choice([0.5, 0.99])] = -np.inf
        z[r.integers(n)] = 1.0
    elif kind == 2:
        z = np.sort(z)
    elif kind == 3:
        z[:] = -7.25
    elif kind == 4:
        z *= 1e30
    elif kind == 5:
        z[r.integers(n)] = 1e17  # so far from the others that they are alike
    return z.astype(r.choice([np.float16, np.float32, np.float32, np.float64])) if kind < 4 else z


@pytest.mark.parametrize("sums", [softmax.sums, vector_sums.sums], ids=["numpy", "torch"])
@pytest.mark.parametrize("n_vocab", N_VOCABS)
def test_every_answer_is_that_of_sorting_everything(n_vocab: int, sums: Sums) -> None:
    """192 settings on as many logits, for each size."""
    r = np.random.default_rng(n_vocab)
    for temperature, top_k, top_p in product(TEMPERATURES, TOP_KS, TOP_PS):
        logits, coin = odd_logits(r, n_vocab), float(r.random())
        rule = Sampling(temperature, top_k, top_p)
        found, wanted = sampling.distribution(logits, rule, sums=sums), plain(logits, rule, coin)
        assert (found.kept.tolist(), found.choose(coin)) == (wanted.kept, wanted.chosen)
        assert (found.n_kept, found.top(256).tolist()) == (len(wanted.kept), wanted.order[:256])
        ids = np.append(found.top(256), r.integers(n_vocab, size=9))
        assert [found.rank(id) for id in ids[-9:]] == [wanted.order.index(i) for i in ids[-9:]]
        # a total of 9,001 weights may be added up in another order: some last bits
        np.testing.assert_allclose(found.raw_of(ids), wanted.raw[ids], rtol=1e-15)
        np.testing.assert_allclose(found.final(ids), wanted.probs[ids], rtol=1e-14, atol=0)
        np.testing.assert_allclose(found.probs, wanted.probs, rtol=1e-14, atol=0)
        assert found.probs[ids].tolist() == found.final(ids).tolist()
        if top_k and top_k < n_vocab:
            assert found.probs.tolist() == wanted.probs.tolist()  # bit for bit
        assert found.entropy == pytest.approx(wanted.entropy, abs=1e-12)
