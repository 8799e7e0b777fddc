"""A run as a generator of events: tokenize, prefill, then decode a token at a time.

R T (F S)* E: RunStarted, Tokenized, a Forward and its Sampled again and again, and one end.
"""

from __future__ import annotations

import inspect
import time
import weakref
from collections.abc import Generator
from pathlib import Path

import numpy as np

from engine import models, tokenizer, weights
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
from engine.job import Job, Stopped, Underway, failed
from engine.meter import work
from engine.request import Request, Sampling
from engine.runners import Runner
from engine.tokenizer import Tokenizer
from engine.trace import Trace


class Engine:
    """One model on one device. One run at a time: a second is refused while one is live."""

    def __init__(self, runner: Runner, *, model: Model, sha256: str) -> None:
        self.model = model
        self.sha256 = sha256
        self.notes: tuple[str, ...] = ()
        self.position = 0  # how many positions the running pass has read
        self._runner = runner
        self._tokenizer: Tokenizer = tokenizer.load()
        self._read: list[int] = []  # the ids whose K and V the state holds, by position
        self._live: weakref.ref[Job] | None = None
        self._warm_up()

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
            dtype: "auto", "float32", "bfloat16" or "float16".
            n_threads: for prefill and decode alike; None lets the runner choose for each.

        Raises:
            EngineError: what the model registry, the weights reader or the runner says.
        """
        checkpoint = weights.read(models.find(str(model)))
        runner = Runner(checkpoint, device=device, dtype=dtype, n_threads=n_threads)
        engine = cls(runner, model=checkpoint.model, sha256=checkpoint.sha256)
        engine.notes = checkpoint.notes
        return engine

    @property
    def device(self) -> str:
        """Where the weights are: "cpu", "cuda" or "mps"."""
        return self._runner.device

    @property
    def dtype(self) -> str:
        """What the weights are multiplied in."""
        return self._runner.dtype

    def generate(self, request: Request, stopped: Stopped = lambda: False) -> Job:
        """Run a request from position 0, or from the common prefix if it asks for reuse.

        Args:
            request: what to run.
            stopped: asked before every prefill chunk and every step.

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
        return self._let(self._whole(run, tokenized, ids))

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
            stopped: asked before every step.

        Raises:
            EngineError: kind "busy", "branch_weights", "branch_step" or "token".
        """
        self._refuse_if_busy()
        if trace.started is None or trace.started.sha256 != self.sha256:
            raise EngineError("branch_weights", model=self.model.title)
        if not 0 <= step < trace.n_steps:
            raise EngineError("branch_step", found=step, n_steps=trace.n_steps)
        if not 0 <= pick < self.model.dimensions.n_vocab:
            raise EngineError("token", found=pick)
        ids = [token.id for token in trace.tokens[: trace.n_prompt + step]]
        run = Underway(request, stopped, request.sampling, n_written=step)
        return self._let(self._grow(run, trace.forwards[step], ids, pick))

    def _warm_up(self) -> None:
        """Draw once from nothing: the first draw of all takes five times as long as the others."""
        run = Underway(Request("x"), lambda: False, Sampling())
        run.logits = np.zeros(self.model.dimensions.n_vocab, np.float32)
        run.draw(0, self._tokenizer)

    def _refuse_if_busy(self) -> None:
        live = self._live() if self._live is not None else None
        if live is not None and inspect.getgeneratorstate(live) != inspect.GEN_CLOSED:
            raise EngineError("busy")

    def _let(self, job: Job) -> Job:
        self._live = weakref.ref(job)
        return job

    def _whole(self, run: Underway, tokenized: Tokenized, ids: list[int]) -> Job:
        """R T (F S)* E."""
        yield from run.tell(self._started(run.request, tokenized.span[0]))
        try:
            yield from run.tell(tokenized)
            if (yield from self._prefill(run, ids)):
                yield from self._decode(run, ids)
        except (EngineError, RuntimeError, MemoryError) as error:
            yield failed(error)
        else:
            yield RunFinished(run.reason, time.perf_counter_ns())

    def _grow(self, run: Underway, forward: Forward, ids: list[int], pick: int) -> Job:
        """S (F S)* E after a cut."""
        try:
            run.pick = pick
            run.logits = forward.logits
            if run.logits is None:  # not recorded: the step is made again
                self._restore(ids[:-1])
                self._runner.step(ids[-1], position=len(ids) - 1)
                run.logits = self._runner.logits()
            yield from self._sample(run, ids)
            yield from self._decode(run, ids, found=self._common_prefix(ids))
        except (EngineError, RuntimeError, MemoryError) as error:
            yield failed(error)
        else:
            yield RunFinished(run.reason, time.perf_counter_ns())

    def _prefill(self, run: Underway, ids: list[int]) -> Generator[Event, Order | None, bool]:
        """Read the prompt and draw the first token; False if stopped before."""
        reused = self._common_prefix(ids) if run.request.reuse else 0
        start = time.perf_counter_ns()
        self.position = reused
        for n_read in self._runner.prefill(ids[reused:], first=reused):
            self._read[self.position :] = ids[self.position : n_read]
            self.position = n_read
            if n_read < len(ids) and run.asked_to_stop():
                return False
        forward = self._forward(run, "prefill", reused, len(ids) - reused, start, reused=reused)
        yield from run.tell(forward)
        yield from self._sample(run, ids)
        return True

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
            self._restore(ids[:first])
            self._runner.step(ids[first], position=first)
            self._read[first:] = [ids[first]]
            self.position = first + 1
            forward = self._forward(run, "decode", first, 1, start, reused=found)
            found = 0
            yield from run.tell(forward)
            yield from self._sample(run, ids)

    def _restore(self, ids: list[int]) -> None:
        """Read again what another run has overwritten before a branch goes on."""
        if self._read == ids:
            return
        kept = self._common_prefix([*ids, -1])
        for n_read in self._runner.prefill(ids[kept:], first=kept) if kept < len(ids) else ():
            self._read[kept:] = ids[kept:n_read]
        del self._read[len(ids) :]

    def _common_prefix(self, ids: list[int]) -> int:
        """Positions that need not be read again; the last one always is, for its logits."""
        pairs = zip(self._read, ids[:-1], strict=False)
        return next(
            (i for i, (a, b) in enumerate(pairs) if a != b), min(len(self._read), len(ids) - 1)
        )

    def _forward(
        self, run: Underway, phase: Phase, first: int, count: int, start: int, *, reused: int
    ) -> Forward:
        capture, end = run.request.capture, first + count
        rows_from = 0 if phase == "prefill" else first
        rows = self._runner.rows(
            rows_from, end - rows_from, attention=capture.attention, residual=capture.residual
        )
        run.logits = logits = frozen(self._runner.logits())
        span = (start, time.perf_counter_ns())
        runner = self._runner
        return Forward(
            phase=phase,
            first=first,
            count=count,
            reused=reused,
            span=span,
            layer_spans=runner.layer_spans(),
            waited_ns=run.take_wait(),
            memory=runner.memory(end),
            work=work(
                self.model.dimensions, first, count, item_weight=runner.item_weight, item_kv=4
            ),
            q=rows.q,
            k=rows.k,
            v=rows.v,
            residual=rows.residual,
            logits=logits if capture.logits else None,
        )

    def _sample(self, run: Underway, ids: list[int]) -> Generator[Event, Order | None, None]:
        """Draw, or take what was picked by hand, and append it to the ids."""
        sampled = run.draw(len(ids), self._tokenizer)
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
            machine=runner.machine,
            at_ns=at_ns,
        )
