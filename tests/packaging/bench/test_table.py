"""From runs to rows and ratios: every number by hand."""

from dataclasses import asdict, replace

import pytest
from bench import table
from bench.table import BARE, OURS, Loaded, Roofs, Run

from engine.events import Dimensions
from engine.floors import Limits

# One layer, one head, C = 2, four ids: W = 48 weights in the matrices.
SIZE = Dimensions(n_layer=1, n_head=1, n_embd=2, n_positions=8, n_vocab=4)


def run(engine: str, round_: int, first_s: float, rest_s: float, foreign: float | None = 0) -> Run:
    """Five tokens: four of them after the first."""
    return Run(engine, "float32", 16, round_, (1, 2, 3, 4, 5), first_s, rest_s, foreign)


def roofs(bandwidth: float, *, dtype: str = "float32", flops: float = 1e18) -> Roofs:
    """Of a machine with so many bytes and FLOP a second."""
    return Roofs(SIZE, {dtype: Limits("cpu", dtype, 1, bandwidth, flops, "linear", 1.0, None)})


def loaded(*engines: str) -> dict[tuple[str, str], Loaded]:
    return {(engine, "float32"): Loaded(0.25, 4, 1000) for engine in engines}


def test_a_rate_counts_the_tokens_after_the_first() -> None:
    assert run(OURS, 0, 1, 0.5).tok_s == 8.0
    assert replace(run(OURS, 0, 1, 0.5), ids=(1,)).tok_s is None


def test_a_row_has_the_medians_and_no_other_keys() -> None:
    runs = [run(OURS, 0, 0.010, 0.5), run(OURS, 1, 0.030, 0.4), run(OURS, 2, 0.020, 0.25)]
    (row,) = table.rows(runs, loaded(OURS), roofs(1e9), threads=2)
    assert asdict(replace(row, floor_fraction=None)) == {
        "engine": "ours",
        "dtype": "float32",
        "threads": 2,
        "prompt": 16,
        "ttft_ms": 20.0,
        "decode_tok_s": 10.0,
        "load_s": 0.25,
        "peak_rss_bytes": 1000,
        "floor_fraction": None,
    }


def test_disturbed_runs_count_only_where_no_other_is_left() -> None:
    runs = [run(OURS, 0, 0.010, 0.5), run(OURS, 1, 9, 9, foreign=0.4)]
    assert table.rows(runs, loaded(OURS), roofs(1e9), threads=1)[0].ttft_ms == 10.0
    assert table.rows(runs[1:], loaded(OURS), roofs(1e9), threads=1)[0].ttft_ms == 9000.0


def test_the_floors_are_bytes_and_flops_over_the_best_rates() -> None:
    """A step at position 1 reads 392 bytes and does 128 flops, by the formulas of `meter.work`.

    weight_bytes = 4 (12 4 + 13 2 + 2 2 + 4 2) = 344; kv_bytes = 4 2 2 (2 + 1) = 48;
    flops = 2 48 + 2 2 4 + 4 2 2 = 128: two pairs.
    """
    memory = roofs(392e6)
    assert memory.decode_s(1, 1, "float32", 4) == pytest.approx(1e-6)
    compute = roofs(392e6, flops=32e6)
    assert compute.decode_s(1, 1, "float32", 4) == pytest.approx(4e-6)
    # A prompt of one token: 2 48 + 16 + 8 = 120 flops.
    assert compute.prefill_s(1, "float32", 4) == pytest.approx(3.75e-6)


def test_a_dtype_that_was_not_measured_is_held_to_the_memory_alone() -> None:
    """Its 392 bytes are read in 1 us; 32 million FLOP a second, of another dtype, would take 4."""
    other = roofs(392e6, flops=32e6)
    assert other.decode_s(1, 1, "int8", 4) == pytest.approx(1e-6)
    assert other.prefill_s(1, "int8", 4) is None


def test_what_one_dtype_read_with_holds_for_all() -> None:
    slow = roofs(392e6).limits["float32"]
    fast = replace(slow, dtype="bfloat16", bandwidth=784e6)
    both = Roofs(SIZE, {"float32": slow, "bfloat16": fast})
    assert both.decode_s(1, 1, "float32", 4) == pytest.approx(0.5e-6)


def test_the_best_of_several_measurements_takes_the_best_of_each_rate() -> None:
    slow = roofs(2e9, flops=1e9).limits["float32"]
    found = table.best([slow, replace(slow, bandwidth=1e9, flops=3e9)])
    assert (found.bandwidth, found.flops) == (2e9, 3e9)


def test_a_fraction_is_the_floor_over_the_time_it_took() -> None:
    """Steps at 16 to 19 read 344 bytes of weights and 16 (17 + 1), ... (20 + 1) of K and V."""
    least = roofs(1e6 * (4 * 344 + 16 * (18 + 19 + 20 + 21)))
    (row,) = table.rows([run(OURS, 0, 1, 4e-6)], loaded(OURS), least, threads=1)
    assert row.floor_fraction == 0.25
    fractions = table.prefill_fractions(
        [replace(run(OURS, 0, 1, 4), dtype="int8")], {(OURS, "int8"): Loaded(0.25, 1, 1000)}, least
    )
    assert fractions == {(OURS, "int8", 16): None}


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    """The rounds give 2, 4 and 3 in decode: medians of each side would give 2.5."""
    runs = [
        *(run(OURS, 0, 0.1, 1.0), run("peer", 0, 0.2, 2.0)),
        *(run(OURS, 1, 0.1, 1.0), run("peer", 1, 0.4, 4.0)),
        *(run(OURS, 2, 0.2, 0.8), run("peer", 2, 0.6, 2.4)),
    ]
    (ratio,) = table.ratios(runs)
    assert (ratio.against, ratio.decode, ratio.busy) == ("peer", pytest.approx(3.0), False)
    assert ratio.first == pytest.approx(3.0)


def test_a_ratio_says_when_no_round_was_undisturbed() -> None:
    quiet = [run(OURS, 0, 0.1, 1.0), run("peer", 0, 0.2, 2.0)]
    busy = [run(OURS, 1, 0.1, 1.0), run("peer", 1, 0.9, 9.0, foreign=0.3)]
    (ratio,) = table.ratios(quiet + busy)
    assert (ratio.decode, ratio.busy) == (2.0, False)
    (ratio,) = table.ratios(busy)
    assert (ratio.decode, ratio.busy) == (9.0, True)
    (ratio,) = table.ratios([replace(r, foreign=None) for r in busy])  # nobody can tell
    assert not ratio.busy


def test_recording_on_is_compared_with_off() -> None:
    (ratio,) = table.ratios([run(OURS, 0, 0.11, 1.0), run(BARE, 0, 0.10, 0.9)])
    assert (ratio.against, ratio.decode) == (BARE, pytest.approx(0.9))
    assert ratio.first == pytest.approx(0.1 / 0.11)


def test_dtypes_are_not_mixed() -> None:
    other = replace(run("peer", 0, 1, 1), dtype="int8")
    assert table.ratios([run(OURS, 0, 1, 1), other]) == []


def test_ids_are_compared_up_to_the_first_that_differs() -> None:
    peer = replace(run("peer", 0, 1, 1), ids=(1, 2, 9, 4))
    assert table.n_alike([run(OURS, 0, 1, 1), peer]) == {("peer", "float32", 16): (2, 4)}


def test_a_table_is_as_wide_as_it_must_be() -> None:
    text = table.text_table(("engine", "dtype", "tok/s"), [("ours", "float32", "101.5")])
    assert text.split("\n") == ["engine  dtype    tok/s", "ours    float32  101.5"]
