"""`python -m engine`: text, JSON, refusals in one sentence, and folders checked."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine import probe
from engine.__main__ import main
from engine.errors import EngineError
from engine.events import Forward, Work
from engine.floors import Limits, Rating, rate

ROOT = Path(__file__).parents[2]
FAST = ["--max-tokens", "3"]


def test_json_holds_the_table_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["Michael Jordan played the sport of", "--json", *FAST]) == 0
    said = json.loads(capfd.readouterr().out)
    assert said["prompt_ids"] == [13256, 8078, 2826, 262, 6332, 286]
    assert said["ids"] == [9669, 13, 198]
    assert said["text"] == " basketball.\n"
    assert said["stop_reason"] == "max tokens"
    assert said["kv_used_bytes"] == 12_288 * (6 + 3 - 1)  # 2 x 6 x 256 x 4 bytes a position
    assert said["decode_tok_s"] > 0
    assert set(said["itl_ms"]) == {"p50", "p95", "max"}
    assert (said["seed"], said["sampling"]["top_k"]) == (1, 40)


def test_one_token_has_no_decode_rate(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["Once", "--json", "--max-tokens", "1"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert said["decode_tok_s"] is None
    assert said["itl_ms"] == {"p50": None, "p95": None, "max": None}


def test_text_streams_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["Michael Jordan played the sport of", *FAST]) == 0
    out, err = capfd.readouterr()
    assert out == "Michael Jordan played the sport of basketball.\n\n"
    assert "TTFT" in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--temperature", "-1"], "Temperature must be a number"),
        (["--temperature", "hot"], "Temperature must be a number"),
        (["--temperature", "nan"], "Temperature must be a number"),
        (["--top-p", "1.5"], "Top-p must be a number from 0 to 1"),
        (["--top-k", "2.5"], "Top-k must be a whole number"),
        (["--max-tokens", "0"], "Max tokens must be a whole number"),
        (["--seed", "-1"], "The seed must be a whole number"),
        (["--model", "no-such-model"], "no-such-model"),
        (["--device", "abacus"], "abacus"),
        (["--dtype", "float64", "--device", "cpu"], "float64"),
    ],
)
def test_a_bad_option_gets_one_sentence_and_exit_code_2(
    options: list[str], says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["Once", *options]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert says in err
    assert len(err.splitlines()) == 1


def test_an_empty_prompt_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([""]) == 2
    assert "empty" in capfd.readouterr().err


def test_check_accepts_the_embedded_model(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "embedded", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert (said["ok"], said["model"]) == (True, "decodescope-6x8")
    assert said["sha256"].startswith("76f2f804")


def test_check_refuses_a_folder_without_weights(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", str(tmp_path), "--json"]) == 2
    said = json.loads(capfd.readouterr().out)
    assert said["ok"] is False
    assert said["kind"]
    assert said["message"]
    assert (said["model"], said["sha256"], said["notes"]) == (None, None, [])


def check_into(stdout: int) -> subprocess.CompletedProcess[str]:
    """`--check`, as it is the quickest way to print something."""
    command = [sys.executable, "-m", "engine", "--check", "embedded"]
    return subprocess.run(command, cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, text=True)


def test_a_reader_who_has_gone_gets_no_traceback() -> None:
    """As in `python -m engine ... | head -1`."""
    read, write = os.pipe()
    os.close(read)
    said = check_into(write)
    os.close(write)
    assert (said.returncode, said.stderr) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_an_answer_that_cannot_be_written_is_one_sentence() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    said = check_into(full)
    os.close(full)
    assert said.returncode == 1
    assert said.stderr.startswith("The answer could not be written to standard output (No space")
    assert len(said.stderr.splitlines()) == 1


def test_a_closed_standard_input_is_an_empty_prompt(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # what Python makes of it
    assert main(["-"]) == 2
    assert "empty" in capfd.readouterr().err


def test_bytes_that_are_no_text_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([os.fsdecode(b"a\xffb")]) == 2
    assert "lone surrogate) at position 1" in capfd.readouterr().err


def test_a_number_of_any_length_is_refused_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["x", "--max-tokens", "9" * 5_000]) == 2
    assert len(capfd.readouterr().err) < 200


def rated(_: object, forward: Forward) -> Rating:
    """A probe of a machine that reads 10 GB/s, on which each pass takes 12.5 ms for 100 MB."""
    limits = Limits("cpu", "float32", 1, 10e9, 50e9, "onednn", 2_000.0, None)
    forward = replace(forward, span=(0, 12_500_000), work=Work(100_000_000, 90_000_000, 10_000_000))
    return rate(forward, limits, n_operations=300, n_launches=200)


def test_limits_are_said_after_the_run_if_asked(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "rate", rated)
    assert main(["Michael Jordan played the sport of", "--limits", *FAST]) == 0
    out, err = capfd.readouterr()
    assert out == "Michael Jordan played the sport of basketball.\n\n"
    assert err.splitlines()[1:] == [
        "prefill, 6 tokens  ·  ● 12.5 ms"
        "  ·  ≈ 10.6 ms: memory 10.0 ms, compute 2.0 ms, dispatch 0.6 ms"
        "  ·  ƒ memory-bound, 80% of that floor, MBU 80%, MFU 16%",
        "decode, median step  ·  ● 12.5 ms"
        "  ·  ≈ 10.6 ms: memory 10.0 ms, compute 2.0 ms, dispatch 0.6 ms"
        "  ·  ƒ memory-bound, 80% of that floor, MBU 80%, MFU 16%",
        "limits, 1 thread  ·  ● 10.0 GB/s  ·  50.0 GFLOP/s (float32, onednn)"
        "  ·  2.0 µs an operation",
    ]


def test_limits_are_in_the_table_if_asked(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "rate", rated)
    assert main(["Once", "--limits", "--json", "--max-tokens", "1"]) == 0
    said = json.loads(capfd.readouterr().out)["limits"]
    assert (said["prefill"]["measured_ms"], said["prefill"]["bound"]) == (12.5, "memory")
    assert said["decode"] is None


def test_a_run_is_good_without_its_limits(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> Rating:
        raise EngineError("limits", reason="not enough memory")

    monkeypatch.setattr(probe, "rate", refuse)
    assert main(["Once", "--limits", "--json", "--max-tokens", "2"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["limits"] == {"prefill": None, "decode": None}
    assert err.startswith("The limits of this machine could not be measured (not enough memory)")
    assert len(err.splitlines()) == 1


def test_nothing_is_probed_unasked(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "rate", None)
    assert main(["Once", "--json", "--max-tokens", "1"]) == 0
    assert "limits" not in json.loads(capfd.readouterr().out)
