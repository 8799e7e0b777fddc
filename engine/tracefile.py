"""Save a whole session to one .trace file and open it again; nothing in the file can run code.

The container is safetensors: arrays as tensors, everything else as JSON in the header's metadata.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from engine import plain
from engine.errors import EngineError
from engine.events import Dimensions, Event, Forward, Sampled, frozen
from engine.safetensors_file import read_safetensors
from engine.session import Run, Session
from engine.trace import Trace

FORMAT = 1
HEADER_CAP = 256 * 2**20  # about 1 KB of JSON a token, for many runs
_ROWS = ("q", "k", "v", "residual")
_TOPS = ("top_ids", "top_raw", "top_final")
_Arrays = Mapping[str, NDArray[Any]]


def save(session: Session, path: str | Path) -> None:
    """Write the session; an existing file is replaced only by a complete new one.

    Raises:
        EngineError: kind "trace_write", with the system's reason.
    """
    path = Path(path)
    arrays: dict[str, NDArray[Any]] = {}
    runs = []
    for run in session:
        woken = wake(run)
        arrays.update({f"{run.id}.{name}": array for name, array in _arrays(woken.trace).items()})
        runs.append(_run_as_json(woken))
    head = {"format": FORMAT, "open_id": session.open_id, "runs": runs}
    try:
        _replace(path, arrays, {"decodescope": json.dumps(head)})
    except OSError as error:
        raise EngineError("trace_write", reason=error.strerror or str(error), path=path) from error


def open(path: str | Path) -> Session:
    """Read a session back, equal to what was saved, arrays bit for bit.

    Raises:
        EngineError: kind "trace_missing", "trace_damaged" or "trace_format", or what the container
            reader says.
    """
    path = Path(path)
    if not path.is_file():
        raise EngineError("trace_missing", path=path)
    contents = read_safetensors(path, cap=HEADER_CAP)
    if "decodescope" not in contents.metadata:
        raise EngineError("trace_damaged", reason="it holds no run of ours", path=path)
    try:
        return _session(json.loads(contents.metadata["decodescope"]), contents.tensors)
    except (KeyError, TypeError, ValueError, IndexError, AssertionError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise EngineError("trace_damaged", reason=reason, path=path) from error


def rest(run: Run, folder: Path) -> None:
    """Put a run's arrays into a file of its own and let go of them."""
    if run.resting is None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{os.getpid()}-{run.id}.trace"
        alone = replace(run, parent=None, fork_step=None)  # its parent lies elsewhere
        save(Session({run.id: alone}, run.id), path)
        run.resting = path
        for kind in ("logits", "residual", "attention"):
            run.trace.drop(kind)


def wake(run: Run) -> Run:
    """The run with its arrays: itself, or read back from where it rests."""
    if run.resting is None:
        return run
    return replace(run, trace=open(run.resting).runs[run.id].trace, resting=None)


def _replace(path: Path, arrays: _Arrays, metadata: dict[str, str]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    try:
        save_file({key: np.ascontiguousarray(a) for key, a in arrays.items()}, name, metadata)
        with Path(name).open("rb") as written:
            os.fsync(written.fileno())
        Path(name).chmod(0o644)  # mkstemp keeps others from reading
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _arrays(trace: Trace) -> dict[str, NDArray[Any]]:
    """What the trace holds, one array a kind; steps are stacked."""
    rows = {name: trace.rows(name) for name in _ROWS}
    arrays: dict[str, NDArray[Any]] = {n: a for n, a in rows.items() if a is not None}
    logits = [forward.logits for forward in trace.forwards if forward.logits is not None]
    if logits:
        arrays["logits"] = np.stack(logits)  # (steps, V)
    if trace.samples:
        for name in _TOPS:
            arrays[name] = np.stack([getattr(s, name) for s in trace.samples])  # (steps, N_TOP)
    return arrays


def _run_as_json(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "name": run.name,
        "parent": run.parent,
        "fork_step": run.fork_step,
        "events": [[type(event).__name__, plain.encode(event)] for event in run.trace.events],
    }


def _session(head: dict[str, Any], arrays: _Arrays) -> Session:
    if head["format"] != FORMAT:
        raise EngineError("trace_format", found=head["format"], known=FORMAT)
    session = Session()
    for data in head["runs"]:
        parent, fork_step = data["parent"], data["fork_step"]
        run = Run(int(data["id"]), str(data["name"]), _trace(data, arrays), parent, fork_step)
        session.runs[run.id] = run
    for run in session:
        assert run.parent is None or run.parent in session.runs, "a branch has no parent"
    session.open_id = head["open_id"]
    assert session.open_id is None or session.open_id in session.runs
    return session


def _trace(data: dict[str, Any], arrays: _Arrays) -> Trace:
    own = {
        name: arrays[f"{data['id']}.{name}"]
        for name in (*_ROWS, "logits", *_TOPS)
        if f"{data['id']}.{name}" in arrays
    }
    trace = Trace()
    for name, value in data["events"]:
        event = plain.decode(plain.EVENTS[name], value)
        trace.append(_with_arrays(event, own, trace))
    return trace


def _with_arrays(event: Event, own: _Arrays, trace: Trace) -> Event:
    if isinstance(event, Forward):
        end = event.first + event.count
        assert end <= trace.dimensions.n_positions, "more positions than the model has"
        first = 0 if event.phase == "prefill" else event.first
        _check_shapes(own, trace.dimensions)
        found: dict[str, Any] = {}
        for name in _ROWS:
            if name in own:
                part = own[name][..., first:end, :]
                assert part.shape[-2] == end - first, f"{name} has too few rows"
                found[name] = frozen(part)
        if "logits" in own:
            found["logits"] = frozen(own["logits"][trace.n_steps])
        assert all(np.isfinite(array).all() for array in found.values()), "not a number"
        return replace(event, **found)
    if isinstance(event, Sampled):
        _check_tops(own, trace.dimensions)
        return replace(event, **{n: frozen(own[n][len(trace.samples)]) for n in _TOPS})
    return event


def _check_tops(own: _Arrays, d: Dimensions) -> None:
    ids = own["top_ids"]
    assert ids.min(initial=0) >= 0, "an id below 0"
    assert ids.max(initial=0) < d.n_vocab, "an id outside the vocabulary"
    assert len({own[name].shape for name in _TOPS}) == 1, "probabilities without ids"
    assert np.isfinite(own["top_raw"]).all(), "not a number"
    assert np.isfinite(own["top_final"]).all(), "not a number"


def _check_shapes(own: _Arrays, d: Dimensions) -> None:
    for name in ("q", "k", "v"):
        if name in own:
            shape = own[name].shape
            assert (*shape[:2], shape[3]) == (d.n_layer, d.n_head, d.head_size), f"{name} {shape}"
    if "residual" in own:
        shape = own["residual"].shape
        assert (shape[0], shape[2]) == (2 * d.n_layer + 1, d.n_embd), f"residual {shape}"
    if "logits" in own:
        assert own["logits"].shape[1:] == (d.n_vocab,), f"logits {own['logits'].shape}"


assert all(f.name in _TOPS for f in fields(Sampled) if not f.compare), "an array is not saved"
