"""The probe: its figures by a clock made by hand, and when it measures anew."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch

from engine import meter, probe
from engine.dispatch import small_runner
from engine.errors import EngineError
from engine.events import Forward, Machine, Memory, Work
from engine.floors import Limits

LIMITS = Limits("cpu", "float32", 1, 20e9, 90e9, "onednn", 3_000.0, None)
MS = 1_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path))
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix of 1 MiB, a product of 0.5 MFLOP, and a clock on which everything takes 1 ms."""
    monkeypatch.setattr(probe, "READ", {"cpu": 2**20})
    monkeypatch.setattr(probe, "PRODUCT", {"cpu": (8, 64, 512)})
    monkeypatch.setattr(probe, "BUDGET_NS", 5 * MS)
    monkeypatch.setattr(probe, "now_ns", count(0, MS).__next__)
    monkeypatch.setattr(meter.Watch, "quiet", True)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What was asked of `measure`, which answers with LIMITS."""
    asked: list[tuple[object, ...]] = []

    def measure(device: str, dtype: str, n_threads: int, *, kind: str, **_: object) -> Limits:
        asked.append((device, dtype, n_threads, kind))
        return replace(LIMITS, n_threads=n_threads)

    monkeypatch.setattr(probe, "measure", measure)
    return asked


@pytest.mark.usefixtures("small")
def test_the_figures_are_what_was_done_over_the_time_it_took() -> None:
    found = probe.measure("cpu", "float32", 1)
    assert found.bandwidth == pytest.approx(1_048_576_000)  # 1 MiB in 1 ms
    assert found.flops == pytest.approx(524_288_000)  # 2 x 8 x 64 x 512 in 1 ms
    assert found.matrix == "linear"  # the first of those that take as long
    assert found.dispatch_ns == pytest.approx(MS / 152)  # a step of six layers: 6 x 22 + 20
    assert found.launch_ns is None
    assert found.quiet


@pytest.mark.usefixtures("small")
def test_what_was_measured_beside_other_programs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter.Watch, "quiet", False)
    assert not probe.measure("cpu", "float32", 1).quiet


@pytest.mark.usefixtures("small")
def test_what_cannot_be_measured_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "now_ns", count(0, 10**18).__next__)  # thirty years a call
    with pytest.raises(EngineError) as caught:
        probe.measure("cpu", "float32", 1)
    assert caught.value.kind == "limits"
    assert "dispatch_ns" in str(caught.value) or "bandwidth" in str(caught.value)


@pytest.mark.usefixtures("small")
def test_too_little_memory_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise RuntimeError("not enough memory\nand a long story")

    monkeypatch.setattr(probe, "_bandwidth", full)
    with pytest.raises(EngineError, match=r"\(not enough memory\)"):
        probe.measure("cpu", "float32", 1)


@pytest.mark.usefixtures("small")
def test_it_stops_before_the_next_go_when_told_to() -> None:
    answers = iter([False] * 5 + [True])
    with pytest.raises(probe.Interrupted):
        probe.measure("cpu", "float32", 1, stopped=answers.__next__)
    assert list(answers) == []  # asked six times, and never again


@pytest.mark.usefixtures("small")
def test_what_was_stopped_is_not_kept(folder: Path) -> None:
    with pytest.raises(probe.Interrupted):
        probe.renewed("cpu", "float32", 1, stopped=lambda: True)
    assert list(folder.iterdir()) == []


def test_what_is_kept_can_be_asked_for_without_measuring(
    measured: list[tuple[object, ...]],
) -> None:
    assert probe.kept("cpu", "float32", 1) is None
    assert measured == []
    probe.limits("cpu", "float32", 1)
    assert probe.kept("cpu", "float32", 1) == LIMITS
    assert len(measured) == 1


def test_it_can_be_measured_again(measured: list[tuple[object, ...]]) -> None:
    for _ in range(2):
        assert probe.renewed("cpu", "float32", 1) == LIMITS
    assert len(measured) == 2


def test_it_is_measured_once(measured: list[tuple[object, ...]]) -> None:
    first = probe.limits("cpu", "float32", 1, kind="half")
    assert probe.limits("cpu", "float32", 1, kind="half") == first == LIMITS
    assert measured == [("cpu", "float32", 1, "half")]


def test_two_ways_to_run_do_not_push_each_other_out(measured: list[tuple[object, ...]]) -> None:
    for n_threads in (1, 2, 1, 2):
        assert probe.limits("cpu", "float32", n_threads).n_threads == n_threads
    assert len(measured) == 2


def test_another_processor_is_measured_anew(
    measured: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    probe.limits("cpu", "float32", 1)
    monkeypatch.setattr(meter, "machine", lambda device, n: Machine("Tiny Processor 9000", n))
    probe.limits("cpu", "float32", 1)
    assert len(measured) == 2


def test_a_damaged_file_is_measured_anew_and_mended(
    measured: list[tuple[object, ...]], folder: Path
) -> None:
    probe.limits("cpu", "float32", 1)
    (file,) = folder.iterdir()
    file.write_text("{")
    assert probe.limits("cpu", "float32", 1) == LIMITS
    assert len(measured) == 2
    assert json.loads(file.read_text())["value"]["bandwidth"] == 20e9


def test_what_was_measured_beside_other_programs_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    busy = replace(LIMITS, quiet=False)
    monkeypatch.setattr(probe, "measure", lambda *_, **__: busy)
    assert probe.limits("cpu", "float32", 1) == busy
    assert list(folder.iterdir()) == []


def test_a_pass_is_rated_by_the_threads_that_made_it(measured: list[tuple[object, ...]]) -> None:
    runner = small_runner("cpu", "float32", 1, "linear", n_layer=2, n_positions=40)
    runner._prefill_threads = 2
    work, nothing = Work(90_000_000, 20_000_000, 0), Memory(0, 0, 0, 0, 0, 0, 0, None)
    prefill = Forward("prefill", 0, 16, 0, (0, 4 * MS), (), 0, nothing, work)
    step = Forward("decode", 16, 1, 0, (0, 2 * MS), (), 0, nothing, work)
    assert probe.rate(runner, prefill).limits.n_threads == 2
    rating = probe.rate(runner, step)
    assert [asked[2] for asked in measured] == [2, 1]
    assert rating.mbu == pytest.approx(0.5)  # 20 MB in 2 ms: 10 of 20 GB/s
    assert rating.n_operations == 2 * 22 + 20


def test_all_limits_of_a_runner_are_those_of_a_step_and_of_a_long_prefill(
    measured: list[tuple[object, ...]],
) -> None:
    runner = small_runner("cpu", "float32", 1, "linear", n_layer=1, n_positions=40)
    assert probe.all_renewed(runner) == (LIMITS,)
    runner._prefill_threads = 2
    assert probe.all_kept(runner) == ()  # those of two threads are missing
    assert probe.all_renewed(runner) == (LIMITS, replace(LIMITS, n_threads=2))
    assert probe.all_kept(runner) == (LIMITS, replace(LIMITS, n_threads=2))
    assert [asked[2] for asked in measured] == [1, 1, 2]
