"""The table and the lines of a run held against its machine, on a clock made by hand."""

import json
from dataclasses import replace

import pytest

from engine.events import Forward, Memory, Work
from engine.floors import Limits, Rating, rate
from engine.report import limits_lines, ratings, report
from engine.trace import Trace

MS = 1_000_000
NOTHING = Memory(0, 0, 0, 0, 0, 0, 0, None)
CPU = Limits("cpu", "float32", 1, 10e9, 50e9, "onednn", 2_000.0, None)
WORK = Work(flops=100_000_000, weight_bytes=90_000_000, kv_bytes=10_000_000)


def rated(forward: Forward) -> Rating:
    return rate(forward, CPU, n_operations=300, n_launches=200)


def timed(trace: Trace, *spans_ms: float) -> Trace:
    """A run with these passes, all of which had to do WORK."""
    events = []
    lengths = iter(spans_ms)
    for event in trace.events:
        if isinstance(event, Forward):
            if (ms := next(lengths, None)) is None:
                break
            event = replace(event, span=(0, int(ms * MS)), work=WORK)
        events.append(event)
    return Trace(events)


def test_the_median_step_stands_for_all(recorded: Trace) -> None:
    found = ratings(timed(recorded, 40, 13, 12, 30, 11), rated)
    prefill, decode = found["prefill"], found["decode"]
    assert prefill is not None
    assert decode is not None
    assert prefill.span_ns == 40 * MS
    assert decode.span_ns == 12 * MS  # of 11, 12, 13 and 30 the lower of the two in the middle


def test_a_pass_that_was_not_reached_is_not_rated(recorded: Trace) -> None:
    only = ratings(timed(recorded, 40), rated)
    assert only["prefill"] is not None
    assert only["decode"] is None
    assert ratings(Trace(), rated) == {"prefill": None, "decode": None}
    assert limits_lines({"prefill": None, "decode": None}) == []


def test_the_lines_say_measured_theory_and_derived(recorded: Trace) -> None:
    assert limits_lines(ratings(timed(recorded, 40, 12.5), rated)) == [
        "prefill, 6 tokens  ·  ● 40.0 ms"
        "  ·  ≈ 10.6 ms: memory 10.0 ms, compute 2.0 ms, dispatch 0.6 ms"
        "  ·  ƒ held by no floor (memory is 25%), MBU 25%, MFU 5%",
        "decode, median step  ·  ● 12.5 ms"
        "  ·  ≈ 10.6 ms: memory 10.0 ms, compute 2.0 ms, dispatch 0.6 ms"
        "  ·  ƒ memory-bound, 80% of that floor, MBU 80%, MFU 16%",
        "limits, 1 thread  ·  ● 10.0 GB/s  ·  50.0 GFLOP/s (float32, onednn)"
        "  ·  2.0 µs an operation",
    ]


def test_a_card_has_launches_and_a_busy_machine_is_said(recorded: Trace) -> None:
    card = replace(CPU, device="cuda", n_threads=2, launch_ns=1_000.0, quiet=False)
    found = ratings(timed(recorded, 20), lambda f: rate(f, card, n_operations=300, n_launches=200))
    line, machine = limits_lines(found)
    assert "dispatch 0.6 ms, launch 0.2 ms" in line
    assert machine.startswith("limits, 2 threads")
    assert machine.endswith("1.0 µs a launch  ·  too low: other programs were working")


def test_the_table_has_limits_only_if_asked(recorded: Trace) -> None:
    assert "limits" not in report(recorded)
    table = report(recorded, ratings(timed(recorded, 40, 12.5), rated))["limits"]
    assert json.loads(json.dumps(table)) == table
    assert table["prefill"]["n_tokens"] == 6
    assert table["decode"] == {
        "n_tokens": 1,
        "measured_ms": 12.5,
        "floors_ms": {
            "memory": pytest.approx(10.0),
            "compute": pytest.approx(2.0),
            "dispatch": pytest.approx(0.6),
            "launch": 0.0,
        },
        "predicted_ms": pytest.approx(10.6),
        "bound": "memory",
        "nearness": pytest.approx(0.8),
        "explains": True,
        "mbu": pytest.approx(0.8),
        "mfu": pytest.approx(0.16),
        "n_operations": 300,
        "n_launches": 200,
        "machine": {
            "device": "cpu",
            "dtype": "float32",
            "n_threads": 1,
            "bandwidth": 10e9,
            "flops": 50e9,
            "matrix": "onednn",
            "dispatch_ns": 2_000.0,
            "launch_ns": None,
            "quiet": True,
        },
    }


def test_a_run_that_reached_nothing_has_empty_limits(recorded: Trace) -> None:
    table = report(recorded, {"prefill": None, "decode": None})["limits"]
    assert table == {"prefill": None, "decode": None}
