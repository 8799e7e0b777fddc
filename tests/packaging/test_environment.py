"""The stamp: what it holds, when it counts, and what it leaves to install."""

import json
from pathlib import Path

import environment
import packages
import pytest
from environment import Stamp


def test_a_stamp_holds_what_it_was_made_for_and_no_more() -> None:
    app = Stamp("3.11", "cpu", {"lock.txt": "a", "lock-torch.txt": "b"})
    tests = Stamp("3.11", "cpu", {**app.locks, "lock-test.txt": "c"})
    assert tests.holds(app)
    assert not app.holds(tests)
    assert app.lacks(tests) == ["lock-test.txt"]
    assert not Stamp("3.12", "cpu", app.locks).fits(app)
    assert not Stamp("3.11", "cuda", app.locks).fits(app)


def test_a_changed_lock_is_installed_again(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("numpy==2.4.5\n")
    before = environment.wanted([lock], "cpu")
    lock.write_text("numpy==2.4.6\n")
    assert before.lacks(environment.wanted([lock], "cpu")) == ["lock.txt"]


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A folder that looks like an environment."""
    folder = tmp_path / ".venv"
    environment.python_in(folder).parent.mkdir(parents=True)
    environment.python_in(folder).touch()
    return folder


def test_a_stamp_comes_back_as_it_was_written(venv: Path) -> None:
    stamp = Stamp("3.11", "cpu", {"lock.txt": "a"})
    environment.write_stamp(venv, stamp)
    assert environment.read_stamp(venv) == stamp


def test_a_stamp_is_void_once_its_python_is_gone(venv: Path) -> None:
    environment.write_stamp(venv, Stamp("3.11", "cpu", {"lock.txt": "a"}))
    environment.python_in(venv).unlink()
    assert environment.read_stamp(venv) == Stamp()


def test_a_stamp_is_void_while_pip_writes_packages(venv: Path) -> None:
    environment.write_stamp(venv, Stamp("3.11", "cpu", {"lock.txt": "a"}))
    (venv / packages.UNFINISHED).touch()
    assert environment.read_stamp(venv) == Stamp()


@pytest.mark.parametrize(
    ("modules", "asked"),
    [
        ({"venv", "ensurepip"}, []),
        ({"venv", "pip"}, []),  # that pip can put one into an environment made without
        ({"venv"}, [f"python{environment.PYTHON}-venv"]),  # as Debian has it at first
    ],
)
def test_a_python_that_cannot_make_an_environment_asks_for_the_package_that_helps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, modules: set[str], asked: list[str]
) -> None:
    monkeypatch.setattr(environment, "_has", lambda module: module in modules)
    goal = Stamp(environment.PYTHON, "cpu", {})
    assert list(environment.missing(tmp_path, goal).values()) == asked


def test_an_environment_that_is_there_needs_no_package(
    monkeypatch: pytest.MonkeyPatch, venv: Path
) -> None:
    monkeypatch.setattr(environment, "_has", lambda module: False)
    environment.write_stamp(venv, Stamp("3.11", "cpu", {}))
    assert environment.missing(venv, Stamp("3.11", "cpu", {"lock.txt": "a"})) == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"python": "3.11"}', json.dumps([1, 2])])
def test_a_damaged_stamp_says_nothing(venv: Path, text: str) -> None:
    (venv / environment.STAMP).write_text(text)
    assert environment.read_stamp(venv) == Stamp()
