"""The network before training: causal, and with heads that look one token back."""

from dataclasses import replace

import pytest
import torch
from embedded_model.network import Block, Network, begin
from embedded_model.settings import read
from torch import Tensor


def previous_share(network: Network, head: int) -> float:
    """How much attention a head of layer 0 gives to the token before, on 100 random tokens."""
    first = network.h[0]
    assert isinstance(first, Block)
    rows = torch.randint(0, 500, (1, 100), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        x = network.wte(rows) + network.wpe.weight[:100]  # (1, 100, C)
        qkv = first.attn.c_attn(first.ln_1(x)).view(100, 3, 8, 32)
        q, k = qkv[:, 0, head], qkv[:, 1, head]  # (100, D)
        mask = torch.full((100, 100), float("-inf")).triu(1)
        weights = (q @ k.T / 32**0.5 + mask).softmax(-1)  # (100, 100)
    return float(weights.diagonal(-1)[1:].mean())


def test_four_heads_of_layer_0_begin_by_looking_one_token_back() -> None:
    """Without a head start a head spreads over up to 100 keys: a mean share of about 0.04."""
    shipped = read()
    model = replace(shipped.model, n_rows=500, n_layer=1)
    with_start = begin(model, shipped.start, seed=0)
    shares = [previous_share(with_start, head) for head in range(8)]
    assert min(shares[:4]) > 0.25
    assert max(shares[4:]) < 0.06
    without = begin(model, replace(shipped.start, position_scale=0.0), seed=0)
    assert max(previous_share(without, head) for head in range(8)) < 0.06


def test_the_same_seed_begins_with_the_same_weights() -> None:
    model, start = replace(read().model, n_rows=500, n_layer=1), read().start

    def weights(seed: int) -> Tensor:
        return begin(model, start, seed=seed).wte.weight

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_no_state_depends_on_what_comes_after() -> None:
    shipped = read()
    network = begin(replace(shipped.model, n_rows=500), shipped.start, seed=0)
    rows = torch.arange(20)[None]
    changed = rows.clone()
    changed[0, 12] = 77
    with torch.no_grad():
        a, b = network(rows), network(changed)
    assert torch.equal(a[0, :12], b[0, :12])
    assert not torch.equal(a[0, 12:], b[0, 12:])


def test_what_writes_to_the_residual_stream_begins_smaller() -> None:
    """0.02 / sqrt(2 x 6) = 0.00577 (Radford et al. 2019, section 2.3)."""
    network = begin(replace(read().model, n_rows=500), read().start, seed=0)
    deviations = {name: p.std().item() for name, p in network.named_parameters()}
    assert deviations["h.3.attn.c_proj.weight"] == pytest.approx(0.00577, rel=0.02)
    assert deviations["h.3.mlp.c_fc.weight"] == pytest.approx(0.02, rel=0.02)
