"""The runner: chunks, steps, copies and the ledger, on tiny random models."""

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine import devices, linear, meter
from engine.checkpoint import Checkpoint, Config
from engine.errors import EngineError
from engine.events import Dimensions, Model
from engine.linear import Kind
from engine.runners import CHUNK, Runner

TINY = Dimensions(n_layer=2, n_head=2, n_embd=32, n_positions=160, n_vocab=97)
IDS = [(7 * n * n + 3 * n) % 97 for n in range(160)]  # any ids that do not repeat soon


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


def tensors(dimensions: Dimensions, *, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random weights, large enough that attention is uneven and logits are far from zero."""
    r, c = np.random.default_rng(seed), dimensions.n_embd

    def some(*shape: int, around: float = 0.0) -> NDArray[np.float32]:
        return (around + r.normal(0, 0.3, shape)).astype(np.float16).astype(np.float32)

    found = {
        "wte.weight": some(dimensions.n_vocab, c),
        "wpe.weight": some(dimensions.n_positions, c),
    }
    norms = ["ln_f"]
    for n in range(dimensions.n_layer):
        norms += [f"h.{n}.ln_1", f"h.{n}.ln_2"]
        shapes = {"attn.c_attn": (c, 3 * c), "attn.c_proj": (c, c)}
        shapes |= {"mlp.c_fc": (c, 4 * c), "mlp.c_proj": (4 * c, c)}
        for name, shape in shapes.items():
            found[f"h.{n}.{name}.weight"] = some(*shape)
            found[f"h.{n}.{name}.bias"] = some(shape[1])
    for name in norms:
        found |= {f"{name}.weight": some(c, around=1.0), f"{name}.bias": some(c)}
    return found


def checkpoint(
    arrays: Mapping[str, NDArray[np.generic]], *, dtype: str = "F32", dimensions: Dimensions = TINY
) -> Checkpoint:
    return Checkpoint(
        model=Model("tiny", "Tiny", dimensions, verified=False),
        config=Config(dimensions, 1e-5),
        tensors=arrays,
        dtypes=dict.fromkeys(arrays, dtype),
        sha256="",
        notes=(),
    )


def make(*, dtype: str = "auto", kind: Kind | None = "linear") -> Runner:
    return Runner(checkpoint(tensors(TINY)), device="cpu", dtype=dtype, n_threads=1, kind=kind)


def read(runner: Runner, ids: list[int], *, first: int = 0) -> list[int]:
    return list(runner.prefill(ids, first=first))


def near(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    """Equal but for the order in which float32 sums are taken."""
    return bool(np.abs(a - b).max() <= 2e-5 * np.abs(b).max() + 1e-5)


def same_logits(*stored: Checkpoint) -> bool:
    """Bit for bit, when the token embedding stays in the type it is stored in."""
    answers = []
    for one in stored:
        runner = Runner(one, device="cpu", n_threads=1, kind="columns")
        read(runner, IDS[:9])
        answers.append(runner.logits())
    return np.array_equal(*answers)


def same_logits_up_to_order(*runners: Runner) -> bool:
    answers = []
    for runner in runners:
        read(runner, IDS[:9])
        runner.step(5, position=9)
        answers.append(runner.logits())
    return near(*answers)


def test_a_prefill_tells_after_each_chunk_how_far_it_is() -> None:
    runner = make()
    assert CHUNK == 128
    assert read(runner, IDS[:140]) == [128, 140]
    assert read(runner, IDS[5:20], first=5) == [20]
    assert runner.state.position == 20


def test_a_prefill_stopped_between_chunks_goes_on_where_it_was() -> None:
    runner, whole = make(), make()
    stopped = runner.prefill(IDS, first=0)
    assert next(stopped) == 128
    stopped.close()
    read(runner, IDS[128:], first=runner.state.position)
    read(whole, IDS)
    assert near(runner.logits(), whole.logits())


def test_the_warm_up_leaves_no_trace() -> None:
    runner = make()
    assert runner.state.position == 0
    assert runner.layer_spans() == ()
    assert runner.memory(0).kv_used == 0


def test_rewinding_and_going_another_way_equals_a_fresh_run() -> None:
    runner, fresh = make(), make()
    read(runner, IDS[:40])
    runner.step(5, position=10)
    runner.step(6, position=11)
    read(fresh, [*IDS[:10], 5, 6])
    assert near(runner.logits(), fresh.logits())
    assert runner.state.position == 12


@pytest.mark.parametrize("n_positions", [1, 2])
def test_a_model_of_one_or_two_positions_runs(n_positions: int) -> None:
    small = Dimensions(1, 2, 32, n_positions, 97)
    runner = Runner(checkpoint(tensors(small), dimensions=small), device="cpu", n_threads=1)
    read(runner, IDS[:n_positions])
    assert np.isfinite(runner.logits()).all()


def test_logits_are_fresh_and_read_only() -> None:
    runner = make()
    read(runner, IDS[:4])
    logits = runner.logits()
    kept = logits.copy()
    runner.step(1, position=4)
    assert logits.shape == (97,)
    assert logits.dtype == np.float32
    assert not logits.flags.writeable
    assert np.array_equal(logits, kept)
    assert not np.array_equal(runner.logits(), kept)


def test_rows_are_fresh_read_only_and_of_the_shapes_that_events_name() -> None:
    runner = make()
    read(runner, IDS[:8])
    rows = runner.rows(2, 3)
    arrays = (rows.q, rows.k, rows.v, rows.residual)
    kept = [array.copy() for array in arrays if array is not None]
    read(runner, IDS[20:28])
    shapes = [array.shape for array in arrays if array is not None]
    assert shapes == [(2, 2, 3, 16)] * 3 + [(5, 3, 32)]  # (L, H, count, D), (2L + 1, count, C)
    for array, before in zip(arrays, kept, strict=True):
        assert array is not None
        assert not array.flags.writeable
        assert np.array_equal(array, before)


def test_rows_that_are_not_asked_for_are_not_copied() -> None:
    runner = make()
    read(runner, IDS[:4])
    only_stream = runner.rows(0, 4, attention=False)
    assert (only_stream.q, only_stream.k, only_stream.v) == (None, None, None)
    assert only_stream.residual is not None
    assert runner.rows(0, 4, residual=False).residual is None


def test_each_layer_has_a_span_that_begins_where_the_last_ended() -> None:
    runner = make()
    before = meter.now_ns()
    read(runner, IDS[:4])
    runner.step(1, position=4)
    (a, b), (c, d) = runner.layer_spans()
    assert before <= a <= b == c <= d <= meter.now_ns()


def test_several_chunks_have_no_span_a_layer() -> None:
    runner = make()
    read(runner, IDS[:128])
    assert len(runner.layer_spans()) == 2
    read(runner, IDS[:129])
    assert runner.layer_spans() == ()


def test_the_ledger_adds_up_from_the_real_buffers() -> None:
    runner = make()
    memory = runner.memory(10)
    assert memory.kv_used == 10 * 2 * 2 * 32 * 4  # positions x (K, V) x L x C x bytes
    assert memory.q_used == 10 * 2 * 32 * 4
    assert memory.residual_used == 10 * 5 * 32 * 4
    assert memory.kv_reserved + memory.q_reserved == runner.state.qkv.nbytes
    assert memory.residual_reserved == runner.state.residual.nbytes
    assert memory.weights == runner.weight_bytes
    assert memory.device is None


def test_weights_take_four_bytes_each_and_a_shared_matrix_counts_once() -> None:
    assert make().weight_bytes == 4 * TINY.n_params
    assert make().item_weight == 4


def test_a_plain_head_serves_as_the_embedding_too_however_it_lies() -> None:
    runner = make(kind="columns")
    assert runner.weight_bytes == 4 * TINY.n_params
    assert same_logits_up_to_order(runner, make())


@pytest.mark.parametrize(("dtype", "item"), [("float32", 4), ("bfloat16", 2)])
def test_a_packed_head_leaves_the_embedding_as_a_table_no_wider_than_the_rest(
    dtype: str, item: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = make(dtype=dtype)

    class Packed(linear._Plain):
        """Does not show its matrix, as oneDNN does not, which multiplies bfloat16 on few CPUs."""

        def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
            super().__init__(weight, bias)
            self.rows = None

    monkeypatch.setattr(linear, "_Plain", Packed)
    runner = make(dtype=dtype)
    assert runner.weight_bytes == plain.weight_bytes + item * 97 * 32
    assert same_logits_up_to_order(runner, plain)


def test_float16_weights_give_the_same_logits_as_their_widened_copies() -> None:
    wide = tensors(TINY)
    half = {name: array.astype(np.float16) for name, array in wide.items()}
    assert same_logits(checkpoint(wide), checkpoint(half, dtype="F16"))


def test_bfloat16_weights_are_read_from_their_bits() -> None:
    bits = {name: (a.view(np.uint32) >> 16).astype(np.uint16) for name, a in tensors(TINY).items()}
    wide = {name: (b.astype(np.uint32) << 16).view(np.float32) for name, b in bits.items()}
    assert same_logits(checkpoint(wide), checkpoint(bits, dtype="BF16"))


def test_a_head_of_its_own_is_used() -> None:
    arrays = tensors(TINY)
    arrays["lm_head.weight"] = -2 * arrays["wte.weight"]
    runner, tied = Runner(checkpoint(arrays), device="cpu", n_threads=1, kind="linear"), make()
    for one in (runner, tied):
        read(one, IDS[:5])
    assert near(runner.logits(), -2 * tied.logits())


@pytest.mark.parametrize(
    ("kind", "n_cores", "threads"),
    [("linear", 8, [8, 7]), ("linear", 1, [1, 1]), ("half_serial", 8, [7, 7])],
)
def test_decode_leaves_a_core_to_the_window(
    kind: Kind, n_cores: int, threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so does a prefill in which the products use one thread whatever they are given."""
    asked: list[int] = []
    monkeypatch.setattr(meter, "n_cores", lambda: n_cores)
    monkeypatch.setattr(linear, "use_threads", asked.append)
    try:
        runner = Runner(checkpoint(tensors(TINY)), device="cpu", kind=kind)
    except RuntimeError:
        pytest.skip(f"this torch has no {kind}")
    asked.clear()
    read(runner, IDS[:16])
    runner.step(1, position=16)
    read(runner, IDS[:15])  # over before one thread more would have helped
    assert asked == [*threads, threads[1]]
    assert runner.machine.n_threads == threads[1]


def test_a_step_held_up_by_other_programs_is_still_judged_by_the_threads_it_should_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(meter, "n_cores", lambda: 8)
    monkeypatch.setattr(linear, "use_threads", asked.append)
    runner = Runner(checkpoint(tensors(TINY)), device="cpu", kind="linear")
    runner._crowd.n_threads = 1
    asked.clear()
    read(runner, IDS[:4])
    runner.step(1, position=4)
    assert asked == [7, 1]
    assert runner.threads(1) == 7


def test_a_device_that_is_not_here_is_refused_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(EngineError) as error:
        Runner(checkpoint(tensors(TINY)), device="cuda")
    assert error.value.kind == "device"
    assert str(error.value) == (
        "The device cuda is not here. This machine has: cpu. Choose one of these, or auto."
    )
    assert Runner(checkpoint(tensors(TINY)), n_threads=1, kind="linear").device == "cpu"


@pytest.mark.parametrize("dtype", ["float64", "int4", "Float32", ""])
def test_a_number_type_the_cpu_does_not_take_is_refused(dtype: str) -> None:
    with pytest.raises(EngineError) as error:
        make(dtype=dtype)
    assert error.value.kind == "dtype"
    assert "float32, bfloat16" in str(error.value)


def test_int8_is_for_the_processor_only() -> None:
    with pytest.raises(EngineError) as error:
        devices.dtype("int8", "cuda")
    assert error.value.facts["allowed"] == "float16, float32, bfloat16"


def test_float16_is_refused_where_torch_cannot_widen_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "has_fbgemm", lambda: False)
    with pytest.raises(EngineError) as error:
        make(dtype="float16")
    assert error.value.facts == {
        "found": "float16",
        "device": "cpu",
        "allowed": "float32, bfloat16, int8",
    }


