"""Settings: what fits is kept, what does not is a default and said once, no file stops a start."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import settings
from app.settings import Settings

pytestmark = pytest.mark.usefixtures("qapp")

GOOD = {"version": 1, "temperature": 1.2, "top_k": 50, "top_p": 0.9, "seed": 7}
DEFAULTS = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "max_tokens": 48, "seed": 1}


def test_a_first_start_has_the_defaults_and_writes_nothing(tmp_path: Path) -> None:
    fresh = Settings(tmp_path)
    assert {name: fresh[name] for name in DEFAULTS} == DEFAULTS
    assert fresh.notes == []
    assert list(tmp_path.iterdir()) == []


def test_only_what_differs_from_its_default_is_saved(tmp_path: Path) -> None:
    changed = Settings(tmp_path)
    changed.set("temperature", 0.5)
    changed.set("top_k", 10)
    changed.reset("top_k")
    changed.save()
    assert _stored(tmp_path) == {"version": 1, "temperature": 0.5}
    assert Settings(tmp_path)["temperature"] == 0.5


def test_a_change_is_told_and_saved_soon_after(tmp_path: Path, qtbot: QtBot) -> None:
    changed = Settings(tmp_path)
    with qtbot.waitSignal(changed.changed) as told:
        changed.set("pace", "full")
    assert told.args == ["pace"]
    qtbot.waitUntil((tmp_path / "settings.json").exists)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1.0),
        ("temperature", float("nan")),
        ("temperature", "hot"),
        ("top_k", 2.5),
        ("top_k", True),  # a truth value is no number, though Python thinks so
        ("top_p", 7),
        ("seed", 2**64),
        ("theme", "neon"),
        ("special", 1),
        ("window_layout", "not base64!"),
        ("prompt", "\ud83d"),  # half a character cannot be written
    ],
)
def test_a_value_that_does_not_fit_is_refused(tmp_path: Path, name: str, value: object) -> None:
    fresh = Settings(tmp_path)
    with pytest.raises(ValueError):  # noqa: PT011  # the value is the message
        fresh.set(name, value)
    assert fresh[name] == settings.specs()[name].default


def test_a_seed_keeps_all_of_its_64_bits(tmp_path: Path) -> None:
    changed = Settings(tmp_path)
    changed.set("seed", 2**64 - 1)
    changed.save()
    assert Settings(tmp_path)["seed"] == 18_446_744_073_709_551_615


# Nine files that must not stop a start, and what is true afterwards.


@pytest.mark.parametrize(
    "content",
    [
        b"",
        json.dumps(GOOD).encode()[:40],
        json.dumps(GOOD).encode() + b"\xe9\xff",
        b"[1, 2, 3]",
        b"[" * 200_000,
        b'{"temperature": NaN}',
    ],
    ids=["empty", "cut", "latin1", "a list", "deep", "NaN"],
)
def test_a_file_that_cannot_be_read_is_set_aside_and_said_once(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "settings.json").write_bytes(content)
    started = Settings(tmp_path)
    assert {name: started[name] for name in DEFAULTS} == DEFAULTS
    assert (tmp_path / "settings.bad-1.json").read_bytes() == content
    assert len(started.notes) == 1
    assert "settings.bad-1.json" in started.notes[0]
    assert Settings(tmp_path).notes == []


@pytest.mark.parametrize(
    ("bad", "label"),
    [
        ({"temperature": "hot", "top_k": True, "top_p": None}, "Temperature, Top-k, Top-p"),
        ({"temperature": -1, "top_p": 7, "max_tokens": 10**12}, "Temperature, Top-p, Max tokens"),
        ({"top_k": 10**400}, "Top-k"),
        ({"window_geometry": "!!"}, "Window"),
        ({"model": "\ud83d"}, "Model"),
    ],
    ids=["types", "range", "huge", "no base64", "surrogate"],
)
def test_a_bad_value_becomes_its_default_and_good_ones_stay(
    tmp_path: Path, bad: dict[str, object], label: str
) -> None:
    _store(tmp_path, {**GOOD, **bad})
    started = Settings(tmp_path)
    for name in bad:
        assert started[name] == settings.specs()[name].default
    assert started["seed"] == 7
    assert len(started.notes) == 1
    assert label in started.notes[0]
    assert Settings(tmp_path).notes == []


def test_keys_of_a_later_version_are_kept(tmp_path: Path) -> None:
    _store(tmp_path, {"version": 99, "hologram": {"x": 1}, "top_k": 50})
    started = Settings(tmp_path)
    started.set("seed", 7)
    started.save()
    assert started.notes == []
    assert _stored(tmp_path) == {"version": 1, "hologram": {"x": 1}, "top_k": 50, "seed": 7}


def test_a_model_folder_that_is_gone_is_still_a_setting(tmp_path: Path) -> None:
    """Whether it can be opened is for the loader to find out, and to say."""
    _store(tmp_path, {"model": "/nonexistent/gpt2"})
    started = Settings(tmp_path)
    assert (started["model"], started.notes) == ("/nonexistent/gpt2", [])


def test_bytes_that_are_no_window_are_still_base64(tmp_path: Path) -> None:
    """Whether Qt can restore a window from them is for the window to try."""
    _store(tmp_path, {"window_geometry": "AAECAwQFBgcICQ=="})
    assert Settings(tmp_path).notes == []


def test_the_longest_prompt_comes_back(tmp_path: Path) -> None:
    """100,000 characters that JSON writes as 12 bytes each."""
    changed = Settings(tmp_path)
    changed.set("prompt", "👋" * 100_000)
    changed.save()
    again = Settings(tmp_path)
    assert (len(again["prompt"]), again.notes) == (100_000, [])


def test_each_bad_file_gets_a_name_of_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        (tmp_path / "settings.json").write_bytes(b"?")
        Settings(tmp_path)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["settings.bad-1.json", "settings.bad-2.json", "settings.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _store(tmp_path, GOOD)
    started = Settings(tmp_path)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    started.set("seed", 8)
    started.save()
    started.save()
    assert _stored(tmp_path) == GOOD
    assert [file.name for file in tmp_path.iterdir()] == ["settings.json"]
    assert len(started.notes) == 1
    assert "No space left on device" in started.notes[0]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() == 0:
        # A folder refuses nobody from root; a file where the folder should be refuses everyone.
        place = tmp_path / "file"
        place.write_text("")
        yield place / "below"
        return
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    yield tmp_path
    tmp_path.chmod(stat.S_IRWXU)


def test_a_folder_that_cannot_be_written_is_reported_and_not_fatal(read_only: Path) -> None:
    started = Settings(read_only)
    started.set("seed", 8)
    started.save()
    assert started["seed"] == 8
    assert any("could not be saved" in note for note in started.notes)


def test_the_environment_can_name_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODESCOPE_CONFIG", str(tmp_path / "deep" / "er"))
    changed = Settings()
    changed.set("seed", 8)
    changed.save()
    assert _stored(tmp_path / "deep" / "er")["seed"] == 8


def test_every_setting_has_a_default_that_fits_and_words() -> None:
    for spec in settings.specs().values():
        assert spec.checked(spec.default) == spec.default
        assert spec.label
        assert spec.desc.endswith(".")


def _store(folder: Path, table: dict[str, object]) -> None:
    (folder / "settings.json").write_text(json.dumps(table), encoding="utf-8")


def _stored(folder: Path) -> dict[str, object]:
    stored: dict[str, object] = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    return stored
