"""A run that was stopped ends with the same bits as one that was not."""

from pathlib import Path

import pytest
import torch
from embedded_model import checkpoint
from embedded_model.refusal import Refusal
from embedded_model.settings import Settings, settled
from embedded_model.streams import Streams
from embedded_model.training import Training


def begun(small: Settings, streams: Streams) -> Training:
    return Training(small, streams, arithmetic_name="float32", n_threads=1)


def steps(run: Training, n: int) -> Training:
    for _ in range(n):
        run.advance()
        run.measure()
    return run


@pytest.mark.parametrize("stop", [0, 1, 4, 6])
def test_stopped_and_resumed_is_the_same_as_never_stopped(
    small: Settings, streams: Streams, tmp_path: Path, stop: int
) -> None:
    """Before the first step, within a stage, at the change of stages, and after it."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    whole.mkdir()
    part.mkdir()
    checkpoint.write(steps(begun(small, streams), 8).checkpoint(), whole)
    checkpoint.write(steps(begun(small, streams), stop).checkpoint(), part)
    resumed = Training.resumed(checkpoint.read(part), streams, n_threads=1)
    assert resumed.step == stop
    checkpoint.write(steps(resumed, 8 - stop).checkpoint(), part)
    assert (part / checkpoint.NAME).read_bytes() == (whole / checkpoint.NAME).read_bytes()
    assert resumed.finished


def test_the_log_has_what_was_measured(small: Settings, streams: Streams) -> None:
    run = steps(begun(small, streams), 8)
    assert [(line["step"], line["tokens"]) for line in run.log] == [(4, 256), (8, 512)]
    for line in run.log:
        assert {"loss", "A", "stories", "copy_first", "copy_second"} <= set(line)
        assert 3 < line["A"] < 6  # ln(101) = 4.6 for a network that knows nothing


def test_training_learns_what_repeats(small: Settings, streams: Streams) -> None:
    """A text of one token in a row: its loss goes to nothing within a few dozen steps."""
    plain = small.plain()
    plain["run"] |= {"tokens": 64 * 40}
    plain["optimizer"] |= {"other_rate": 0.1}
    for stage in plain["stage"]:
        stage["shares"] = {"A": 1.0}
    streams.training["A"].rows[:] = 5
    run = begun(settled(plain, source="test"), streams)
    first = run.advance()
    for _ in range(39):
        last = run.advance()
    assert first == pytest.approx(10.82, abs=0.5)  # ln(50,257): nothing is known
    assert last < 0.1


def test_a_run_can_begin_with_the_weights_of_another(small: Settings, streams: Streams) -> None:
    other = steps(begun(small, streams), 3).checkpoint()
    run = Training.begun(small, streams, n_threads=1, origin=other)
    assert run.step == 0
    assert run.checkpoint().read_before == 3 * 64
    for name, weight in run.checkpoint().weights.items():
        assert torch.equal(weight, other.weights[name])
    momenta = run.checkpoint().optimizer
    assert not any(t.any() for name, t in momenta.items() if name.startswith("momentum."))


def test_weights_keep_their_history(small: Settings, streams: Streams) -> None:
    """How they began, and all they read, over two runs that began with another's."""
    other = steps(begun(small, streams), 3).checkpoint()
    without = small.plain()
    without["start"] |= {"look_back_heads": 0}
    second = Training.begun(settled(without, source="x"), streams, n_threads=1, origin=other)
    assert second.settings.start.look_back_heads == 1
    third = Training.begun(
        small, streams, n_threads=1, origin=steps(second, 2).checkpoint()
    ).checkpoint()
    assert third.read_before == (3 + 2) * 64


def test_other_streams_are_refused(small: Settings, streams: Streams) -> None:
    saved = steps(begun(small, streams), 1).checkpoint()
    others = Streams(streams.vocabulary + 1, streams.training, streams.held_out)
    with pytest.raises(Refusal, match="not those this run began with"):
        Training.resumed(saved, others, n_threads=1)
    with pytest.raises(Refusal, match="same token streams"):
        Training.begun(small, others, n_threads=1, origin=saved)
    fewer = Streams(streams.vocabulary[:-1], streams.training, streams.held_out)
    with pytest.raises(Refusal, match="99 rows and the settings 100"):
        begun(small, fewer)


def test_a_checkpoint_is_written_whole_or_not_at_all(
    small: Settings, streams: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = steps(begun(small, streams), 1)
    checkpoint.write(run.checkpoint(), tmp_path)
    before = (tmp_path / checkpoint.NAME).read_bytes()
    monkeypatch.setattr(checkpoint.os, "fsync", _full)
    with pytest.raises(OSError, match="no space"):
        checkpoint.write(steps(run, 1).checkpoint(), tmp_path)
    assert (tmp_path / checkpoint.NAME).read_bytes() == before
    assert checkpoint.read(tmp_path).step == 1


@pytest.mark.parametrize("damage", ["cut", "nothing", "no header", "other format"])
def test_a_damaged_checkpoint_is_refused(
    small: Settings, streams: Streams, tmp_path: Path, damage: str
) -> None:
    with pytest.raises(Refusal, match="There is no"):
        checkpoint.read(tmp_path)
    checkpoint.write(begun(small, streams).checkpoint(), tmp_path)
    path = tmp_path / checkpoint.NAME
    raw = path.read_bytes()
    path.write_bytes(
        {
            "cut": raw[:-10],
            "nothing": b"",
            "no header": raw[:8] + b"x" + raw[9:],
            "other format": raw.replace(b'\\"format\\": 1', b'\\"format\\": 9'),
        }[damage]
    )
    with pytest.raises(Refusal, match="of format 9" if damage == "other format" else "is damaged"):
        checkpoint.read(tmp_path)


def _full(_: int) -> None:
    raise OSError(28, "no space")
