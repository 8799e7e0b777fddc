"""The limits of this machine, kept in the user's cache folder, and trusted only if they fit."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from engine import plain
from engine.errors import EngineError
from engine.floors import Limits
from engine.untrusted import read_table

Fingerprint = dict[str, str | int]

CAP = 4096  # bytes; a file of ours has a tenth of them


def read(fingerprint: Fingerprint) -> Limits | None:
    """What was kept for exactly this fingerprint; None if nothing was, or it cannot be trusted.

    Not trusted is a file that is damaged, too long, of another fingerprint, or with a figure that
    no machine has.
    """
    try:
        table = read_table(_file(fingerprint), cap=CAP)
        if table["fingerprint"] != fingerprint:
            return None
        found: Limits = plain.decode(Limits, table["limits"])
    except (EngineError, KeyError, TypeError, ValueError):
        return None
    about = (found.device, found.dtype, found.n_threads)
    return (
        found if about == tuple(fingerprint[x] for x in ("device", "dtype", "n_threads")) else None
    )


def write(limits: Limits, fingerprint: Fingerprint) -> None:
    """Keep them for the next time, or not: a folder that cannot be written costs a second then."""
    file = _file(fingerprint)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".limits-", suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump({"fingerprint": fingerprint, "limits": asdict(limits)}, out, indent=1)
        os.replace(temporary, file)  # whoever reads it sees the old one or the new one
    except OSError:
        Path(temporary).unlink(missing_ok=True)


def folder() -> Path:
    """Where this user's programs put what they can make again; $DECODESCOPE_CACHE comes first."""
    if given := os.environ.get("DECODESCOPE_CACHE"):
        return Path(given)
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
        return Path(local) / "cache" / "decodescope"
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches/decodescope"))
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "decodescope"


def _file(fingerprint: Fingerprint) -> Path:
    """One file for each way to run, so that two that take turns do not measure again each time."""
    names = [str(fingerprint[x]) for x in ("device", "dtype", "n_threads", "kind")]
    return folder() / f"limits-{'-'.join(names)}.json"
