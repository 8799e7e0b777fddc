"""The trace keeps every event as it came; a moment sees nothing that came later."""

from dataclasses import replace

import numpy as np
import pytest

from engine.attention import Thumbnails, head_map, rows
from engine.events import Forward, RunFinished
from engine.trace import Trace, same


def test_every_moment_shows_the_tokens_up_to_its_draw_and_none_later(recorded: Trace) -> None:
    for step in range(recorded.n_steps):
        moment = recorded.at(step)
        assert len(moment.tokens) == 6 + step + 1
        assert moment.n_read == 6 + step
        assert len(moment.timing.samples) == step + 1
        assert moment.sample_at(step + 1) is None


def test_a_token_finds_its_draw(recorded: Trace) -> None:
    moment = recorded.at(4)
    assert moment.sample_of(5) is None  # the prompt's last
    assert moment.sample_of(6) is recorded.samples[0]
    assert moment.sample_of(10) is recorded.samples[4]
    assert moment.sample_of(11) is None  # not drawn at this step


@pytest.mark.parametrize("late", [True, False])
def test_what_only_some_passes_recorded_is_kept_of_none(recorded: Trace, late: bool) -> None:
    """A branch may record other kinds than its parent: rows of some would be read as all rows."""
    bare = dict.fromkeys(("q", "k", "v", "residual", "logits"))
    trace, lacks = Trace(), range(3) if late else range(3, 14)
    for event in recorded.events:
        bared = isinstance(event, Forward) and trace.n_steps in lacks
        trace.append(replace(event, **bare) if bared else event)  # type: ignore[arg-type, type-var]
    assert [trace.has(kind) for kind in ("logits", "residual", "attention")] == [False] * 3
    assert (trace.rows("q"), trace.at(9).head_map(0, 0)) == (None, None)
    assert all(forward.logits is None for forward in trace.forwards)


def test_only_the_last_moment_knows_the_end(recorded: Trace) -> None:
    assert recorded.at(12).finished is None
    assert isinstance(recorded.at(13).finished, RunFinished)


def test_kept_rows_lie_in_one_buffer_and_cannot_be_written(recorded: Trace) -> None:
    first, last = recorded.forwards[1].k, recorded.forwards[-1].k
    assert first is not None
    assert last is not None
    assert first.base is last.base
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0, 0, 0] = 1


def test_a_cut_ends_before_the_draw_and_is_equal_up_to_there(recorded: Trace) -> None:
    cut = recorded.cut(2)
    assert (len(cut.forwards), len(cut.samples)) == (3, 2)
    assert same(cut, Trace(recorded.events[: len(cut.events)]))
    assert not same(cut, recorded)


def test_a_trace_refuses_events_out_of_order(recorded: Trace) -> None:
    trace = Trace(recorded.events[:3])
    with pytest.raises(AssertionError):
        trace.append(recorded.events[2])  # a second pass without a draw between


def test_dropping_logits_leaves_the_top_probabilities(recorded: Trace) -> None:
    trace = Trace(recorded.events)
    before = trace.nbytes
    trace.drop("logits")
    assert not trace.has("logits")
    assert trace.has("attention")
    assert before - trace.nbytes == 14 * 50257 * 4
    assert trace.samples[0].top_raw.shape == (256,)


def test_dropped_kinds_stay_dropped_for_what_comes_later(recorded: Trace) -> None:
    trace = Trace(recorded.events[:4])
    trace.drop("attention")
    trace.append(recorded.events[4])
    assert trace.forwards[1].q is None
    assert trace.at(1).head_map(0, 0) is None


def test_every_row_of_every_head_sums_to_one_and_sees_no_future(recorded: Trace) -> None:
    moment = recorded.at(13)
    for layer in range(6):
        for head in range(8):
            weights = moment.head_map(layer, head)
            assert weights is not None
            assert weights.shape == (19, 19)
            assert np.abs(weights.sum(axis=1) - 1).max() < 1e-6  # 19 roundings of 6e-8
            assert not np.triu(weights, 1).any()


def test_an_earlier_moments_map_is_the_corner_of_the_later_one(recorded: Trace) -> None:
    early, late = recorded.at(3).head_map(2, 1), recorded.at(13).head_map(2, 1)
    assert early is not None
    assert late is not None
    # the same sums over more columns: BLAS may add in another order
    np.testing.assert_allclose(early, late[:9, :9], atol=1e-6)


def test_one_row_of_all_heads_is_the_row_of_each_map(recorded: Trace) -> None:
    q, k = recorded.rows("q"), recorded.rows("k")
    assert q is not None
    assert k is not None
    last = rows(q, k, 18)
    np.testing.assert_allclose(last[3, 4, 0], head_map(q[3, 4], k[3, 4])[18], atol=1e-6)


def test_thumbnails_grown_row_by_row_equal_those_made_at_once(recorded: Trace) -> None:
    q, k = recorded.rows("q"), recorded.rows("k")
    assert q is not None
    assert k is not None
    slow, fast = Thumbnails(6, 8), Thumbnails(6, 8)
    for n in range(6, 20):
        slow.grow(q[:, :, :n], k[:, :, :n])
    fast.grow(q, k)
    difference = slow.at(19, q, k).astype(int) - fast.at(19, q, k).astype(int)
    assert np.abs(difference).max() <= 1  # one of 255 steps where a rounding falls on an edge


def test_a_thumbnail_keeps_a_single_strong_look() -> None:
    """One planted cell at (150, 3) of 200 positions is found in the bin that holds it."""
    q, k = np.zeros((1, 1, 200, 4), np.float32), np.zeros((1, 1, 200, 4), np.float32)
    q[0, 0, 150], k[0, 0, 3] = 50, 50
    small = Thumbnails(1, 1)
    small.grow(q, k)
    cells = small.at(200, q, k)[0, 0]
    assert cells.shape == (50, 50)  # bins of 4
    assert cells[150 // 4, 3 // 4] == 255


def test_an_earlier_thumbnail_has_nothing_of_later_rows() -> None:
    q, k = np.zeros((1, 1, 200, 4), np.float32), np.zeros((1, 1, 200, 4), np.float32)
    q[0, 0, 150], k[0, 0, 3] = 50, 50
    small = Thumbnails(1, 1)
    small.grow(q, k)
    then = small.at(150, q, k)[0, 0]  # row 150 is not there yet, though its bin began at 148
    assert then.shape == (38, 38)
    assert then.max() == 255  # row 0 looks at itself alone
    assert then[37, 0] < 60  # an even look over some 150 keys: sqrt(1 / 149) x 255 = 21


def test_an_early_thumbnail_is_as_fine_as_it_was_then() -> None:
    """60 positions were shown cell by cell; that 200 came later changes nothing."""
    random = np.random.default_rng(0)
    q = random.normal(size=(2, 3, 200, 4)).astype(np.float32)
    k = random.normal(size=(2, 3, 200, 4)).astype(np.float32)
    late = Thumbnails(2, 3)
    late.grow(q, k)
    for n in (1, 60, 64, 65, 100, 127, 150):
        then = Thumbnails(2, 3)
        then.grow(q[:, :, :n], k[:, :, :n])
        difference = late.at(n, q, k).astype(int) - then.at(n, q, k).astype(int)
        assert difference.shape[2] == -(-n // (1 if n <= 64 else 2 if n <= 128 else 4))
        assert np.abs(difference).max() <= 1  # a rounding on an edge
