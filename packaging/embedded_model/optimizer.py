"""Muon for the matrices of the layers, AdamW for everything else."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim import AdamW

from embedded_model.network import Network
from embedded_model.settings import Optimizer as Rates

MOMENTUM = 0.95  # of Muon
BETAS = (0.9, 0.95)  # of AdamW
ORTHOGONAL = (3.4445, -4.7750, 2.0315)  # Newton-Schulz, see `orthogonal`
N_ITERATIONS = 5


def rate(done: float, rates: Rates) -> float:
    """The part of the full rates at a moment of the run: up along a line, down along a cosine.

    Args:
        done: part of the run that is over, from 0 to 1.
        rates: how long it goes up, and where it ends.

    >>> from embedded_model.settings import read
    >>> [round(rate(done, read().optimizer), 3) for done in (0, 0.01, 0.02, 0.51, 1)]
    [0.0, 0.5, 1.0, 0.5, 0.02]
    """
    if done < rates.warm_up:
        return done / rates.warm_up
    course = (done - rates.warm_up) / (1 - rates.warm_up)
    return max(rates.last_rate, 0.5 * (1 + math.cos(math.pi * course)))


class Optimizer:
    """The two optimizers of one network, and all they remember.

    Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon) moves a matrix along the nearest
    orthogonal matrix of its momentum: every direction by the same amount.
    """

    def __init__(self, network: Network, rates: Rates, *, arithmetic: torch.dtype) -> None:
        """Begin with no momentum.

        Args:
            network: what is trained.
            rates: full rates, decay, clip.
            arithmetic: in which matrices are made orthogonal.
        """
        self._rates, self._arithmetic = rates, arithmetic
        named = dict(network.named_parameters())
        self._matrices = {n: p for n, p in named.items() if n.startswith("h.") and p.dim() == 2}
        self._others = {n: p for n, p in named.items() if n not in self._matrices}
        self._momentum = {name: torch.zeros_like(p) for name, p in self._matrices.items()}
        self._adam = AdamW(self._others.values(), betas=BETAS, weight_decay=0.0, fused=True)

    def step(self, factor: float) -> None:
        """Move every parameter along its gradient, and drop the gradients.

        Args:
            factor: part of the full rates, see `rate`.
        """
        torch.nn.utils.clip_grad_norm_(self._others.values(), self._rates.clip)
        self._adam.param_groups[0]["lr"] = self._rates.other_rate * factor
        self._adam.step()
        self._step_matrices(self._rates.matrix_rate * factor)
        for parameter in (*self._matrices.values(), *self._others.values()):
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Everything to go on from, by name."""
        state = {f"momentum.{name}": tensor for name, tensor in self._momentum.items()}
        for name, parameter in self._others.items():
            for key, tensor in self._adam.state[parameter].items():
                state[f"adam.{key}.{name}"] = tensor
        return state

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave, on any machine."""
        for name, tensor in self._momentum.items():
            tensor.copy_(state[f"momentum.{name}"])
        for name, parameter in self._others.items():
            self._adam.state[parameter] = {
                key: state[f"adam.{key}.{name}"].clone()
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"adam.{key}.{name}" in state  # none before the first step
            }

    @torch.no_grad()
    def _step_matrices(self, speed: float) -> None:
        """Matrices of one shape are made orthogonal together; q, k and v each by itself."""
        groups: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for name, matrix in self._matrices.items():
            assert matrix.grad is not None
            momentum = self._momentum[name].mul_(MOMENTUM).add_(matrix.grad)
            ahead = matrix.grad + MOMENTUM * momentum  # (out, in), Nesterov's
            n = 3 if matrix.shape[0] == 3 * matrix.shape[1] else 1
            for part, direction in zip(matrix.chunk(n), ahead.chunk(n), strict=True):
                groups.setdefault(part.shape, []).append((part, direction))
        for shape, group in groups.items():
            scale = speed * max(1, shape[0] / shape[1]) ** 0.5
            directions = torch.stack([direction for _, direction in group])  # (n, out, in)
            straight = orthogonal(directions.to(self._arithmetic)).float()  # (n, out, in)
            for (part, _), direction in zip(group, straight, strict=True):
                part.mul_(1 - speed * self._rates.weight_decay).add_(direction, alpha=-scale)


def orthogonal(matrices: Tensor) -> Tensor:
    """About the nearest orthogonal matrices: singular values between 0.7 and 1.2.

    Five Newton-Schulz iterations X <- P X with P = a I + b A + c A^2 and A = X X^T, whose
    coefficients (Jordan et al. 2024) trade exactness for speed.

    Args:
        matrices: (n, out, in), float32 or bfloat16.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices  # (n, few, many)
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True) + 1e-7).to(x.dtype)
    long = x.shape[2] > x.shape[1] and x.dtype == torch.float32
    x = _all_at_once(x) if long else _one_by_one(x)
    return x.mT if tall else x


def _one_by_one(x: Tensor) -> Tensor:
    a, b, c = ORTHOGONAL
    for _ in range(N_ITERATIONS):
        gram = x @ x.mT  # (n, few, few)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def _all_at_once(x: Tensor) -> Tensor:
    """The same for long matrices, in half the arithmetic: only the small A is iterated on.

    A becomes P A P = P P A, since P is a polynomial in A, and X is multiplied by the product of all
    P once. Not for bfloat16: A alone has the squares of the singular values, and rounds them off.
    """
    a, b, c = ORTHOGONAL
    gram = x @ x.mT  # (n, few, few)
    product = None
    for left in reversed(range(N_ITERATIONS)):
        p = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)  # (n, few, few)
        p.diagonal(dim1=1, dim2=2).add_(a)
        product = p if product is None else p @ product
        if left:
            gram = p @ (p @ gram)
    assert product is not None
    return product @ x  # (n, few, many)
