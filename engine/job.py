"""What a run and its caller say to each other: events out, orders in, waits and stops between."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import numpy as np

from engine import sampling, softmax
from engine.errors import EngineError
from engine.events import (
    N_TOP,
    Dimensions,
    Event,
    Floats,
    Order,
    Reason,
    RunFailed,
    Sampled,
    frozen,
)
from engine.request import Pick, Request, Sampling
from engine.softmax import Sums
from engine.tokenizer import END_OF_TEXT, Tokenizer

Job = Generator[Event, Order | None, None]
Stopped = Callable[[], bool]


@dataclass
class Underway:
    """What changes while a run goes on."""

    request: Request
    asked_to_stop: Stopped
    sampling: Sampling  # in force
    n_written: int = 0
    logits: Floats | None = None  # (V,) that the next draw reads
    reason: Reason = "stopped"
    pick: int | None = None
    _waited_ns: int = 0

    def tell(self, event: Event) -> Generator[Event, Order | None, None]:
        """Yield an event, count the time until the caller comes back, and take its order.

        Raises:
            EngineError: kind "order".
        """
        before = time.perf_counter_ns()
        order = yield event
        self._waited_ns += time.perf_counter_ns() - before
        if isinstance(order, Pick):
            self.pick = order.token
        elif isinstance(order, Sampling):
            self.sampling = order
        elif order is not None:
            raise EngineError("order", found=type(order).__name__)

    def take_wait(self) -> int:
        """Nanoseconds spent suspended since the last pass."""
        waited, self._waited_ns = self._waited_ns, 0
        return waited

    def take_pick(self) -> int | None:
        """The id picked by hand for the next draw, once."""
        pick, self.pick = self.pick, None
        return pick

    def room(self, n_prompt: int, dimensions: Dimensions) -> int:
        """Positions that the run reads at most: the token drawn last is never read."""
        return min(n_prompt + self.request.max_tokens - 1, dimensions.n_positions)

    def draw(self, position: int, tokenizer: Tokenizer, *, sums: Sums = softmax.sums) -> Sampled:
        """Turn the logits into the token at `position`: by the rule and its coin, or the pick.

        `sums` adds up all weights, as `sampling.distribution` takes it.

        Raises:
            EngineError: what `sampling.distribution` says.
        """
        start = time.perf_counter_ns()
        assert self.logits is not None
        distribution = sampling.distribution(self.logits, self.sampling, sums=sums)
        coin, id = None, self.take_pick()
        if id is None:
            coin = sampling.coin(self.request.seed, position)
            id = distribution.choose(coin)
        self.n_written += 1
        top = distribution.top(N_TOP)
        top_raw, top_final = distribution.raw_of(top), distribution.final(top)
        rank = distribution.rank(id)
        one = np.array([id])
        sampled = Sampled(
            position=position,
            token=tokenizer.token(id),
            coin=coin,
            sampling=self.sampling,
            raw_prob=float(top_raw[rank] if rank < N_TOP else distribution.raw_of(one)[0]),
            final_prob=float(top_final[rank] if rank < N_TOP else distribution.final(one)[0]),
            n_kept=distribution.n_kept,
            entropy=distribution.entropy,
            rank=rank,
            span=(start, start),
            top_ids=frozen(top.astype(np.int32)),
            top_raw=frozen(top_raw),
            top_final=frozen(top_final),
        )
        return replace(sampled, span=(start, time.perf_counter_ns()))

    def ends(self, ids: list[int], n_positions: int) -> bool:
        """Whether a stop rule holds after the last draw; it also sets the reason."""
        rules: tuple[tuple[bool, Reason], ...] = (
            (ids[-1] == END_OF_TEXT, "end of text"),
            (self.n_written >= self.request.max_tokens, "max tokens"),
            (len(ids) > n_positions, "context full"),
        )
        self.reason = next((reason for holds, reason in rules if holds), "stopped")
        return self.reason != "stopped"


def warm_up(n_vocab: int, tokenizer: Tokenizer, *, sums: Sums) -> None:
    """Draw once from nothing: the first draw of all takes five times as long as the others."""
    run = Underway(Request("x"), lambda: False, Sampling())
    run.logits = np.zeros(n_vocab, np.float32)
    run.draw(0, tokenizer, sums=sums)


def failed(error: BaseException) -> RunFailed:
    """The terminal event that tells of an exception."""
    said, detail = _said(error), "".join(traceback.format_exception(error))
    return RunFailed(said.kind, str(said), detail, time.perf_counter_ns())


def _said(error: BaseException) -> EngineError:
    if isinstance(error, EngineError):
        return error
    name = type(error).__name__
    if isinstance(error, MemoryError) or name == "OutOfMemoryError":  # torch's is no MemoryError
        return EngineError("out_of_memory")
    return EngineError("internal", reason=f"{name}: {error}")
