"""The .venv folder: made once, mended when half-made, and known as ready by a stamp in it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from packages import UNFINISHED
from steps import Failure, Step

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
STAMP = "decodescope.json"
DEBIAN_PACKAGE = {"Python's ensurepip": f"python{PYTHON}-venv"}  # Debian leaves it out


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a .venv was made for, and the sha256 of each lock that is installed in it."""

    python: str = ""
    torch: str = ""
    locks: dict[str, str] = field(default_factory=dict)

    def holds(self, other: Stamp) -> bool:
        """Whether everything the other asks for is here."""
        return self.fits(other) and other.locks.items() <= self.locks.items()

    def fits(self, other: Stamp) -> bool:
        """Whether what differs can be installed into the same folder."""
        return (self.python, self.torch) == (other.python, other.torch)

    def lacks(self, other: Stamp) -> list[str]:
        """The locks of the other that are not installed here, in the other's order."""
        return [lock for lock, sha256 in other.locks.items() if self.locks.get(lock) != sha256]


def wanted(locks: list[Path], torch: str) -> Stamp:
    """The stamp of an environment with these locks and this build of torch."""
    sha256 = {lock.name: hashlib.sha256(lock.read_bytes()).hexdigest() for lock in locks}
    return Stamp(PYTHON, torch, sha256)


def python_in(folder: Path, *, windows: bool = os.name == "nt") -> Path:
    """The environment's own Python.

    >>> python_in(Path(".venv"), windows=False).as_posix()
    '.venv/bin/python'
    """
    return folder / "Scripts" / "python.exe" if windows else folder / "bin" / "python"


def read_stamp(folder: Path) -> Stamp:
    """What the folder says it holds; an empty stamp if it says nothing that can be read."""
    try:
        found = json.loads((folder / STAMP).read_text())
        stamp = Stamp(found["python"], found["torch"], dict(found["locks"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Stamp()
    return stamp if _is_sound(folder) else Stamp()


def write_stamp(folder: Path, stamp: Stamp) -> None:
    """Record what is installed, whole or not at all."""
    fresh = folder / f"{STAMP}.new"
    fresh.write_text(json.dumps(asdict(stamp), indent=1))
    fresh.replace(folder / STAMP)


def add_lock(folder: Path, stamp: Stamp, *, name: str, goal: Stamp) -> Stamp:
    """The stamp with one more lock of the goal, recorded."""
    grown = replace(stamp, locks={**stamp.locks, name: goal.locks[name]})
    write_stamp(folder, grown)
    return grown


def missing(folder: Path, goal: Stamp) -> dict[str, str]:
    """What this Python lacks to make the environment, and the Debian package that brings it."""
    return {} if _can_make() or usable(folder, goal) else DEBIAN_PACKAGE


def usable(folder: Path, goal: Stamp) -> bool:
    """Whether the environment that is there can grow into the goal."""
    stamp = read_stamp(folder)
    return stamp.fits(goal) or (stamp == Stamp() and _is_sound(folder) and _has_pip(folder))


def provide(folder: Path, goal: Stamp, step: Step) -> Stamp:
    """Make the environment, or take the one that is there if it can grow into the goal.

    Raises:
        Failure: it cannot be made, with the reason.
    """
    if usable(folder, goal):
        step.result = "found"
        return replace(goal, locks=read_stamp(folder).locks)
    if folder.exists():
        step.note(f"{folder.name} is half-made or for another Python or torch: making it anew")
    _make(folder, step)
    step.result = "made"
    return replace(goal, locks={})


def _is_sound(folder: Path) -> bool:
    """Whether nothing was cut off here, and the Python it was made from is still there."""
    return python_in(folder).exists() and not (folder / UNFINISHED).exists()


def _has_pip(folder: Path) -> bool:
    """Whether this is a whole environment of the Python that runs now."""
    ask = "import pip, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [str(python_in(folder)), "-I", "-c", ask], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.strip() == PYTHON


def _make(folder: Path, step: Step) -> None:
    command = [sys.executable, "-m", "venv", "--clear", str(folder)]
    if _has("ensurepip"):
        _run(command, step)
        return
    # The pip that this Python has can put one into an environment made without.
    _run([*command, "--without-pip"], step)
    pip = [sys.executable, "-m", "pip", "--python", str(python_in(folder))]
    _run([*pip, "install", "--disable-pip-version-check", "pip"], step)


def _can_make() -> bool:
    """Whether this Python can make an environment with pip in it; Debian's own may not."""
    return _has("venv") and (_has("ensurepip") or _has("pip"))


def _has(module: str) -> bool:
    importlib.invalidate_caches()  # it may have been installed since this process began
    return importlib.util.find_spec(module) is not None


def _run(command: list[str], step: Step) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    with step.log.open("a", encoding="utf-8") as log:
        log.write(done.stdout)
    if done.returncode != 0:
        details = (*done.stdout.strip().splitlines()[-4:], f"Log: {step.log}")
        raise Failure("The virtual environment could not be made.", details)
