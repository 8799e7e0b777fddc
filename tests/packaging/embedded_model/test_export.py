"""A run becomes a model folder that says what its network said; bad input gets one sentence."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from embedded_model import checkpoint, export, rest_rows, trained_tokens
from embedded_model import streams as streams_file
from embedded_model.network import Network, begin
from embedded_model.settings import Settings
from embedded_model.streams import Streams
from numpy.typing import NDArray
from transformers import GPT2LMHeadModel

from engine import resources, weights
from engine.runners import Runner

FILES = ["README.md", "config.json", "model.safetensors", "trained_tokens.txt"]


@pytest.fixture(autouse=True)
def _little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is 32 times 50,257 logits; how well the search goes is test_rest_rows' matter."""
    monkeypatch.setattr(rest_rows, "N_TRAINING", 1)
    monkeypatch.setattr(rest_rows, "N_HELD_OUT", 1)
    monkeypatch.setattr(rest_rows, "N_ITERATIONS", 10)
    monkeypatch.setattr(rest_rows, "N_SETTLING", 2)


@pytest.fixture
def network(small: Settings) -> Network:
    """Random weights large enough to foretell something; all states have the ones in common."""
    found = begin(small.model, small.start, seed=0)
    with torch.no_grad():
        found.wte.weight *= 10
        found.ln_f.bias += 1
    return found


@pytest.fixture
def run(tmp_path: Path, small: Settings, streams: Streams, network: Network) -> Path:
    """A folder as train.py leaves it after the last step."""
    folder = tmp_path / "run"
    folder.mkdir()
    streams_file.save(streams, folder / "streams.npz")
    write(folder, small, streams, network)
    return folder


def write(
    folder: Path, small: Settings, streams: Streams, network: Network, *, step: int = 8
) -> None:
    saved = checkpoint.Checkpoint(
        settings=small,
        step=step,
        read_before=0,
        arithmetic="float32",
        n_threads=1,
        digest=streams.digest,
        losses=(),
        log=(),
        weights=network.state_dict(),
        optimizer={},
    )
    checkpoint.write(saved, folder)


def exported(run: Path, name: str = "model") -> Path:
    out = run.parent / "new" / name
    assert export.main([str(run), "--out", str(out), "--name", "Small  one"]) == 0
    return out


def engine_logits(folder: Path, ids: list[int]) -> NDArray[np.float32]:
    runner = Runner(weights.read(folder), device="cpu", dtype="float32", n_threads=1, kind="linear")
    for _ in runner.prefill(ids, first=0):
        pass
    return runner.logits()  # (V,)


def test_the_folder_says_what_the_network_says(
    run: Path, network: Network, streams: Streams
) -> None:
    """To the engine, to transformers and, over the tokens with rows, to the network itself.

    The file holds its weights rounded to float16; the rest is the order of sums in float32.
    """
    out = exported(run)
    rows = list(range(3, 99, 4))
    ids = streams.vocabulary[rows].tolist()
    engine = engine_logits(out, ids)
    model = GPT2LMHeadModel.from_pretrained(out, dtype=torch.float32).eval()
    rounded = network.half().float()
    with torch.no_grad():
        theirs = model(torch.tensor([ids])).logits[0, -1].numpy()
        own = (rounded(torch.tensor([rows]))[0, -1] @ rounded.wte.weight[:-1].t()).numpy()
    assert own.std() > 0.5  # it says something
    np.testing.assert_allclose(engine, theirs, atol=2e-5)
    np.testing.assert_allclose(engine[streams.vocabulary], own, atol=2e-5)


def test_files_are_what_they_say_and_the_same_each_time(
    run: Path, network: Network, streams: Streams
) -> None:
    one, two = exported(run, "one"), exported(run, "two")
    assert sorted(path.name for path in one.iterdir()) == FILES
    assert sorted(path.name for path in one.parent.iterdir()) == ["one", "two"]
    for name in FILES:
        assert (one / name).read_bytes() == (two / name).read_bytes()
    found = weights.read(one)
    assert set(found.dtypes.values()) == {"F16"}
    table = found.tensors["wte.weight"][streams.vocabulary]
    assert np.array_equal(table, network.wte.weight[:-1].detach().half().numpy())
    matrix = found.tensors["h.1.mlp.c_fc.weight"]
    assert matrix.shape == (16, 64)
    named = dict(network.named_parameters())["h.1.mlp.c_fc.weight"]
    assert np.array_equal(matrix.T, named.detach().half().numpy())
    listed = trained_tokens.read(one)
    assert listed is not None
    assert listed.tolist() == list(range(200, 300))
    told = (one / "README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256((one / "model.safetensors").read_bytes()).hexdigest()
    assert told.startswith("# Small one\n")
    assert f"sha256 `{digest}`" in told
    assert "unfinished" not in told


def test_the_settings_are_those_of_the_shipped_model_but_for_its_size(small: Settings) -> None:
    shipped = json.loads(resources.path("models", "decodescope-6x8", "config.json").read_text())
    size = {"n_layer": 2, "n_head": 2, "n_embd": 16, "n_positions": 32, "n_ctx": 32}
    assert json.loads(export.config(small.model)) == shipped | size


def test_an_unfinished_run_is_exported_and_told_as_such(
    run: Path,
    small: Settings,
    streams: Streams,
    network: Network,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(run, small, streams, network, step=3)
    (run.parent / "new" / "model").mkdir(parents=True)  # an empty folder will do
    out = exported(run)
    assert "The run is unfinished, at step 3 of 8" in capsys.readouterr().err
    assert "It is unfinished" in (out / "README.md").read_text(encoding="utf-8")


def refused(run: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said when nothing is written: one line."""
    before = sorted(run.parent.rglob("*"))
    assert export.main([str(run), "--out", str(out)]) == 2
    assert sorted(run.parent.rglob("*")) == before
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_folder_in_use_and_a_file_are_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "a folder with something in it" in refused(run, run, capsys)
    assert "must name a folder" in refused(run, run / "streams.npz", capsys)


def test_a_folder_without_a_run_or_without_its_streams_is_refused(
    run: Path, streams: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run.parent / "out"
    assert "There is no checkpoint.safetensors" in refused(run.parent, out, capsys)
    streams.training["A"].rows[0] += 1
    streams_file.save(streams, run / "streams.npz")
    assert "not those of this run" in refused(run, out, capsys)
    (run / "streams.npz").unlink()
    assert "There is no streams.npz" in refused(run, out, capsys)


@pytest.mark.parametrize("number", [1e6, float("nan")])
def test_a_number_that_float16_lacks_is_refused_by_its_tensors_name(
    run: Path,
    small: Settings,
    streams: Streams,
    network: Network,
    capsys: pytest.CaptureFixture[str],
    number: float,
) -> None:
    """The largest float16 is 65,504."""
    with torch.no_grad():
        network.h[1].ln_2.bias[3] = number  # type: ignore[index, union-attr, operator]
    write(run, small, streams, network)
    said = refused(run, run.parent / "out", capsys)
    assert said.startswith("transformer.h.1.ln_2.bias has a number that is not finite")


def test_weights_of_another_size_are_refused(
    run: Path,
    small: Settings,
    streams: Streams,
    network: Network,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del network.ln_f
    write(run, small, streams, network)
    said = refused(run, run.parent / "out", capsys)
    assert "does not hold the network that its settings speak of" in said


def test_a_folder_that_cannot_be_made_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its parent is a file."""
    assert "--out cannot be made" in refused(run, run / "streams.npz" / "model", capsys)
