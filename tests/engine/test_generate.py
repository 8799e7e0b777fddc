"""A run: its events in order, its ends, its coins, and what a branch shares with a fresh run."""

import re
from collections.abc import Iterable

import numpy as np
import pytest

from engine import sampling
from engine.errors import EngineError
from engine.events import Event, Forward, RunFailed, RunFinished, Sampled
from engine.generate import Engine
from engine.request import Capture, Pick, Request, Sampling
from engine.trace import Trace

JORDAN = "Michael Jordan played the sport of"
GREEDY = Sampling(temperature=0)


def order(events: Iterable[Event]) -> str:
    letters = {"RunStarted": "R", "Tokenized": "T", "Forward": "F", "Sampled": "S"}
    return "".join(letters.get(type(event).__name__, "E") for event in events)


def ids(trace: Trace) -> list[int]:
    return [sampled.token.id for sampled in trace.samples]


def test_events_keep_their_order_and_end_once(recorded: Trace) -> None:
    assert re.fullmatch("RT(FS)*E", order(recorded.events))
    assert order(recorded.events).count("FS") == 14


def test_the_prompt_is_read_as_the_known_tokens(recorded: Trace) -> None:
    assert [t.id for t in recorded.tokens[:6]] == [13256, 8078, 2826, 262, 6332, 286]


def test_the_embedded_model_knows_the_sport(recorded: Trace) -> None:
    assert recorded.samples[0].token.piece == b" basketball"


def test_a_coin_belongs_to_a_seed_and_a_position(recorded: Trace) -> None:
    assert recorded.samples[0].coin == 0.055322533114339434  # (1, 6)
    assert recorded.samples[1].coin == 0.3458819940993094  # (1, 7)


def test_the_same_request_writes_the_same_tokens(engine: Engine, recorded: Trace) -> None:
    assert ids(Trace(engine.generate(Request(JORDAN, max_tokens=24)))) == ids(recorded)


def test_every_draw_follows_from_its_logits_and_coin(recorded: Trace) -> None:
    for forward, sampled in zip(recorded.forwards, recorded.samples, strict=True):
        assert forward.logits is not None
        assert sampled.coin is not None
        d = sampling.distribution(forward.logits, sampled.sampling)
        assert d.choose(sampled.coin) == sampled.token.id
        assert sampled.final_prob == d.probs[sampled.token.id] > 0


def test_kv_holds_all_but_the_last_token(recorded: Trace) -> None:
    memory = recorded.forwards[-1].memory
    assert memory.kv_used == 2 * 6 * 256 * 4 * (6 + 14 - 1)
    assert memory.kv_reserved == 2 * 6 * 256 * 4 * 512


def test_the_prefill_holds_the_prompts_rows_and_a_decode_one(recorded: Trace) -> None:
    prefill, decode = recorded.forwards[0], recorded.forwards[1]
    assert (prefill.phase, prefill.first, prefill.count) == ("prefill", 0, 6)
    assert (decode.phase, decode.first, decode.count) == ("decode", 6, 1)
    assert prefill.q is not None
    assert decode.q is not None
    assert prefill.residual is not None
    assert (prefill.q.shape, decode.q.shape) == ((6, 8, 6, 32), (6, 8, 1, 32))
    assert prefill.residual.shape == (13, 6, 256)


def test_a_run_ends_at_max_tokens(engine: Engine) -> None:
    trace = Trace(engine.generate(Request(JORDAN, max_tokens=5)))
    assert len(trace.samples) == 5
    assert isinstance(trace.ended, RunFinished)
    assert trace.ended.reason == "max tokens"


def test_the_default_run_ends_with_the_end_of_text(recorded: Trace) -> None:
    assert (len(recorded.samples), recorded.samples[-1].token.id) == (14, 50256)
    assert isinstance(recorded.ended, RunFinished)
    assert recorded.ended.reason == "end of text"


def test_a_full_context_yields_one_token(engine: Engine) -> None:
    prompt = "the" + " the" * 511  # 512 tokens: as many as the model has positions
    trace = Trace(engine.generate(Request(prompt, sampling=GREEDY)))
    assert (trace.n_prompt, len(trace.samples)) == (512, 1)
    assert isinstance(trace.ended, RunFinished)
    assert trace.ended.reason == "context full"


def test_a_longer_prompt_is_refused_before_the_first_event(engine: Engine) -> None:
    with pytest.raises(EngineError, match="513 tokens") as error:
        engine.generate(Request("the" + " the" * 512))
    assert error.value.kind == "context_too_long"


