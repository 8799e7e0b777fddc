"""Write lock.txt and lock-test.txt anew from pyproject.toml: a maintainer's tool, needs uv.

    python packaging/relock.py [--upgrade] [--upgrade-package NAME]

Pins stay as they are where they still fit. torch is pinned by hand in lock-torch.txt: its builds
differ from machine to machine, and so do its hashes. What it needs on every machine is here.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
TORCH_NEEDS = [
    "filelock",
    "fsspec",
    "jinja2",
    "networkx",
    "setuptools>=77.0.3",
    "sympy>=1.13.3",
    "typing-extensions>=4.10.0",
]
HEADERS = {
    "lock.txt": "What the app and the engine run on, for every platform and Python 3.11 to 3.14.",
    "lock-test.txt": "What the tests and the checks need on top of lock.txt.",
}


def main(options: list[str]) -> None:
    """Resolve twice: what everybody gets, then what the tests add to it."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    app = [line for line in project["dependencies"] if not line.startswith("torch")] + TORCH_NEEDS
    test = app + project["optional-dependencies"]["test"]
    resolve("lock.txt", app, options)
    pinned = names((HERE / "lock.txt").read_text(encoding="utf-8"))
    skipped = [f"--no-emit-package={name}" for name in pinned]
    resolve("lock-test.txt", test, [*options, "-c", str(HERE / "lock.txt"), *skipped])


def resolve(lock: str, needs: list[str], options: list[str]) -> None:
    """Have uv pin everything the needs bring along, with the hashes of every wheel."""
    path = HERE / lock
    flags = "--universal --python-version=3.11 --fork-strategy=fewest --only-binary=:all:"
    quiet = "--generate-hashes --no-annotate --no-header --quiet"
    command = ["uv", "pip", "compile", "-", "-o", str(path)]
    command += [*flags.split(), *quiet.split(), *options]
    subprocess.run(command, input="\n".join(needs), text=True, check=True)
    text = path.read_text(encoding="utf-8")
    header = f"# {HEADERS[lock]}\n# Made by packaging/relock.py from pyproject.toml.\n\n"
    path.write_text(header + text, encoding="utf-8")


def names(lock: str) -> list[str]:
    """The packages that a lock pins.

    >>> names("# a comment" + chr(10) + "numpy==2.4.6")
    ['numpy']
    """
    return re.findall(r"^([a-z0-9][\w.-]*)==", lock, flags=re.MULTILINE)


if __name__ == "__main__":
    main(sys.argv[1:])
