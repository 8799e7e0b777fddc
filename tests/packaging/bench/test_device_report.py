"""What becomes of a measurement: bounds, predictions, the guard, the file and the table."""

import doctest
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import device_report
from bench.device_report import Basis, Report, Row, foretold


def test_the_examples_are_right() -> None:
    assert doctest.testmod(device_report).failed == 0


@pytest.mark.parametrize(
    ("measured", "predicted", "basis", "broken"),
    [
        (1.0, 1.0, "at most", False),
        (1.1, 1.0, "at most", True),
        (0.9, 1.0, "at least", True),
        (48, 48, "exactly", False),
        (47, 48, "exactly", True),
        (0, 0, "exactly", False),
        (1, 0, "exactly", True),
        (float("nan"), 1e-5, "at most", True),
        (9.0, 1.0, "floors", False),
    ],
)
def test_a_bound_holds_or_is_broken(
    measured: float, predicted: float, basis: Basis, broken: bool
) -> None:
    assert Row("x", measured, "", predicted, basis).broken is broken


def test_theory_that_is_off_by_more_than_half_as_much_again_is_marked() -> None:
    remarks = [Row("x", us, "us", 100.0, "floors").remark for us in (60, 67, 149, 151)]
    assert remarks == ["off by more than 1.5x", "", "", "off by more than 1.5x"]


def test_what_was_not_foretold_is_no_miss() -> None:
    row = Row("x", 5.0, "us", *foretold("NVIDIA L4", "eager", None))
    assert (row.predicted, row.ratio, row.remark) == (None, None, "")


def section() -> Iterator[Row | str]:
    yield Row("first", 2.0, "us")
    yield "a word"
    raise RuntimeError("CUDA error: an illegal memory access\nand much more")


def test_a_section_that_breaks_off_keeps_what_it_found_and_the_next_goes_on(tmp_path: Path) -> None:
    report = Report({"dry_run": True})
    report.take("one", section())
    report.take("two", iter([Row("second", 1.0, "us", 1.0, "at most")]))
    assert [row.what for rows in report.rows.values() for row in rows] == ["first", "second"]
    assert report.notes == ["one: a word"]
    assert report.failed == ["one: RuntimeError: CUDA error: an illegal memory access"]
    assert not report.good
    report.write(tmp_path)
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["failed"] == report.failed
    assert [row["section"] for row in found["rows"]] == ["one", "two"]


def test_the_table_shows_measured_predicted_and_their_ratio() -> None:
    report = Report({})
    report.take("decode", iter([Row("eager", 3000.0, "us", 1000.0, "floors", of_floor=0.02)]))
    assert report.good  # a prediction that was off is to be explained, but breaks nothing
    lines = next(report.lines()).split("\n")
    assert " ".join(lines[0].split()) == (
        "section what measured predicted ratio of floor by remark"
    )
    assert " ".join(lines[1].split()) == (
        "decode eager 3,000 us 1,000 3.00 2 % floors off by more than 1.5x"
    )
