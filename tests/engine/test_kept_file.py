"""Small files in the user's cache folder: the same machine gets them back, all else is refused."""

import sys
from pathlib import Path

import pytest

from engine import kept_file
from engine.kept_file import Fingerprint

PRINT: Fingerprint = {"machine": "Tiny Processor 9000", "n_cores": 2}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path / "deep" / "er"))
    return tmp_path / "deep" / "er"


def test_what_was_kept_comes_back_to_who_asks_for_the_same() -> None:
    assert kept_file.read("speed", PRINT) is None
    kept_file.write("speed", PRINT, {"fast": True})
    assert kept_file.read("speed", PRINT) == {"fast": True}
    assert kept_file.read("speed", {**PRINT, "n_cores": 4}) is None
    assert kept_file.read("size", PRINT) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"{}",
        b'{"fingerprint": 1, "value": 2}',
        b" " * 5_000,
    ],
)
def test_a_damaged_file_is_not_trusted(content: bytes, folder: Path) -> None:
    kept_file.write("speed", PRINT, 1)
    (folder / "speed.json").write_bytes(content)
    assert kept_file.read("speed", PRINT) is None


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    kept_file.write("speed", PRINT, 1)
    assert kept_file.read("speed", PRINT) is None


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(folder: Path) -> None:
    (folder / "speed.json").mkdir(parents=True)
    kept_file.write("speed", PRINT, 1)
    assert len(list(folder.iterdir())) == 1
    assert kept_file.read("speed", PRINT) is None


@pytest.mark.parametrize(
    ("platform", "variables", "says"),
    [
        ("linux", {}, "/home/u/.cache/decodescope"),
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/decodescope"),
        ("darwin", {}, "/home/u/Library/Caches/decodescope"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/cache/decodescope"),
        ("linux", {"DECODESCOPE_CACHE": "/mine", "XDG_CACHE_HOME": "/c"}, "/mine"),
    ],
)
def test_the_folder_is_where_this_system_keeps_caches(
    platform: str, variables: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DECODESCOPE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/u", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert kept_file.folder().as_posix() == says
