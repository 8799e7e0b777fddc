"""The command: from a folder of texts to a saved run, and on from there."""

import json
import signal
from pathlib import Path

import pytest
from embedded_model import checkpoint, streams, train
from embedded_model.settings import Settings
from embedded_model.training import Training

TEXT = "The fox ran up the hill. The hen sat on the wall and sang a song to the moon.\n\n"


@pytest.fixture
def files(small: Settings, tmp_path: Path) -> Path:
    """A corpus of 110 documents of tier A and a settings file that fits it."""
    texts = tmp_path / "texts"
    texts.mkdir()
    lines = [
        json.dumps({"src": "own", "tier": "A", "title": str(n), "text": f"{n} foxes. {TEXT * 3}"})
        for n in range(110)
    ]
    (texts / "own.jsonl").write_text("\n".join(lines))
    plain = small.plain()
    plain["model"]["n_rows"] = 400
    sections = [f"[{name}]\n{_toml(plain[name])}" for name in plain if name != "stage"]
    stages = [f"[[stage]]\n{_toml(stage)}" for stage in plain["stage"]]
    (tmp_path / "settings.toml").write_text("\n".join(sections + stages))
    return tmp_path


def _toml(values: dict[str, object]) -> str:
    return "".join(f"{name} = {_value(value)}\n" for name, value in values.items())


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {number}" for name, number in value.items()) + " }"
    return str(value)


def command(files: Path, run: str, *more: str) -> int:
    out = ["--out", str(files / run), "--threads", "1"]
    return train.main([*out, "--settings", str(files / "settings.toml"), *more])


def corpus(files: Path) -> tuple[str, str]:
    return "--corpus", str(files / "texts")


def test_ctrl_c_saves_and_a_resumed_run_ends_with_the_same_bits(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(files, "whole", *corpus(files)) == 0
    advance = Training.advance

    def interrupted(self: Training) -> float:
        if self.step == 2:
            signal.raise_signal(signal.SIGINT)
        return advance(self)

    monkeypatch.setattr(Training, "advance", interrupted)
    assert command(files, "stopped", *corpus(files)) == 130
    assert checkpoint.read(files / "stopped").step == 3, "the step it was in is kept"
    monkeypatch.setattr(Training, "advance", advance)
    assert command(files, "stopped", "--resume") == 0, "without the texts: its streams lie there"
    for name in (checkpoint.NAME, train.LOG, streams.NAME):
        whole, stopped = (files / run / name for run in ("whole", "stopped"))
        assert stopped.read_bytes() == whole.read_bytes(), name
    printed = capsys.readouterr()
    assert "Saved at step 3 of 8" in printed.err
    assert "The run is over" in printed.err
    lines = [json.loads(line) for line in (files / "whole" / train.LOG).read_text().splitlines()]
    assert [line["step"] for line in lines] == [4, 8]


def test_minutes_end_the_sitting_and_not_the_run(files: Path) -> None:
    assert command(files, "run", *corpus(files), "--minutes", "1e-9") == 0
    assert checkpoint.read(files / "run").step == 0
    assert checkpoint.read(files / "run").settings.n_steps == 8


def test_tokens_are_the_length_of_the_whole_run(files: Path) -> None:
    assert command(files, "run", *corpus(files), "--tokens", "128") == 0
    assert checkpoint.read(files / "run").settings.n_steps == 2
    assert checkpoint.read(files / "run").step == 2


def test_a_run_begins_with_another_runs_weights(files: Path) -> None:
    assert command(files, "one", *corpus(files), "--tokens", "128") == 0
    (files / "two").mkdir()
    (files / "two" / streams.NAME).write_bytes((files / "one" / streams.NAME).read_bytes())
    again = ("--from", str(files / "one"), "--minutes", "1e-9")
    assert command(files, "two", *again) == 0
    one, two = (checkpoint.read(files / name) for name in ("one", "two"))
    assert two.step == 0
    assert all((two.weights[name] == weight).all() for name, weight in one.weights.items())


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((), "name the texts with --corpus"),
        (("--resume",), "There is no checkpoint.safetensors to go on from"),
        (("--from", "nowhere"), "There is no checkpoint.safetensors"),
        (("--corpus", "nowhere"), "folder with texts was not found"),
        (("--tokens", "3"), "one step long"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    files: Path, more: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(files, "run", *more) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert len(printed.splitlines()) == 1


def test_a_run_is_not_overwritten_nor_made_another(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(files, "run", *corpus(files), "--tokens", "128") == 0
    assert command(files, "run", *corpus(files)) == 2
    assert "holds a run" in capsys.readouterr().err
    assert command(files, "run", "--resume", "--tokens", "999") == 2
    assert "keeps its length" in capsys.readouterr().err
    (files / "run" / streams.NAME).write_bytes(b"PK")
    assert command(files, "run", "--resume") == 2
    assert "streams.npz could not be read" in capsys.readouterr().err
