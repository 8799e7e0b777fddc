"""The limits of this machine, kept from one start to the next; see `engine.kept_file`."""

from __future__ import annotations

from dataclasses import asdict

from engine import kept_file, plain
from engine.floors import Limits
from engine.kept_file import Fingerprint


def read(fingerprint: Fingerprint) -> Limits | None:
    """What was kept for exactly this fingerprint; None if nothing was, or it cannot be trusted.

    Not trusted is, beside what `kept_file.read` names, a figure that no machine has.
    """
    try:
        found: Limits = plain.decode(Limits, kept_file.read(_name(fingerprint), fingerprint))
    except (KeyError, TypeError, ValueError):
        return None
    about = (found.device, found.dtype, found.n_threads)
    return (
        found if about == tuple(fingerprint[x] for x in ("device", "dtype", "n_threads")) else None
    )


def write(limits: Limits, fingerprint: Fingerprint) -> None:
    """Keep them for the next time, or not: a folder that cannot be written costs a second then."""
    kept_file.write(_name(fingerprint), fingerprint, asdict(limits))


def _name(fingerprint: Fingerprint) -> str:
    """One file for each way to run, so that two that take turns do not measure again each time."""
    return "limits-" + "-".join(
        str(fingerprint[x]) for x in ("device", "dtype", "n_threads", "kind")
    )
