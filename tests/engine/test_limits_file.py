"""Limits kept on disk: the same machine gets them back, anything else is not trusted."""

import json
from pathlib import Path

import pytest

from engine import limits_file
from engine.floors import Limits
from engine.kept_file import Fingerprint

LIMITS = Limits("cpu", "float32", 2, 20e9, 90e9, "onednn", 3_000.0, None)
PRINT: Fingerprint = {
    "device": "cpu",
    "dtype": "float32",
    "n_threads": 2,
    "kind": "half",
    "machine": "Tiny Processor 9000",
    "n_cores": 2,
    "torch": "2.13.0",
    "program": "0.1.0",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path / "deep" / "er"))
    return tmp_path / "deep" / "er"


def test_what_was_kept_comes_back() -> None:
    assert limits_file.read(PRINT) is None
    limits_file.write(LIMITS, PRINT)
    assert limits_file.read(PRINT) == LIMITS


def test_nothing_is_left_beside_the_file(folder: Path) -> None:
    limits_file.write(LIMITS, PRINT)
    limits_file.write(LIMITS, PRINT)
    assert [path.name for path in folder.iterdir()] == ["limits-cpu-float32-2-half.json"]


@pytest.mark.parametrize(
    "changed",
    [
        {"machine": "Another"},
        {"n_cores": 4},
        {"torch": "2.14.0"},
        {"program": "0.2.0"},
        {"kind": "linear"},
        {"n_threads": 1},
    ],
)
def test_another_machine_or_version_is_not_answered(changed: Fingerprint) -> None:
    limits_file.write(LIMITS, PRINT)
    assert limits_file.read({**PRINT, **changed}) is None


@pytest.mark.parametrize(
    "figure",
    [
        {"bandwidth": 0},
        {"bandwidth": 1e300},
        {"bandwidth": "fast"},
        {"bandwidth": None},
        {"n_threads": 1},  # of another run than the fingerprint says
        {"device": "cuda"},
        {"extra": 1},
    ],
)
def test_a_figure_that_cannot_be_is_not_trusted(figure: dict[str, object], folder: Path) -> None:
    limits_file.write(LIMITS, PRINT)
    file = folder / "limits-cpu-float32-2-half.json"
    table = json.loads(file.read_text())
    table["value"] |= figure
    file.write_text(json.dumps(table))
    assert limits_file.read(PRINT) is None
