"""Work by formula, memory and machine by asking the system."""

import os
from pathlib import Path

import numpy as np
import pytest

from engine import meter
from engine.events import Dimensions

SMALL = Dimensions(n_layer=12, n_head=12, n_embd=768, n_positions=1024, n_vocab=50_257)


@pytest.mark.parametrize(
    ("count", "gflop"), [(6, 1.1), (64, 11.0), (256, 44.8), (512, 91.9), (1024, 193.4)]
)
def test_a_prefill_of_gpt2_small_takes_the_known_gflops(count: int, gflop: float) -> None:
    flops = meter.work(SMALL, 0, count, item_weight=4, item_kv=4).flops
    assert round(flops / 1e9, 1) == gflop


def test_a_decode_step_of_gpt2_small_reads_and_computes_what_is_known() -> None:
    step = meter.work(SMALL, 0, 1, item_weight=2, item_kv=2)
    assert step.flops == 247_064_064 + 36_864  # 2 x (84,934,656 + 38,597,376) + 4 x 12 x 768
    assert step.weight_bytes == 247_306_752  # 123,653,376 parameters, wpe left out
    assert step.kv_bytes == 2 * 36_864  # one position, written and read


def test_a_full_context_reads_every_position_and_writes_one() -> None:
    step = meter.work(SMALL, 1023, 1, item_weight=4, item_kv=4)
    assert step.kv_bytes == (1024 + 1) * 73_728


def test_reading_in_two_passes_costs_one_more_head() -> None:
    whole = meter.work(SMALL, 0, 100, item_weight=4, item_kv=4).flops
    halves = [meter.work(SMALL, first, 50, item_weight=4, item_kv=4).flops for first in (0, 50)]
    assert sum(halves) - whole == 2 * 50_257 * 768


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say")
def test_process_bytes_grow_with_what_is_touched() -> None:
    before = meter.process_bytes()
    touched = np.ones(2**23)  # 64 MiB
    after = meter.process_bytes()
    assert before is not None
    assert after is not None
    assert after - before >= touched.nbytes * 0.9  # the allocator may reuse a few free pages


@pytest.mark.skipif(os.name != "posix", reason="the system does not say")
def test_the_peak_is_never_below_what_is_resident() -> None:
    resident, peak = meter.process_bytes() or 0, meter.peak_rss_bytes()
    assert peak is not None
    assert peak >= resident * 0.99  # the kernel counts pages of threads in batches


def test_what_the_system_does_not_say_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "_read", lambda path: "")
    assert meter.available_bytes("cpu") is None
    assert meter.device_bytes("cpu") is None


def test_available_memory_is_what_linux_calls_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "MemTotal:       16000000 kB\nMemFree:  1000 kB\nMemAvailable:    8000000 kB\n"
    monkeypatch.setattr(meter, "_read", lambda path: text)
    assert meter.available_bytes("cpu") == 8_192_000_000


def test_two_threads_of_one_core_are_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = "processor : {}\nphysical id\t: 0\nsiblings : 4\ncore id\t\t: {}\n\n"
    text = "".join(processor.format(n, n // 2) for n in range(4))
    monkeypatch.setattr(meter, "_read", lambda path: text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    assert meter.n_cores() == 2


def test_a_process_bound_to_one_processor_has_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3}, raising=False)
    assert meter.n_cores() == 1


def test_the_machine_has_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "processor\t: 0\nmodel name\t: Tiny Processor 9000 \nprocessor\t: 1\n"
    monkeypatch.setattr(meter, "_read", lambda path: text)
    machine = meter.machine("cpu", 3)
    assert (machine.name, machine.n_threads) == ("Tiny Processor 9000", 3)
    assert (machine.flops, machine.bandwidth) == (None, None)  # not measured, so not said


def test_the_clock_never_goes_back() -> None:
    times = [meter.now_ns() for _ in range(100)]
    assert times == sorted(times)


@pytest.mark.parametrize(("used", "quiet"), [(1_000, True), (900, True), (899, False)])
def test_who_has_nine_tenths_of_the_processor_has_it_to_itself(
    used: int, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "now_ns", iter((0, 1_000)).__next__)
    monkeypatch.setattr(meter.time, "thread_time_ns", iter((0, used)).__next__)
    assert meter.Watch().quiet is quiet
