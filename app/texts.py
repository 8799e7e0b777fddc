"""Every word the window says, by id: labels, pages about panels, the glossary, example prompts."""

from __future__ import annotations

import html
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from engine import resources

WIDEST = 110  # characters in a line of a tool tip


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


def text(id: str, /, **facts: object) -> str:
    """The words of `id` in ui.toml with its facts filled in; KeyError for an id it lacks.

    >>> text("transport.step", step=6, steps=22)
    'step 6 of 22'
    """
    words = _words()[id]
    return words.format_map(facts) if facts else words


def as_tip(words: str) -> str:
    """A tool tip of these words: Qt guesses at rich text, and a token must never become markup.

    >>> as_tip("<b>")
    "<p style='white-space:pre'>&lt;b&gt;</p>"
    """
    return f"<p style='white-space:pre'>{html.escape(in_lines(words))}</p>"


def in_lines(words: str) -> str:
    """Words for a tool tip, in lines: Qt breaks none that is narrower than the screen."""
    lines: list[str] = []
    for line in words.split("\n"):
        long = len(line) > WIDEST
        lines += textwrap.wrap(line, WIDEST, break_long_words=False) if long else [line]
    return "\n".join(lines)


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
