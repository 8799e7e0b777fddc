"""How a template becomes English: alternatives are drawn, slots filled, and the text put right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from embedded_model.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for something that is drawn once for a whole text: [toy]."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives, each as likely as the others: {big|small}."""

    options: tuple[Template, ...]


Part: TypeAlias = str | Slot | Choice
Template: TypeAlias = str | tuple[Part, ...]  # bare words, or parts of which not all are words
Values: TypeAlias = Mapping[str, Template]  # what the slots stand for

_PIECE = re.compile(r"([{}|]|\[[^\[\]]*\])")


def parse(text: str, *, where: str) -> Template:
    """Read a template: words, {alternatives|with others|{nested|inside}} and [slots].

    Args:
        text: one line of a template.
        where: how a message names the place, such as "stories.toml, plot lost".

    Raises:
        Refusal: a brace, bar or bracket without its partner.

    >>> parse("A {red|blue} [toy].", where="here")
    ('A ', Choice(options=('red', 'blue')), ' ', Slot(name='toy'), '.')
    """
    options: list[list[Part]] = [[]]  # the alternatives read so far of the innermost open brace
    outer: list[list[list[Part]]] = []
    for piece in _PIECE.split(text):
        if piece == "{":
            outer.append(options)
            options = [[]]
        elif piece in ("|", "}") and not outer:
            raise Refusal(f"{where}: “{piece}” has no opening brace before it in: {text}")
        elif piece == "|":
            options.append([])
        elif piece == "}":
            choice = Choice(tuple(_template(option) for option in options))
            options = outer.pop()
            options[-1].append(choice)
        elif _PIECE.fullmatch(piece):
            options[-1].append(Slot(piece[1:-1]))
        elif "[" in piece or "]" in piece:
            raise Refusal(f"{where}: a bracket of a slot has no partner in: {text}")
        elif piece:
            options[-1].append(piece)
    if outer:
        raise Refusal(f"{where}: a brace is never closed in: {text}")
    return _template(options[0])


def slots(template: Template) -> Iterator[str]:
    """The names of a template's slots, in reading order, each as often as it stands there."""
    if isinstance(template, str):
        return
    for part in template:
        if isinstance(part, Slot):
            yield part.name
        elif isinstance(part, Choice):
            for option in part.options:
                yield from slots(option)


def expand(template: Template, values: Values, random: Random) -> str:
    """Fill the slots and draw the alternatives: from inside out, those not taken as well.

    A slot's value may be a template itself; it is drawn anew in each place.

    >>> expand(parse("a {red|red} [toy]", where="here"), {"toy": "kite"}, Random(1))
    'a red kite'
    """
    if isinstance(template, str):
        return template
    words = []
    for part in template:
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, Slot):
            words.append(expand(values[part.name], values, random))
        else:
            options = [
                each if isinstance(each, str) else expand(each, values, random)
                for each in part.options
            ]
            words.append(random.choice(options))
    return "".join(words)


def sentence(text: str) -> str:
    """One line: single spaces, and a capital as its first letter, also within quotation marks.

    >>> sentence('  "where  is it?" ')
    '"Where is it?"'
    """
    words = " ".join(text.split())
    start = len(words) - len(words.lstrip("\"' "))
    return words[:start] + words[start : start + 1].upper() + words[start + 1 :]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is put right in a whole text, with an example."""

    name: str
    before: str
    after: str
    pattern: re.Pattern[str]
    becomes: str | Callable[[re.Match[str]], str]


def _upper(found: re.Match[str]) -> str:
    return found[0].upper()


def _lower(found: re.Match[str]) -> str:
    return found[0].lower()


RULES = (  # in this order: the later ones mend what the earlier ones made
    Rule(
        "a becomes an before a vowel that sounds like one",
        "A owl ate a useful one.",
        "An owl ate a useful one.",
        re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!u[ns]|one)"),
        r"\1n ",
    ),
    Rule(
        "a sentence begins with a capital",
        "It rained. the wind blew.",
        "It rained. The wind blew.",
        re.compile(r"[.!?] +[a-z]"),
        _upper,
    ),
    Rule(
        "so does a sentence that follows a quoted one",
        '"It is mine." she ran.',
        '"It is mine." She ran.',
        re.compile(r'\." [a-z]'),
        _upper,
    ),
    Rule(
        "what is said ends with a comma before who says it",
        '"It is mine." said Tom.',
        '"It is mine," said Tom.',
        re.compile(r'\."\s+(said|asked|cried|thought|called|shouted|laughed)\b', re.IGNORECASE),
        r'," \1',
    ),
    Rule(
        "after that comma the verb is in lower case",
        '"It is mine," Said Tom.',
        '"It is mine," said Tom.',
        re.compile(r'," (Said|Asked|Cried|Thought|Called|Shouted|Laughed)\b'),
        _lower,
    ),
    Rule(
        "an exclamation or a question takes no comma",
        '"Oh no!," said Tom.',
        '"Oh no!" said Tom.',
        re.compile(r'(?<=[!?]),"'),
        '"',
    ),
    Rule(
        "what is said without a stop gets its comma",
        '"It is mine" said Tom.',
        '"It is mine," said Tom.',
        re.compile(r'(?<=[a-z])" (said|asked|cried|thought|called|shouted)\b'),
        r'," \1',
    ),
    Rule(
        "a quoted question takes no full stop",
        'She asked, "Why?".',
        'She asked, "Why?"',
        re.compile(r'\?"\.'),
        '?"',
    ),
)


def finish(text: str) -> str:
    """Apply every rule to a whole text.

    >>> finish('"it is a old kite." said Tom. he ran.')
    '"it is an old kite," said Tom. He ran.'
    """
    for rule in RULES:
        text = rule.pattern.sub(rule.becomes, text)
    return text.strip()


def _template(parts: list[Part]) -> Template:
    words = [part for part in parts if isinstance(part, str)]
    return tuple(parts) if len(words) < len(parts) else "".join(words)
