"""Decode steps recorded once and repeated, so that a card need not wait for Python between kernels.

A step of GPT-2 is some two hundred small operations; a CUDA graph tells a card all of them at once.
What a step leaves (logits, new rows, the token that the device itself drew) comes to the CPU as one
packet, and up to three steps are made ahead of the one that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.ahead import N_SLOTS, Ahead
from engine.checkpoint import Source
from engine.device_sampling import Coins, Knobs, draw
from engine.errors import sentence
from engine.events import Floats, frozen
from engine.models import kernels, streams
from engine.models.gpt2 import Weights
from engine.models.streams import Tick
from engine.queues import CudaQueue, Queue
from engine.request import Sampling
from engine.runners import Rows, Runner
from engine.state import K, Q, State, V

SHORTEST = 128  # positions that the shortest graph looks at; each next one looks at twice as many


class Packet:
    """All that one step leaves, side by side in one tensor, so that one copy brings it.

    Attributes:
        numbers: (n,) float32: the whole.
        logits: (V,).
        qkv: (3, L, H, 1, D).
        residual: (2 L + 1, 1, C).
        token: (1,) int32: what the device drew.
    """

    def __init__(self, state: State, n_vocab: int, numbers: Tensor | None = None) -> None:
        """Divide `numbers`, or as many new ones on the state's device as are needed."""
        n_layer, _, _, n_head, _, head_size = state.qkv.shape
        n_rows, _, _, n_embd = state.residual.shape
        sizes = [n_vocab, 3 * n_layer * n_embd, n_rows * n_embd, 1]
        if numbers is None:
            numbers = torch.zeros(sum(sizes), device=state.qkv.device)
        logits, qkv, residual, token = torch.split(numbers, sizes)
        self.numbers = numbers
        self.logits = logits
        self.qkv = qkv.view(3, n_layer, n_head, 1, head_size)
        self.residual = residual.view(n_rows, 1, n_embd)
        self.token = token.view(torch.int32)  # a float32 would not hold every id as itself


class Steps:
    """Recorded steps of one model: the `Device` that `engine.ahead` drives.

    Rows of K and V that the next step is not to see are kept at 0: a graph weighs them by 0 rather
    than leave them out, and 0 times what an overflow leaves there would not be 0.
    """

    def __init__(self, weights: Weights, state: State, queue: Queue, tick: Tick) -> None:
        """Record the draw, and the pass once for each of `contexts`, or once for kernels of ours.

        Raises:
            RuntimeError: torch cannot capture it.
        """
        device, n_vocab = state.qkv.device, len(weights.tokens)
        self._weights, self._state, self._tick = weights, state, tick
        self._token = torch.zeros(1, dtype=torch.int64, device=device)
        self._place = torch.zeros(1, dtype=torch.int64, device=device)
        self._knobs = Knobs(device)
        self._coins = Coins(state.n_positions, device)
        self._packet = Packet(state, n_vocab)
        self._slots = [queue.slot(len(self._packet.numbers)) for _ in range(N_SLOTS)]
        self._packets = [Packet(state, n_vocab, slot.numbers) for slot in self._slots]
        self._end = state.n_positions  # rows from here on are 0; those before may hold anything
        # Our kernels read the place on the device, and look no further than that in any graph.
        looked_at = contexts(state.n_positions)[-1 if tick is kernels.tick else 0 :]
        self._passes = {n: queue.record(partial(self._pass, n)) for n in looked_at}
        self._draw = queue.record(self._draw_next)

    def draw_by(self, sampling: Sampling, seed: int) -> None:
        """As `Device` says."""
        self._knobs.turn(sampling)
        self._coins.turn(seed)

    def launch(self, slot: int, *, position: int, token: int | None) -> None:
        """As `Device` says."""
        if token is None:
            self._end = position + 1
        else:
            self.make_room(position, position + 1)
            self._token.fill_(token)
        self._place.fill_(position)
        self._coins.reach(position)
        self._slots[slot].begin()
        self._passes[next(n for n in self._passes if n > position)]()
        self._draw()
        self._slots[slot].take(self._packet.numbers)

    def drawn(self, slot: int) -> int:
        """As `Device` says."""
        return int(self.packet(slot).token)

    def packet(self, slot: int) -> Packet:
        """What the step launched into this slot last left; waits for it."""
        self._slots[slot].wait()
        return self._packets[slot]

    def took_ns(self, slot: int) -> int | None:
        """How long that step took by the device's clock: the pass and the draw."""
        self._slots[slot].wait()
        return self._slots[slot].took_ns()

    def make_room(self, first: int, end: int) -> None:
        """Set rows of K and V from `first` on to 0, as those below `end` will be written."""
        if first < self._end:
            self._state.qkv[:, K:, :, :, first : self._end].zero_()
        self._end = end

    def _pass(self, context: int) -> None:
        state, packet = self._state, self._packet
        with torch.inference_mode():
            logits = self._tick(self._weights, state, self._token, self._place, context=context)
            packet.logits.copy_(logits[0])  # (V,)
            rows = state.qkv[:, :, 0].transpose(0, 1)  # (3, L, H, T, D)
            torch.index_select(rows, 3, self._place, out=packet.qkv)
            torch.index_select(state.residual[:, 0], 1, self._place, out=packet.residual)

    def _draw_next(self) -> None:
        with torch.inference_mode():
            coin = self._coins.numbers.index_select(0, self._place)  # (1,)
            token = draw(self._packet.logits, self._knobs, coin)  # (1,)
            self._token.copy_(token)
            self._packet.token.copy_(token)


