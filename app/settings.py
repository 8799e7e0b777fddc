"""What the user changed, kept as JSON in one small file; a bad file never stops a start."""

from __future__ import annotations

import base64
import binascii
import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from PySide6.QtCore import QObject, QStandardPaths, QTimer, Signal, Slot

from app import texts
from engine import resources

Kind = Literal["bool", "int", "float", "text", "choice", "base64"]
Value = bool | int | float | str

VERSION = 1
SAVE_AFTER_MS = 400  # a slider that is dragged is saved once, when it rests
MAX_BYTES = 1 << 22  # twice what the longest prompt takes, each character as two escapes


@dataclass(frozen=True, slots=True)
class Spec:
    """What one setting may hold, and the words for it."""

    name: str
    kind: Kind
    default: Value
    label: str
    desc: str
    range: tuple[float, float] | None = None  # both ends allowed
    track: tuple[float, float] | None = None  # the part of the range that a slider covers
    choices: tuple[str, ...] = ()

    def checked(self, value: object) -> Value:
        """The value as this setting's type; ValueError where it does not fit."""
        if self.kind == "bool":
            fits = isinstance(value, bool)
        elif self.kind in ("int", "float"):
            fits = self._is_number(value)
        else:
            fits = self._is_words(value)
        if not fits:
            raise ValueError(value)
        return float(value) if self.kind == "float" else value  # type: ignore[arg-type,return-value]

    def _is_number(self, value: object) -> bool:
        types = (int,) if self.kind == "int" else (int, float)
        if isinstance(value, bool) or not isinstance(value, types):
            return False
        assert self.range is not None
        least, most = self.range
        return least <= value <= most  # False for a NaN

    def _is_words(self, value: object) -> bool:
        if not isinstance(value, str) or not _is_text(value):
            return False
        if self.kind == "choice":
            return value in self.choices
        return self.kind != "base64" or _is_base64(value)


class Settings(QObject):
    """Typed access to every setting of resources/settings.toml.

    Only what differs from its default is saved. Keys we do not know, of a later version, are kept
    as they are. `notes` says, in sentences, what was wrong with the file; it is filled once, at
    the start, and again when saving fails.
    """

    changed = Signal(str)  # the name of the setting that has another value now

    def __init__(
        self, folder: Path | None = None, *, kept: bool = True, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._kept = kept  # False: all defaults, nothing read and nothing written
        self._file = (folder or _folder()) / "settings.json"
        self._specs = specs()
        self._changed: dict[str, Value] = {}
        self._unknown: dict[str, Any] = {}
        self.notes: list[str] = []
        self._timer = QTimer(self, singleShot=True, interval=SAVE_AFTER_MS)
        self._timer.timeout.connect(self.save)
        if kept:
            self._load()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # each name has its own type
        """The value in force; KeyError for a name that is no setting."""
        return self._changed.get(name, self._specs[name].default)

    def spec(self, name: str) -> Spec:
        return self._specs[name]

    def set(self, name: str, value: object) -> None:
        """Change one setting, soon to be saved; ValueError where the value does not fit."""
        spec = self._specs[name]
        checked = spec.checked(value)
        if checked == self[name]:
            return
        if checked == spec.default:
            del self._changed[name]
        else:
            self._changed[name] = checked
        self._timer.start()
        self.changed.emit(name)

    def reset(self, name: str) -> None:
        """Back to the default."""
        self.set(name, self._specs[name].default)

    @Slot()
    def save(self) -> None:
        """Write the file now; nothing to do after `set` but at the end."""
        self._timer.stop()
        if not self._kept:
            return
        table = {"version": VERSION, **self._unknown, **self._changed}
        try:
            _write(self._file, json.dumps(table, indent=2))
        except OSError as error:
            note = texts.text("settings.unwritable", reason=error.strerror or error)
            if note not in self.notes:
                self.notes.append(note)

    def _load(self) -> None:
        try:
            table = _read(self._file)
        except FileNotFoundError:
            return
        except OSError as error:
            self.notes.append(texts.text("settings.unreadable", reason=error.strerror or error))
            return
        except (ValueError, RecursionError):
            self._set_aside([])
            return
        bad = [name for name, value in table.items() if not self._take(name, value)]
        if bad:
            self._set_aside(bad)

    def _take(self, name: str, value: object) -> bool:
        """Keep one entry of the file; False where its value cannot be."""
        if name == "version":
            return True
        spec = self._specs.get(name)
        if spec is None:
            self._unknown[name] = value
            return True
        try:
            checked = spec.checked(value)
        except ValueError:
            return False
        if checked != spec.default:
            self._changed[name] = checked
        return True

    def _set_aside(self, bad: list[str]) -> None:
        """Keep the bad file under another name, write a good one, and say so once."""
        aside = _free_name(self._file)
        labels = ", ".join(self._specs[name].label for name in bad)
        try:
            self._file.rename(aside)
        except OSError as error:
            self.notes.append(texts.text("settings.stuck", reason=error.strerror or error))
            return
        id = "settings.bad_values" if bad else "settings.bad_file"
        self.notes.append(texts.text(id, names=labels, file=aside.name))
        self.save()


@cache
def specs() -> Mapping[str, Spec]:
    """Every setting by name, in the order of the file."""
    with resources.path("settings.toml").open("rb") as file:
        tables = tomllib.load(file)
    return MappingProxyType({name: _spec(name, table) for name, table in tables.items()})


def _spec(name: str, table: Mapping[str, Any]) -> Spec:
    return Spec(
        name=name,
        kind=table["type"],
        default=table["default"],
        label=table["label"],
        desc=table["desc"],
        range=tuple(table["range"]) if "range" in table else None,
        track=tuple(table["track"]) if "track" in table else None,
        choices=tuple(table.get("choices", ())),
    )


def _folder() -> Path:
    given = os.environ.get("DECODESCOPE_CONFIG")
    if given:
        return Path(given)
    base = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)
    return Path(base) / "decodescope"


def _read(file: Path) -> dict[str, Any]:
    """The file's table; ValueError for anything that is not one JSON object in UTF-8."""
    with file.open("rb") as source:
        content = source.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError("too long")
    table = json.loads(content.decode("utf-8"), parse_constant=_refuse)
    if not isinstance(table, dict):
        raise ValueError("not an object")
    return table


def _write(file: Path, content: str) -> None:
    """Replace the file in one step: whoever reads it sees the old one or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".settings-", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _free_name(file: Path) -> Path:
    n = 1
    while (aside := file.with_name(f"{file.stem}.bad-{n}{file.suffix}")).exists():
        n += 1
    return aside


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _is_text(words: str) -> bool:
    """Whether it can be written as UTF-8: half a character cannot."""
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_base64(words: str) -> bool:
    try:
        base64.b64decode(words, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