@pytest.mark.skipif(not linear.has_fbgemm(), reason="no float16 on this processor")
def test_on_the_processor_float16_rounds_weights_and_nothing_else() -> None:
    half, single = make(dtype="float16", kind=None), make()
    assert (half.dtype, half.item_weight) == ("float16", 2)
    assert same_logits_up_to_order(half, single)  # float16 holds these weights


def test_int8_takes_a_byte_a_weight_and_a_table_in_float16() -> None:
    runner = make(dtype="int8", kind="int8")
    assert (runner.dtype, runner.item_weight, runner.kind) == ("int8", 1, "int8")
    # Of each of 2 layers: 12 C^2 weights; a scale (2 bytes) and a bias for each of 9 C outputs;
    # 4 C numbers of its norms. Then the head and its scales, the table, the positions, a norm.
    layer = 12 * 32 * 32 + (2 + 4) * 9 * 32 + 4 * 4 * 32
    head, table, positions = 97 * 32 + 2 * 97, 2 * 97 * 32, 4 * 160 * 32
    assert runner.weight_bytes == 2 * layer + head + table + positions + 4 * 2 * 32
    assert runner.weights.tokens.dtype is torch.float16


@pytest.mark.parametrize("kind", ["int8", "int8_rows"])
def test_int8_prefills_decodes_and_answers_as_float32_but_for_its_rounding(kind: Kind) -> None:
    try:
        prefilled, stepped = make(dtype="int8", kind=kind), make(dtype="int8", kind=kind)
    except RuntimeError:
        pytest.skip(f"this torch has no {kind}")
    exact = make()
    for runner in (prefilled, exact):
        read(runner, IDS[:12])
    for position, id in enumerate(IDS[:12]):
        stepped.step(id, position=position)
    size = np.abs(exact.logits()).max()
    for runner in (prefilled, stepped):
        off = np.abs(runner.logits() - exact.logits()).max() / size
        assert 1e-4 < off < 0.1  # nine products of up to 1 or 2 % each, and their sums


