"""How far int8 is from float32: measured against known answers, and said wherever it is used."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine import deviation, meter, models, tokenizer, weights
from engine.__main__ import main
from engine.checkpoint import Checkpoint, Config
from engine.deviation import Deviation, divergence, measure
from engine.errors import EngineError
from engine.events import Dimensions, Forward, Model, RunStarted
from engine.generate import Engine
from engine.linear import Kind
from engine.request import Request
from engine.runners import Runner
from engine.weights import Opened

TINY = Dimensions(n_layer=1, n_head=2, n_embd=32, n_positions=12, n_vocab=97)
IDS = [(7 * n * n + 3 * n) % 97 for n in range(20)]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, and no choices kept by others."""
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path))
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def embedded() -> Iterator[Opened]:
    with weights.opened(models.find("embedded")) as source:
        yield source


def tensors() -> dict[str, NDArray[np.float32]]:
    r, c = np.random.default_rng(0), TINY.n_embd
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (97, c), "wpe.weight": (12, c)}
    for name, n_in, n_out in (
        ("attn.c_attn", c, 3 * c),
        ("attn.c_proj", c, c),
        ("mlp.c_fc", c, 4 * c),
        ("mlp.c_proj", 4 * c, c),
    ):
        shapes |= {f"h.0.{name}.weight": (n_in, n_out), f"h.0.{name}.bias": (n_out,)}
    for name in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
        shapes |= {f"{name}.weight": (c,), f"{name}.bias": (c,)}
    return {name: r.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def checkpoint(arrays: Mapping[str, NDArray[np.float32]]) -> Checkpoint:
    return Checkpoint(
        model=Model("tiny", "Tiny", TINY, verified=False),
        config=Config(TINY, 1e-5),
        tensors=arrays,
        dtypes=dict.fromkeys(arrays, "F32"),
        sha256="",
        notes=(),
    )


def runner(source: Checkpoint | Opened, *, dtype: str = "int8", kind: Kind = "int8") -> Runner:
    try:
        return Runner(source, device="cpu", dtype=dtype, n_threads=1, kind=kind)
    except RuntimeError:
        pytest.skip(f"this torch has no {kind}")


def test_the_divergence_is_that_of_the_formula() -> None:
    p, q = np.log([0.5, 0.25, 0.25]), np.log([0.25, 0.25, 0.5])
    # 0.5 ln 2 + 0 - 0.25 ln 2
    assert divergence(p, q) == pytest.approx(0.25 * math.log(2), abs=1e-12)
    assert divergence(p, p + 7) == pytest.approx(0, abs=1e-12)  # logits are known but for a sum


def test_the_same_weights_do_not_deviate() -> None:
    source = checkpoint(tensors())
    found = measure(source, runner(source, dtype="float32", kind="columns"), IDS[:10])
    assert (found.n_positions, found.agreement) == (10, 1.0)
    assert found.kl == pytest.approx(0, abs=1e-12)


def test_of_a_model_that_knows_nothing_the_deviation_is_the_missing_entropy() -> None:
    """KL(p || uniform) = ln V - entropy of p, here from each step's own logits."""
    source = checkpoint(tensors())
    blank = checkpoint({**source.tensors, "lm_head.weight": np.zeros((97, 32), np.float32)})
    exact, missing, first = runner(source, dtype="float32", kind="linear"), 0.0, 0
    for position, id in enumerate(IDS[:10]):
        exact.step(id, position=position)
        logits = exact.logits().astype(np.float64)
        p = np.exp(logits) / np.exp(logits).sum()
        missing += math.log(97) + float((p * np.log(p)).sum())
        first += int(logits.argmax()) == 0  # of equal logits the first counts as the largest
    found = measure(source, runner(blank, dtype="float32", kind="linear"), IDS[:10])
    assert found.kl == pytest.approx(missing / 10, rel=1e-5)
    assert found.agreement == first / 10


def test_no_more_positions_are_read_than_the_model_has() -> None:
    source = checkpoint(tensors())
    assert measure(source, runner(source), IDS).n_positions == 12


def test_a_runner_goes_on_as_if_it_had_not_been_measured() -> None:
    source = checkpoint(tensors())
    measured, fresh = runner(source), runner(source)
    measure(source, measured, IDS[:10])
    assert measured.state.position == 0
    for one in (measured, fresh):
        assert list(one.prefill(IDS[5:9], first=0)) == [4]
    assert np.array_equal(measured.logits(), fresh.logits())


def test_the_fixed_text_is_64_tokens() -> None:
    assert len(tokenizer.load().encode(deviation.TEXT)) == 64


@pytest.mark.parametrize(("kind", "kl"), [("int8", 0.01), ("int8_rows", 0.05)])
def test_the_embedded_model_in_int8_is_near_float32(
    embedded: Opened, kind: Kind, kl: float
) -> None:
    """Measured: 0.003 nats with rounded weights, 0.02 with rounded rows too."""
    rounded = runner(embedded, kind=kind)
    found = measure(embedded, rounded, [t.id for t in tokenizer.load().encode(deviation.TEXT)])
    assert found.n_positions == 64
    assert 1e-4 < found.kl < kl
    assert 0.8 <= found.agreement < 1


@pytest.mark.parametrize(
    ("kind", "begins"),
    [("int8", "int8 weights: "), ("int8_rows", "int8 weights and activations: ")],
)
def test_the_note_says_what_was_rounded_and_what_that_does(
    embedded: Opened, kind: Kind, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deviation, "measure", lambda *_: Deviation(64, 0.01234, 0.953))
    assert deviation.note(embedded, runner(embedded, kind=kind)) == (
        f"{begins}on 64 tokens of a fixed text KL 0.012 nats from float32, the same top token at "
        "95 % of them (measured when loaded)."
    )


def test_without_room_for_float32_the_note_says_that_nothing_was_measured(
    embedded: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded = runner(embedded)
    monkeypatch.setattr(meter, "available_bytes", lambda device: 80_000_000)
    # 4 bytes for each of 17,735,936 parameters, and 512 positions of (5 L + 1) C numbers
    assert deviation.note(embedded, rounded) == (
        "int8 weights: how far they are from float32 was not measured, as there is no room for the "
        "float32 weights beside these (87,196,672 bytes needed, 80,000,000 free)."
    )


def test_a_file_that_breaks_meanwhile_is_told_as_such(
    embedded: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded = runner(embedded)

    def broken() -> None:
        raise EngineError("weights_shape")

    monkeypatch.setattr(embedded, "stream", broken)
    with pytest.raises(EngineError) as error:
        deviation.note(embedded, rounded)
    assert error.value.kind == "weights_shape"


def test_an_engine_with_int8_weights_says_so_in_notes_and_events() -> None:
    engine = Engine.load("embedded", "cpu", "int8", n_threads=1)
    assert len(engine.notes) == 1
    assert engine.notes == (engine.runner.note,)
    assert "64 tokens of a fixed text KL 0.0" in engine.notes[0]
    events = list(engine.generate(Request("Once upon a time", max_tokens=2)))
    started = next(event for event in events if isinstance(event, RunStarted))
    assert (started.dtype, started.weight_bytes) == ("int8", engine.runner.weight_bytes)
    step = [event for event in events if isinstance(event, Forward)][-1]
    # a byte for each parameter but the 512 x 256 of the positions
    assert step.work.weight_bytes == 17_735_936 - 131_072


def test_an_engine_with_exact_weights_has_nothing_to_note(engine: Engine) -> None:
    assert engine.notes == ()


def test_a_terminal_is_told_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["Once", "--dtype", "int8", "--max-tokens", "1"]) == 0
    assert "tokens of a fixed text KL 0.0" in capfd.readouterr().err.splitlines()[0]
