"""Muon's directions are orthogonal; rates go up a line and down a cosine."""

import math

import pytest
import torch
from embedded_model.network import begin
from embedded_model.optimizer import Optimizer, _all_at_once, _one_by_one, orthogonal
from embedded_model.settings import Settings


@pytest.mark.parametrize("shape", [(16, 16), (64, 16), (16, 64)])
def test_singular_values_come_near_1(shape: tuple[int, int]) -> None:
    """The coefficients bring any value from 0.01 to 1 into 0.68 to 1.21 (Jordan et al. 2024)."""
    matrices = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    straight = orthogonal(matrices)
    assert straight.shape == matrices.shape
    values = torch.linalg.svdvals(straight)
    assert values.min() > 0.6
    assert values.max() < 1.25
    assert (straight * matrices).sum() > 0


def test_both_ways_to_iterate_agree() -> None:
    """Even where singular values span three powers of ten; float32 sums of 64 differ by 1e-6."""
    x = torch.randn(2, 16, 64, generator=torch.Generator().manual_seed(0))
    x *= torch.logspace(0, -3, 16)[:, None]
    x /= x.norm(dim=(1, 2), keepdim=True)
    assert torch.allclose(_one_by_one(x), _all_at_once(x), atol=5e-6)


def test_bfloat16_stays_bfloat16() -> None:
    assert orthogonal(torch.ones(1, 4, 8, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_a_step_moves_each_matrix_by_the_rate_and_shrinks_it_by_the_decay(small: Settings) -> None:
    """A (16, 16) step of singular values near 1 has a Frobenius norm near sqrt(16) x the rate."""
    network = begin(small.model, small.start, seed=0)
    optimizer = Optimizer(network, small.optimizer, arithmetic=torch.float32)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    generator = torch.Generator().manual_seed(1)
    for parameter in network.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    optimizer.step(0.5)
    name = "h.0.attn.c_proj.weight"
    after = network.get_parameter(name)
    speed = 0.5 * 0.02
    moved = after - before[name] * (1 - speed * 0.1)
    assert moved.norm().item() == pytest.approx(speed * math.sqrt(16), rel=0.15)
    assert all(p.grad is None for p in network.parameters())
    bias = network.get_parameter("h.0.attn.c_proj.bias") - before["h.0.attn.c_proj.bias"]
    assert bias.abs().max().item() == pytest.approx(0.5 * 0.003, rel=0.01)  # AdamW's first step


def test_the_state_is_all_there_is(small: Settings) -> None:
    """A second optimizer that loads it moves a copy of the network to the same bits."""
    networks = [begin(small.model, small.start, seed=0) for _ in range(2)]
    optimizers = [Optimizer(n, small.optimizer, arithmetic=torch.float32) for n in networks]

    def grads(seed: int, *, to: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for parameter in networks[to].parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)

    grads(1, to=0)
    optimizers[0].step(1.0)
    networks[1].load_state_dict(networks[0].state_dict())
    optimizers[1].load({name: tensor.clone() for name, tensor in optimizers[0].state().items()})
    for side in (0, 1):
        grads(2, to=side)
        optimizers[side].step(0.7)
    for a, b in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        assert torch.equal(a, b)
