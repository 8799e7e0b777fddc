"""The two commands: set up what is not ready yet, then become the app or the tests."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import environment
import libraries
import packages
import torch_build
from steps import Failure, Steps, say
from torch_build import Torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app import display  # noqa: E402 - the path comes first; it needs nothing but Python

VENV = ROOT / ".venv"
LOG = ROOT / "build" / "bootstrap.log"
LOCK, LOCK_TORCH, LOCK_TEST = (
    ROOT / "packaging" / name for name in ("lock.txt", "lock-torch.txt", "lock-test.txt")
)
USAGE = """usage: python3 packaging/bootstrap.py run [options of the app]
       python3 packaging/bootstrap.py test [options of pytest]

run   sets up everything in .venv and opens the window; where there is no display it runs the
      prompt off screen and writes window.png, attention.png, run.trace and run.json to out/
test  sets up everything and passes the tests

DECODESCOPE_TORCH=cpu or cuda chooses the build of torch instead of the machine."""


def main(arguments: list[str]) -> int:
    """Do what the command line asks; the exit code, if this process is not replaced."""
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    if command not in ("run", "test"):
        say(USAGE)
        return 2
    try:
        return run(rest) if command == "run" else test(rest)
    except Failure as failure:
        say("\n".join(("", str(failure), *(f"    {line}" for line in failure.details))))
    except PermissionError as error:
        where = error.filename or ROOT
        say(f"\n{where} cannot be written: copy the checkout to a folder of yours.")
    except KeyboardInterrupt:
        say("\nStopped: run this again to finish the set-up.")
        return 130
    return 1


def run(arguments: list[str]) -> int:
    """Open the window, or do the same run off screen where there is no display."""
    window = display.answers(os.environ) and "--headless" not in arguments
    set_up([LOCK, LOCK_TORCH], window=window)
    if not window and not {"--headless", "-h", "--help"} & set(arguments):
        say("No display answers here, so the run goes off screen.")
        arguments = ["--headless", *arguments]
    return become(["-m", "app", *arguments])


def test(arguments: list[str]) -> int:
    """Run pytest: everything, or what the arguments name."""
    set_up([LOCK, LOCK_TORCH, LOCK_TEST], window=False)
    # One thread: a tiny model's threads cost more than they bring, and runs repeat bit for bit.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    config = ["-c", str(ROOT / "pyproject.toml")]
    return become(["-m", "pytest", *config, *arguments, *everything(arguments)])


def everything(arguments: list[str]) -> list[str]:
    """The folders that hold tests, unless the arguments name a file or a folder."""
    if any(Path(argument.partition("::")[0]).exists() for argument in arguments):
        return []
    return [str(ROOT / "engine"), str(ROOT / "tests")]


def set_up(locks: list[Path], *, window: bool) -> None:
    """Make sure that everything is here, the system's part first; quick when it is.

    Raises:
        Failure: one of them cannot be had.
    """
    torch = torch_build.fitting(LOCK_TORCH, wish=os.environ.get("DECODESCOPE_TORCH", ""))
    goal = environment.wanted(locks, torch.build)
    absent = libraries.missing(libraries.needed(os.environ, window=window))
    stamp = environment.read_stamp(VENV)
    if stamp.holds(goal) and not absent:
        return
    lacking = stamp.lacks(goal) if stamp.fits(goal) else list(goal.locks)
    if lacking:
        absent = absent | environment.missing(VENV, goal)
    say(f"Setting up Decodescope in {VENV} with Python {platform.python_version()}")
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("")
    start = time.monotonic()
    steps = Steps(total=bool(absent) + bool(lacking) + len(lacking), log=LOG)
    if absent:
        with steps.step("system packages") as step:
            libraries.provide(absent, step)
    if lacking:
        with steps.step("virtual environment") as step:
            stamp = environment.provide(VENV, goal, step)
    for name in lacking:
        _install(name, torch, steps)
        stamp = environment.add_lock(VENV, stamp, name=name, goal=goal)
    say(f"Ready in {time.monotonic() - start:.1f} s.\n")


def _install(name: str, torch: Torch, steps: Steps) -> None:
    python = environment.python_in(VENV)
    if name != LOCK_TORCH.name:
        whose = "the tests" if name == LOCK_TEST.name else "the app"
        with steps.step(f"packages of {whose}, as in packaging/{name}") as step:
            packages.install(python, [*packages.LOCKED, "-r", str(ROOT / "packaging" / name)], step)
        return
    with steps.step(torch.title) as step:
        cpu_index = torch.build == "cpu" and torch_build.cpu_index_answers()
        if torch.build == "cpu" and not cpu_index:
            step.note("the index of CPU builds does not answer, so pip takes what it finds;")
            step.note("if that is a build for CUDA it has gigabytes: Ctrl-C stops it")
        packages.install(python, torch.arguments(cpu_index=cpu_index), step)


def become(arguments: list[str]) -> int:
    """Replace this process by the environment's Python.

    Paths on the command line stay relative to the user's folder, so that folder is kept; -P keeps
    a folder named app or engine in it from being taken for ours.
    """
    python = str(environment.python_in(VENV))
    command = [python, "-P", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    if os.name != "nt":
        os.execve(python, command, environ)
    # Windows has no exec that keeps the console: wait, and leave Ctrl-C to the child.
    child = subprocess.Popen(command, env=environ)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue
