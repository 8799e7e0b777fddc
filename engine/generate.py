"""A run as a generator of events: tokenize, prefill, then decode a token at a time.

R T (F S)* E: RunStarted, Tokenized, a Forward and its Sampled again and again, and one end.
"""

from __future__ import annotations

import inspect
import time
import weakref
from collections.abc import Generator
from itertools import takewhile
from pathlib import Path

from engine import deviation, graphs, models, sampling, tokenizer, vector_sums, weights
from engine.errors import EngineError
from engine.events import (
    Event,
    Forward,
    Model,
    Order,
    Phase,
    RunFinished,
    RunStarted,
    Tokenized,
    frozen,
)
from engine.floors import Limits, with_roofs
from engine.job import Job, Stopped, Underway, failed, warm_up
from engine.meter import work
from engine.request import Request, is_index
from engine.runners import Runner
from engine.timing import own_span
from engine.tokenizer import Tokenizer
from engine.trace import Trace
from engine.untrusted import quoted


class Engine:
    """One model on one device. One run at a time: a second is refused while one is live."""

    def __init__(self, runner: Runner, *, model: Model, sha256: str) -> None:
        self.model = model
        self.sha256 = sha256
        self.device = runner.device  # where the weights are: "cpu", "cuda" or "mps"
        self.dtype = runner.dtype  # of the weights
        self.notes: tuple[str, ...] = ()
        self.limits: Limits | None = None  # of this machine, if somebody measured them
        self.position = 0  # how many positions the running pass has read
        self._runner = runner
        self._tokenizer: Tokenizer = tokenizer.load()
        self._read: list[int] = []  # the ids whose K and V the state holds, by position
        self._live: weakref.ref[Job] | None = None
        warm_up(model.dimensions.n_vocab, self._tokenizer, sums=vector_sums.sums)

    @classmethod
    def load(
        cls,
        model: str | Path = "embedded",
        device: str = "auto",
        dtype: str = "auto",
        *,
        n_threads: int | None = None,
    ) -> Engine:
        """Read a model's weights and put them on a device.

        Args:
            model: "embedded", a name in resources/models.toml, or a folder.
            device: "auto", "cpu", "cuda" or "mps".
            dtype: "auto", "float32", "bfloat16", "float16" or, on the CPU only, "int8".
            n_threads: for prefill and decode alike; None lets the runner choose for each.

        Raises:
            EngineError: what the model registry, the weights reader or the runner says.
        """
        with weights.opened(models.find(str(model))) as source:
            runner = graphs.runner_for(source, device=device, dtype=dtype, n_threads=n_threads)
            engine = cls(runner, model=source.model, sha256=source.sha256)
            if runner.dtype == "int8":
                runner.note = deviation.note(source, runner)
        engine.notes = (*source.notes, *filter(None, [runner.note]))
        return engine

    @property
    def runner(self) -> Runner:
        """What computes: the weights and the state on their device."""
        return self._runner

    def generate(self, request: Request, stopped: Stopped = lambda: False) -> Job:
        """Run a request from position 0, or from the common prefix if it asks for reuse.

        Args:
            request: what to run.
            stopped: asked before every chunk of a prefill and every step.

        Returns:
            The run; `send` takes a Sampling or a Pick for the tokens to come.

        Raises:
            EngineError: kind "busy" or "context_too_long", or what the tokenizer says.
        """
        self._refuse_if_busy()
        started_ns = time.perf_counter_ns()
        tokens = self._tokenizer.encode(request.prompt, special=request.special)
        tokenized = Tokenized(tokens, (started_ns, time.perf_counter_ns()))
        limit = self.model.dimensions.n_positions
        if len(tokens) > limit:
            raise EngineError("context_too_long", found=len(tokens), limit=limit)
        ids = [token.id for token in tokens]
        run = Underway(request, stopped, request.sampling)
        return self._let(run, self._whole(run, tokenized, ids))

    def branch(
        self,
        trace: Trace,
        step: int,
        pick: int,
        request: Request,
        stopped: Stopped = lambda: False,
    ) -> Job:
        """Grow another story from a step of a trace, with a token picked by hand.

        Yields only what follows `trace.cut(step)`: the picked Sampled, then its Forward, and so
        on. The prefix is not read again as far as the state still holds it.

        Args:
            trace: of the same weights.
            step: whose draw the pick replaces.
            pick: the id to go on with.
            request: its sampling, seed and max_tokens (counted from the prompt's end).
            stopped: asked before every step, and every chunk that has to be read again.

        Raises:
            EngineError: kind "busy", "branch_weights", "branch_step" or "token".
        """
        self._refuse_if_busy()
        if trace.started is None or trace.started.sha256 != self.sha256:
            raise EngineError("branch_weights", model=self.model.title)
        if not is_index(step, trace.n_steps):
            raise EngineError("branch_step", found=quoted(step), n_steps=trace.n_steps)
        ids = [token.id for token in trace.tokens[: trace.n_prompt + step]]
        run = Underway(request, stopped, request.sampling, n_written=int(step))
        run.pick = self._tokenizer.token(pick).id
        return self._let(run, self._grow(run, trace.forwards[step], ids))

    def _refuse_if_busy(self) -> None:
        live = self._live() if self._live is not None else None
        if live is not None and inspect.getgeneratorstate(live) != inspect.GEN_CLOSED:
            raise EngineError("busy")

    def _let(self, run: Underway, story: Job) -> Job:
        job = self._to_its_end(run, story)
        self._live = weakref.ref(job)
        return job

    def _to_its_end(self, run: Underway, story: Job) -> Job:
        """A story's events and, whatever breaks, one that says how it ended."""
        end: Event
        try:
            yield from story
            end = RunFinished(run.reason, time.perf_counter_ns())
        except Exception as error:  # the law asks for an end, and nobody can list what may break
            end = failed(error)
        self._live = None  # who stops listening here, and keeps the generator, keeps nobody waiting
        yield end

    def _whole(self, run: Underway, tokenized: Tokenized, ids: list[int]) -> Job:
        """R T (F S)*."""
        yield from run.tell(self._started(run.request, tokenized.span[0]))
        yield from run.tell(tokenized)
        reused = self._common_prefix(ids) if run.request.reuse else 0
        start = time.perf_counter_ns()
        if not self._read_on(run, ids, first=reused):
            return
        n_new = len(ids) - reused
        yield from run.tell(self._forward(run, "prefill", reused, n_new, start, reused=reused))
        yield from self._sample(run, ids)
        yield from self._decode(run, ids)

    def _grow(self, run: Underway, forward: Forward, ids: list[int]) -> Job:
        """S (F S)* after a cut."""
        run.logits = forward.logits
        if run.logits is None:  # not recorded: the pass is made again
            if not self._restore(run, ids[:-1]):
                return
            self._step(run, ids)
            run.logits = self._runner.logits()
        yield from self._sample(run, ids)
        yield from self._decode(run, ids, found=self._common_prefix(ids))

    def _decode(
        self, run: Underway, ids: list[int], *, found: int = 0
    ) -> Generator[Event, Order | None, None]:
        """Feed the last token and draw the next, until a stop rule says so.

        `found` is how many positions a branch finds in place; its first pass tells of them.
        """
        while not run.ends(ids, self.model.dimensions.n_positions):
            if run.asked_to_stop():
                return
            start, first = time.perf_counter_ns(), len(ids) - 1
            if not self._restore(run, ids[:first]):
                return
            self._step(run, ids)
            forward = self._forward(run, "decode", first, 1, start, reused=found)
            found = 0
            yield from run.tell(forward)
            yield from self._sample(run, ids)

    def _step(self, run: Underway, ids: list[int]) -> None:
        """Read the last of the ids; the state holds all before it."""
        first = len(ids) - 1
        self._runner.expect(run.sampling, run.request.seed)
        self._runner.step(ids[first], position=first)
        self._read[first:] = [ids[first]]
        self.position = first + 1

    def _restore(self, run: Underway, ids: list[int]) -> bool:
        """Have the state hold these ids, whatever other runs read since; False if stopped."""
        if self._read == ids:
            return True
        return self._read_on(run, ids, first=self._common_prefix([*ids, -1]))

    def _read_on(self, run: Underway, ids: list[int], *, first: int) -> bool:
        """Read ids from position `first` on, chunk by chunk; False if stopped before the end."""
        del self._read[first:]  # if a pass breaks off, nobody takes half of it for read
        self.position = first
        chunks = iter(self._runner.prefill(ids[first:], first=first))
        while self.position < len(ids):
            if run.asked_to_stop():
                return False
            n_read = next(chunks)
            self._read += ids[self.position : n_read]
            self.position = n_read
        return True

    def _common_prefix(self, ids: list[int]) -> int:
        """Positions that need not be read again; the last one always is, for its logits."""
        pairs = zip(self._read, ids[:-1], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def _forward(
        self, run: Underway, phase: Phase, first: int, count: int, start: int, *, reused: int
    ) -> Forward:
        runner, capture, end = self._runner, run.request.capture, first + count
        rows_from = 0 if phase == "prefill" else first
        rows = runner.rows(
            rows_from,
            end - rows_from,
            attention=capture.attention,
            residual=capture.residual,
            room=run.room(end, self.model.dimensions) if phase == "prefill" else 0,
        )
        run.logits = logits = frozen(runner.logits())
        sampling.peak(logits)  # refuses what is no number: such a pass is not told
        waited, device_ns = run.take_wait(), runner.device_ns()
        span = own_span(start, time.perf_counter_ns(), waited, device_ns)
        return Forward(
            phase=phase,
            first=first,
            count=count,
            reused=reused,
            span=span,
            layer_spans=runner.layer_spans(),
            waited_ns=waited,
            memory=runner.memory(end),
            work=work(
                self.model.dimensions, first, count, item_weight=runner.item_weight, item_kv=4
            ),
            device_ns=device_ns,
            q=rows.q,
            k=rows.k,
            v=rows.v,
            residual=rows.residual,
            logits=logits if capture.logits else None,
        )

    def _sample(self, run: Underway, ids: list[int]) -> Generator[Event, Order | None, None]:
        """Draw, or take what was picked by hand, and append it to the ids."""
        sampled = run.draw(len(ids), self._tokenizer, sums=vector_sums.sums)
        ids.append(sampled.token.id)
        yield from run.tell(sampled)

    def _started(self, request: Request, at_ns: int) -> RunStarted:
        runner = self._runner
        return RunStarted(
            request=request,
            model=self.model,
            sha256=self.sha256,
            device=runner.device,
            dtype=runner.dtype,
            weight_bytes=runner.weight_bytes,
            machine=with_roofs(runner.machine, self.limits),
            at_ns=at_ns,
        )
