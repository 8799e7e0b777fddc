"""Several prompts over one model's weights, each in a stream of its own.

A step reads every weight once for all streams, which is what makes a batch pay: a single step waits
for memory, and the arithmetic of a few more rows fits into the wait. The price is bytes: each
stream has buffers as long as the context, whether it fills them or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engine import linear, meter, sampling
from engine import state as states
from engine.errors import EngineError
from engine.events import frozen
from engine.models import gpt2, streams
from engine.runners import CHUNK, Runner
from engine.state import Bytes, State
from engine.tokenizer import END_OF_TEXT


class Batch:
    """B streams of any lengths: each gets a prompt, then all step together.

    Not for two threads at once. The runner may be used in between: only the weights are shared.

    Attributes:
        state: the buffers of all streams.
        positions: how many positions of each stream are read; also its next one.
    """

    def __init__(self, runner: Runner, n_streams: int) -> None:
        """Reserve the buffers; the weights stay the runner's.

        Raises:
            EngineError: kind "batch_memory".
        """
        assert n_streams >= 1
        self._runner = runner
        needed = states.bytes_for(runner.dimensions, n_streams=n_streams)
        available = meter.available_bytes(runner.device)
        if available is not None and needed > available:
            raise EngineError(
                "batch_memory",
                n_streams=n_streams,
                device=runner.device,
                needed=needed,
                available=available,
            )
        self.state = State(runner.dimensions, device=runner.device, n_streams=n_streams)
        self.positions = [0] * n_streams
        self._last = [0] * n_streams  # the last token that each stream has read

    @property
    def reserved(self) -> Bytes:
        """Bytes of the whole buffers."""
        return self.state.reserved

    @property
    def used(self) -> Bytes:
        """Bytes of the rows that hold what the streams have read."""
        return self.state.used(sum(self.positions))

    def prefill(self, stream: int, ids: Sequence[int]) -> NDArray[np.float32]:
        """Read a whole prompt in one stream, from position 0 on; what was there is forgotten.

        Returns:
            Logits (V,) of its last position; fresh and read-only.

        Raises:
            EngineError: kind "prompt_empty" or "context_too_long".
        """
        runner, limit = self._runner, self.state.n_positions
        assert 0 <= stream < len(self.positions)
        assert all(0 <= id < runner.dimensions.n_vocab for id in ids)
        if not ids:
            raise EngineError("prompt_empty")
        if len(ids) > limit:
            raise EngineError("context_too_long", found=len(ids), limit=limit)
        for first in range(0, len(ids), CHUNK):
            chunk = ids[first : first + CHUNK]
            linear.use_threads(runner.threads(len(chunk)))
            gpt2.prefill(runner.weights, self.state, chunk, first=first, stream=stream)
        self.positions[stream], self._last[stream] = len(ids), ids[-1]
        last = len(ids) - 1
        logits = gpt2.logits(runner.weights, self.state, position=last, stream=stream)
        return frozen(logits.cpu().numpy())

    def step(self, ids: Mapping[int, int]) -> NDArray[np.float32]:
        """Read one token in each of some streams: the decode step.

        The pass is made for all B streams, as one shape on the same addresses. One that is left out
        reads its last token once more at the same place: it writes the same row again, so it stays
        as it is, and costs the time of its row. That is the waste of a static batch.

        Args:
            ids: the token of each stream that goes on; none of them may be full.

        Returns:
            Logits, float32, a row (V,) for each of `ids` in their order; fresh and read-only.
        """
        assert ids
        n_streams, dimensions = len(self.positions), self._runner.dimensions
        for stream, id in ids.items():
            assert 0 <= stream < n_streams
            assert 0 <= id < dimensions.n_vocab
            assert self.positions[stream] < dimensions.n_positions
        for stream, id in ids.items():
            self._last[stream] = id
            self.positions[stream] += 1
        places = [max(position - 1, 0) for position in self.positions]  # an empty one waits at 0
        linear.use_threads(self._runner.threads(n_streams))
        with torch.inference_mode():
            device = self._runner.device
            logits = streams.tick(
                self._runner.weights,
                self.state,
                torch.tensor(self._last, device=device),
                torch.tensor(places, device=device),
                context=max(places) + 1,
            )  # (B, V)
            if list(ids) != list(range(n_streams)):
                logits = logits[list(ids)]  # (n, V)
            return frozen(logits.cpu().numpy())


def greedy(runner: Runner, prompts: Sequence[Sequence[int]], *, max_tokens: int) -> list[list[int]]:
    """What the model writes after each prompt if the likeliest token is taken each time.

    All prompts are written on together. A text ends with end-of-text, with `max_tokens` tokens or
    where its context is full, as a single run does; of equal logits the lowest id is taken.

    Returns:
        The written ids of each prompt, its end-of-text included; one at least.

    Raises:
        EngineError: kind "logits_not_finite" or "logits_empty", or as `Batch` and its `prefill`.
    """
    assert max_tokens >= 1
    batch = Batch(runner, len(prompts))
    written = [[_likeliest(batch.prefill(stream, ids))] for stream, ids in enumerate(prompts)]

    def goes_on(stream: int) -> bool:
        ids = written[stream]
        full = batch.positions[stream] == batch.state.n_positions
        return ids[-1] != END_OF_TEXT and len(ids) < max_tokens and not full

    while live := {stream: ids[-1] for stream, ids in enumerate(written) if goes_on(stream)}:
        for stream, logits in zip(live, batch.step(live), strict=True):
            written[stream].append(_likeliest(logits))
    return written


def _likeliest(logits: NDArray[np.float32]) -> int:
    sampling.peak(logits)  # refuses what is no number
    return int(logits.argmax())
