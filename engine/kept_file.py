"""What was measured here, kept in the user's cache folder, and trusted only if it fits."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from engine.errors import EngineError
from engine.untrusted import Json, read_table

Fingerprint = dict[str, str | int]

CAP = 4096  # bytes; a file of ours has a tenth of them


def read(name: str, fingerprint: Fingerprint) -> Json:
    """What was kept under this name for exactly this fingerprint; None if nothing can be trusted.

    Not trusted is a file that is damaged, too long, or of another fingerprint. Whether the value
    makes sense is for the caller to see.
    """
    try:
        table = read_table(_file(name), cap=CAP)
    except EngineError:
        return None
    return table.get("value") if table.get("fingerprint") == fingerprint else None


def write(name: str, fingerprint: Fingerprint, value: Json) -> None:
    """Keep it for the next time, or not: a folder that cannot be written costs a moment then."""
    file = _file(name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{name}-", suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump({"fingerprint": fingerprint, "value": value}, out, indent=1)
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


def _file(name: str) -> Path:
    return folder() / f"{name}.json"
