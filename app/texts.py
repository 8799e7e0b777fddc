"""Every word the window says, by id: labels, pages about panels, the glossary, example prompts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from engine import resources


@dataclass(frozen=True, slots=True)
class Term:
    """One word of the glossary."""

    word: str
    meaning: str
    formula: str  # with GPT-2's numbers; "" where there is none


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt worth running, and what to look at."""

    title: str
    prompt: str
    look: str


def text(id: str, **facts: object) -> str:
    """The words of `id` in ui.toml with its facts filled in; KeyError for an id it lacks.

    >>> text("transport.step", step=6, steps=22)
    'step 6 of 22'
    """
    words = _words()[id]
    return words.format_map(facts) if facts else words


def ids() -> frozenset[str]:
    """Every id that has words."""
    return frozenset(_words())


def group(table: str) -> tuple[str, ...]:
    """The ids of one table of ui.toml, in the order of the file."""
    return tuple(id for id in _words() if id.startswith(f"{table}."))


def page(name: str) -> str:
    """The "What is this?" page of a panel, as Markdown; KeyError for a panel without one."""
    file = resources.path("texts", "en", "panels", f"{name}.md")
    if not file.is_file():
        raise KeyError(name)
    return file.read_text(encoding="utf-8")


@cache
def glossary() -> tuple[Term, ...]:
    """The words the window uses, each with one meaning, in the order of the file."""
    return tuple(
        Term(word=entry["word"], meaning=_one_line(entry["meaning"]), formula=entry["formula"])
        for entry in _toml("texts", "en", "glossary.toml")["term"]
    )


@cache
def examples() -> tuple[Example, ...]:
    """The example prompts; the first is what a first start shows."""
    return tuple(Example(**entry) for entry in _toml("prompts.toml")["prompt"])


@cache
def _words() -> Mapping[str, str]:
    return MappingProxyType(dict(_flat(_toml("texts", "en", "ui.toml"))))


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, entry in table.items():
        if isinstance(entry, dict):
            yield from _flat(entry, f"{prefix}{name}.")
        else:
            yield prefix + name, entry


def _one_line(words: str) -> str:
    return " ".join(words.split())


def _toml(*parts: str) -> dict[str, Any]:
    with resources.path(*parts).open("rb") as file:
        return tomllib.load(file)
