"""The two commands: a warm start asks pip for nothing, and paths stay the user's."""

from pathlib import Path

import commands
import environment
import libraries
import packages
import pytest
import torch_build

from app import display

ROOT = Path(__file__).parents[2]


def test_an_unknown_command_shows_the_usage_and_exits_with_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert commands.main(["rnu"]) == 2
    assert "packaging/bootstrap.py test" in capsys.readouterr().err


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What pip is asked for during a set-up; nothing is installed."""
    python = environment.python_in(tmp_path)
    python.parent.mkdir()
    python.touch()
    pip: list[str] = []
    monkeypatch.setattr(commands, "VENV", tmp_path)
    monkeypatch.setattr(commands, "LOG", tmp_path / "build" / "log")
    monkeypatch.setattr(libraries, "missing", lambda wanted: {})
    monkeypatch.setattr(torch_build, "driver_cuda", lambda: None)
    monkeypatch.setattr(torch_build, "cpu_index_answers", lambda: True)
    monkeypatch.setattr(
        packages, "install", lambda python, arguments, step: pip.append(arguments[-1])
    )
    monkeypatch.delenv("DECODESCOPE_TORCH", raising=False)
    return pip


def test_a_warm_start_asks_pip_for_nothing_and_says_nothing(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    locks = [commands.LOCK, commands.LOCK_TORCH]
    environment.write_stamp(tmp_path, environment.wanted(locks, _build()))
    commands.set_up(locks, window=False)
    assert asked == []
    assert capsys.readouterr().err == ""


def test_the_tests_add_only_their_own_packages_to_the_app(asked: list[str], tmp_path: Path) -> None:
    app = [commands.LOCK, commands.LOCK_TORCH]
    environment.write_stamp(tmp_path, environment.wanted(app, _build()))
    commands.set_up([*app, commands.LOCK_TEST], window=False)
    assert [Path(last).name for last in asked] == ["lock-test.txt"]
    assert environment.read_stamp(tmp_path).holds(
        environment.wanted([*app, commands.LOCK_TEST], _build())
    )


def test_an_interrupted_set_up_goes_on_where_it_stopped(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = [commands.LOCK, commands.LOCK_TORCH]
    environment.write_stamp(tmp_path, environment.wanted(locks[:1], _build()))
    commands.set_up(locks, window=False)
    assert asked == ["torch==2.13.0"]


def test_all_that_the_system_lacks_is_one_line_to_type(
    asked: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not a first line for Qt, and after it a second one for the virtual environment."""
    environment.python_in(tmp_path).unlink()
    monkeypatch.setattr(libraries, "missing", lambda wanted: {"libEGL.so.1": "libegl1"})
    monkeypatch.setattr(libraries, "has_apt", lambda: True)
    monkeypatch.setattr(libraries, "can_apt", lambda: False)
    monkeypatch.setattr(environment, "_has", lambda module: False)
    assert commands.main(["run", "--headless"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    packages = f"libegl1 python{environment.PYTHON}-venv"
    assert last == f"    sudo apt-get install -y --no-install-recommends {packages}"
    assert asked == []


def _build() -> str:
    return torch_build.fitting(commands.LOCK_TORCH, wish="").build


def test_every_test_runs_unless_a_file_or_a_folder_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_one.py").touch()
    whole = [str(ROOT / "engine"), str(ROOT / "tests")]
    assert commands.everything(["-x", "-k", "coin"]) == whole
    assert commands.everything(["test_one.py::test_it"]) == []


@pytest.mark.parametrize(
    ("shown", "arguments", "started"),
    [
        (True, ["--seed", "2"], ["-m", "app", "--seed", "2"]),
        (False, ["--seed", "2"], ["-m", "app", "--headless", "--seed", "2"]),
        (False, ["--headless", "--json"], ["-m", "app", "--headless", "--json"]),
        (False, ["--help"], ["-m", "app", "--help"]),
    ],
)
def test_without_a_display_the_same_run_goes_off_screen(
    monkeypatch: pytest.MonkeyPatch, shown: bool, arguments: list[str], started: list[str]
) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(display, "answers", lambda environ: shown)
    monkeypatch.setattr(commands, "set_up", lambda locks, window: None)
    monkeypatch.setattr(commands, "become", lambda command: begun.append(command) or 0)
    assert commands.main(["run", *arguments]) == 0
    assert begun == [started]
