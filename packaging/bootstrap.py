#!/usr/bin/env python3
"""Set up everything in .venv, then run Decodescope or its tests: the README's two commands.

    python3 packaging/bootstrap.py run [options of the app]
    python3 packaging/bootstrap.py test [options of pytest]

This file stays readable for any Python 3, so that an old one can say which is needed; the work is
in commands.py beside it. Nothing here or beside it needs more than the standard library.
"""

import subprocess
import sys

OLDEST = (3, 11)
NEWEST = (3, 14)  # the newest that every package of the lock has wheels for


def main() -> int:
    """Check Python, then do what the command line asks; the exit code."""
    problem = misfit(sys.version_info[:2])
    if problem:
        print(problem, file=sys.stderr)
        return 1
    import commands  # an older Python could not even read it

    return commands.main(sys.argv[1:])


def misfit(version: tuple) -> str:  # type: ignore[type-arg]  # tuple[int, int] needs Python 3.9
    """Why this version of Python cannot be used, and what can; empty if it can.

    >>> misfit((3, 11))
    ''
    """
    if OLDEST <= version <= NEWEST:
        return ""
    usable = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
    found = next(filter(runs, usable), "")
    advice = f"run this with {found}" if found else "install one and run this with it"
    return (
        f"Decodescope needs Python 3.{OLDEST[1]} to 3.{NEWEST[1]} and this is Python "
        f"{version[0]}.{version[1]}: {advice}."
    )


def runs(name: str) -> bool:
    """Whether a command of this name is here and works; the name alone may be a shim."""
    try:
        return subprocess.call([name, "-c", ""], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
