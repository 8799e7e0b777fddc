"""The door to the optional kernels: when it opens, and what it says when it does not.

The kernels themselves are tried in tests/interpreted_kernels.py, by Triton's interpreter for the
CPU. It must be chosen before Triton is imported, so this happens in a process of its own.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from interpreted_kernels import DIMENSIONS, random_weights
from torch import Tensor

from engine.events import Dimensions
from engine.linear import Kind
from engine.models import gpt2, kernels
from engine.models.gpt2 import Weights
from engine.state import State

TESTS = Path(__file__).parent.parent
NAN = float("nan")


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Triton were installed and told to interpret."""
    monkeypatch.setattr(kernels, "find_spec", lambda name: name)
    monkeypatch.setenv("TRITON_INTERPRET", "1")


def plain(
    weights: Weights, state: State, tokens: Tensor, places: Tensor, *, context: int
) -> Tensor:
    """What the kernels are to answer, in their stead."""
    assert int(places) < context
    gpt2.step(weights, state, int(tokens), position=int(places))
    return gpt2.logits(weights, state, position=int(places))[None]  # (1, V)


def obstacle(
    dimensions: Dimensions = DIMENSIONS, *, kind: Kind = "linear", n_streams: int = 1
) -> str | None:
    state = State(dimensions, n_streams=n_streams)
    return kernels.obstacle(random_weights(dimensions, kind=kind), state)


def failure() -> tuple[str | None, State]:
    state = State(DIMENSIONS)
    return kernels.failure(random_weights(DIMENSIONS), state), state


def test_without_triton_the_door_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert obstacle() == "Triton is not installed"


def test_on_the_cpu_they_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "find_spec", lambda name: name)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert obstacle() == "they run on CUDA, not on cpu"


@pytest.mark.usefixtures("interpreted")
def test_nothing_keeps_them_from_one_stream_over_plain_weights() -> None:
    assert obstacle() is None


@pytest.mark.usefixtures("interpreted")
def test_two_streams_are_too_many() -> None:
    assert obstacle(n_streams=2) == "they serve one stream, not 2"


@pytest.mark.usefixtures("interpreted")
def test_weights_kept_by_columns_do_not_fit() -> None:
    assert obstacle(kind="columns") == "the weights are not packed by rows"


def test_the_right_answer_passes_and_leaves_the_state_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "tick", plain)
    said, state = failure()
    assert said is None
    assert not state.qkv.any()
    assert not state.residual.any()


@pytest.mark.parametrize(("slot", "by"), [(gpt2.Q, 1e-2), (gpt2.K, NAN), (gpt2.V, 1e-2)])
def test_a_wrong_row_in_any_layer_fails(
    monkeypatch: pytest.MonkeyPatch, slot: int, by: float
) -> None:
    def wrong(
        weights: Weights, state: State, tokens: Tensor, places: Tensor, *, context: int
    ) -> Tensor:
        logits = plain(weights, state, tokens, places, context=context)
        state.qkv[-1, slot, 0, 0, int(places)] += by
        return logits

    monkeypatch.setattr(kernels, "tick", wrong)
    said, state = failure()
    assert said is not None
    assert said.startswith("they differ from the plain step by ")
    assert not state.qkv.any()  # NaN would count as something


def test_logits_that_are_off_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a part in 5,000 of the largest, when float32 allows one in 10,000."""

    def off(
        weights: Weights, state: State, tokens: Tensor, places: Tensor, *, context: int
    ) -> Tensor:
        return 1.0002 * plain(weights, state, tokens, places, context=context)

    monkeypatch.setattr(kernels, "tick", off)
    assert failure()[0] == "they differ from the plain step by 2.0e-04 of the largest number"


def test_rows_that_are_not_written_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the plain step, which came before, left the right ones there."""

    def forgetful(
        weights: Weights, state: State, tokens: Tensor, places: Tensor, *, context: int
    ) -> Tensor:
        other = State(DIMENSIONS)
        other.qkv.copy_(state.qkv)
        return plain(weights, other, tokens, places, context=context)

    monkeypatch.setattr(kernels, "tick", forgetful)
    assert failure()[0] == "they differ from the plain step by nan of the largest number"


def test_an_error_is_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Tensor:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(kernels, "tick", broken)
    assert failure()[0] == "RuntimeError: Failed to find C compiler"


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_interpreted_kernels_pass_their_tests() -> None:
    cases = str(TESTS / "interpreted_kernels.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cases]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=TESTS.parent, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.cuda
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_on_a_card_they_give_the_plain_step_s_answer(dtype: torch.dtype) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA card")
    dimensions = Dimensions(3, 12, 768, 300, 1_009)
    weights = random_weights(dimensions, dtype=dtype, device="cuda")
    state = State(dimensions, device="cuda")
    assert kernels.obstacle(weights, state) is None
    assert kernels.failure(weights, state) is None
