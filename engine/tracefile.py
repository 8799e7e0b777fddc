"""Save a whole session to one .trace file and open it again; nothing in the file can run code.

The container is safetensors: arrays as tensors, everything else as JSON in the header's metadata.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from engine import plain
from engine.errors import EngineError
from engine.events import Dimensions, Forward, RunStarted, Sampled, Tokenized, frozen
from engine.safetensors_file import read_safetensors
from engine.session import Run, Session
from engine.trace import Trace
from engine.untrusted import shown

FORMAT = 1
HEADER_CAP = 256 * 2**20  # about 1 KB of JSON a token, for many runs
_ROWS = ("q", "k", "v", "residual")
_TOPS = ("top_ids", "top_raw", "top_final")
_TYPES = dict.fromkeys((*_ROWS, "logits"), np.float32) | {
    "top_ids": np.int32,
    "top_raw": np.float64,
    "top_final": np.float64,
}
_Arrays = Mapping[str, NDArray[Any]]
_DAMAGE = (  # what reading values of the wrong kind, size or place comes to
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AssertionError,
    RecursionError,
    EngineError,  # of a Sampling or a Request that could not be asked for
)


def save(session: Session, path: str | Path) -> None:
    """Write the session; an existing file is replaced only by a complete new one.

    Raises:
        EngineError: kind "trace_place" for a folder or a device, "trace_write" with the system's
            reason, or what `open` says of a run that rests in a file.
    """
    path = Path(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise EngineError("trace_place", path=path)
    arrays: dict[str, NDArray[Any]] = {}
    runs = []
    for run in session:
        woken = wake(run)
        arrays.update({f"{run.id}.{name}": array for name, array in _arrays(woken.trace).items()})
        runs.append(_run_as_json(woken))
    head = {"format": FORMAT, "open_id": session.open_id, "runs": runs}
    try:
        _replace(path, arrays, {"decodescope": json.dumps(head)})
    except (OSError, ValueError, SafetensorError) as error:  # ValueError: a zero byte in the name
        raise _unwritten(path, error) from error


def open(path: str | Path) -> Session:
    """Read a session back, equal to what was saved, arrays bit for bit.

    Raises:
        EngineError: kind "trace_missing", "trace_damaged" or "trace_format", or what the container
            reader says.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise EngineError("trace_missing", path=path)
    contents = read_safetensors(path, cap=HEADER_CAP)
    if "decodescope" not in contents.metadata:
        raise EngineError("trace_damaged", reason="it holds no run of ours", path=path)
    try:
        head = json.loads(contents.metadata["decodescope"])
        if head["format"] == FORMAT:
            return _session(head, contents.tensors)
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise EngineError("trace_damaged", reason=shown(reason, limit=200), path=path) from error
    raise EngineError("trace_format", found=shown(head["format"]), known=FORMAT)


def rest(run: Run, folder: Path) -> None:
    """Put a run's arrays into a file of its own and let go of them.

    Raises:
        EngineError: kind "trace_write".
    """
    if run.resting is None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritten(folder, error) from error
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


def _unwritten(path: Path, error: Exception) -> EngineError:
    reason = getattr(error, "strerror", None) or str(error)
    return EngineError("trace_write", reason=reason, path=path)


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
    session = Session()
    for data in head["runs"]:
        run = Run(
            id=plain.decode(int, data["id"]),
            name=plain.decode(str, data["name"]),
            trace=_trace(data, arrays),
            parent=plain.decode(int | None, data["parent"]),
            fork_step=plain.decode(int | None, data["fork_step"]),
        )
        _expect(run.id not in session.runs, "two runs with one number")
        if run.parent is not None:  # it comes first: so nothing descends from itself
            parent = session.runs[run.parent].trace
            _expect((run.fork_step or 0) in range(parent.n_steps), "a branch from no step")
        session.runs[run.id] = run
    session.open_id = plain.decode(int | None, head["open_id"])
    _expect(session.open_id is None or session.open_id in session.runs, "no run is open")
    return session


