"""A run that something breaks or interrupts: one end, told once, and the next run is well."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from engine.errors import EngineError
from engine.events import Event, RunFailed, Sampled
from engine.generate import Engine
from engine.request import Pick, Request, Sampling
from engine.runners import Runner
from engine.trace import Trace

ONCE = Request("Once upon a time", max_tokens=3, sampling=Sampling(temperature=0))
LONG = "the" + " the" * 199  # 200 tokens: a chunk of 128 and one of 72


def drive(engine: Engine, orders: dict[int, object]) -> list[Event]:
    """All events of `ONCE`, the caller sending each order after the event of that number."""
    job, events = engine.generate(ONCE), []
    try:
        events.append(next(job))
        while True:
            order: Any = orders.get(len(events) - 1)
            events.append(job.send(order))
    except StopIteration:
        return events


def names(events: Sequence[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


WHOLE = ["RunStarted", "Tokenized", *["Forward", "Sampled"] * 3, "RunFinished"]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
@pytest.mark.parametrize("rubbish", ["faster", 5, True, ONCE])
def test_what_is_no_order_ends_the_run_and_says_so(
    engine: Engine, at: int, rubbish: object
) -> None:
    events = drive(engine, {at: rubbish})
    assert names(events) == [*WHOLE[: at + 1], "RunFailed"]
    end = events[-1]
    assert isinstance(end, RunFailed)
    assert (end.kind, type(rubbish).__name__ in end.message) == ("order", True)


def test_a_pick_outside_the_vocabulary_ends_the_run_and_says_so(engine: Engine) -> None:
    events = drive(engine, {2: Pick(50_257)})
    assert names(events) == [*WHOLE[:3], "RunFailed"]
    assert isinstance(events[-1], RunFailed)
    assert "50257" in events[-1].message


def test_what_a_draw_tells_is_its_own_and_read_only(engine: Engine) -> None:
    samples = [e for e in engine.generate(ONCE) if isinstance(e, Sampled)]
    arrays = [a for s in samples for a in (s.top_ids, s.top_raw, s.top_final)]
    assert not any(a.flags.writeable for a in arrays)
    shared = [np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i]]
    assert not any(shared)


class Boom(Exception):
    """Nothing that anybody expects."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("kernel"), "internal"),
        (Boom("?"), "internal"),
        (IndexError("row"), "internal"),
        (MemoryError(), "out_of_memory"),
        (EngineError("logits_empty"), "logits_empty"),
    ],
)
def test_whatever_breaks_in_a_step_one_end_tells_it_and_the_next_run_is_well(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "step", broken)
        events = drive(engine, {})
    assert names(events) == [*WHOLE[:4], "RunFailed"]
    assert isinstance(events[-1], RunFailed)
    assert events[-1].kind == kind
    assert names(drive(engine, {})) == WHOLE


def test_a_caller_who_cannot_say_whether_to_stop_ends_the_run(engine: Engine) -> None:
    def stopped() -> bool:
        raise Boom("no idea")

    events = list(engine.generate(ONCE, stopped))
    assert names(events) == ["RunStarted", "Tokenized", "RunFailed"]


def test_a_prefill_that_broke_off_is_not_taken_for_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first chunk breaks when it has written over half of what an earlier run left there."""
    request = Request(LONG, max_tokens=1, sampling=Sampling(temperature=0), reuse=True)
    whole = Trace(engine.generate(request))

    def broken(self: Runner, ids: Sequence[int], *, first: int) -> Iterator[int]:
        self.state.qkv[:3, :, :, :, first : first + 128] = 7.0
        raise RuntimeError("the device went away")

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "prefill", broken)
        assert isinstance(list(engine.generate(Request("a" + LONG)))[-1], RunFailed)
    again = Trace(engine.generate(request))
    found, wanted = again.forwards[0].logits, whole.forwards[0].logits
    assert found is not None
    assert wanted is not None
    # read in chunks from elsewhere: other kernels, so the bound of engine and reference
    assert np.abs(found - wanted).max() <= 2e-5 * np.abs(wanted).max() + 1e-5


def test_logits_that_are_no_numbers_end_the_run_before_their_pass_is_told(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no trace holds them, and what was recorded before can be saved and opened."""
    logits = Runner.logits

    def broken(self: Runner) -> np.ndarray[Any, np.dtype[np.float32]]:
        found = logits(self).copy()
        found[17] = np.nan
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "logits", broken)
        events = drive(engine, {})
    assert names(events) == ["RunStarted", "Tokenized", "RunFailed"]
    assert isinstance(events[-1], RunFailed)
    assert events[-1].kind == "logits_not_finite"
    assert "first at id 17" in events[-1].message


def test_a_run_that_is_dropped_or_closed_leaves_the_engine_free(engine: Engine) -> None:
    job = engine.generate(ONCE)
    next(job)
    del job
    job = engine.generate(ONCE)
    assert isinstance([next(job) for _ in range(4)][-1], Sampled)
    job.close()
    assert names(drive(engine, {})) == WHOLE