class GraphRunner(Runner):
    """A runner whose decode steps are recorded, and made ahead where the next draw is known.

    Prefill is the eager one. The attributes are those of `Runner`.
    """

    def __init__(self, eager: Runner, queue: Queue, *, tick: Tick = streams.tick) -> None:
        """Record the steps of a runner, which is not to be used by itself any more.

        Args:
            eager: with the weights and the state.
            queue: of its device.
            tick: makes a step; `kernels.tick` does so in Triton.

        Raises:
            RuntimeError: they cannot be captured.
        """
        vars(self).update(vars(eager))  # the same weights, state and settings
        self.tick = tick
        self._steps = Steps(self._weights, self.state, queue, tick)
        self._ahead = Ahead(self._steps, n_positions=self.state.n_positions)
        self._slot: int | None = None  # of the last pass, if that was a step
        self._warm_up()

    def prefill(self, ids: Sequence[int], *, first: int) -> Iterator[int]:
        """As `Runner.prefill`."""
        self._ahead.forget()
        self._slot = None
        self._steps.make_room(first, first + len(ids))
        return super().prefill(ids, first=first)

    def step(self, id: int, *, position: int) -> None:
        """As `Runner.step`; returns when the step is on its way, or was already."""
        assert 0 <= position <= self.state.position
        assert position < self.state.n_positions
        self._spans, self._logits = (), None
        self._slot = self._ahead.step(id, position=position)
        self.state.position = position + 1

    def logits(self) -> NDArray[np.float32]:
        """As `Runner.logits`."""
        if self._slot is None:
            return super().logits()
        return _copied(self._steps.packet(self._slot).logits)

    def rows(
        self,
        first: int,
        count: int,
        *,
        attention: bool = True,
        residual: bool = True,
        room: int = 0,
    ) -> Rows:
        """As `Runner.rows`; those of the last step do not wait for the steps after it."""
        if self._slot is None or (first, count, room) != (self._ahead.position, 1, 0):
            return super().rows(first, count, attention=attention, residual=residual, room=room)
        packet, q, k, v = self._steps.packet(self._slot), None, None, None
        if attention:
            qkv = _copied(packet.qkv)  # (3, L, H, 1, D)
            q, k, v = qkv[Q], qkv[K], qkv[V]
        return Rows(q, k, v, _copied(packet.residual) if residual else None)

    def device_ns(self) -> int | None:
        """How long the last step took by the device's own clock; None after a prefill."""
        return None if self._slot is None else self._steps.took_ns(self._slot)

    def expect(self, sampling: Sampling, seed: int) -> None:
        """Say how the next token will be drawn: the device goes on by that."""
        self._ahead.expect(sampling, seed)

    def _warm_up(self) -> None:
        super()._warm_up()
        self._slot = None


def runner_for(
    source: Source, *, device: str = "auto", dtype: str = "auto", n_threads: int | None = None
) -> Runner:
    """The fastest runner for a model on a device; the arguments and errors are those of `Runner`.

    On a card: recorded steps of Triton kernels where these are here and answer rightly, else of
    torch's own. What cannot be used though it is here is told in its `note`.
    """
    eager = Runner(source, device=device, dtype=dtype, n_threads=n_threads)
    return recorded(eager, CudaQueue) if eager.device == "cuda" else eager


def recorded(eager: Runner, queue: Callable[[], Queue]) -> Runner:
    """A GraphRunner of this one, or itself with a note where torch cannot capture its steps."""
    if kernels.obstacle(eager.weights, eager.state) is None:
        reason = kernels.failure(eager.weights, eager.state)
        if reason is None:
            runner = _recorded(eager, queue, kernels.tick, "note_no_kernels")
            if isinstance(runner, GraphRunner):
                return runner
        else:
            eager.note = sentence("note_no_kernels", {"reason": reason})
    return _recorded(eager, queue, streams.tick, "note_no_graphs")


def _recorded(eager: Runner, queue: Callable[[], Queue], tick: Tick, otherwise: str) -> Runner:
    try:
        return GraphRunner(eager, queue(), tick=tick)
    except RuntimeError as error:
        said = str(error).partition("\n")[0] or type(error).__name__
    eager.note = sentence(otherwise, {"reason": said})
    return eager


def contexts(n_positions: int) -> tuple[int, ...]:
    """How many positions each graph looks at; a step takes the first that is above its own.

    >>> contexts(1024), contexts(160)
    ((128, 256, 512, 1024), (128, 160))
    """
    found = [SHORTEST]
    while found[-1] < n_positions:
        found.append(2 * found[-1])
    return (*found[:-1], n_positions)


def _copied(rows: Tensor) -> Floats:
    return frozen(rows.numpy().copy())