def test_a_table_that_float16_cannot_hold_is_refused_beside_an_int8_head() -> None:
    arrays = tensors(TINY)
    arrays["wte.weight"][3, 5] = -70_000.0
    with pytest.raises(EngineError) as error:
        Runner(checkpoint(arrays), device="cpu", dtype="int8", n_threads=1, kind="int8")
    assert error.value.kind == "dtype_range"


def test_a_model_that_does_not_fit_is_refused_with_both_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meter, "available_bytes", lambda device: 1_000)
    with pytest.raises(EngineError) as error:
        make()
    assert error.value.kind == "memory"
    # 4 bytes for each of 33,696 parameters, and (3 L + 2 L + 1) T C numbers of state
    assert error.value.facts == {"device": "cpu", "needed": 360_064, "available": 1_000}


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card")
def test_a_card_answers_as_the_processor() -> None:
    arrays = checkpoint(tensors(TINY))
    cpu = Runner(arrays, device="cpu", n_threads=1)
    card = Runner(arrays, device="cuda", dtype="float32")
    for runner in (cpu, card):
        read(runner, IDS[:140])
        runner.step(IDS[140], position=140)
    assert near(card.logits(), cpu.logits())
    assert card.layer_spans() == ()
    in_use = card.memory(141).device
    assert in_use is not None
    assert in_use >= card.weight_bytes
