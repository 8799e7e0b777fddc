"""Batches: several streams write what each would write alone, and none touches another."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch

from engine import meter, resources, weights
from engine.batch import Batch, greedy
from engine.errors import EngineError
from engine.runners import Runner
from engine.tokenizer import END_OF_TEXT, load
from tests.engine.test_runners import IDS, TINY, make, near, read

RAGGED = (IDS[:1], IDS[3:6], IDS[10:27], IDS[20:84], IDS[:150])  # 1, 3, 17, 64, 150 ids


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


def alone(runner: Runner, prompt: Sequence[int], max_tokens: int) -> list[int]:
    """What a single run writes by the same rules."""
    read(runner, list(prompt))
    written = [int(runner.logits().argmax())]
    while len(written) < max_tokens and written[-1] != END_OF_TEXT:
        if runner.state.position == runner.state.n_positions:
            break
        runner.step(written[-1], position=runner.state.position)
        written.append(int(runner.logits().argmax()))
    return written


def filled(*prompts: Sequence[int]) -> Batch:
    batch = Batch(make(), len(prompts))
    for stream, prompt in enumerate(prompts):
        batch.prefill(stream, prompt)
    return batch


def rows(batch: Batch, stream: int) -> list[torch.Tensor]:
    """Copies of what a stream has read."""
    end = batch.positions[stream]
    state = batch.state
    return [state.qkv[:, :, stream, :, :end].clone(), state.residual[:, stream, :end].clone()]


def test_a_ragged_batch_writes_what_each_prompt_writes_alone() -> None:
    written = greedy(make(), RAGGED, max_tokens=25)
    assert written == [alone(make(), prompt, 25) for prompt in RAGGED]
    # the last one reads 10 of its tokens, then its 160 positions are full
    assert [len(ids) for ids in written] == [25, 25, 25, 25, 11]


def test_the_embedded_model_writes_in_a_batch_what_it_writes_alone() -> None:
    runner = Runner(
        weights.read(resources.path("models", "decodescope-6x8")),
        device="cpu",
        dtype="float32",
        n_threads=1,
    )
    story = "Once upon a time, there was a little girl named Lily. She liked to play in the park."
    texts = ("The", "Once upon a", "Paris is the capital of", story, " ".join([story] * 5))
    prompts = [[token.id for token in load().encode(text)] for text in texts]
    assert [len(prompt) for prompt in prompts] == [1, 3, 5, 21, 105]
    written = greedy(runner, prompts, max_tokens=40)
    assert written == [alone(runner, prompt, 40) for prompt in prompts]
    # " France." and the end: the others go on for 37 tokens beside a stream that has ended
    assert [len(ids) for ids in written] == [40, 40, 3, 40, 40]
    assert written[2][-1] == END_OF_TEXT


def test_logits_of_a_batch_are_near_those_of_single_runs() -> None:
    batch, singles = Batch(make(), 4), [make() for _ in range(4)]
    for stream, (single, prompt) in enumerate(zip(singles, RAGGED, strict=False)):
        read(single, list(prompt))
        assert np.array_equal(batch.prefill(stream, prompt), single.logits())
    for id in IDS[50:70]:
        found = batch.step(dict.fromkeys(range(4), id))
        assert found.shape == (4, 97)
        for logits, single in zip(found, singles, strict=True):
            single.step(id, position=single.state.position)
            assert near(logits, single.logits())
    assert batch.positions == [21, 23, 37, 84]


def test_a_batch_of_one_is_a_single_run() -> None:
    assert greedy(make(), [IDS[:9]], max_tokens=12) == [alone(make(), IDS[:9], 12)]


def test_a_prompt_longer_than_a_chunk_is_read_in_several() -> None:
    batch, single = Batch(make(), 2), make()
    read(single, IDS[:140])  # 128 and 12
    assert np.array_equal(batch.prefill(1, IDS[:140]), single.logits())


def test_the_rows_that_come_back_stand_in_the_order_asked_for() -> None:
    batch, other = filled(*RAGGED[:3]), filled(*RAGGED[:3])
    two, nought = batch.step({2: 7, 0: 8})
    in_order = other.step({0: 8, 2: 7})
    assert np.array_equal(two, in_order[1])
    assert np.array_equal(nought, in_order[0])
    assert batch.positions == [2, 3, 18]


def test_a_stream_that_is_left_out_changes_nothing_for_the_others_and_keeps_its_rows() -> None:
    whole, left_out = filled(*RAGGED[:3]), filled(*RAGGED[:3])
    before = rows(left_out, 1)
    for id in IDS[60:90]:
        wanted = whole.step({0: id, 1: id, 2: id})
        assert np.array_equal(left_out.step({0: id, 2: id}), wanted[[0, 2]])
    assert left_out.positions == [31, 3, 47]
    for kept, found in zip(before, rows(left_out, 1), strict=True):
        # its last row is written again, by a product of another shape
        assert near(found.numpy(), kept.numpy())
        assert torch.equal(found[..., :2, :], kept[..., :2, :])


def test_a_stream_that_was_left_out_goes_on_where_it_stood() -> None:
    batch, single = filled(*RAGGED[:3]), make()
    read(single, list(RAGGED[1]))
    for id in IDS[60:80]:
        batch.step({0: id})
    for position, id in enumerate(IDS[80:90], start=3):
        single.step(id, position=position)
        assert near(batch.step({1: id})[0], single.logits())


def test_a_full_stream_may_be_left_out_and_keeps_its_last_row() -> None:
    batch = filled(IDS[:159], IDS[:4])
    batch.step({0: 5})
    before = rows(batch, 0)
    batch.step({1: 6})
    assert batch.positions == [160, 5]
    for kept, found in zip(before, rows(batch, 0), strict=True):
        assert near(found.numpy(), kept.numpy())


def test_a_prefill_leaves_the_other_streams_alone() -> None:
    batch = filled(*RAGGED[:3])
    batch.step({0: 1, 1: 2, 2: 3})
    before = rows(batch, 0) + rows(batch, 2)
    batch.prefill(1, IDS[90:130])
    for kept, found in zip(before, rows(batch, 0) + rows(batch, 2), strict=True):
        assert torch.equal(kept, found)


def test_a_new_prompt_in_a_used_stream_is_a_fresh_start() -> None:
    """So that the next prompt can take the seat of a text that has ended."""
    batch, fresh = filled(IDS[:100], IDS[:5]), filled(IDS[40:43], IDS[:5])
    assert near(batch.prefill(0, IDS[40:43]), fresh.prefill(0, IDS[40:43]))
    for id in IDS[7:17]:
        assert np.array_equal(batch.step({0: id, 1: id}), fresh.step({0: id, 1: id}))


def test_the_runner_keeps_its_own_state() -> None:
    runner = make()
    read(runner, IDS[:12])
    before = runner.state.qkv.clone(), runner.logits()
    greedy(runner, RAGGED[:3], max_tokens=5)
    assert runner.state.position == 12
    assert torch.equal(runner.state.qkv, before[0])
    assert np.array_equal(runner.logits(), before[1])


def test_bytes_are_those_of_the_buffers_and_of_the_rows_that_were_read() -> None:
    batch = filled(*RAGGED[:3])
    assert batch.reserved.kv + batch.reserved.q == batch.state.qkv.nbytes
    assert batch.reserved.residual == batch.state.residual.nbytes
    assert batch.used.kv == 21 * 2 * 2 * 32 * 4  # (1 + 3 + 17) positions x (K, V) x L x C x bytes
    batch.step({0: 1, 2: 1})
    assert batch.used.kv == 23 * 2 * 2 * 32 * 4
    assert batch.used.residual == 23 * 5 * 32 * 4


def test_logits_are_fresh_and_read_only() -> None:
    batch = filled(*RAGGED[:2])
    first = batch.step({0: 1, 1: 2})
    kept = first.copy()
    batch.step({0: 3, 1: 4})
    assert first.dtype == np.float32
    assert not first.flags.writeable
    assert np.array_equal(first, kept)


def test_of_equally_likely_tokens_the_lowest_id_is_written() -> None:
    runner = make()
    runner.weights.tokens.zero_()  # the head too: all logits are 0
    assert greedy(runner, [IDS[:3], IDS[:5]], max_tokens=2) == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("prompt", "kind"), [([], "prompt_empty"), (IDS[:1] * 161, "context_too_long")]
)
def test_a_prompt_that_cannot_be_read_is_refused(prompt: list[int], kind: str) -> None:
    with pytest.raises(EngineError) as error:
        Batch(make(), 1).prefill(0, prompt)
    assert error.value.kind == kind


def test_a_batch_that_does_not_fit_is_refused_with_both_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = make()
    monkeypatch.setattr(meter, "available_bytes", lambda device: 1_000_000)
    Batch(runner, 4)
    with pytest.raises(EngineError) as error:
        Batch(runner, 5)
    assert error.value.kind == "batch_memory"
    # (3 L + 2 L + 1) T C numbers of 4 bytes for each of 5 streams
    assert error.value.facts == {
        "n_streams": 5,
        "device": "cpu",
        "needed": 1_126_400,
        "available": 1_000_000,
    }


def test_logits_that_are_no_numbers_are_refused() -> None:
    runner = make()
    runner.weights.positions[9] = float("nan")
    with pytest.raises(EngineError) as error:
        greedy(runner, [IDS[:8], IDS[:2]], max_tokens=5)
    assert error.value.kind == "logits_not_finite"


def test_a_step_beyond_the_context_or_the_streams_is_a_mistake_of_the_caller() -> None:
    batch = filled(IDS, IDS[:5])
    for ids in ({0: 1}, {2: 1}, {1: TINY.n_vocab}, {}):
        with pytest.raises(AssertionError):
            batch.step(ids)
    assert batch.positions == [160, 5]
