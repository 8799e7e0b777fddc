"""A session saved is a session opened, bit for bit; what is damaged is refused with a reason."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from engine import tracefile
from engine.errors import EngineError
from engine.request import Capture, Request
from engine.session import FIRST_TO_GO, Session
from engine.trace import Trace, same

Array = NDArray[Any]


@pytest.fixture
def session(engine: object, recorded: Trace) -> Session:
    """A run of 14 tokens and a branch of it from step 2."""
    session = Session()
    first = session.start("jordan")
    for event in recorded.events:
        first.trace.append(event)
    branch = session.start("jordan", parent=first.id, fork_step=2)
    job = engine.branch(recorded, 2, 464, Request("x", max_tokens=5))  # type: ignore[attr-defined]
    for event in job:
        branch.trace.append(event)
    return session


def test_what_is_opened_equals_what_was_saved(session: Session, tmp_path: Path) -> None:
    tracefile.save(session, tmp_path / "a.trace")
    again = tracefile.open(tmp_path / "a.trace")
    assert again.open_id == session.open_id == 2
    assert (again.runs[2].parent, again.runs[2].fork_step) == (1, 2)
    assert all(same(again.runs[id].trace, session.runs[id].trace) for id in (1, 2))


def test_a_trace_without_arrays_is_saved_too(recorded: Trace, tmp_path: Path) -> None:
    session = Session()
    run = session.start("bare")
    for event in recorded.events:
        run.trace.append(event)
    for kind in ("logits", "residual", "attention"):
        run.trace.drop(kind)
    tracefile.save(session, tmp_path / "a.trace")
    assert same(tracefile.open(tmp_path / "a.trace").runs[1].trace, run.trace)
    assert (tmp_path / "a.trace").stat().st_size < 200_000


def test_saving_leaves_no_parts_and_replaces_whole(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    path.write_bytes(b"older")
    tracefile.save(session, path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.trace"]
    assert path.read_bytes() != b"older"


def test_a_folder_that_is_not_there_is_said(session: Session, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="could not be saved") as error:
        tracefile.save(session, tmp_path / "gone" / "a.trace")
    assert error.value.kind == "trace_write"


@pytest.mark.parametrize("name", ["", "pipe"])
def test_only_a_file_is_ever_replaced(session: Session, tmp_path: Path, name: str) -> None:
    """A device as well: who may do everything would lose /dev/null to a slip of the hand."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(EngineError) as error:
        tracefile.save(session, tmp_path / name)
    assert error.value.kind == "trace_place"
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("error", [OSError(28, "No space left"), SafetensorError("I/O error")])
def test_a_disk_that_fails_is_said_and_leaves_the_older_file(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: object) -> None:
        raise error

    (tmp_path / "a.trace").write_bytes(b"older")
    monkeypatch.setattr(tracefile, "save_file", broken)
    with pytest.raises(EngineError) as told:
        tracefile.save(session, tmp_path / "a.trace")
    assert told.value.kind == "trace_write"
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"older"]


@pytest.mark.parametrize("name", ["none.trace", "", "a\0b", "a" * 5_000])
def test_a_missing_file_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineError) as error:
        tracefile.open(tmp_path / name)
    assert error.value.kind == "trace_missing"


