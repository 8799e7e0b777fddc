"""How the bootstrap talks: numbered steps, seconds, bytes, and one sentence when it fails.

Everything goes to standard error, so that standard output belongs to the program that is run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


class Failure(Exception):
    """What went wrong and what to do, in one sentence; `details` are shown below it."""

    def __init__(self, sentence: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.details = details


def say(text: str = "") -> None:
    """One line for the person at the terminal."""
    print(text, file=sys.stderr, flush=True)


@dataclass(slots=True)
class Steps:
    """Numbers the steps, times each of them, and keeps what the tools print in a log."""

    total: int
    log: Path
    _number: int = field(default=0, init=False)

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Announce a step, then say how it went and how long it took."""
        self._number += 1
        say(f"[{self._number}/{self.total}] {title}")
        step = Step(self.log)
        try:
            yield step
        finally:
            step.passing("")
        say(f"      {step.result}  {step.seconds:.1f} s")


@dataclass(slots=True)
class Step:
    """One step under way."""

    log: Path
    result: str = "done"
    _start: float = field(default_factory=time.monotonic, init=False)

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._start

    def note(self, text: str) -> None:
        """Say something within the step, in place of the passing line."""
        self.passing("")
        say(f"      {text}")

    def passing(self, text: str) -> None:
        """Show a line that the next one replaces; nothing where the output is not a terminal."""
        if sys.stderr.isatty():
            shown = f"      {text}" if text else ""
            print(f"\r\x1b[K{shown}", end="", file=sys.stderr, flush=True)


def megabytes(n_bytes: int) -> str:
    """Bytes as pip counts them, in millions.

    >>> megabytes(80_312_000)
    '80.3 MB'
    """
    return f"{n_bytes / 1e6:.1f} MB"
