"""pip, run with exact versions only: what it fetches as it fetches it, and why it failed."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from steps import Failure, Step, megabytes

LOCKED = ["--no-deps", "--require-hashes", "--only-binary=:all:"]  # nothing else can come along
PLAIN = ["--progress-bar=off", "--no-input", "--disable-pip-version-check", "--retries=2"]
WORTH_A_LINE = 1_000_000  # bytes
UNFINISHED = "decodescope.unfinished"  # in .venv while pip writes packages into it
UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}

# What pip prints, and what it means for the person who waits; the first that fits is said.
REASONS = {
    r"No space left on device": "the disk is full",
    r"DO NOT MATCH THE HASHES": "a package is not the one that the lock names",
    r"CERTIFICATE_VERIFY_FAILED|NO_CERTIFICATE|CA certificate bundle": (
        "the certificate of its package index is not trusted here: where a proxy has its own, "
        "PIP_CERT names the file with it"
    ),
    r"name resolution|Name or service not known|nodename nor servname|getaddrinfo failed"
    r"|NewConnectionError|Network is unreachable|ConnectTimeout|ReadTimeout|ProxyError": (
        "its package index cannot be reached: check the network, or the proxy, and run this again"
    ),
    r"No matching distribution": "there is no wheel for this Python on this machine",
    r"Permission denied": "a file or folder is not writable",
}


@dataclass(frozen=True, slots=True)
class Arrival:
    """One file that pip fetches, takes from its cache or finds on this machine."""

    name: str
    n_bytes: int
    downloaded: bool


def arrival(line: str) -> Arrival | None:
    """What one line of pip's output says about a wheel, if anything.

    >>> arrival("  Downloading numpy-2.4.6-cp311-cp311-macosx_14_0_arm64.whl (5.2 MB)")
    Arrival(name='numpy', n_bytes=5200000, downloaded=True)
    """
    fetched = re.match(r"\s*(Downloading|Using cached) (\S+)\.whl \(([\d.]+) (\w+)\)", line)
    if fetched:
        how, file, count, unit = fetched.groups()
        n_bytes = round(float(count) * UNITS.get(unit, 0))
        return Arrival(_name(file), n_bytes, how == "Downloading")
    local = re.match(r"\s*Processing (.+\.whl)", line)
    if local and Path(local[1]).is_file():
        return Arrival(_name(local[1]), Path(local[1]).stat().st_size, downloaded=False)
    return None


def reason(output: str) -> str:
    """Why pip failed, in a few words; the log has the rest."""
    found = (why for pattern, why in REASONS.items() if re.search(pattern, output))
    return next(found, "its last lines say why")


def install(python: Path, arguments: list[str], step: Step) -> None:
    """Have the pip of this Python install what the arguments name.

    Raises:
        Failure: with the reason, pip's last lines and where the log is.
    """
    folder = python.parents[1]
    command = [str(python), "-I", "-m", "pip", "install", *PLAIN, *arguments]
    # pip unpacks in the temporary folder, and a /tmp in memory may be smaller than torch.
    with tempfile.TemporaryDirectory(prefix="pip-", dir=folder) as scratch:
        environ = {**os.environ, "TMPDIR": scratch, "TMP": scratch, "TEMP": scratch}
        with subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            try:
                lines = _follow(process, folder / UNFINISHED, Path(scratch), step)
            except BaseException:  # Ctrl-C: pip goes before its temporary folder
                process.kill()
                raise
    if process.returncode != 0:
        why = reason("\n".join(lines))
        details = (*_last_words(lines), f"Log: {step.log}")
        raise Failure(f"pip could not install the packages: {why}.", details)
    (folder / UNFINISHED).unlink(missing_ok=True)


def _follow(
    process: subprocess.Popen[str], unfinished: Path, scratch: Path, step: Step
) -> list[str]:
    """Say what arrives until pip ends; every line it printed."""
    lines: list[str] = []
    arrivals: list[Arrival] = []
    with step.log.open("a", encoding="utf-8") as log:
        for line in _lines(process):
            if line is None:
                step.passing(_progress(lines, arrivals, scratch, step))
                continue
            log.write(line)
            lines.append(line.rstrip())
            if line.startswith("Installing"):
                unfinished.touch()  # what is written from here on may be cut off anywhere
            if new := arrival(line):
                arrivals.append(new)
                if new.n_bytes >= WORTH_A_LINE:
                    step.note(f"{new.name}  {megabytes(new.n_bytes)}")
    step.result = _summary(arrivals)
    return lines


def _last_words(lines: list[str]) -> list[str]:
    """Pip's own errors if it names any, else the end of what it printed."""
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or [line for line in lines if line])[-4:]


def _summary(arrivals: list[Arrival]) -> str:
    """What came, and how much of it over the network.

    >>> _summary([Arrival("torch", 191_800_000, downloaded=False)])
    '1 package, 191.8 MB, none of it downloaded'
    """
    everything = sum(a.n_bytes for a in arrivals)
    fetched = sum(a.n_bytes for a in arrivals if a.downloaded)
    share = "all" if fetched == everything else megabytes(fetched) if fetched else "none"
    count = f"{len(arrivals)} package{'s' * (len(arrivals) != 1)}"
    return f"{count}, {megabytes(everything)}, {share} of it downloaded"


def _progress(lines: list[str], arrivals: list[Arrival], scratch: Path, step: Step) -> str:
    if lines and lines[-1].startswith("Installing"):
        return f"unpacking  {step.seconds:.0f} s"
    here = sum(_size(file) for file in scratch.rglob("*.whl"))
    announced = sum(a.n_bytes for a in arrivals)
    return f"{megabytes(here)} of {megabytes(announced)} so far  {step.seconds:.0f} s"


def _lines(process: subprocess.Popen[str]) -> Iterator[str | None]:
    """What the process prints, and None after every half second without a line."""
    assert process.stdout is not None
    arrived: queue.Queue[str | None] = queue.Queue()

    def read(stream: IO[str]) -> None:
        for line in stream:
            arrived.put(line)
        arrived.put(None)

    # Windows cannot wait for a pipe with a time limit; a thread and a queue can, everywhere.
    reader = threading.Thread(target=read, args=(process.stdout,), daemon=True)
    reader.start()
    while True:
        try:
            line = arrived.get(timeout=0.5)
        except queue.Empty:
            yield None
            continue
        if line is None:
            reader.join()
            return
        yield line


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # pip has moved it meanwhile
        return 0


def _name(file: str) -> str:
    """The package a wheel's file name or path begins with."""
    return Path(file).name.split("-")[0]
