"""The chunked loss against torch's own over all logits."""

import math

import pytest
import torch
from embedded_model.loss import CHUNK, UNSCORED, cross_entropy
from torch.nn import functional as F


def inputs(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    states, table = torch.randn(n, 8), torch.randn(37, 8)
    targets = torch.randint(0, 37, (n,))
    targets[::3] = UNSCORED
    return states.requires_grad_(), table.requires_grad_(), targets


def test_loss_and_gradients_are_those_of_the_whole_softmax() -> None:
    """More positions than one chunk; the last row raised by ln(1000) as if it were 1,000 rows."""
    states, table, targets = inputs(2 * CHUNK + 100)
    ours = cross_entropy(states, table, targets, rest=math.log(1_000))
    (3 * ours).backward()
    found = states.grad, table.grad
    states.grad = table.grad = None
    logits = states @ table.T + torch.cat([torch.zeros(36), torch.tensor([math.log(1_000)])])
    theirs = F.cross_entropy(logits, targets, ignore_index=UNSCORED)
    (3 * theirs).backward()
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-6)
    for a, b in zip(found, (states.grad, table.grad), strict=True):
        assert a is not None
        assert b is not None
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-8)  # sums of 700 floats in another order


def test_two_rows_by_hand() -> None:
    """Logits ln 3 and 0 give 3/4 and 1/4: -ln(1/4) = 1.386; the rest raised by ln 3 gives 1/2."""
    states, table = torch.tensor([[1.0]]), torch.tensor([[math.log(3)], [0.0]])
    target = torch.tensor([1])
    assert cross_entropy(states, table, target, rest=0).item() == pytest.approx(1.386294)
    assert cross_entropy(states, table, target, rest=math.log(3)).item() == pytest.approx(0.693147)


def test_nothing_scored_is_nothing_lost() -> None:
    states, table, targets = inputs(4)
    loss = cross_entropy(states, table, torch.full_like(targets, UNSCORED), rest=0)
    loss.backward()
    assert loss.item() == 0
    assert states.grad is not None
    assert not states.grad.any()


def test_bfloat16_states_give_the_loss_within_their_rounding() -> None:
    """bfloat16 keeps 8 bits: states, table and logits (up to 10) are off by up to 2^-8 each."""
    states, table, targets = inputs(64)
    exact = cross_entropy(states, table, targets, rest=0).item()
    rounded = cross_entropy(states.to(torch.bfloat16), table, targets, rest=0)
    rounded.backward()
    assert rounded.item() == pytest.approx(exact, abs=0.02)
    assert states.grad is not None