def test_end_of_text_is_drawn_recorded_and_ends_the_run(engine: Engine) -> None:
    job, trace = engine.generate(Request(JORDAN)), Trace()
    trace.append(next(job))
    trace.append(job.send(Pick(50256)))
    for event in job:
        trace.append(event)
    assert ids(trace) == [50256]
    assert trace.samples[0].coin is None  # picked by hand
    assert isinstance(trace.ended, RunFinished)
    assert trace.ended.reason == "end of text"


def test_a_sampling_sent_in_holds_from_the_next_draw_on(engine: Engine) -> None:
    job, trace = engine.generate(Request("Once upon a time", max_tokens=4)), Trace()
    order_in = None
    while True:
        try:
            event = job.send(order_in)
        except StopIteration:
            break
        trace.append(event)
        order_in = GREEDY if isinstance(event, Sampled) else None
    assert [s.sampling.temperature for s in trace.samples] == [0.8, 0, 0, 0]


def test_stop_is_heard_before_the_next_step(engine: Engine) -> None:
    trace = Trace()
    for event in engine.generate(Request(JORDAN), lambda: len(trace.samples) >= 3):
        trace.append(event)
    assert len(trace.samples) == 3
    assert isinstance(trace.ended, RunFinished)
    assert trace.ended.reason == "stopped"


def test_stop_is_heard_between_the_chunks_of_a_prefill(engine: Engine) -> None:
    answers = iter([False, True])  # before the first chunk, before the second
    trace = Trace(engine.generate(Request("the" + " the" * 300), lambda: next(answers)))
    assert order(trace.events) == "RTE"
    assert engine.position == 128  # one chunk


def test_a_run_that_is_stopped_at_once_reads_nothing(engine: Engine) -> None:
    trace = Trace(engine.generate(Request(JORDAN), lambda: True))
    assert order(trace.events) == "RTE"
    assert isinstance(trace.ended, RunFinished)
    assert (trace.ended.reason, engine.position) == ("stopped", 0)


def test_a_run_whose_end_was_told_keeps_nobody_waiting(engine: Engine) -> None:
    """Who leaves the loop at the last event still holds the generator."""
    job = engine.generate(Request(JORDAN, max_tokens=1))
    assert order(next(job) for _ in range(5)) == "RTFSE"
    assert len(Trace(engine.generate(Request(JORDAN, max_tokens=1))).samples) == 1


def test_a_second_run_is_refused_while_one_is_live(engine: Engine) -> None:
    job = engine.generate(Request(JORDAN, max_tokens=2))
    next(job)
    with pytest.raises(EngineError) as error:
        engine.generate(Request(JORDAN))
    assert error.value.kind == "busy"
    job.close()
    assert len(Trace(engine.generate(Request(JORDAN, max_tokens=1))).samples) == 1


def test_a_branch_with_the_same_token_tells_the_same_story(engine: Engine, recorded: Trace) -> None:
    list(engine.generate(Request(JORDAN, max_tokens=24)))
    branch = recorded.cut(3)
    pick = recorded.samples[3].token.id
    for event in engine.branch(recorded, 3, pick, Request(JORDAN, max_tokens=24)):
        branch.append(event)
    assert ids(branch) == ids(recorded)
    assert branch.samples[3].coin is None
    assert branch.forwards[4].reused == 9  # 6 of the prompt and 3 written before the pick


def test_a_branch_equals_a_fresh_run_of_its_tokens(engine: Engine, recorded: Trace) -> None:
    branch = recorded.cut(0)
    for event in engine.branch(recorded, 0, 9283, Request(JORDAN, max_tokens=6, sampling=GREEDY)):
        branch.append(event)
    text = JORDAN + " baseball"  # ' baseball' is 9283
    fresh = Trace(engine.generate(Request(text, max_tokens=5, sampling=GREEDY)))
    assert ids(branch)[1:] == ids(fresh)
    a, b = branch.forwards[1].logits, fresh.forwards[0].logits
    assert a is not None
    assert b is not None
    # one row at a time against seven at once: other kernels, so the bound of engine and reference
    assert np.abs(a - b).max() <= 2e-5 * np.abs(b).max() + 1e-5


def test_a_branch_survives_a_foreign_run_in_between(engine: Engine, recorded: Trace) -> None:
    list(engine.generate(Request("Quite another text, as long as that", max_tokens=5)))
    branch = recorded.cut(3)
    pick = recorded.samples[3].token.id
    for event in engine.branch(recorded, 3, pick, Request(JORDAN, max_tokens=8)):
        branch.append(event)
    assert ids(branch) == ids(recorded)[:8]
    assert branch.forwards[4].reused == 0


