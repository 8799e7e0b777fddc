"""Latencies and rates, against a clock that was made by hand."""

import numpy as np
import pytest

from engine.events import Forward, Memory, Sampled, Token, Tokenized, Work
from engine.request import Sampling
from engine.timing import Timing

MS = 1_000_000
NOTHING = Memory(0, 0, 0, 0, 0, 0, 0, None)


def _forward(start: int, end: int, count: int, waited: int = 0) -> Forward:
    phase = "prefill" if count > 1 else "decode"
    span = (start * MS, end * MS)
    return Forward(phase, 0, count, 0, span, (), waited * MS, NOTHING, Work(0, 0, 0))


def _sampled(start: int, end: int) -> Sampled:
    none = np.empty(0)
    span, token = (start * MS, end * MS), Token(0, b"")
    return Sampled(
        1, token, 0.5, Sampling(), 1, 1, 1, 0, 0, span, none.astype(np.int32), none, none
    )


def test_a_prefill_of_500_ms_and_steps_of_20_ms() -> None:
    """Ten tokens follow the first, 20 ms each, with 30 ms of waiting between them."""
    forwards, samples = [_forward(2, 502, 100)], [_sampled(502, 504)]
    for i in range(10):
        at = 540 + i * 50
        forwards.append(_forward(at, at + 18, 1, waited=30))
        samples.append(_sampled(at + 18, at + 20))
    timing = Timing(Tokenized((), (0, 2 * MS)), forwards, samples)
    assert timing.ttft_ns == 504 * MS
    assert timing.prefill_tok_s == 200
    assert set(timing.itl_ns) == {20 * MS}
    assert timing.decode_tok_s == pytest.approx(50)
    assert timing.itl_percentile(95) == 20 * MS


def test_what_did_not_happen_has_no_figure() -> None:
    timing = Timing(Tokenized((), (0, MS)), [], [])
    figures = (timing.ttft_ns, timing.prefill_ns, timing.prefill_tok_s, timing.decode_tok_s)
    assert figures == (None, None, None, None)
    assert timing.itl_percentile(50) is None


def test_one_token_has_a_first_but_no_rate() -> None:
    timing = Timing(Tokenized((), (0, MS)), [_forward(1, 11, 6)], [_sampled(11, 12)])
    assert timing.ttft_ns == 12 * MS
    assert timing.decode_tok_s is None


def test_a_percentile_lies_between_its_neighbours_as_numpy_has_it() -> None:
    forwards, samples = [_forward(0, 1, 6)], [_sampled(1, 1)]
    for i, ms in enumerate((3, 9, 4, 30)):
        forwards.append(_forward(10 * i + 10, 10 * i + 10 + ms, 1))
        samples.append(_sampled(10 * i + 10 + ms, 10 * i + 10 + ms))
    timing = Timing(Tokenized((), (0, MS)), forwards, samples)
    for percent in (0, 50, 95, 100):
        expected = float(np.percentile([3 * MS, 9 * MS, 4 * MS, 30 * MS], percent))
        assert timing.itl_percentile(percent) == pytest.approx(expected)
