"""One token of each stream at once: as the step, as Hugging Face, and fit for a graph."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch._dynamo.testing import CompileCounter

from engine.dispatch import Counter, small_runner
from engine.linear import Kind
from engine.models.streams import tick
from engine.runners import Runner
from engine.state import K, Q, State
from tests.engine.test_gpt2 import SHAPES, ask, checkpoint_of, ids_for, random_model
from tests.engine.test_runners import IDS, TINY, checkpoint, make, near, read, tensors

Floats = NDArray[np.float32]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


class Ticking:
    """A state of its own over the weights of a runner, read tick by tick."""

    def __init__(self, runner: Runner, n_streams: int = 1) -> None:
        self.weights = runner.weights
        self.state = State(runner.dimensions, n_streams=n_streams)

    def __call__(self, *ids: int, at: int | tuple[int, ...], context: int = 160) -> Floats:
        """Logits (B, V) after one id of each stream."""
        tokens = torch.tensor(ids)
        places = torch.tensor(at).expand(len(ids)).contiguous()
        with torch.inference_mode():
            return tick(self.weights, self.state, tokens, places, context=context).numpy()


@pytest.mark.parametrize("kind", ["linear", "columns", "onednn", "half", "half_serial"])
def test_every_place_from_the_first_to_the_last_equals_the_step(kind: Kind) -> None:
    """In contexts that just reach, reach further, and fill the buffer."""
    try:
        runner = make(kind=kind, dtype="float32")
    except RuntimeError:
        pytest.skip(f"this torch has no {kind}")
    ticking = Ticking(runner)
    for place, id in enumerate(IDS):
        runner.step(id, position=place)
        context = (place + 1, min(place + 33, 160), 160)[place % 3]
        assert near(ticking(id, at=place, context=context)[0], runner.logits())
    for found, wanted in (
        (ticking.state.qkv, runner.state.qkv),
        (ticking.state.residual, runner.state.residual),
    ):
        assert near(found.numpy(), wanted.numpy())


def test_weights_of_16_bits_give_what_the_step_gives() -> None:
    """The state is float32 all the same, so new rows are widened as they are written."""
    runner = make(dtype="bfloat16")
    ticking = Ticking(runner)
    for place, id in enumerate(IDS[:30]):
        runner.step(id, position=place)
        found = ticking(id, at=place, context=64)[0]
        # bfloat16 keeps 8 bits, and sums of another order may round the other way once a layer
        assert np.abs(found - runner.logits()).max() <= 3e-2 * np.abs(runner.logits()).max()
    assert ticking.state.qkv.dtype == ticking.state.residual.dtype == torch.float32


def test_a_run_of_ticks_equals_hugging_face() -> None:
    """Logits, attention from the kept queries and keys, and the residual stream."""
    model = random_model(SHAPES[1])
    stored = checkpoint_of(model, SHAPES[1])
    ids, ticking = ids_for(stored, 40), Ticking(Runner(stored, device="cpu", n_threads=1))
    wanted = ask(model, ids)
    for place, id in enumerate(ids):
        assert near(ticking(id, at=place, context=64)[0], wanted.logits[place])
    qkv = ticking.state.qkv[:, :, 0, :, :40].numpy()  # (L, 3, H, N, D)
    scores = qkv[:, Q] @ qkv[:, K].swapaxes(2, 3) / np.sqrt(qkv.shape[-1])  # (L, H, N, N)
    scores[..., np.triu(np.ones((40, 40), bool), 1)] = -np.inf
    maps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    maps /= maps.sum(axis=-1, keepdims=True)
    assert np.abs(maps - wanted.maps).max() <= 1e-4  # of scores that float32 has to 1e-5
    hidden = ticking.state.residual[0:-1:2, 0, :40].numpy()  # (L, N, C)
    assert near(hidden, wanted.stream[:-1])


def test_streams_at_different_places_are_each_as_if_alone() -> None:
    prompts = (IDS[:1], IDS[3:40], IDS[7:27])
    ticking, alone = Ticking(make(), n_streams=3), [Ticking(make()) for _ in prompts]
    for place in range(40):  # a stream that is at its end stays there and reads its last id again
        at = tuple(min(place, len(ids) - 1) for ids in prompts)
        ids = [prompt[p] for prompt, p in zip(prompts, at, strict=True)]
        found = ticking(*ids, at=at, context=48)
        for one, single, id, p in zip(found, alone, ids, at, strict=True):
            assert near(one, single(id, at=p, context=48)[0])


def test_one_stream_never_writes_into_another() -> None:
    ticking = Ticking(make(), n_streams=3)
    ticking(5, 6, 7, at=(0, 4, 9))
    for stream, place in enumerate((0, 4, 9)):
        others = [p for p in range(160) if p != place]
        assert ticking.state.qkv[:, :, stream, :, place].all()
        assert ticking.state.residual[:, stream, place].all()
        assert not ticking.state.qkv[:, :, stream][..., others, :].any()
        assert not ticking.state.residual[:, stream, others].any()


def test_what_was_left_beyond_a_place_counts_for_nothing() -> None:
    clean, littered = Ticking(make()), Ticking(make())
    littered.state.qkv.fill_(1e6)
    for place, id in enumerate(IDS[:20]):
        found, wanted = (one(id, at=place, context=64) for one in (littered, clean))
        assert np.array_equal(found, wanted)  # exactly: such rows are weighed by 0


def test_going_back_and_another_way_equals_a_fresh_run() -> None:
    ticking, fresh = Ticking(make()), Ticking(make())
    for place, id in enumerate(IDS[:13]):
        ticking(id, at=place)
    for place, id in enumerate([*IDS[:7], 90, 91]):
        wanted = fresh(id, at=place)
        if place >= 7:  # ticks went to position 12; back to 7 with other tokens
            assert np.array_equal(ticking(id, at=place), wanted)


def test_a_tick_after_a_prefill_goes_on_where_that_ended() -> None:
    runner = make()
    read(runner, IDS[:20])
    ticking = Ticking(runner)
    ticking.state.qkv.copy_(runner.state.qkv)
    runner.step(IDS[20], position=20)
    assert near(ticking(IDS[20], at=20, context=64)[0], runner.logits())


def launches(n_layer: int, n_streams: int, dtype: str = "float32") -> int:
    small = small_runner("cpu", dtype, 1, "linear", n_layer=n_layer, n_positions=300)
    state, zeros = State(small.dimensions, n_streams=n_streams), torch.zeros(n_streams).long()
    with Counter() as counter:
        tick(small.weights, state, zeros, zeros, context=128)
    return counter.n_launches


@pytest.mark.parametrize("n_layer", [1, 2, 12])
def test_a_tick_starts_13_kernels_a_layer_and_11_around_them(n_layer: int) -> None:
    """167 for the 12 layers of GPT-2: the ceiling of what a graph of it replays.

    A layer: two norms, four products, two sums with what was before, one write of Q, K and V,
    scores, softmax, mixing and GELU. Around them: two rows of the embeddings and their sum, three
    for the mask, numbering the streams, stacking and writing the residual rows, norm, head.
    """
    assert launches(n_layer, 1) == 13 * n_layer + 11


def test_several_streams_copy_their_queries_and_the_mask() -> None:
    """A product takes one distance between the heads of all streams, so they are laid together."""
    assert launches(12, 4) == 14 * 12 + 12


def test_weights_of_16_bits_cost_four_casts_a_layer_and_two_around_them() -> None:
    """Before three of the products (GELU's answer is narrow already), and after the first."""
    assert launches(12, 1, "bfloat16") == 17 * 12 + 13


def test_it_compiles_into_one_graph_that_holds_for_all_tokens_and_places() -> None:
    counter = CompileCounter()
    compiled = torch.compile(tick, fullgraph=True, backend=counter)
    eager = Ticking(Runner(checkpoint(tensors(TINY)), device="cpu", n_threads=1, kind="linear"))
    state = State(TINY)
    for place, id in enumerate(IDS[:24]):
        tokens, places = torch.tensor([id]), torch.tensor([place])
        found = compiled(eager.weights, state, tokens, places, context=64)
        assert np.array_equal(found.numpy(), eager(id, at=place, context=64))
    assert counter.frame_count == 1