def test_a_branch_is_refused_for_other_weights_and_impossible_places(
    engine: Engine, recorded: Trace
) -> None:
    from dataclasses import replace

    assert recorded.started is not None
    foreign = Trace([replace(recorded.started, sha256="0" * 64)])
    for trace, step, pick, kind in (
        (foreign, 0, 262, "branch_weights"),
        (recorded, 14, 262, "branch_step"),
        (recorded, True, 262, "branch_step"),
        (recorded, "0", 262, "branch_step"),
        (recorded, None, 262, "branch_step"),
        (recorded, 0, None, "token"),
        (recorded, 0, True, "token"),
        (recorded, 0, 50257, "token"),
    ):
        with pytest.raises(EngineError) as error:
            engine.branch(trace, step, pick, Request(JORDAN))  # type: ignore[arg-type]
        assert error.value.kind == kind


def test_a_stop_is_heard_while_a_branch_reads_its_past_again(engine: Engine) -> None:
    prompt = "the" + " the" * 299  # three chunks
    trace = Trace(engine.generate(Request(prompt, max_tokens=2)))
    list(engine.generate(Request("Quite another text", max_tokens=1)))
    answers = iter([False, False, True])  # before the step, the first chunk, the second
    grown = list(engine.branch(trace, 0, 262, Request(prompt), lambda: next(answers)))
    assert order(grown) == "SE"
    assert isinstance(grown[-1], RunFinished)
    assert (grown[-1].reason, engine.position) == ("stopped", 128)


def test_a_branch_without_logits_finds_the_step_it_made_again(engine: Engine) -> None:
    capture = Capture(logits=False)
    request = Request(JORDAN, max_tokens=4, capture=capture, sampling=GREEDY)
    trace = Trace(engine.generate(request))
    branch = trace.cut(1)
    for event in engine.branch(trace, 1, trace.samples[1].token.id, request):
        branch.append(event)
    assert ids(branch) == ids(trace)
    assert branch.forwards[2].reused == 7  # 6 of the prompt and 1 written before the pick


def test_reuse_reads_only_what_changed(engine: Engine) -> None:
    list(engine.generate(Request(JORDAN, max_tokens=1)))
    whole = Trace(engine.generate(Request(JORDAN + " the team", max_tokens=1)))
    list(engine.generate(Request(JORDAN, max_tokens=1)))
    part = Trace(engine.generate(Request(JORDAN + " the team", max_tokens=1, reuse=True)))
    prefill = part.forwards[0]
    assert (prefill.first, prefill.count, prefill.reused) == (6, 2, 6)
    assert prefill.q is not None
    assert prefill.q.shape[2] == 8  # the rows of the whole prompt
    assert ids(part) == ids(whole)


def test_what_is_not_captured_is_none(engine: Engine) -> None:
    capture = Capture(attention=False, residual=False, logits=False)
    trace = Trace(engine.generate(Request(JORDAN, max_tokens=2, capture=capture)))
    forward = trace.forwards[0]
    assert (forward.q, forward.residual, forward.logits) == (None, None, None)
    assert trace.samples[0].token.piece == b" basketball"


def test_waiting_callers_are_not_counted_as_latency(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up clock that ticks 1 us a reading, and jumps by an hour while the caller holds on."""
    now = [0]

    def clock() -> int:
        now[0] += 1_000
        return now[0]

    monkeypatch.setattr("time.perf_counter_ns", clock)
    hour = 3_600 * 10**9
    trace = Trace()
    for event in engine.generate(Request(JORDAN, max_tokens=3)):
        trace.append(event)
        now[0] += hour if isinstance(event, Sampled) else 0
    assert [forward.waited_ns >= hour for forward in trace.forwards] == [False, True, True]
    assert all(f.span[1] - f.span[0] < 10**9 for f in trace.forwards)


def test_a_failure_midway_is_the_terminal_event(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the device went away")

    trace = Trace()
    for event in engine.generate(Request(JORDAN, max_tokens=5)):
        trace.append(event)
        if isinstance(event, Forward) and len(trace.forwards) == 2:
            monkeypatch.setattr("engine.sampling.coin", broken)
    assert order(trace.events) == "RTFSFE"
    assert isinstance(trace.ended, RunFailed)
    assert "the device went away" in trace.ended.message
    monkeypatch.undo()
    assert len(Trace(engine.generate(Request(JORDAN, max_tokens=2))).samples) == 2
