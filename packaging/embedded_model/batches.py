"""The rows of a step: a draw that depends on the seed and the step alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embedded_model.loss import UNSCORED
from embedded_model.refusal import Refusal
from embedded_model.settings import COPYING, Settings, Stage
from embedded_model.streams import Stream, Streams

Rows = NDArray[np.int64]
SHORTEST, SHORT = (
    4,
    40,
)  # tokens of a segment that is copied: at least, and below this half the time


class Batches:
    """All batches of a run, any of which can be asked for first."""

    def __init__(self, settings: Settings, streams: Streams) -> None:
        """Check that there is something to cut every row from.

        Raises:
            Refusal: no text at all for a stage, or one shorter than a row.
        """
        self._settings, self._streams = settings, streams
        for stage in settings.stage:
            self._shares(stage)

    def at(self, step: int) -> tuple[Rows, Rows]:
        """Inputs and targets of a step.

        Returns:
            Two (B, T) arrays, T the stage's context and B T the batch's tokens or a little less:
            places in the small vocabulary, and the place that comes next, UNSCORED where it is not
            counted.
        """
        stage = self._settings.stage_at(step)
        shares = self._shares(stage)
        names, odds = list(shares), np.array([*shares.values()])
        odds /= odds.sum()
        n_rows, length = self._settings.run.batch_tokens // stage.context, stage.context + 1
        random = np.random.default_rng([self._settings.run.seed, step])
        pairs = [
            self._row(names[random.choice(len(names), p=odds)], length, random)
            for _ in range(n_rows)
        ]
        return np.stack([x[:-1] for x, _ in pairs]), np.stack([y[1:] for _, y in pairs])

    def _row(self, name: str, length: int, random: np.random.Generator) -> tuple[Rows, Rows]:
        """(length,) each: tokens, and the same as targets."""
        n_rows = len(self._streams.vocabulary)
        if name == COPYING:
            return copying(length, n_rows, random)
        x = cut(self._streams.training[name], length, random)
        return x, np.where(x == n_rows, UNSCORED, x)

    def _shares(self, stage: Stage) -> dict[str, float]:
        found = stage.shares_of(self._streams.training)
        if not found:
            raise Refusal("The texts hold nothing that a stage of the settings could be cut from.")
        for name in set(found) - {COPYING}:
            n = len(self._streams.training[name].rows)
            if n < stage.context + 2:
                raise Refusal(
                    f"The texts of {name} are {n} tokens, too few for rows of {stage.context}: "
                    "add more, or take the name out of the shares."
                )
        return found


def cut(stream: Stream, length: int, random: np.random.Generator) -> Rows:
    """`length` tokens in a row: half the time from the start of a document."""
    last = len(stream.rows) - length
    if random.random() < 0.5:
        at = min(int(stream.starts[random.integers(len(stream.starts))]), last)
    else:
        at = int(random.integers(last))
    return stream.rows[at : at + length].astype(np.int64)


def copying(length: int, n_rows: int, random: np.random.Generator) -> tuple[Rows, Rows]:
    """A segment of random tokens again and again; only what can be copied is scored.

    In three rows of four the segment fills the row, each time right after the last; in the fourth
    it comes back at random places of a random row. Its tokens are drawn from a window of the
    vocabulary whose size is drawn, too, so that a row has few or many different ones.
    """
    kind = random.random()
    most = length // 2 + 1 if kind < 0.5 else min(SHORT, length // 2 + 1)
    n = random.integers(SHORTEST, most)
    size = int(np.exp(random.uniform(np.log(64), np.log(n_rows))))
    first = int(random.integers(0, min(n_rows - size, 3000) + 1))
    segment = first + random.integers(0, size, n)
    y = np.full(length, UNSCORED, np.int64)
    if kind < 0.75:
        x = np.resize(segment, length)
        y[n + 1 :] = x[n + 1 :]  # the first token that repeats could not be foretold
        return x, y
    x = first + random.integers(0, size, length)
    at, seen = 0, False
    while at + n < length:
        x[at : at + n] = segment
        if seen:
            y[at + 1 : at + n] = segment[1:]
        seen = True
        at += int(n + random.integers(1, 30))
    return x, y
