"""Recorded steps, driven on the CPU by the very code that drives a card.

What only a card has (graphs, pinned memory, events) is behind `engine.queues`; the rest is here.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine import graphs
from engine.checkpoint import Checkpoint
from engine.events import Dimensions, Event, Floats, Forward, RunFailed, Sampled, same
from engine.generate import Engine
from engine.graphs import GraphRunner, Steps, contexts, recorded, runner_for
from engine.models.streams import tick
from engine.queues import CudaQueue, Queue, Slot, Work
from engine.request import Pick, Request, Sampling
from engine.runners import Rows, Runner
from engine.tokenizer import N_VOCAB
from engine.trace import Trace
from tests.engine.test_runners import IDS, TINY, checkpoint, make, near, read, tensors

SMALL = Dimensions(n_layer=2, n_head=2, n_embd=32, n_positions=160, n_vocab=N_VOCAB)
PROMPT = "the" + " the" * 9  # 10 tokens
LONG = "the" + " the" * 119  # 120: eight steps further on another graph takes over
WARM = Sampling(temperature=1.2, top_k=0, top_p=0.98)
needs_card = pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


class Ticking(Runner):
    """Makes the steps that a GraphRunner records, but each when it is asked for."""

    def step(self, id: int, *, position: int) -> None:
        context = next(n for n in contexts(self.state.n_positions) if n > position)
        token, place = (torch.tensor([x], device=self.device) for x in (id, position))
        beyond = self.state.qkv[:, :, :, :, position:]
        with torch.inference_mode():
            beyond.zero_()
            self._logits = tick(self._weights, self.state, token, place, context=context)[0]
        self._spans, self.state.position = (), position + 1


class Watched(Queue):
    """Counts what is recorded, and gives each step a time of 500 ns."""

    def __init__(self) -> None:
        self.n_recorded = 0

    def record(self, work: Work) -> Work:
        self.n_recorded += 1
        return work

    def slot(self, n: int) -> Slot:
        slot = Slot(n)
        slot.took_ns = lambda: 500  # type: ignore[method-assign]
        return slot


@cache
def small() -> Checkpoint:
    return checkpoint(tensors(SMALL), dimensions=SMALL)


def graph_runner(queue: Queue | None = None) -> GraphRunner:
    return GraphRunner(make(), queue or Queue())


def engine_of(kind: type[Runner]) -> Engine:
    eager = (Ticking if kind is Ticking else Runner)(
        small(), device="cpu", n_threads=1, kind="linear"
    )
    runner = GraphRunner(eager, Queue()) if kind is GraphRunner else eager
    return Engine(runner, model=small().model, sha256="")


@pytest.fixture(scope="module")
def ahead() -> Engine:
    return engine_of(GraphRunner)


@pytest.fixture(scope="module")
def ticking() -> Engine:
    return engine_of(Ticking)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int | None]]:
    """(position, token) of every step that is launched; None = the one the device drew."""
    found: list[tuple[int, int | None]] = []
    launch = Steps.launch

    def watched(self: Steps, slot: int, *, position: int, token: int | None) -> None:
        found.append((position, token))
        launch(self, slot, position=position, token=token)

    monkeypatch.setattr(Steps, "launch", watched)
    return found


def timeless(event: Event) -> Event:
    """Without what a clock or the system said."""
    if isinstance(event, Forward):
        memory = replace(event.memory, process=None)
        return replace(
            event, span=(0, 0), layer_spans=(), waited_ns=0, device_ns=None, memory=memory
        )
    if hasattr(event, "span"):
        return replace(event, span=(0, 0))  # type: ignore[call-arg]
    return replace(event, at_ns=0)  # type: ignore[call-arg]


def assert_same(a: Trace, b: Trace) -> None:
    assert len(a.events) == len(b.events)
    for x, y in zip(a.events, b.events, strict=True):
        assert same(timeless(x), timeless(y)), (x, y)


def ids(trace: Trace) -> list[int]:
    return [sampled.token.id for sampled in trace.samples]


def told(engine: Engine, request: Request, orders: dict[int, Sampling | Pick]) -> Trace:
    """A run in which orders are sent after some of its draws."""
    job, trace, order = engine.generate(request), Trace(), None
    while trace.ended is None:
        event = job.send(order)
        trace.append(event)
        order = orders.get(len(trace.samples)) if isinstance(event, Sampled) else None
    return trace


def arrays(rows: Rows) -> list[Floats]:
    found = [rows.q, rows.k, rows.v, rows.residual]
    return [array for array in found if array is not None]


def test_there_is_a_graph_for_each_context_and_one_for_the_draw() -> None:
    queue = Watched()
    graph_runner(queue)
    assert contexts(TINY.n_positions) == (128, 160)
    assert queue.n_recorded == 3


def test_a_short_model_has_one_context_as_long_as_itself() -> None:
    assert [contexts(n) for n in (1, 2, 128, 129)] == [(1,), (2,), (128,), (128, 129)]


def test_a_step_gives_the_logits_and_rows_of_the_eager_one() -> None:
    """Up to the order of sums: masked positions stand in line with those that are seen."""
    eager, graph = make(), graph_runner()
    for runner in (eager, graph):
        read(runner, IDS[:125])
        for position in range(125, 131):  # from the graph of 128 to that of 160
            runner.step(IDS[position], position=position)
    assert near(graph.logits(), eager.logits())
    for a, b in zip(arrays(graph.rows(130, 1)), arrays(eager.rows(130, 1)), strict=True):
        assert a.shape == b.shape
        assert near(a, b)


def test_a_packet_holds_the_rows_that_lie_in_the_state() -> None:
    runner = graph_runner()
    read(runner, IDS[:9])
    runner.expect(WARM, 1)
    runner.step(5, position=9)
    from_packet = runner.rows(9, 1)
    from_state = Runner.rows(runner, 9, 1)
    for a, b in zip(arrays(from_packet), arrays(from_state), strict=True):
        assert not a.flags.writeable
        assert np.array_equal(a, b)
    assert runner.rows(9, 1, attention=False, residual=False) == Rows(None, None, None, None)


def test_rows_of_other_positions_are_those_of_the_state() -> None:
    runner = graph_runner()
    read(runner, IDS[:9])
    before = [array.copy() for array in arrays(runner.rows(0, 9))]
    runner.expect(WARM, 1)
    runner.step(5, position=9)
    for a, b in zip(arrays(runner.rows(0, 9)), before, strict=True):
        assert np.array_equal(a, b)


def test_logits_stay_what_they_were_while_the_device_goes_on() -> None:
    runner = graph_runner()
    read(runner, IDS[:4])
    prefilled = runner.logits()
    runner.expect(WARM, 1)
    runner.step(1, position=4)
    logits = runner.logits()
    kept = logits.copy()
    for position in range(5, 12):
        runner.expect(WARM, 1)
        runner.step(1, position=position)
    assert not logits.flags.writeable
    assert np.array_equal(logits, kept)
    assert not np.array_equal(logits, prefilled)
    assert not np.array_equal(logits, runner.logits())


@pytest.mark.parametrize("n_positions", [1, 2])
def test_a_model_of_one_or_two_positions_runs(n_positions: int) -> None:
    tiny = Dimensions(1, 2, 32, n_positions, 97)
    runner = GraphRunner(Runner(checkpoint(tensors(tiny), dimensions=tiny), device="cpu"), Queue())
    read(runner, [3])
    runner.expect(WARM, 1)
    runner.step(3, position=n_positions - 1)
    assert np.isfinite(runner.logits()).all()
    assert runner.state.position == n_positions


@pytest.mark.parametrize("setting", [WARM, Sampling(temperature=0), Sampling()])
def test_a_run_made_ahead_is_the_run_step_by_step(
    setting: Sampling, ahead: Engine, ticking: Engine, launches: list[tuple[int, int | None]]
) -> None:
    request = Request(LONG, max_tokens=60, sampling=setting, seed=3)
    graph = Trace(ahead.generate(request))
    assert len(graph.samples) == 41  # 120 + 41 tokens: the context is full
    # One step was asked for and all others were there; none went beyond position 159.
    assert [token is None for _, token in launches] == [False] + [True] * 39
    assert [position for position, _ in launches] == list(range(120, 160))
    assert_same(graph, Trace(ticking.generate(request)))


def test_a_run_made_ahead_writes_the_tokens_of_the_plain_runner(ahead: Engine) -> None:
    request = Request(PROMPT, max_tokens=30, sampling=WARM)
    plain = Trace(engine_of(Runner).generate(request))
    graph = Trace(ahead.generate(request))
    assert ids(graph) == ids(plain)
    for a, b in zip(graph.forwards, plain.forwards, strict=True):
        assert a.logits is not None
        assert b.logits is not None
        assert near(a.logits, b.logits)


def test_sliders_and_picks_give_the_run_that_they_give_step_by_step(
    ahead: Engine, ticking: Engine, launches: list[tuple[int, int | None]]
) -> None:
    orders = {3: Sampling(temperature=0.5), 6: Pick(11), 7: Pick(12), 12: WARM, 13: Pick(40)}
    request = Request(PROMPT, max_tokens=20, sampling=WARM)
    graph = told(ahead, request, orders)
    assert [s.coin is None for s in graph.samples].count(True) == 3
    assert_same(graph, told(ticking, request, orders))
    asked = [position for position, token in launches if token is not None]
    # The prompt has 10 tokens, so draw n is read at position 9 + n. The first step, the one after
    # each slider was moved, and the three picks.
    assert asked == [10, 12, 16, 17, 21, 23]


def test_branches_and_reuse_give_what_they_give_step_by_step(
    ahead: Engine, ticking: Engine
) -> None:
    request = Request(PROMPT, max_tokens=12, sampling=WARM)
    stories = []
    for engine in (ahead, ticking):
        whole = Trace(engine.generate(request))
        branch = whole.cut(4)
        for event in engine.branch(whole, 4, 99, request):
            branch.append(event)
        foreign = Trace(engine.generate(Request("Quite another text", max_tokens=3)))
        again = whole.cut(8)
        for event in engine.branch(whole, 8, 98, replace(request, seed=9)):
            again.append(event)
        reused = Trace(engine.generate(replace(request, prompt=PROMPT + " end", reuse=True)))
        stories.append((whole, branch, foreign, again, reused))
    for graph, stepwise in zip(*stories, strict=True):
        assert_same(graph, stepwise)


def test_a_stopped_run_leaves_nothing_behind(ahead: Engine, ticking: Engine) -> None:
    trace = Trace()
    for event in ahead.generate(Request(PROMPT, sampling=WARM), lambda: len(trace.samples) >= 3):
        trace.append(event)
    request = Request("Quite another text", max_tokens=5)
    assert_same(Trace(ahead.generate(request)), Trace(ticking.generate(request)))


def test_a_prefill_makes_what_is_in_flight_be_in_vain() -> None:
    """Though the next token and position are those that the device went on with."""
    runner, fresh = graph_runner(), graph_runner()
    read(runner, IDS[:10])
    runner.expect(Sampling(temperature=0), 1)
    runner.step(5, position=10)
    foreseen = int(runner.logits().argmax())
    for one in (runner, fresh):
        read(one, IDS[20:31])
        one.step(foreseen, position=11)
    assert np.array_equal(runner.logits(), fresh.logits())


def planted(engine: Engine, position: int) -> NDArray[np.float32]:
    """Make a pass overflow there; what stood there before."""
    row = engine.runner.weights.positions[position]
    before = row.numpy().copy()
    row[0] = torch.inf
    return before


@pytest.mark.parametrize("position", [14, 5], ids=["in a step", "in the prefill"])
def test_an_overflow_is_refused_and_spoils_no_later_run(position: int, ahead: Engine) -> None:
    """0 times what is not a number is not 0, so a mask alone would not keep it out."""
    request = Request(PROMPT, max_tokens=12, sampling=WARM)
    good = Trace(ahead.generate(request))
    before = planted(ahead, position)
    ended = Trace(ahead.generate(request)).ended
    ahead.runner.weights.positions[position] = torch.from_numpy(before)
    assert isinstance(ended, RunFailed)
    assert ended.kind == "logits_not_finite"
    short = Trace(ahead.generate(Request("the the", max_tokens=12, sampling=WARM)))
    assert len(short.samples) == 12
    assert_same(Trace(ahead.generate(request)), good)


def test_an_overflow_of_a_step_that_nobody_asked_for_is_never_seen() -> None:
    runner, fresh = graph_runner(), graph_runner()
    read(runner, IDS[:8])
    row = runner.weights.positions[9]
    before = row.clone()
    row[0] = torch.inf
    runner.expect(WARM, 1)
    runner.step(5, position=8)  # and 9, 10 and 11, which overflow
    assert not np.isfinite(runner.state.qkv.numpy()).all()
    runner.step(6, position=8)
    row.copy_(before)
    runner.step(7, position=9)
    read(fresh, IDS[:8])
    for token, position in ((6, 8), (7, 9)):
        fresh.step(token, position=position)
    assert np.array_equal(runner.logits(), fresh.logits())


def test_a_step_tells_the_time_of_the_device_and_a_prefill_has_none() -> None:
    runner = graph_runner(Watched())
    read(runner, IDS[:4])
    assert runner.device_ns() is None
    runner.step(1, position=4)
    assert runner.device_ns() == 500
    assert runner.layer_spans() == ()
    read(runner, IDS[:4])
    assert runner.device_ns() is None


def test_the_warm_up_leaves_no_trace() -> None:
    runner = graph_runner()
    assert runner.state.position == 0
    assert (runner.device_ns(), runner.layer_spans()) == (None, ())
    with pytest.raises(AssertionError):
        runner.logits()


def test_where_nothing_can_be_captured_the_eager_runner_stays_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(Queue):
        def record(self, work: Work) -> Work:
            raise RuntimeError("operation not permitted when stream is capturing\nand much more")

    monkeypatch.setattr(graphs, "sentence", lambda kind, facts: f"{kind}: {facts['reason']}")
    eager = make()
    assert recorded(eager, Broken) is eager
    assert eager.note == "note_no_graphs: operation not permitted when stream is capturing"
    read(eager, IDS[:4])
    eager.step(1, position=4)
    assert np.isfinite(eager.logits()).all()


def test_a_processor_gets_the_plain_runner() -> None:
    assert type(runner_for(checkpoint(tensors(TINY)), device="cpu", n_threads=1)) is Runner


def on_card(kind: type[Runner]) -> Runner:
    return kind(checkpoint(tensors(TINY)), device="cuda", dtype="float32")


@pytest.mark.cuda
@needs_card
def test_a_graph_gives_bit_for_bit_what_its_operations_give_one_by_one() -> None:
    graph, eager = GraphRunner(on_card(Runner), CudaQueue()), on_card(Ticking)
    for runner in (graph, eager):
        read(runner, IDS[:120])
        for position in range(120, 140):
            runner.expect(WARM, 1)
            runner.step(IDS[position], position=position)
    assert np.array_equal(graph.logits(), eager.logits())
    for a, b in zip(arrays(graph.rows(139, 1)), arrays(eager.rows(139, 1)), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.cuda
@needs_card
def test_a_card_is_waited_for_by_its_packets_alone() -> None:
    runner = GraphRunner(on_card(Runner), CudaQueue())
    read(runner, IDS[:8])
    greedy, token = Sampling(temperature=0), int(runner.logits().argmax())
    torch.cuda.set_sync_debug_mode("error")
    try:
        for position in range(8, 150):
            runner.expect(greedy, 1)
            runner.step(token, position=position)
            runner.rows(position, 1)
            token = int(runner.logits().argmax())
            took = runner.device_ns()
            assert took is not None
            assert took > 0
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.cuda
@needs_card
def test_a_card_captures_the_whole_of_a_step() -> None:
    runner = runner_for(checkpoint(tensors(TINY)), device="cuda")
    assert type(runner) is GraphRunner


def test_kernels_that_fail_their_check_leave_the_steps_to_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graphs.kernels, "obstacle", lambda weights, state: None)
    monkeypatch.setattr(graphs.kernels, "failure", lambda weights, state: "they differ by 2.0")
    runner = recorded(make(), Queue)
    assert isinstance(runner, GraphRunner)
    assert runner.note == (
        "The Triton kernels could not be used, so torch's own make the decode steps: the same "
        "numbers, but slower. Reason: they differ by 2.0"
    )


def test_kernels_that_pass_it_make_the_steps_in_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    made, queue = [], Watched()

    def like_tick(*given: object, context: int) -> torch.Tensor:
        made.append(context)
        return tick(*given, context=context)  # type: ignore[arg-type]

    monkeypatch.setattr(graphs.kernels, "obstacle", lambda weights, state: None)
    monkeypatch.setattr(graphs.kernels, "failure", lambda weights, state: None)
    monkeypatch.setattr(graphs.kernels, "tick", like_tick)
    runner, plain = recorded(make(), lambda: queue), make()
    assert queue.n_recorded == 2  # the pass, whatever its context, and the draw
    for one in (runner, plain):
        read(one, IDS[:9])
        one.step(5, position=9)
    assert set(made) == {160}
    assert near(runner.logits(), plain.logits())
    assert runner.note is None
