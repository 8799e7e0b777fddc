"""Texts kept as data: a TOML file whose lists and tables are checked as they are taken."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path

from embedded_model.grammar import Template, parse, slots
from embedded_model.refusal import Refusal

Words = tuple[str, ...]


class Tables:
    """A file, or a [section] of it; a key is taken once, and refused if it is not as it should be.

    Every method may raise a Refusal that names the file and the key.
    """

    def __init__(self, name: str, values: dict[str, object]) -> None:
        self.name = name
        self._left = values

    @classmethod
    def open(cls, path: Path) -> Tables:
        """Read a file.

        Raises:
            Refusal: it is not there, or not TOML.
        """
        try:
            return cls(path.name, tomllib.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise Refusal(f"There is no {path.name}; looked for {path}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Refusal(f"{path.name} is not a TOML file in UTF-8: {error}.") from None

    def section(self, key: str) -> Tables:
        """The keys under [key]."""
        value = self._take(key)
        if not isinstance(value, dict):
            raise Refusal(f"{self.name}: {key} is to be a section, [{key}].")
        return Tables(f"{self.name}, {key}", value)

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value = self._take(key)
        if not isinstance(value, str) or not value.strip():
            raise Refusal(f"{self.name}: {key} is to be a text.")
        return value.strip()

    def words(self, key: str, *, at_least: int = 1) -> Words:
        """A list of texts, none of them twice."""
        return self._words(key, self._take(key), at_least=at_least)

    def rows(self, key: str, *, width: int) -> tuple[Words, ...]:
        """A list of lists of texts, all of one width."""
        value = self._take(key)
        if not isinstance(value, list) or not value:
            raise Refusal(f"{self.name}: {key} is to be a list of lists.")
        for row in value:
            if not isinstance(row, list) or len(row) != width or not all(map(_said, row)):
                raise Refusal(f"{self.name}: {key} needs {width} texts in each row, not {row}.")
        return tuple(tuple(row) for row in value)

    def templates(self, key: str, *, known: Collection[str]) -> tuple[Template, ...]:
        """A list of templates whose slots are all known; one of them may be empty."""
        value = self._take(key)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise Refusal(f"{self.name}: {key} is to be a list of texts.")
        if not value:
            raise Refusal(f"{self.name}: {key} is empty; it needs one text at least.")
        return tuple(self.template(each, known=known, where=key) for each in value)

    def template(self, text: str, *, known: Collection[str], where: str) -> Template:
        """One line as a template whose slots are all known."""
        template = parse(text, where=f"{self.name}, {where}")
        for slot in slots(template):
            if slot not in known:
                raise Refusal(
                    f"{self.name}, {where}: nothing fills the slot [{slot}] here; the slots are "
                    f"explained at the top of the file."
                )
        return template

    def lists(self, key: str, *, n_lists: int, n_words: int = 1) -> dict[str, Words]:
        """A section whose every key has a list of texts; so many lists, of so many, at least."""
        value = self._take(key)
        if not isinstance(value, dict) or len(value) < n_lists:
            raise Refusal(f"{self.name}: [{key}] is to have {n_lists} lists of texts or more.")
        return {each: self._words(f"{key}.{each}", value[each], at_least=n_words) for each in value}

    def entries(
        self, key: str, *, fields: Iterable[str], optional: Iterable[str] = ()
    ) -> list[dict[str, str]]:
        """The [[key]] tables, each a text by field, as they stand in the file."""
        value = self._take(key)
        needed, allowed = set(fields), {*fields, *optional}
        if not isinstance(value, list) or not value or not all(isinstance(e, dict) for e in value):
            raise Refusal(f"{self.name} has no [[{key}]].")
        for place, entry in enumerate(value, 1):
            label = entry.get("name", f"number {place}")
            if missing := sorted(needed - entry.keys()):
                raise Refusal(f"{self.name}, {key} {label}: “{missing[0]}” is missing.")
            if unknown := sorted(entry.keys() - allowed):
                raise Refusal(
                    f"{self.name}, {key} {label}: nothing uses “{unknown[0]}”; "
                    f"it can have {', '.join(sorted(allowed))}."
                )
            if not all(map(_said, entry.values())):
                raise Refusal(f"{self.name}, {key} {label}: all that it has is to be text.")
        return value

    def end(self) -> None:
        """Refuse a key that was never taken: it is misspelt, or stands under the wrong heading."""
        if self._left:
            raise Refusal(f"{self.name}: nothing uses “{min(self._left)}”; is it misspelt?")

    def _take(self, key: str) -> object:
        if key not in self._left:
            raise Refusal(f"{self.name} has no {key}.")
        return self._left.pop(key)

    def _words(self, key: str, value: object, *, at_least: int = 1) -> Words:
        if not isinstance(value, list) or not all(map(_said, value)):
            raise Refusal(f"{self.name}: {key} is to be a list of texts, none of them empty.")
        if len(value) < at_least:
            raise Refusal(f"{self.name}: {key} has {len(value)} texts and needs {at_least}.")
        if twice := [each for each in value if value.count(each) > 1]:
            raise Refusal(f"{self.name}: {key} has “{twice[0]}” twice.")
        return tuple(value)


def _said(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
