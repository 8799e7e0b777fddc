"""A run by itself: four files and an exit code off screen, and a window that stays its user's."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from app.headless import FILES, Errand
from app.main_window import MainWindow
from engine import tracefile

ROOT = Path(__file__).parents[2]


def headless(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", "--headless", "--out", str(folder), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_a_headless_run_writes_its_four_files_and_tells_the_text(tmp_path: Path) -> None:
    said = headless(tmp_path, "--max-tokens", "3")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("Michael Jordan played the sport of basketball.")
    assert "tok/s" in said.stdout
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
    table = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert table["ids"] == [9669, 13, 198]
    assert table["kv_used_bytes"] == 12_288 * (6 + 3 - 1)
    picture = QImage(str(tmp_path / "window.png"))
    assert (picture.width(), picture.height()) == (1440, 900)
    session = tracefile.open(tmp_path / "run.trace")
    assert [s.token.id for s in session.runs[1].trace.samples] == [9669, 13, 198]


def test_a_bad_option_is_one_sentence_and_no_file(tmp_path: Path) -> None:
    said = headless(tmp_path / "out", "--top-p", "7")
    assert (said.returncode, said.stdout) == (2, "")
    assert len(said.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_errand_that_does_not_leave_acts_once(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What its user runs, or is refused, later neither closes the window nor writes again."""
    before = signal.getsignal(signal.SIGINT)
    window.store.edit({"prompt": "Once upon a time", "max_tokens": 2})
    errand = Errand(window, out=tmp_path, as_json=False, hidden=False, leaves=False)
    with qtbot.assertNotEmitted(errand.done):
        with qtbot.waitSignal(window.settled):
            window.generate()
        assert {path.name for path in tmp_path.iterdir()} == set(FILES)
        for path in tmp_path.iterdir():
            path.unlink()
        capsys.readouterr()
        with qtbot.waitSignal(window.settled):
            window.generate()
        window.store.refused.emit("No.")
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""
    assert signal.getsignal(signal.SIGINT) is before  # Ctrl-C means again what it meant
