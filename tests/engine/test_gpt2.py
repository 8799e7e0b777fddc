"""GPT-2 against Hugging Face's own on the same weights: logits, maps, the residual stream."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import GPT2Config, GPT2LMHeadModel

from engine import resources, weights
from engine.checkpoint import Checkpoint, Config
from engine.events import Dimensions, Model
from engine.linear import Kind
from engine.runners import Runner

Floats = NDArray[np.float32]

SHAPES = (Dimensions(2, 2, 32, 64, 211), Dimensions(3, 4, 64, 160, 211))
KINDS: tuple[Kind, ...] = ("linear", "columns", "onednn", "half", "half_serial")


@dataclass(frozen=True)
class Answer:
    """What Hugging Face says of one text, read at once without a cache, in float32."""

    logits: Floats  # (N, V)
    maps: Floats  # (L, H, N, N)
    stream: Floats  # (L + 1, N, C), the last one after the last LayerNorm


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


def random_model(dimensions: Dimensions) -> GPT2LMHeadModel:
    """Every parameter random, biases and LayerNorms too; logits reach about 20."""
    d = dimensions
    config = GPT2Config(
        vocab_size=d.n_vocab,
        n_positions=d.n_positions,
        n_embd=d.n_embd,
        n_layer=d.n_layer,
        n_head=d.n_head,
        attn_implementation="eager",
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config).eval()
    random = torch.Generator().manual_seed(d.n_layer)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            around = 1.0 if "ln_" in name and name.endswith("weight") else 0.0
            noise = 0.25 * torch.randn(parameter.shape, generator=random)
            parameter.copy_((around + noise).half())  # so that float16 holds it exactly
    return model


def checkpoint_of(model: GPT2LMHeadModel, dimensions: Dimensions) -> Checkpoint:
    """The model as weights.read would give it, stored in float16."""
    tensors = {
        name.removeprefix("transformer."): value.numpy().astype(np.float16)
        for name, value in model.state_dict().items()
        if name != "lm_head.weight"
    }
    return Checkpoint(
        model=Model("random", "Random", dimensions, verified=False),
        config=Config(dimensions, model.config.layer_norm_epsilon),
        tensors=tensors,
        dtypes=dict.fromkeys(tensors, "F16"),
        sha256="",
        notes=(),
    )


def ask(model: GPT2LMHeadModel, ids: list[int]) -> Answer:
    with torch.inference_mode():
        out = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    return Answer(
        logits=out.logits[0].numpy(),
        maps=np.stack([one[0].numpy() for one in out.attentions]),
        stream=np.stack([one[0].numpy() for one in out.hidden_states]),
    )


@pytest.fixture(scope="module", params=SHAPES, ids=str)
def pair(request: pytest.FixtureRequest) -> tuple[GPT2LMHeadModel, Checkpoint]:
    model = random_model(request.param)
    return model, checkpoint_of(model, request.param)


@pytest.fixture(scope="module")
def embedded() -> tuple[GPT2LMHeadModel, Checkpoint]:
    folder = resources.path("models", "decodescope-6x8")
    model = GPT2LMHeadModel.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    )
    return model.eval(), weights.read(folder)


def ids_for(checkpoint: Checkpoint, count: int, *, seed: int = 0) -> list[int]:
    n_vocab = checkpoint.config.dimensions.n_vocab
    return [int(id) for id in np.random.default_rng(seed).integers(0, n_vocab, count)]


def runner_of(checkpoint: Checkpoint, kind: Kind | None = None) -> Runner:
    try:
        return Runner(checkpoint, device="cpu", dtype="float32", n_threads=1, kind=kind)
    except RuntimeError as error:
        pytest.skip(f"not on this machine: {error}")


def read(runner: Runner, ids: list[int], *, first: int = 0) -> Floats:
    for _ in runner.prefill(ids, first=first):
        pass
    return runner.logits()


def assert_near(found: Floats, wanted: Floats) -> None:
    """Within what the order of float32 sums can do: measured 2.5e-5 where logits reach 8.5."""
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 2e-5 * np.abs(wanted).max() + 1e-5


Pair = tuple[GPT2LMHeadModel, Checkpoint]


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_prefill_gives_the_logits_of_hugging_face(pair: Pair, n: int) -> None:
    model, checkpoint = pair
    ids = ids_for(checkpoint, n)
    assert_near(read(runner_of(checkpoint), ids), ask(model, ids).logits[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_each_cached_step_gives_the_logits_of_hugging_face(pair: Pair, kind: Kind) -> None:
    model, checkpoint = pair
    ids = ids_for(checkpoint, 40)
    wanted, runner = ask(model, ids).logits, runner_of(checkpoint, kind)
    assert_near(read(runner, ids[:10]), wanted[9])
    for position in range(10, 40):
        runner.step(ids[position], position=position)
        assert_near(runner.logits(), wanted[position])


def test_every_position_from_the_first_to_the_last_can_be_a_step(pair: Pair) -> None:
    model, checkpoint = pair
    ids = ids_for(checkpoint, checkpoint.config.dimensions.n_positions)
    wanted, runner = ask(model, ids).logits, runner_of(checkpoint)
    for position, id in enumerate(ids):
        runner.step(id, position=position)
        assert_near(runner.logits(), wanted[position])


@pytest.mark.parametrize("size", [1, 3, 20])
def test_a_prefill_in_chunks_equals_one_at_once(
    pair: Pair, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, checkpoint = pair
    ids = ids_for(checkpoint, 60)
    whole, chunked = runner_of(checkpoint), runner_of(checkpoint)
    wanted = read(whole, ids)
    monkeypatch.setattr("engine.runners.CHUNK", size)
    assert_near(read(chunked, ids), wanted)
    one, other = whole.rows(0, 60), chunked.rows(0, 60)
    for name in ("q", "k", "v", "residual"):
        assert_near(getattr(other, name), getattr(one, name))


def test_a_prompt_longer_than_a_chunk_equals_hugging_face() -> None:
    model = random_model(SHAPES[1])
    checkpoint = checkpoint_of(model, SHAPES[1])
    ids = ids_for(checkpoint, 160)  # 128 and 32
    assert_near(read(runner_of(checkpoint), ids), ask(model, ids).logits[-1])


def test_any_head_of_any_layer_is_one_product_of_q_and_k(pair: Pair) -> None:
    model, checkpoint = pair
    ids = ids_for(checkpoint, 50)
    runner = runner_of(checkpoint)
    read(runner, ids[:30])
    for position in range(30, 50):
        runner.step(ids[position], position=position)
    rows = runner.rows(0, 50)
    assert rows.q is not None
    assert rows.k is not None
    scores = rows.q @ rows.k.swapaxes(2, 3) / np.sqrt(rows.q.shape[-1])  # (L, H, N, N)
    scores[..., np.triu(np.ones((50, 50), bool), 1)] = -np.inf
    maps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    maps /= maps.sum(axis=-1, keepdims=True)
    # a probability, of scores that float32 has to 1e-5
    assert np.abs(maps - ask(model, ids).maps).max() <= 1e-4


def test_even_residual_rows_are_the_hidden_states(pair: Pair) -> None:
    model, checkpoint = pair
    ids = ids_for(checkpoint, 20)
    runner, wanted = runner_of(checkpoint), ask(model, ids).stream
    read(runner, ids[:12])
    for position in range(12, 20):
        runner.step(ids[position], position=position)
    residual = runner.rows(0, 20).residual
    assert residual is not None
    assert_near(residual[0:-1:2], wanted[:-1])
    with torch.inference_mode():
        last = model.transformer.ln_f(torch.tensor(residual[-1])).numpy()
    assert_near(last, wanted[-1])


def test_odd_residual_rows_stand_between_attention_and_mlp(pair: Pair) -> None:
    model, checkpoint = pair
    ids = ids_for(checkpoint, 12)
    runner = runner_of(checkpoint)
    read(runner, ids)
    residual = runner.rows(0, 12).residual
    assert residual is not None
    for n, block in enumerate(model.transformer.h):
        between = torch.tensor(residual[2 * n + 1])
        with torch.inference_mode():
            after = between + block.mlp(block.ln_2(between))
        assert_near(residual[2 * n + 2], after.numpy())


def test_changing_a_token_never_changes_a_row_before_it(pair: Pair) -> None:
    _, checkpoint = pair
    ids = ids_for(checkpoint, 30)
    runner, n_vocab = runner_of(checkpoint), checkpoint.config.dimensions.n_vocab
    read(runner, ids)
    before = runner.rows(0, 30)
    read(runner, [*ids[:17], (ids[17] + 1) % n_vocab, *ids[18:]])
    after = runner.rows(0, 30)
    for name in ("q", "k", "v", "residual"):
        a, b = getattr(before, name), getattr(after, name)
        assert np.array_equal(a[..., :17, :], b[..., :17, :])  # exactly: the future is not read
        assert not np.array_equal(a[..., 17:, :], b[..., 17:, :])


def test_what_lies_beyond_the_position_is_never_read(pair: Pair) -> None:
    _, checkpoint = pair
    ids = ids_for(checkpoint, 30)
    runner = runner_of(checkpoint)
    wanted = read(runner, ids[:10])
    runner.state.qkv[..., 10:, :] = float("nan")
    runner.state.residual[:, :, 10:] = float("nan")
    assert np.array_equal(read(runner, ids[:10]), wanted)
    runner.step(ids[10], position=10)
    assert np.isfinite(runner.logits()).all()


def test_a_model_of_zeros_expects_every_token_equally() -> None:
    model = random_model(SHAPES[0])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert not read(runner_of(checkpoint_of(model, SHAPES[0])), [3, 1, 4]).any()


def test_the_embedded_model_answers_as_hugging_face_on_the_same_files(embedded: Pair) -> None:
    model, checkpoint = embedded
    ids = [13256, 8078, 2826, 262, 6332, 286, *ids_for(checkpoint, 144)]
    wanted, runner = ask(model, ids), runner_of(checkpoint)
    assert_near(read(runner, ids[:130]), wanted.logits[129])  # two chunks
    for position in range(130, 150):
        runner.step(ids[position], position=position)
        assert_near(runner.logits(), wanted.logits[position])
    assert int(read(runner, ids[:6]).argmax()) == 9669  # " basketball"


@pytest.mark.parametrize(("dtype", "kind"), [("bfloat16", "linear"), ("float16", "half")])
def test_sixteen_bits_move_no_distribution_far(embedded: Pair, dtype: str, kind: Kind) -> None:
    """Judged by the distribution, as 16-bit logits differ by hundredths.

    Measured on the processor: bfloat16 2e-4 nats, 1.7e-3 at worst; float16 holds these weights.
    """
    model, checkpoint = embedded
    ids = [7454, 2402, 257, 640, 11, 612, 373, 257, 1310, 2576, 3706, 20037, 13]  # Once upon a ...
    wanted = ask(model, ids).logits.astype(np.float64)
    try:
        runner = Runner(checkpoint, device="cpu", dtype=dtype, n_threads=1, kind=kind)
    except RuntimeError as error:
        pytest.skip(f"not on this machine: {error}")
    for position, id in enumerate(ids):
        runner.step(id, position=position)
        p = log_softmax(wanted[position])
        q = log_softmax(runner.logits().astype(np.float64))
        assert (np.exp(p) * (p - q)).sum() <= 5e-3


def log_softmax(z: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted: NDArray[np.float64] = z - z.max()
    return shifted - np.log(np.exp(shifted).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_the_embedded_model_answers_alike_however_it_is_packed(embedded: Pair, kind: Kind) -> None:
    model, checkpoint = embedded
    ids = ids_for(checkpoint, 20)
    wanted, runner = ask(model, ids).logits, runner_of(checkpoint, kind)
    assert_near(read(runner, ids[:19]), wanted[18])
    runner.step(ids[19], position=19)
    assert_near(runner.logits(), wanted[19])
