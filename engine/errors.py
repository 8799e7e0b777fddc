"""What goes wrong, as a kind with facts, and the sentence that says it."""

from __future__ import annotations

import tomllib
from functools import cache

from engine import resources


class EngineError(Exception):
    """A request, a file or a run that cannot go on.

    `kind` names the sentence in resources/texts/en/errors.toml; `facts` fill it in. The string of
    the error is that sentence, so terminal and window say the same.
    """

    def __init__(self, kind: str, **facts: object) -> None:
        super().__init__(kind, facts)
        self.kind = kind
        self.facts = facts

    def __str__(self) -> str:
        return sentence(self.kind, self.facts)


def sentence(kind: str, facts: dict[str, object]) -> str:
    """The template of `kind` with its facts filled in; whole numbers get their commas."""
    words = {name: f"{fact:,}" if _countable(fact) else fact for name, fact in facts.items()}
    return _templates()[kind].format_map(words)


def kinds() -> frozenset[str]:
    """Every kind that has a sentence."""
    return frozenset(_templates())


@cache
def _templates() -> dict[str, str]:
    with resources.path("texts", "en", "errors.toml").open("rb") as file:
        return {kind: " ".join(text.split()) for kind, text in tomllib.load(file).items()}


def _countable(fact: object) -> bool:
    return isinstance(fact, int) and not isinstance(fact, bool)
