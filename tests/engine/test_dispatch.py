"""How many operations a pass tells torch to do: the counts of gpt2.py, layer by layer."""

from collections.abc import Iterator

import pytest
import torch

from engine import dispatch
from engine.dispatch import Counter, small_runner
from engine.events import Forward, Memory, Phase, Work
from engine.graphs import GraphRunner
from engine.linear import Kind
from engine.models import kernels
from engine.queues import Queue
from engine.runners import Runner

NOTHING = Memory(0, 0, 0, 0, 0, 0, 0, None)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


def a_pass(phase: Phase, first: int, count: int) -> Forward:
    return Forward(phase, first, count, 0, (0, 1), (), 0, NOTHING, Work(0, 0, 0))


def runner(n_layer: int, kind: Kind = "linear", dtype: str = "float32") -> Runner:
    try:
        return small_runner("cpu", dtype, 1, kind, n_layer=n_layer, n_positions=300)
    except RuntimeError as error:
        pytest.skip(f"not on this machine: {error}")


def operations(model: Runner, forward: Forward) -> tuple[int, int]:
    return dispatch.operations(model, forward.phase, forward.first, forward.count)


def counted(model: Runner, forward: Forward) -> tuple[int, int]:
    counter = Counter()
    model.state.position = forward.first
    with counter:
        if forward.phase == "decode":
            model.step(0, position=forward.first)
        else:
            list(model.prefill([0] * forward.count, first=forward.first))
    return counter.n_operations, counter.n_launches


@pytest.mark.parametrize("n_layer", [1, 5, 12])
def test_a_decode_step_tells_22_operations_a_layer_and_20_around_them(n_layer: int) -> None:
    """Of these 13 a layer and 5 around them start a kernel.

    A layer: two norms, four products, two sums with what was before, one copy, scores, softmax,
    mixing and GELU. Around them: token + position, stacking and keeping the rows, norm, head.
    """
    n_operations, n_launches = operations(runner(n_layer), a_pass("decode", 6, 1))
    assert (n_operations, n_launches) == (22 * n_layer + 20, 13 * n_layer + 5)


def test_fused_layers_tell_less() -> None:
    """Sums and GELU are part of the products: 10 kernels a layer."""
    n_operations, n_launches = operations(runner(12, "onednn"), a_pass("decode", 6, 1))
    assert (n_operations, n_launches) == (17 * 12 + 20, 10 * 12 + 5)


def test_a_recorded_step_tells_as_much_whatever_its_depth() -> None:
    """And a card starts the kernels of `tick`, 13 a layer and 11, those of the draw, and copies."""
    forward, found = a_pass("decode", 6, 1), {}
    for n_layer in (1, 5, 12):
        recorded = GraphRunner(runner(n_layer), Queue())
        found[n_layer] = operations(recorded, forward)
    told = {n_operations for n_operations, _ in found.values()}
    assert len(told) == 1
    assert told < set(range(2, 22))  # fewer than a single layer of the others tells
    launched = {n_layer: n for n_layer, (_, n) in found.items()}
    assert launched[12] - launched[5] == 7 * 13
    assert launched[1] > 13 + 11


def test_a_step_of_our_kernels_starts_8_fewer_a_layer() -> None:
    forward, model = a_pass("decode", 6, 1), runner(4)
    n_plain = operations(GraphRunner(model, Queue()), forward)[1]
    recorded = GraphRunner(model, Queue())
    recorded.tick = kernels.tick
    assert n_plain - operations(recorded, forward)[1] == (13 * 4 + 11) - (5 * 4 + 2)


@pytest.mark.parametrize(
    "forward",
    [
        a_pass("decode", 6, 1),
        a_pass("prefill", 0, 6),
        a_pass("prefill", 5, 6),  # after others: with a mask
        a_pass("prefill", 0, 300),  # three chunks
    ],
    ids=["decode", "prefill", "after others", "chunks"],
)
@pytest.mark.parametrize("kind", ["linear", "columns", "onednn", "half", "half_serial"])
def test_what_two_small_models_say_holds_for_a_deep_one(kind: Kind, forward: Forward) -> None:
    deep = runner(5, kind)
    assert operations(deep, forward) == counted(deep, forward)


def test_counting_leaves_the_runner_as_it_was() -> None:
    model = runner(2)
    list(model.prefill([1, 2, 3], first=0))
    before = model.logits().tobytes()
    operations(model, a_pass("decode", 3, 1))
    assert model.state.position == 3
    assert model.logits().tobytes() == before


def test_a_view_starts_no_kernel() -> None:
    x, counter = torch.zeros(4, 6), Counter()
    with counter:
        x.t()
        x[1:]
        x.to(torch.float32)  # it is that already
        x.unbind(0)
        x.new_empty(2)
        assert x.shape == (4, 6)
        assert len(x) == 4
    assert (counter.n_operations, counter.n_launches) == (5, 0)
    with counter:
        x + 1
        x.copy_(x)
        x.to(torch.float64)
    assert (counter.n_operations, counter.n_launches) == (8, 3)
