"""The kernels against the plain step, in Triton's interpreter: started by engine/test_kernels.py.

Weights are rounded so that float32, float16 and bfloat16 all hold them exactly. Then the plain step
in float32 is the right answer for each, and the kernels, which round nothing else, must give it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils import deterministic

from engine import linear
from engine.events import Dimensions
from engine.linear import Kind, Linear
from engine.models import gpt2, kernels
from engine.models.gpt2 import Layer, Norm, Weights
from engine.state import State

# No size is a power of two, so that every mask is needed: D = 12 of 16, C = 24 of 32.
DIMENSIONS = Dimensions(n_layer=2, n_head=2, n_embd=24, n_positions=9, n_vocab=37)
LONG = Dimensions(n_layer=1, n_head=2, n_embd=24, n_positions=300, n_vocab=37)  # 3 splits of 4
TOLERANCE = 5e-6  # of the largest: float32 summed in another order, seen to differ by 8e-7
IDS = (3, 1, 4, 1, 5, 9, 2, 6, 36)


def random_weights(
    dimensions: Dimensions,
    *,
    dtype: torch.dtype = torch.float32,
    kind: Kind = "linear",
    device: str = "cpu",
) -> Weights:
    """Every parameter random, biases and LayerNorms too."""
    random, c = np.random.default_rng(7), dimensions.n_embd

    def numbers(*shape: int) -> NDArray[np.float32]:
        noise = torch.from_numpy(0.25 * random.standard_normal(shape, np.float32))
        return noise.bfloat16().half().float().numpy()

    def vector(around: float) -> Tensor:
        return torch.from_numpy(around + numbers(c)).to(device)

    def norm() -> Norm:
        return Norm(vector(1.0), vector(0.0), 1e-5)

    def matrix(n_in: int, n_out: int) -> Linear:
        w, b = numbers(n_in, n_out), numbers(n_out)
        return linear.pack(w, b, device=device, dtype=dtype, kind=kind)

    def layer() -> Layer:
        qkv, project = matrix(c, 3 * c), matrix(c, c)
        return Layer(norm(), qkv, project, norm(), matrix(c, 4 * c), matrix(4 * c, c))

    layers = tuple(layer() for _ in range(dimensions.n_layer))
    tokens = numbers(dimensions.n_vocab, c)
    head = linear.pack(tokens.T, None, device=device, dtype=dtype, kind=kind)
    positions = torch.from_numpy(numbers(dimensions.n_positions, c)).to(device)
    table = torch.from_numpy(tokens).to(device, dtype)
    return Weights(table, positions, layers, norm(), head)


@pytest.fixture(autouse=True)
def _nothing_is_empty_by_chance() -> Iterator[None]:
    """Memory that nobody wrote holds NaN."""
    assert deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def tick(weights: Weights, state: State, id: int, place: int, *, context: int) -> Tensor:
    return kernels.tick(weights, state, torch.tensor([id]), torch.tensor([place]), context=context)[
        0
    ]  # (V,)


def step(weights: Weights, state: State, id: int, place: int) -> Tensor:
    gpt2.step(weights, state, id, position=place)
    return gpt2.logits(weights, state, position=place)  # (V,)


def near(found: Tensor, wanted: Tensor) -> bool:
    assert wanted.abs().max() > 0
    return bool((found - wanted).abs().max() <= TOLERANCE * wanted.abs().max())


def ticked(weights: Weights, state: State, ids: Sequence[int], *, first: int = 0) -> list[Tensor]:
    """The logits of each token of a run."""
    places = range(first, first + len(ids))
    t = state.n_positions
    return [tick(weights, state, id, at, context=t) for id, at in zip(ids, places, strict=True)]


def test_a_run_is_the_plain_step_s_at_every_place_from_0_to_the_last() -> None:
    weights = random_weights(DIMENSIONS)
    state, plain = State(DIMENSIONS), State(DIMENSIONS)
    assert len(IDS) == DIMENSIONS.n_positions
    for place, id in enumerate(IDS):
        assert near(tick(weights, state, id, place, context=9), step(weights, plain, id, place))
    for n in range(DIMENSIONS.n_layer):
        for slot in (gpt2.Q, gpt2.K, gpt2.V):
            assert near(state.qkv[n, slot], plain.qkv[n, slot])
    for found, wanted in zip(state.residual, plain.residual, strict=True):
        assert near(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_weights_of_16_bits_are_widened_without_loss(dtype: torch.dtype) -> None:
    weights, state = random_weights(DIMENSIONS, dtype=dtype), State(DIMENSIONS)
    exact, plain = random_weights(DIMENSIONS), State(DIMENSIONS)
    for place, id in enumerate(IDS[:2]):
        assert near(tick(weights, state, id, place, context=9), step(exact, plain, id, place))


@pytest.mark.parametrize("place", [126, 127, 128, 255, 256, 299])
def test_keys_are_joined_over_the_edges_of_splits(place: int) -> None:
    """A split has 128 keys; 300 positions make 3 of them, in a tile of 4."""
    weights, state = random_weights(LONG), State(LONG)
    gpt2.prefill(weights, state, [7 * n % 37 for n in range(300)], first=0)
    wanted = step(weights, state, 5, place)
    rows = state.qkv.clone()
    state.qkv[:, :, :, :, place:] = torch.nan
    assert near(tick(weights, state, 5, place, context=300), wanted)
    assert near(state.qkv[..., place, :], rows[..., place, :])


def test_a_context_that_just_reaches_the_place_is_enough() -> None:
    weights, state = random_weights(LONG), State(LONG)
    gpt2.prefill(weights, state, [7 * n % 37 for n in range(128)], first=0)
    whole = tick(weights, state, 5, 127, context=300)
    assert near(tick(weights, state, 5, 127, context=128), whole)


def test_nothing_is_read_or_written_beyond_the_place() -> None:
    weights, state = random_weights(DIMENSIONS), State(DIMENSIONS)
    clean = ticked(weights, state, IDS[:3])
    state.qkv.fill_(torch.nan)
    state.residual.fill_(torch.nan)
    for found, wanted in zip(ticked(weights, state, IDS[:3]), clean, strict=True):
        assert torch.equal(found, wanted)
    assert state.qkv[..., :3, :].isfinite().all()
    assert state.residual[:, :, :3].isfinite().all()
    assert state.qkv[..., 3:, :].isnan().all()
    assert state.residual[:, :, 3:].isnan().all()


def test_going_back_with_another_token_is_a_fresh_run() -> None:
    weights, state = random_weights(DIMENSIONS), State(DIMENSIONS)
    ticked(weights, state, IDS[:3])
    again = ticked(weights, state, (36, 2), first=1)
    fresh = ticked(weights, State(DIMENSIONS), (IDS[0], 36, 2))
    assert torch.equal(again[-1], fresh[-1])


def test_the_kernels_pass_the_check_that_is_made_when_a_model_is_loaded() -> None:
    weights, state = random_weights(DIMENSIONS), State(DIMENSIONS)
    assert kernels.obstacle(weights, state) is None
    assert kernels.failure(weights, state) is None
