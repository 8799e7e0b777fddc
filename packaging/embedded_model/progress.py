"""What a training run says while it works."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

LINES = 60.0  # seconds between lines where the last one cannot be written over
COLUMNS = ("A", "B", "stories", "copy_first", "copy_second")
HEADER = "     step   tokens   loss  " + "".join(
    f"{name.replace('copy_', ''):>8}" for name in COLUMNS
)


def row(line: Mapping[str, Any], rate: float) -> str:
    """A line of the log under HEADER, with the tokens a second since the line before."""
    figures = "".join(f"{line[n]:8.3f}" if n in line else f"{'-':>8}" for n in COLUMNS)
    tokens = f"{line['tokens'] / 1e6:.2f} M"
    return f"{line['step']:9,} {tokens:>8} {line['loss']:6.3f}  {figures}  {rate:,.0f} tok/s"


class Progress:
    """Loss, tokens a second and time left: one line on a terminal, now and then one elsewhere."""

    def __init__(self, *, n_steps: int, batch_tokens: int) -> None:
        self._n_steps, self._batch_tokens = n_steps, batch_tokens
        self._on_terminal = sys.stderr.isatty()
        self._shown = time.monotonic()
        self._seconds, self._steps = 0.0, 0  # of steps since the last measurement

    @property
    def rate(self) -> float:
        """Tokens a second since the last measurement, that and saving left out."""
        return self._steps * self._batch_tokens / self._seconds if self._steps else 0.0

    def stepped(self, step: int, loss: float, seconds: float, left: float | None) -> None:
        """One more step.

        Args:
            step: steps taken.
            loss: of this step, in nats.
            seconds: that it took.
            left: seconds until this sitting is over; None if it lasts as long as the run.
        """
        self._seconds, self._steps = self._seconds + seconds, self._steps + 1
        now = time.monotonic()
        if now - self._shown < (0.5 if self._on_terminal else LINES):
            return
        self._shown = now
        whole = (self._n_steps - step) * self._batch_tokens / self.rate
        sitting = whole if left is None else min(left, whole)
        text = (
            f"{step / self._n_steps:6.1%} of the run   loss {loss:.3f}   {self.rate:,.0f} tok/s   "
            f"{clock(sitting)} left"
        )
        if sitting < whole:
            text += f", {clock(whole)} for the whole run"
        print(f"\r{text}\033[K" if self._on_terminal else text, end="", file=sys.stderr)
        print("", end="" if self._on_terminal else "\n", file=sys.stderr, flush=True)

    def measured(self, line: Mapping[str, Any]) -> None:
        """A line of the log, which stays."""
        if self._on_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        print(row(line, self.rate), flush=True)
        self._seconds, self._steps = 0.0, 0


def clock(seconds: float) -> str:
    """A time as people read it.

    >>> clock(59.6), clock(3700)
    ('1:00', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
