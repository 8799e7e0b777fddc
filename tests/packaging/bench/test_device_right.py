"""Whether the check would notice a card that answers wrongly."""

import math

import numpy as np
import pytest
from bench import device_right, random_model
from bench.device_report import Row
from bench.device_setting import TINY, Setting, ids, prompt

from engine import tokenizer
from engine.runners import Runner


class Wrong(Setting):
    """A card on which one number of the position embedding is another one."""

    def runner(self, dtype: str, *, device: str | None = None) -> Runner:
        runner = super().runner(dtype, device=device)
        if device is None:
            runner.weights.positions[0, 0] += 0.5
        return runner


def setting(kind: type[Setting] = Setting) -> Setting:
    return kind("cpu", random_model.checkpoint(TINY), ("float32",), n_steps=4)


def remarks(kind: type[Setting]) -> set[str]:
    return {row.remark for row in device_right.float32(setting(kind)) if isinstance(row, Row)}


def test_answers_that_differ_break_every_bound() -> None:
    assert remarks(Setting) == {""}
    assert remarks(Wrong) == {"BROKEN"}


def test_a_run_that_differs_is_noticed() -> None:
    broken = [r.what for r in device_right.runs(setting(Wrong)) if isinstance(r, Row) and r.broken]
    assert "eager: logits against the CPU" in broken
    assert "recorded: logits against the CPU" in broken


def test_kl_is_the_mean_of_the_log_ratios() -> None:
    """Of 1/2, 1/2 from 3/4, 1/4: (ln 2/3 + ln 2) / 2 = ln(4/3) / 2."""
    exact = np.zeros((1, 2), np.float32)
    rounded = np.array([[math.log(3), 0]], np.float32)
    assert device_right._kl(exact, rounded) == pytest.approx([math.log(4 / 3) / 2])
    assert device_right._kl(exact, exact) == pytest.approx([0])


def test_what_is_no_number_is_off_by_more_than_any_bound() -> None:
    row = Row("x", device_right._off(np.array([np.nan]), np.array([1.0])), "", 1e-5, "at most")
    assert row.broken


def test_a_prompt_has_as_many_tokens_as_asked_for() -> None:
    assert [len(tokenizer.load().ids(prompt(n))) for n in (1, 6, 1000)] == [1, 6, 1000]
    assert len(set(ids(1000, 50257))) == 1000
