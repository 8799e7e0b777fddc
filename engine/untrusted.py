"""What a file that nobody vouches for must pass: plain, JSON with one meaning, names made safe."""

from __future__ import annotations

import io
import json
import re
import stat
from itertools import accumulate
from pathlib import Path
from typing import NoReturn, cast

from engine.errors import EngineError

MAX_DEPTH = 16  # our files and Hugging Face's need 4; deeper nesting is a recursion bomb
TABLE_CAP = 16 * 2**20  # bytes

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NOT_BRACKET = re.compile(r"[^\[\]{}]+")


def open_plain(path: Path) -> io.FileIO:
    """Open a regular file for reading, unbuffered; a device or a pipe could hang us.

    Raises:
        EngineError: kind "file_missing", "file_unreadable" or "file_not_plain".
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise EngineError("file_not_plain", file=shown(path.name))
        return path.open("rb", buffering=0)
    except FileNotFoundError as error:
        folder = shown(path.parent, limit=200)
        raise EngineError("file_missing", file=shown(path.name), folder=folder) from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise unreadable(path.name, error) from error


def unreadable(name: str, error: Exception) -> EngineError:
    """The system would not read the file; its own reason is passed on."""
    reason = getattr(error, "strerror", None) or str(error)
    return EngineError("file_unreadable", file=shown(name), reason=shown(reason))


def read_table(path: Path, *, cap: int = TABLE_CAP) -> dict[str, Json]:
    """Read a JSON file that holds one object; see `table`.

    Raises:
        EngineError: a kind that begins with "file_" or "json_".
    """
    with open_plain(path) as file:
        try:
            raw = file.read(cap + 1) or b""
        except OSError as error:
            raise unreadable(path.name, error) from error
    if len(raw) > cap:
        raise EngineError("json_long", file=shown(path.name), limit=cap)
    return table(raw, path.name)


def table(raw: bytes, file: str) -> dict[str, Json]:
    """Read one JSON object, refusing what two readers could understand differently.

    Refused: a field given twice, NaN and Infinity, half characters, nesting beyond `MAX_DEPTH`.

    Args:
        raw: the bytes; a byte-order mark in front is skipped.
        file: the file's name, for the sentence.

    Raises:
        EngineError: kind "json_not_text", "json_deep", "json_damaged", "json_twice" or
            "json_not_table".

    >>> table(b'{"n_head": 12}', "config.json")
    {'n_head': 12}
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EngineError("json_not_text", file=shown(file), at=error.start) from error
    if _depth(text) > MAX_DEPTH:
        raise EngineError("json_deep", file=shown(file), limit=MAX_DEPTH)
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except _GivenTwice as error:
        raise EngineError("json_twice", file=shown(file), name=shown(error.name)) from error
    except ValueError as error:  # also a number with more digits than Python reads
        line = getattr(error, "lineno", 1)
        raise EngineError("json_damaged", file=shown(file), line=line) from error
    if not isinstance(value, dict):
        raise EngineError("json_not_table", file=shown(file))
    return cast("dict[str, Json]", value)


def shown(value: object, *, limit: int = 80) -> str:
    """A name or value from a foreign file, safe to print: one line, escaped, elided.

    >>> shown("h.0.ln_1.bias"), shown("日本" + 100 * "x", limit=10)
    ('h.0.ln_1.bias', "'日本xxxxxx…")
    """
    text = str(value)
    if not (text.isascii() and text.isprintable() and text):
        text = repr(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quoted(value: object) -> str:
    """What a caller gave where something else was wanted, safe to print: see `shown`.

    >>> quoted("hot"), quoted(2.5)
    ("'hot'", '2.5')
    """
    if isinstance(value, int) and value.bit_length() > 256:  # Python writes no 5,000 decimals
        return shown(hex(value))
    return shown(repr(value))


class _GivenTwice(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in pairs:
        _check_text([name, value])
        if name in found:
            raise _GivenTwice(name)
        found[name] = value
    return found


def _check_text(values: list[Json]) -> None:
    for value in values:
        if isinstance(value, str):
            value.encode()  # half a character, "\\ud800", is a ValueError, as all damage is
        elif isinstance(value, list):
            _check_text(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _depth(text: str) -> int:
    """How deep brackets nest outside strings, counted before any parser recurses."""
    brackets = _NOT_BRACKET.sub("", _STRING.sub("", text))
    return max(accumulate((1 if b in "[{" else -1 for b in brackets), initial=0))
