"""`python -m engine`: text, JSON, refusals in one sentence, and folders checked."""

import json
from pathlib import Path

import pytest

from engine.__main__ import main

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
        (["--dtype", "float16", "--device", "cpu"], "float16"),
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
    assert said["sha256"].startswith("777a3818")


def test_check_refuses_a_folder_without_weights(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", str(tmp_path), "--json"]) == 2
    said = json.loads(capfd.readouterr().out)
    assert said["ok"] is False
    assert said["kind"]
    assert said["message"]
    assert (said["model"], said["sha256"], said["notes"]) == (None, None, [])
