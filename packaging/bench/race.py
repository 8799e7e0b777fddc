"""Engines in turn, prompt by prompt and round by round, each run with what others took from it."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import crew
from bench.crew import Lost, Worker
from bench.peers import PEERS
from bench.table import BARE, OURS, Loaded, Roofs, Run, best
from engine import tokenizer
from engine.events import Dimensions
from engine.floors import Limits

TEXT = "Once upon a time, there was a little girl named Lily. One spring day"  # 16 tokens
WARM = 2  # tokens after each prompt before any clock counts


@dataclass(frozen=True, slots=True)
class Lane:
    """Something to time: an engine with weights of one dtype; ours records or does not."""

    engine: str
    dtype: str
    worker: Worker

    def write(self, prompt: int, n_tokens: int) -> dict[str, Any]:
        """Ask for so many tokens after a prompt of that many, a multiple of 16.

        Raises:
            Lost: the process ended.
        """
        text = TEXT * (prompt // 16)
        ids = tokenizer.load().ids(text)
        assert len(ids) == prompt
        return self.worker.ask(text=text, ids=ids, n_tokens=n_tokens, recording=self.engine != BARE)


@dataclass(slots=True)
class Race:
    """The engines at work, what they did, and sentences about those that are not."""

    dimensions: Dimensions
    prompts: list[int]
    n_threads: int
    n_tokens: int
    lanes: list[Lane] = field(default_factory=list)
    loaded: dict[tuple[str, str], Loaded] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    limits: dict[str, list[Limits]] = field(default_factory=dict)  # by dtype, one a round
    notes: list[str] = field(default_factory=list)

    @property
    def roofs(self) -> Roofs:
        """By the best rates of all rounds."""
        found = {dtype: best(limits) for dtype, limits in self.limits.items()}
        return Roofs(self.dimensions, found)

    def run(self, dtypes: list[str], n_rounds: int, *, folder: Path, place: Path) -> None:
        """Load everything, warm everything, then the rounds; all processes are gone after it."""
        with ExitStack() as stack:
            for dtype in dtypes:
                for engine in PEERS:
                    self._add(engine, dtype, folder, place, stack)
            for lane in list(self.lanes):
                _tell(f"warming {lane.engine} {lane.dtype}")
                for prompt in self.prompts:
                    self._write(lane, prompt, WARM)
            prober = Worker(
                "limits", ",".join(dtypes), str(self.n_threads), n_threads=self.n_threads
            )
            stack.callback(prober.close)
            for number in range(n_rounds):
                self._measure(prober)
                self._round(number)
        _tell("")

    def _add(self, engine: str, dtype: str, folder: Path, place: Path, stack: ExitStack) -> None:
        _tell(f"loading {engine} {dtype}")
        try:
            worker = crew.start(engine, dtype, folder, place, n_threads=self.n_threads)
        except Lost as why:
            self.notes.append(f"{engine} {dtype} left out: {why}")
            return
        stack.callback(worker.close)
        loaded = Loaded(worker.hello["load_s"], worker.hello["item_weight"], None)
        # One process records and does not: two would each choose their own kernels.
        for name in (engine, BARE) if engine == OURS else (engine,):
            self.lanes.append(Lane(name, dtype, worker))
            self.loaded[name, dtype] = loaded

    def _round(self, number: int) -> None:
        turn = number % max(1, len(self.lanes))  # each round another one begins
        for prompt in self.prompts:
            _tell(f"round {number + 1}: prompt of {prompt}")
            lanes = self.lanes[turn:] + self.lanes[:turn]
            for lane in reversed(lanes) if number % 2 else lanes:
                self._time(lane, prompt, number)

    def _time(self, lane: Lane, prompt: int, number: int) -> None:
        time.sleep(crew.PAUSE)
        # Who was idle while others worked finds its weights in no cache and its threads asleep; one
        # that has just worked would be ahead of it.
        self._write(lane, min(self.prompts), WARM)
        pids = (os.getpid(), lane.worker.pid)
        before = crew.usage(pids)
        said = self._write(lane, prompt, self.n_tokens)
        if said is None:
            return
        foreign = crew.foreign_share(before, crew.usage(pids), os.cpu_count() or 1)
        run = Run(
            engine=lane.engine,
            dtype=lane.dtype,
            prompt=prompt,
            round=number,
            ids=tuple(said["ids"]),
            first_s=said["first_s"],
            rest_s=said["rest_s"],
            foreign=foreign,
        )
        self.runs.append(run)
        if lane.engine != BARE:  # one process serves both, so the peak is that of recording
            key = (lane.engine, lane.dtype)
            self.loaded[key] = replace(self.loaded[key], peak_rss_bytes=said["peak_bytes"])

    def _write(self, lane: Lane, prompt: int, n_tokens: int) -> dict[str, Any] | None:
        """What the engine says, or None when its process has ended."""
        if lane not in self.lanes:
            return None
        try:
            return lane.write(prompt, n_tokens)
        except Lost as why:
            self.lanes = [other for other in self.lanes if other.worker is not lane.worker]
            self.notes.append(f"{lane.engine} {lane.dtype} broke off: {why}")
            return None

    def _measure(self, prober: Worker) -> None:
        time.sleep(crew.PAUSE)
        for dtype, limits in prober.ask().items():
            self.limits.setdefault(dtype, []).append(Limits(**limits))


def _tell(doing: str) -> None:
    """What goes on, on one line that is written over, for whoever waits at a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{doing}", end="", file=sys.stderr, flush=True)
