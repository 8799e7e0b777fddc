"""The system's own packages: what Qt needs on Linux, what is missing, and how it gets here."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping

from steps import Failure, Step

# What the loader looks for, and the Debian package that brings it.
OFFSCREEN = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libglib-2.0.so.0": "libglib2.0-0",  # Debian 13 calls it libglib2.0-0t64 and knows this name
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libxkbcommon.so.0": "libxkbcommon0",
}
X11 = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}


def needed(
    environ: Mapping[str, str], *, window: bool, system: str = sys.platform
) -> dict[str, str]:
    """The libraries for this kind of run; a Wayland desktop brings its own.

    >>> needed({}, window=False, system="darwin")
    {}
    """
    if not system.startswith("linux"):
        return {}
    if window and environ.get("DISPLAY") and not environ.get("WAYLAND_DISPLAY"):
        return OFFSCREEN | X11
    return OFFSCREEN


def loads(soname: str) -> bool:
    """Whether the loader finds this library."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def missing(wanted: Mapping[str, str], found: Callable[[str], bool] = loads) -> dict[str, str]:
    """Those of the wanted libraries that do not load."""
    return {soname: package for soname, package in wanted.items() if not found(soname)}


def provide(absent: Mapping[str, str], step: Step) -> None:
    """Install the Debian packages of what is missing, or say the one line that does.

    Raises:
        Failure: not root, no apt, or apt failed; says what to type or what to look for.
    """
    if not has_apt():
        raise Failure(
            f"This system lacks {', '.join(sorted(absent))} and has no apt to bring that: install "
            "it with your package manager, then run this again."
        )
    line = f"apt-get install -y --no-install-recommends {' '.join(sorted(absent.values()))}"
    if not can_apt():
        raise Failure(
            "System packages are missing: type this line, then run this again.", (f"sudo {line}",)
        )
    step.note(line)
    install = [*line.split(), "-o", "DPkg::Lock::Timeout=60"]
    # The lists of a fresh image are empty or old: only then is fetching them worth its seconds.
    if _logged(install, step) != 0 and (
        _logged(["apt-get", "update"], step) != 0 or _logged(install, step) != 0
    ):
        last = step.log.read_text(errors="replace").splitlines()[-4:]
        raise Failure("apt-get could not install what is missing.", (*last, f"Log: {step.log}"))


def has_apt() -> bool:
    """Whether this is Debian or one of its kin."""
    return shutil.which("apt-get") is not None


def can_apt() -> bool:
    """Whether Debian packages can be installed without asking."""
    return has_apt() and os.geteuid() == 0


def _logged(command: list[str], step: Step) -> int:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with step.log.open("ab") as log:
        return subprocess.call(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ
        )
