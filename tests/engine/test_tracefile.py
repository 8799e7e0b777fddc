"""A session saved is a session opened, bit for bit; what is damaged is refused with a reason."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from engine import tracefile
from engine.errors import EngineError
from engine.request import Request
from engine.session import Session
from engine.trace import Trace, same


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


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as error:
        tracefile.open(tmp_path / "none.trace")
    assert error.value.kind == "trace_missing"


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
    with pytest.raises(EngineError):
        tracefile.open(tmp_path / "b.trace")


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