def _trace(data: dict[str, Any], arrays: _Arrays) -> Trace:
    own = {
        name: arrays[f"{data['id']}.{name}"] for name in _TYPES if f"{data['id']}.{name}" in arrays
    }
    trace = Trace()
    for name, value in data["events"]:
        event = plain.decode(plain.EVENTS[name], value)
        match event:
            case RunStarted():
                _check_arrays(own, event.model.dimensions)
            case Tokenized():
                _check_ids([token.id for token in event.tokens], trace.dimensions)
            case Forward():
                _check_place(event, trace)
                event = replace(event, **_rows_of(event, own, trace.n_steps))
            case Sampled():
                _check_draw(event, trace)
                event = replace(event, **{n: frozen(own[n][len(trace.samples)]) for n in _TOPS})
        trace.append(event)
    return trace


def _rows_of(forward: Forward, own: _Arrays, step: int) -> dict[str, Any]:
    """The arrays of one pass."""
    end = forward.first + forward.count
    first = 0 if forward.phase == "prefill" else forward.first
    found: dict[str, Any] = {
        name: frozen(own[name][..., first:end, :]) for name in _ROWS if name in own
    }
    for name, part in found.items():
        _expect(part.shape[-2] == end - first, f"{name} has too few rows")
    if "logits" in own:
        found["logits"] = frozen(own["logits"][step])
    return found


def _check_arrays(own: _Arrays, d: Dimensions) -> None:
    """Every array of a run has its type and, but for the length, its shape, and is finite."""
    _expect(min(astuple(d)) > 0 and d.n_embd % d.n_head == 0, f"impossible {d}")
    heads = (d.n_layer, d.n_head, None, d.head_size)
    shapes: dict[str, tuple[int | None, ...]] = dict.fromkeys("qkv", heads)
    shapes |= {"residual": (2 * d.n_layer + 1, None, d.n_embd), "logits": (None, d.n_vocab)}
    width = own["top_ids"].shape[-1] if "top_ids" in own else 0
    shapes |= dict.fromkeys(_TOPS, (None, width))
    for name, array in own.items():
        pairs = zip(array.shape, shapes[name], strict=True)
        fits = all(wanted in (found, None) for found, wanted in pairs)
        _expect(fits and array.dtype == _TYPES[name], f"{name} is {array.dtype} {array.shape}")
        _expect(np.isfinite(array).all(), f"{name} holds what is no number")
    _expect(len(own.keys() & set("qkv")) in (0, 3), "q, k and v are not all there")
    if "top_ids" in own:
        _check_ids(own["top_ids"].ravel().tolist(), d)


def _check_ids(ids: Sequence[int], d: Dimensions) -> None:
    _expect(min(ids, default=0) >= 0 and max(ids, default=0) < d.n_vocab, "an impossible token id")


def _check_place(forward: Forward, trace: Trace) -> None:
    """A prefill reads the prompt, then every decode the one token that was drawn last."""
    d, end = trace.dimensions, forward.first + forward.count
    if trace.n_steps == 0:
        fits = forward.phase == "prefill" and end == trace.n_prompt
    else:
        fits = (forward.phase, forward.count, end) == ("decode", 1, len(trace.tokens))
    fits = fits and 0 <= forward.reused <= forward.first < end <= d.n_positions
    _expect(fits and len(forward.layer_spans) in (0, d.n_layer), "a pass that cannot have been")


def _check_draw(sampled: Sampled, trace: Trace) -> None:
    d = trace.dimensions
    _check_ids([sampled.token.id], d)
    shares = (sampled.raw_prob, sampled.final_prob, sampled.coin or 0.0)
    fits = sampled.position == len(trace.tokens) and all(0 <= share <= 1 for share in shares)
    fits = fits and 0 <= sampled.rank < d.n_vocab and 0 < sampled.n_kept <= d.n_vocab
    _expect(fits, "a draw that cannot have been")


def _expect(holds: object, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


assert all(f.name in _TOPS for f in fields(Sampled) if not f.compare), "an array is not saved"
