"""The four floors, what they predict and the verdict, by hand."""

import math
from dataclasses import replace

import pytest

from engine.events import Forward, Memory, Work
from engine.floors import Floors, Limits, floors, mbu, mfu, rate, verdict

# 10 GB/s, 50 GFLOP/s, 2 us an operation; the card launches a kernel a microsecond
CPU = Limits("cpu", "float32", 1, 10e9, 50e9, "onednn", 2_000.0, None)
CARD = replace(CPU, device="cuda", launch_ns=1_000.0)

MS = 1_000_000
WORK = Work(flops=100_000_000, weight_bytes=90_000_000, kv_bytes=10_000_000)


def test_the_floors_are_what_has_to_be_done_over_how_fast_it_can_be() -> None:
    found = floors(WORK, CARD, n_operations=300, n_launches=200)
    assert found.memory_ns == pytest.approx(10 * MS)  # 100 MB at 10 GB/s
    assert found.compute_ns == pytest.approx(2 * MS)  # 0.1 GFLOP at 50 GFLOP/s
    assert found.dispatch_ns == pytest.approx(0.6 * MS)  # 300 x 2 us
    assert found.launch_ns == pytest.approx(0.2 * MS)  # 200 x 1 us


def test_a_cpu_launches_nothing() -> None:
    assert floors(WORK, CPU, n_operations=300, n_launches=200).launch_ns == 0


def test_a_cpu_stands_still_while_python_says_what_comes_next() -> None:
    assert Floors(10.0, 2.0, 0.6, 0.0, queued=False).predicted_ns == pytest.approx(10.6)
    assert Floors(2.0, 10.0, 0.6, 0.0, queued=False).predicted_ns == pytest.approx(10.6)


def test_a_card_works_meanwhile_and_rests_between_kernels() -> None:
    assert Floors(10.0, 2.0, 0.6, 0.2, queued=True).predicted_ns == pytest.approx(10.2)
    assert Floors(1.0, 0.1, 6.0, 0.2, queued=True).predicted_ns == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("found", "bound", "floor_ns"),
    [
        (Floors(8.0, 2.0, 1.0, 0.0, queued=False), "memory", 8.0),
        (Floors(2.0, 8.0, 1.0, 0.0, queued=False), "compute", 8.0),
        (Floors(2.0, 1.0, 8.0, 0.0, queued=False), "overhead", 8.0),
        (Floors(2.0, 1.0, 3.0, 8.0, queued=True), "overhead", 8.0),  # launch is overhead too
        (Floors(8.0, 8.0, 8.0, 8.0, queued=True), "memory", 8.0),
    ],
)
def test_the_largest_floor_names_what_binds(found: Floors, bound: str, floor_ns: float) -> None:
    said = verdict(found, 10)
    assert (said.bound, said.floor_ns, said.nearness) == (bound, floor_ns, 0.8)


def test_a_floor_that_is_less_than_half_of_the_span_explains_nothing() -> None:
    found = Floors(8.0, 2.0, 1.0, 0.0, queued=False)
    assert verdict(found, 16).explains
    assert not verdict(found, 17).explains


def test_mbu_and_mfu_are_shares_of_what_the_machine_can() -> None:
    assert mbu(WORK, 20 * MS, CPU) == pytest.approx(0.5)  # 100 MB in 20 ms: 5 of 10 GB/s
    assert mfu(WORK, 20 * MS, CPU) == pytest.approx(0.1)  # 0.1 GFLOP in 20 ms: 5 of 50 GFLOP/s


def test_a_pass_is_rated_by_its_own_span_and_work() -> None:
    nothing = Memory(0, 0, 0, 0, 0, 0, 0, None)
    forward = Forward("decode", 6, 1, 0, (5 * MS, 17 * MS), (), 9 * MS, nothing, WORK)
    rating = rate(forward, CPU, n_operations=300, n_launches=200)
    assert (rating.count, rating.span_ns) == (1, 12 * MS)  # the 9 ms it waited are in no figure
    assert rating.verdict.bound == "memory"
    assert rating.verdict.nearness == rating.mbu == pytest.approx(10 / 12)
    assert rating.mfu == pytest.approx(2 / 12)
    assert (rating.n_operations, rating.n_launches) == (300, 200)


def test_a_pass_without_a_length_divides_by_a_nanosecond() -> None:
    assert mbu(WORK, 0, CPU) == pytest.approx(1e7)
    assert verdict(Floors(8.0, 0.0, 0.0, 0.0, queued=False), 0).nearness == 8.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bandwidth", math.nan),
        ("bandwidth", math.inf),
        ("bandwidth", -1.0),
        ("bandwidth", 1.0),  # a byte a second
        ("flops", 0.0),
        ("flops", 1e30),
        ("dispatch_ns", 0.0),
        ("dispatch_ns", 1e12),
        ("launch_ns", math.nan),
    ],
)
def test_what_no_machine_can_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        replace(CARD, **{name: value})
