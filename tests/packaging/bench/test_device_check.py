"""The check of a card, without one: its dry run, its guard, and what it says where no card is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "packaging" / "bench" / "device_check.py"


def check(*options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_a_dry_run_goes_through_every_section_and_says_what_it_is(tmp_path: Path) -> None:
    done = check("--device", "cpu", "--out", str(tmp_path / "new"))
    found = json.loads((tmp_path / "new" / "result.json").read_text())
    assert found["failed"] == []
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("says nothing about any card")
    assert found["about"]["dry_run"] is True
    # Every section ran; only our kernels find nothing to measure, and say so.
    assert len(found["seconds"]) == 17
    silent = set(found["seconds"]) - {row["section"] for row in found["rows"]}
    assert silent == {"our kernels"}
    assert any(note.startswith("our kernels: left out in float32") for note in found["notes"])
    by_name = {row["what"]: row for row in found["rows"]}
    assert by_name["recorded: tokens as the CPU's"]["measured"] == 48  # 24, and 6 + 18 of a branch
    assert by_name["KV cache reserved"]["measured"] == 2 * 4 * 2 * 32 * 192


def test_what_no_time_is_left_for_is_left_out_with_a_word() -> None:
    done = check("--device", "cpu", "--budget", "0.001")
    assert done.returncode == 0, done.stderr
    assert "float32 left out: " in done.stdout
    assert "compiled left out: " in done.stdout


def test_without_a_card_it_says_so_in_one_sentence() -> None:
    done = check()
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("There is no CUDA card that torch ")
    assert done.stderr.count("\n") == 1
