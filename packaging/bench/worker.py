"""One engine in a process of its own: a line of JSON in, a line of JSON out.

    worker.py prepare ENGINE DTYPE FOLDER PLACE THREADS  writes the engine's own file, says where
    worker.py serve ENGINE DTYPE PATH THREADS            loads it and answers until its input ends
    worker.py limits DTYPES THREADS                      measures this machine whenever it is asked

Whatever goes wrong ends the process; the last line of its error output is the reason.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "packaging")]  # instead of this folder

from bench.peers import PEERS, Prompt  # noqa: E402 - the path comes first
from engine.meter import peak_rss_bytes  # noqa: E402

Answer = dict[str, Any]  # one line


def peak_bytes() -> int | None:
    """The most resident memory of this program; getrusage alone would count who started it."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return peak_rss_bytes()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else None


def prepare(engine: str, dtype: str, folder: str, place: str, n_threads: str) -> Iterator[Answer]:
    kind = PEERS[engine]
    yield {"path": str(kind.prepare(Path(folder), Path(place), dtype, int(n_threads)))}


def serve(engine: str, dtype: str, path: str, n_threads: str) -> Iterator[Answer]:
    """Load, then write what is asked for: {"text", "ids", "n_tokens", "recording"}."""
    kind = PEERS[engine]
    warnings.simplefilter("ignore")  # what peers deprecate is not ours to mend
    for name in kind.imports:
        import_module(name)
    start = time.perf_counter()
    peer = kind(Path(path), dtype, int(n_threads))
    yield {"load_s": time.perf_counter() - start, "item_weight": peer.item_weight(dtype)}
    for line in sys.stdin:
        asked = json.loads(line)
        prompt = Prompt(asked["text"], asked["ids"])
        written = peer.write(prompt, asked["n_tokens"], recording=asked["recording"])
        yield asdict(written) | {"peak_bytes": peak_bytes()}


def limits(dtypes: str, n_threads: str) -> Iterator[Answer]:
    """What this machine can do, by dtype: those that can be measured here, float32 if none."""
    from engine import linear, probe  # late: the other processes need no torch of ours
    from engine.devices import DTYPES

    usable: dict[str, linear.Kind] = {
        name: kinds[0]
        for name in dtypes.split(",")
        if name in DTYPES and (kinds := linear.kinds("cpu", DTYPES[name]))
    }
    usable = usable or {"float32": "linear"}
    yield {}
    for _ in sys.stdin:
        yield {
            name: asdict(probe.measure("cpu", name, int(n_threads), kind=kind))
            for name, kind in usable.items()
        }


JOBS: dict[str, Callable[..., Iterator[Answer]]] = {
    "prepare": prepare,
    "serve": serve,
    "limits": limits,
}


def main(job: str, *arguments: str) -> None:
    # What a library prints must not come between the lines: it goes to the error output.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for answer in JOBS[job](*arguments):
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
