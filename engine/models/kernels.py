"""The door to the optional kernels: a decode step in 5 L + 2 launches, on CUDA, where Triton is.

The plain step takes 13 launches a layer or more, and on a fast card launches are what a small model
waits for. Nobody has to trust the kernels: they are used only after they gave the plain step's
answer on the model at hand.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from importlib.util import find_spec

import torch
from torch import Tensor

from engine.linear import Linear
from engine.models import gpt2
from engine.models.gpt2 import Norm, Weights
from engine.state import State

KEYS = 128  # keys one program attends to: with half as many there would be twice as much to join
# Of the largest number: the plain step rounds what it multiplies to the type of the weights, the
# kernels do not, so these are bounds of its rounding over many layers, not theirs.
TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def obstacle(weights: Weights, state: State) -> str | None:
    """What keeps the kernels from being tried here, as a few words; None: nothing does."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    device = weights.positions.device.type
    if device != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return f"they run on CUDA, not on {device}"
    if state.qkv.shape[2] != 1:
        return f"they serve one stream, not {state.qkv.shape[2]}"
    tables = (weights.tokens, weights.positions, *(x.rows for x in _matrices(weights)))
    if not all(table is not None and table.is_contiguous() for table in tables):
        return "the weights are not packed by rows"
    return None


def failure(weights: Weights, state: State) -> str | None:
    """Try the kernels against the plain step: what went wrong, as a few words; None: nothing did.

    Also compiles them, which takes seconds the first time and must be over before a graph is
    captured.

    Args:
        weights: those in which `obstacle` found none.
        state: overwritten, and left zero.
    """
    try:
        differences = list(_differences(weights, state))
    # Two compilers and a driver work together here, each with errors of its own. Whatever fails,
    # the plain step is there, and the failure is reported.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        state.qkv.zero_()
        state.residual.zero_()
    rows = weights.head.rows
    assert rows is not None
    bad = [x for x in differences if not x <= TOLERANCE[rows.dtype]]  # so written, NaN is bad
    return f"they differ from the plain step by {bad[0]:.1e} of the largest number" if bad else None


def tick(weights: Weights, state: State, tokens: Tensor, places: Tensor, *, context: int) -> Tensor:
    """Read one token of one stream: `streams.tick` in fewer launches.

    What lies beyond the place is not read, so a graph for the whole context serves every place.

    Args:
        weights: those in which `obstacle` found none.
        state: of one stream; its rows at the place are written, those before it are read.
        tokens: (1,) int64, on the device.
        places: (1,) int64, on the device; below `context`.
        context: how many positions are attended to at most.

    Returns:
        (1, V) float32.
    """
    from engine.models import kernel_step as kernels  # needs Triton, which is optional

    x, qkv = state.residual[:, 0], state.qkv[:, :, 0]  # (2 L + 1, T, C), (L, 3, H, T, D)
    _, _, h, t, d = qkv.shape
    c, v = h * d, len(weights.tokens)
    n_splits = -(-context // KEYS)
    splits, width = _power_of_two(n_splits), _power_of_two(c)
    mixed, weight = x.new_empty(splits, c), x.new_empty(splits, h)
    hidden, logits = x.new_empty(4 * c), x.new_empty(1, v)
    normed = {"C": c, "WIDTH": width, "num_warps": 8}  # each program needs the whole residual row
    added = {"C": c, "ROWS": 4, "num_warps": 4}  # few outputs a program, or many cores had none

    given: tuple[object, ...]
    kernels.embed[(1,)](tokens, places, weights.tokens, weights.positions, x[0], C=c, WIDTH=width)
    for n, layer in enumerate(weights.layers):
        first, second, third = x[2 * n], x[2 * n + 1], x[2 * n + 2]  # (T, C) each
        given = (places, first, *_norm(layer.before_attention), *_linear(layer.qkv), qkv[n])
        kernels.write_qkv[_grid(3 * c, 8)](*given, D=d, T=t, ROWS=8, **normed)
        given = (places, qkv[n], mixed, weight)
        kernels.attend[(h, n_splits)](*given, H=h, D=d, T=t, KEYS=KEYS, WIDTH=_power_of_two(d))
        given = (places, mixed, weight, *_linear(layer.project), first, second)
        sizes = {"D": d, "KEYS": KEYS, "SPLITS": splits, "CHUNK": 256}
        kernels.project_attention[_grid(c, 4)](*given, **sizes, **added)
        given = (places, second, *_norm(layer.before_mlp), *_linear(layer.expand), hidden)
        kernels.expand[_grid(4 * c, 8)](*given, N=4 * c, ROWS=8, **normed)
        given = (places, hidden, *_linear(layer.contract), second, third)
        kernels.contract[_grid(c, 4)](*given, N=4 * c, CHUNK=1024, **added)
    given = (places, x[-1], *_norm(weights.last), weights.head.rows, logits)
    kernels.write_logits[_grid(v, 16)](*given, N=v, ROWS=16, **normed)
    return logits  # (1, V)


def n_launches(n_layer: int) -> int:
    """Kernels that `tick` starts: five a layer, one before them and one after.

    >>> n_launches(12)
    62
    """
    return 5 * n_layer + 2


def _grid(n_outputs: int, each: int) -> tuple[int]:
    """How many programs make so many outputs."""
    return (-(-n_outputs // each),)


def _power_of_two(n: int) -> int:
    """The smallest one that is not less than n: tiles have such sides."""
    return 1 << (n - 1).bit_length()


def _norm(norm: Norm) -> tuple[Tensor, Tensor, float]:
    return norm.scale, norm.shift, norm.epsilon


def _linear(matrix: Linear) -> tuple[Tensor | None, Tensor | None]:
    return matrix.rows, matrix.bias


def _matrices(weights: Weights) -> Iterator[Linear]:
    for x in weights.layers:
        yield from (x.qkv, x.project, x.expand, x.contract)
    yield weights.head


def _differences(weights: Weights, state: State) -> Iterator[float]:
    """How far the kernels are from the plain step: at first places, later ones and the last."""
    t, v = state.n_positions, len(weights.tokens)
    ids = [7919 * place % v for place in range(t)]  # far apart: 7919 is a prime
    gpt2.prefill(weights, state, ids, first=0)
    for place in sorted({0, 1, t // 2, t - 1}):
        gpt2.step(weights, state, ids[place], position=place)
        rows = state.qkv[:, :, 0, :, place], state.residual[:, 0, place]
        wanted = [row.clone() for row in rows]
        wanted.append(gpt2.logits(weights, state, position=place))
        for row in rows:
            row.fill_(math.nan)  # a row that the kernels forget must not look right
        token, at = (torch.tensor([n], device=state.qkv.device) for n in (ids[place], place))
        logits = tick(weights, state, token, at, context=t)
        for found, want in zip((*rows, logits[0]), wanted, strict=True):
            largest = float(want.abs().max()) or 1.0
            yield float((found - want).abs().max()) / largest
