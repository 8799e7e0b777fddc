"""What may be asked for: every number, text and switch is checked, and refused in one sentence."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from engine.errors import EngineError
from engine.request import Capture, Pick, Request, Sampling

HUGE = 10**5_000  # no float holds it, and Python writes no more than 4,300 digits
NO_NUMBERS = [True, None, "1", b"1", 1j, [1], np.True_, np.array([1.0])]
NO_FLOATS = [*NO_NUMBERS, math.nan, math.inf, -math.inf, -1, HUGE, -HUGE, 10**400]
NO_COUNTS = [*NO_NUMBERS, -1, 2.5, 1.0, math.nan, np.float32(2), -HUGE]


def refused(make: Callable[[], object], kind: str) -> None:
    with pytest.raises(EngineError) as error:
        make()
    assert error.value.kind == kind
    sentence = str(error.value)
    assert len(sentence) < 300  # a line, whatever was given
    assert sentence.isprintable()


@pytest.mark.parametrize("value", NO_FLOATS, ids=lambda value: type(value).__name__)
def test_temperature_is_a_number_from_0(value: object) -> None:
    refused(lambda: Sampling(temperature=value), "temperature")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [*NO_FLOATS, 1.5, 3], ids=lambda value: type(value).__name__)
def test_top_p_is_a_number_from_0_to_1(value: object) -> None:
    refused(lambda: Sampling(top_p=value), "top_p")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NO_COUNTS, ids=lambda value: type(value).__name__)
def test_top_k_is_a_whole_number_from_0(value: object) -> None:
    refused(lambda: Sampling(top_k=value), "top_k")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [*NO_COUNTS, 0], ids=lambda value: type(value).__name__)
def test_max_tokens_is_a_whole_number_from_1(value: object) -> None:
    refused(lambda: Request("x", max_tokens=value), "max_tokens")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [*NO_COUNTS, 2**64, HUGE], ids=lambda v: type(v).__name__)
def test_a_seed_is_a_whole_number_of_64_bits(value: object) -> None:
    refused(lambda: Request("x", seed=value), "seed")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NO_COUNTS, ids=lambda value: type(value).__name__)
def test_a_pick_is_a_whole_number_from_0(value: object) -> None:
    refused(lambda: Pick(value), "token")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        (b"x", "wrong_type"),
        (None, "wrong_type"),
        (5, "wrong_type"),
        ("", "prompt_empty"),
        ("a\ud800", "prompt_not_text"),
        ("a" * 100_001, "prompt_too_long"),
    ],
)
def test_a_prompt_is_text_that_a_model_can_read(prompt: object, kind: str) -> None:
    refused(lambda: Request(prompt), kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sampling", "capture", "special", "reuse"])
def test_a_field_of_a_wrong_type_is_refused_by_name(name: str) -> None:
    with pytest.raises(EngineError, match=f"{name} has the wrong type: NoneType") as error:
        Request("x", **{name: None})  # type: ignore[arg-type]
    assert error.value.kind == "wrong_type"


def test_capture_takes_true_and_false_alone() -> None:
    refused(lambda: Capture(logits=1), "capture")  # type: ignore[arg-type]


def test_numbers_of_any_library_come_in_as_pythons_own() -> None:
    sampling = Sampling(np.float32(0.5), np.int64(7), Fraction(1, 2))  # type: ignore[arg-type]
    request = Request("x", max_tokens=np.int16(3), seed=2**64 - 1)  # type: ignore[arg-type]
    found = (sampling.temperature, sampling.top_k, sampling.top_p, request.max_tokens)
    assert found == (0.5, 7, 0.5, 3)
    assert [type(number) for number in found] == [float, int, float, int]
