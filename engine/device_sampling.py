"""The sampling rule where the logits are: a token drawn on the device, so that it need not wait.

`engine.sampling` is the rule, and what a run draws by. This one only lets a device go on by itself:
where it draws differently, which rounding allows within 1e-12 of a boundary between two tokens, a
step was made in vain. Shapes never change and nothing is asked of the CPU, so a CUDA graph can hold
it. There is no float64 on MPS, so it is for CUDA and the CPU.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.request import Sampling
from engine.sampling import coin

MOST = torch.iinfo(torch.int64).max
BLOCK = 64  # coins thrown at once: 0.4 ms of Python, where all 1,024 would take 6


class Knobs:
    """A Sampling as numbers on a device; turning them changes no address and no shape.

    What is off is turned all the way up, and temperature 0 is top-k 1, so that no case needs a
    branch. At first they are greedy.

    Attributes:
        temperature: (1,) float64, above 0.
        top_k: (1,) int64, 1 or more: how many ranks can be drawn.
        top_p: (1,) float64; infinite if it is off, as a sum of all weights may round to less than 1
            or reach it early.
    """

    def __init__(self, device: str | torch.device = "cpu") -> None:
        self.temperature = torch.ones(1, dtype=torch.float64, device=device)
        self.top_k = torch.ones(1, dtype=torch.int64, device=device)
        self.top_p = torch.ones(1, dtype=torch.float64, device=device)

    def turn(self, sampling: Sampling) -> None:
        """Draw by this from now on."""
        greedy = sampling.temperature == 0
        self.temperature.fill_(1.0 if greedy else sampling.temperature)
        self.top_k.fill_(1 if greedy else min(sampling.top_k or MOST, MOST))
        self.top_p.fill_(sampling.top_p if sampling.top_p < 1 else math.inf)


class Coins:
    """The coins of one seed on a device, thrown a block at a time.

    Attributes:
        numbers: (T,) float64. Number p decides the token that is drawn after reading position p,
            which is the coin of position p + 1.
    """

    def __init__(self, n_positions: int, device: str | torch.device = "cpu") -> None:
        self.numbers = torch.zeros(n_positions, dtype=torch.float64, device=device)
        self._seed = 0
        self._thrown: set[int] = set()  # blocks of this seed that are there

    def turn(self, seed: int) -> None:
        """Throw the coins of this seed from now on."""
        if seed != self._seed:
            self._seed = seed
            self._thrown.clear()

    def reach(self, place: int) -> None:
        """Have the number at `place`; without waiting for the device."""
        block = place // BLOCK
        if block in self._thrown:
            return
        self._thrown.add(block)
        part = self.numbers[block * BLOCK : (block + 1) * BLOCK]
        thrown = torch.tensor(
            [coin(self._seed, block * BLOCK + i + 1) for i in range(len(part))],
            dtype=torch.float64,
            pin_memory=part.is_cuda,  # else the copy would wait for all that is under way
        )
        part.copy_(thrown, non_blocking=True)


def draw(logits: Tensor, knobs: Knobs, coin: Tensor) -> Tensor:
    """Draw one token by `engine.sampling.Distribution.choose`, all of it on the device.

    Ids are ranked by their logits, where the rule ranks by the weights that come of them. That is
    the same but where different logits give equal weights, as at temperatures in the millions.

    Args:
        logits: (V,), any float dtype; -inf means never. Others that are not finite give some id.
        knobs: on the same device.
        coin: (1,) float64 in [0, 1), there too.

    Returns:
        (1,) int64, at least 0 and below V whatever the logits are: an index of the embedding must
        not break the device.
    """
    ordered, ids = torch.sort(logits, descending=True, stable=True)  # (V,), low ids first on ties
    x = ordered.double()  # (V,)
    w = torch.exp((x - x[:1]) / knobs.temperature)  # (V,)
    ranks = torch.arange(len(w), device=w.device)  # (V,)
    w = w.masked_fill(ranks >= knobs.top_k, 0.0)  # (V,)
    mass = torch.cumsum(w / w.sum(), 0)  # (V,), of all ranks up to each
    n_top_k = (w > 0).sum(0, keepdim=True)  # (1,)
    n_below = (mass < knobs.top_p).sum(0, keepdim=True)  # (1,)
    last = torch.minimum(n_below, n_top_k - 1).clamp(min=0)  # (1,), the last rank kept
    goal = coin * mass.index_select(0, last)  # (1,)
    reached = (mass <= goal).sum(0, keepdim=True)  # (1,)
    return ids.index_select(0, torch.minimum(reached, last))  # (1,)
