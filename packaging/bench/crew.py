"""The processes of the bench, and how much of the processor anybody else used meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from bench.peers import PEERS

WORKER = Path(__file__).with_name("worker.py")
PAUSE = 0.3  # seconds; threads of an OpenMP library go on spinning for 0.2 after their last work

_PROC = Path("/proc")


class Lost(Exception):
    """A process ended before it answered; the message is the last line it wrote."""


class Worker:
    """A process of `worker.py`; every `ask` is one line out and one line in."""

    def __init__(self, *arguments: str, n_threads: int) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(n_threads), "HF_HUB_OFFLINE": "1"},
        )
        self.pid = self._process.pid
        try:
            self.hello = self._hear()
        except Lost:
            self.close()
            raise

    def ask(self, **question: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # what it said last is the reason, and hearing finds it
        return self._hear()

    def close(self) -> None:
        """Its input ends, and so does it."""
        self._process.communicate()
        self._errors.close()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").split("\n")
            raise Lost(next((s.strip() for s in reversed(said) if s.strip()), f"it ended: {code}"))
        heard: dict[str, Any] = json.loads(line)
        return heard


def start(engine: str, dtype: str, folder: Path, place: Path, *, n_threads: int) -> Worker:
    """Prepare an engine's file in one process and load it in another, so that peaks stay apart.

    Raises:
        Lost: it is not installed, or cannot do this; the message says which.
    """
    for package in PEERS[engine].packages:
        if find_spec(package) is None:
            raise Lost(f"{package} is not installed")
    maker = Worker(
        *("prepare", engine, dtype, str(folder), str(place), str(n_threads)), n_threads=n_threads
    )
    maker.close()
    path: str = maker.hello["path"]
    return Worker("serve", engine, dtype, path, str(n_threads), n_threads=n_threads)


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor time so far, in clock ticks."""

    everybody: int
    ours: int
    at_s: float


def usage(pids: Iterable[int]) -> Usage | None:
    """What /proc/stat says, and which part of it these processes are; None where it is not."""
    try:
        first = (_PROC / "stat").read_text().split("\n")[0].split()
        ours = sum(_ticks(pid) for pid in pids)
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, first[1:9])
    return Usage(user + nice + system + irq + softirq + steal, ours, time.perf_counter())


def foreign_share(before: Usage | None, after: Usage | None, n_cpu: int) -> float | None:
    """Of all processors' time between two looks, the part that went to anybody else, 0 to 1.

    Time that a virtual machine was not given counts too. A tick is 10 ms, so a run of a tenth of a
    second is known to 10 %.
    """
    if before is None or after is None:
        return None
    ticks = (after.at_s - before.at_s) * n_cpu * os.sysconf("SC_CLK_TCK")
    others = (after.everybody - before.everybody) - (after.ours - before.ours)
    return min(1.0, max(0.0, others / ticks))


def _ticks(pid: int) -> int:
    """User and system time of a process; its name may hold spaces, its last bracket ends it."""
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