def test_a_name_that_no_file_can_have_is_said(session: Session, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as error:
        tracefile.save(session, tmp_path / "a\0b")
    assert error.value.kind == "trace_write"


def _head(path: Path) -> tuple[dict[str, np.ndarray], dict[str, object]]:  # type: ignore[type-arg]
    with safe_open(path, "np") as file:
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return arrays, json.loads(file.metadata()["decodescope"])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("runs", 0, "events", 0, 1, "model", "dimensions", "n_layer"), "six"),
        (("runs", 0, "events", 0, 1, "model", "dimensions", "n_layer"), 7),
        (("runs", 0, "events", 0, 0), "Exec"),
        (("runs", 0, "events", 2, 1, "count"), 600),
        (("runs", 0, "events", 2, 1, "count"), True),
        (("runs", 0, "events", 3, 1, "token", "piece"), "zz"),
        (("runs", 0, "events", 3, 1, "sampling", "temperature"), -1),
        (("runs", 0, "parent"), 99),
        (("runs", 0, "parent"), 2),
        (("runs", 1, "parent"), 2),
        (("runs", 1, "fork_step"), 14),
        (("runs", 1, "fork_step"), "2"),
        (("runs", 1, "id"), 1),
        (("runs", 0, "id"), "1"),
        (("runs", 0, "name"), None),
        (("runs", 0, "events", 0, 1, "model", "dimensions", "n_head"), 0),
        (("runs", 0, "events", 1, 1, "tokens", 0, "id"), 50_257),
        (("runs", 0, "events", 2, 1, "first"), -1),
        (("runs", 0, "events", 2, 1, "reused"), 1),
        (("runs", 0, "events", 2, 1, "phase"), "decode"),
        (("runs", 0, "events", 4, 1, "first"), 5),
        (("runs", 0, "events", 4, 1, "layer_spans"), [[0, 1]]),
        (("runs", 0, "events", 3, 1, "position"), 7),
        (("runs", 0, "events", 3, 1, "token", "id"), -1),
        (("runs", 0, "events", 3, 1, "raw_prob"), 1.5),
        (("runs", 0, "events", 3, 1, "raw_prob"), 10**400),
        (("runs", 0, "events", 3, 1, "raw_prob"), float("nan")),
        (("runs", 0, "events", 3, 1, "n_kept"), 0),
        (("open_id",), 7),
        (("runs",), 3),
    ],
)
def test_a_changed_header_is_refused_with_a_reason(
    session: Session, tmp_path: Path, place: tuple[str | int, ...], value: object
) -> None:
    tracefile.save(session, tmp_path / "a.trace")
    arrays, head = _head(tmp_path / "a.trace")
    at: object = head
    for name in place[:-1]:
        at = at[name]  # type: ignore[index]
    at[place[-1]] = value  # type: ignore[index]
    save_file(arrays, tmp_path / "b.trace", {"decodescope": json.dumps(head)})
    with pytest.raises(EngineError) as error:
        tracefile.open(tmp_path / "b.trace")
    assert error.value.kind == "trace_damaged"
    assert "b.trace" in str(error.value)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("1.q", lambda q: q.astype(np.float64)),
        ("1.q", lambda q: q[:, :, :-1]),
        ("1.q", lambda q: np.where(q == q.max(), np.float32(np.nan), q)),
        ("1.k", None),
        ("1.residual", lambda rows: rows[:-1]),
        ("1.logits", lambda logits: logits[:, :-1]),
        ("1.logits", lambda logits: logits[1:]),
        ("1.top_ids", None),
        ("1.top_ids", lambda ids: ids + np.int32(50_000)),
        ("1.top_ids", lambda ids: ids[:, :-1]),
        ("1.top_raw", lambda p: p.astype(np.float32)),
    ],
)
def test_changed_arrays_are_refused(
    session: Session, tmp_path: Path, name: str, change: Callable[..., Array] | None
) -> None:
    tracefile.save(session, tmp_path / "a.trace")
    arrays, head = _head(tmp_path / "a.trace")
    array = arrays.pop(name)
    if change is not None:
        arrays[name] = change(array)
    save_file(arrays, tmp_path / "b.trace", {"decodescope": json.dumps(head)})
    with pytest.raises(EngineError) as error:
        tracefile.open(tmp_path / "b.trace")
    assert error.value.kind == "trace_damaged"


@pytest.mark.parametrize("kept", ["parent", "branch"])
def test_a_branch_that_records_other_things_is_opened_as_it_was_saved(
    engine: object, recorded: Trace, tmp_path: Path, kept: str
) -> None:
    session, all_of, nothing = Session(), Capture(), Capture(False, False, False)
    first = session.start("jordan")
    for event in recorded.events:
        first.trace.append(event)
    if kept == "branch":
        for kind in FIRST_TO_GO:
            first.trace.drop(kind)
    branch = session.start("jordan", parent=first.id, fork_step=2)
    request = Request("x", max_tokens=5, capture=nothing if kept == "parent" else all_of)
    for event in engine.branch(first.trace, 2, 464, request):  # type: ignore[attr-defined]
        branch.trace.append(event)
    tracefile.save(session, tmp_path / "a.trace")
    assert same(tracefile.open(tmp_path / "a.trace").runs[2].trace, branch.trace)


def test_a_newer_format_asks_for_a_newer_program(session: Session, tmp_path: Path) -> None:
    tracefile.save(session, tmp_path / "a.trace")
    arrays, head = _head(tmp_path / "a.trace")
    head["format"] = 2
    save_file(arrays, tmp_path / "b.trace", {"decodescope": json.dumps(head)})
    with pytest.raises(EngineError) as error:
        tracefile.open(tmp_path / "b.trace")
    assert error.value.kind == "trace_format"


@pytest.mark.parametrize("keep", [0, 7, 200, 100_000])
def test_a_cut_file_is_refused(session: Session, tmp_path: Path, keep: int) -> None:
    tracefile.save(session, tmp_path / "a.trace")
    (tmp_path / "b.trace").write_bytes((tmp_path / "a.trace").read_bytes()[:keep])
    with pytest.raises(EngineError):
        tracefile.open(tmp_path / "b.trace")


def test_a_model_file_is_no_trace(tmp_path: Path) -> None:
    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "m.trace")
    with pytest.raises(EngineError, match="no run of ours"):
        tracefile.open(tmp_path / "m.trace")


def test_a_run_rests_in_a_file_and_wakes_equal(session: Session, tmp_path: Path) -> None:
    before = Trace(session.runs[1].trace.events)
    tracefile.rest(session.runs[1], tmp_path)
    assert not session.runs[1].trace.has("attention")
    assert same(tracefile.wake(session.runs[1]).trace, before)


def test_a_branch_rests_and_wakes_with_its_parent(session: Session, tmp_path: Path) -> None:
    before = Trace(session.runs[2].trace.events)
    tracefile.rest(session.runs[2], tmp_path)
    woken = tracefile.wake(session.runs[2])
    assert (woken.parent, woken.fork_step, woken.resting) == (1, 2, None)
    assert same(woken.trace, before)


def test_the_open_line_lets_logits_go_before_rows(session: Session) -> None:
    session.open_id = 1
    run = session.runs[1].trace
    rows = sum(a.nbytes for n in ("q", "k", "v", "residual") if (a := run.rows(n)) is not None)
    gone = session.keep_within(rows + session.runs[2].trace.nbytes + 2_000_000)
    assert gone == ["logits"]
    assert run.has("attention")
