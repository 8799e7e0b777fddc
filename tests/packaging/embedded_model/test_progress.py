"""The lines that a training run prints."""

import pytest
from embedded_model.progress import HEADER, Progress, row


def test_figures_stand_under_their_names() -> None:
    line = {"step": 500, "tokens": 1_024_000, "loss": 5.2204, "A": 4.8989, "stories": 2.913}
    assert row(line, 5_041.4) == (
        "      500   1.02 M  5.220     4.899       -   2.913       -       -  5,041 tok/s"
    )
    assert HEADER == "     step   tokens   loss         A       B stories   first  second"


def test_a_line_says_the_rate_and_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """50 steps of 2,048 tokens, half a second each: 4,096 a second; 150 steps are 75 s."""
    now = iter([0.0, *([1.0] * 49), 61.0])
    monkeypatch.setattr("embedded_model.progress.time.monotonic", lambda: next(now))
    progress = Progress(n_steps=200, batch_tokens=2_048)
    for step in range(1, 51):
        progress.stepped(step, 3.25, 0.5, left=30.0)
    assert progress.rate == 4_096
    assert capsys.readouterr().err == (
        " 25.0% of the run   loss 3.250   4,096 tok/s   0:30 left, 1:15 for the whole run\n"
    )
