"""What every drill keeps to: its facts are in the tables, its rows go on, its copies are true."""

import re
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from embedded_model import drills
from embedded_model.drills import Drills
from embedded_model.refusal import Refusal

OWNED = re.compile(r"(\w+) has an? (\w+) (\w+)\.")
ASKED = re.compile(
    r"(\w+)'s (\w+) is (\w+)\.|The (\w+) of (\w+) is (\w+)\.|(\w+) has the (\w+) (\w+)\."
)
GIVEN = (
    re.compile(r"When (\w+) and (\w+) went to the \w+, \1 gave a \w+ to \2\."),
    re.compile(
        r"(\w+) and (\w+) were at the \w+\. \2 gave the (\w+) to \1\. "
        r"Then \1 gave the \3 back to \2\."
    ),
)


@pytest.fixture(scope="module")
def lessons() -> list[str]:
    random = Random(3)
    return [drills.load().lesson(random) for _ in range(4000)]


@pytest.fixture(scope="module")
def copies() -> list[str]:
    random = Random(4)
    return [drills.load().copying(random) for _ in range(1000)]


def test_a_seed_draws_the_same_drills_for_ever() -> None:
    """The embedded model was trained on seed 2."""
    texts = list(drills.drills(300, seed=2))
    assert sha256("\0".join(texts).encode()).hexdigest() == (
        "bc1c983c0fcabfa279434abbee2e79358cea92c038365e97ba4f566e712a6636"
    )
    assert list(drills.drills(300, seed=3)) != texts


def test_fewer_drills_are_the_first_of_more() -> None:
    assert list(drills.drills(5, seed=3)) == list(drills.drills(9, seed=3))[:5]


def test_no_drill_shows_its_markup() -> None:
    assert not [text for text in drills.drills(1500, seed=5) if re.search(r"[\[\]{}|=]|  ", text)]


def test_every_lesson_is_a_fact_of_the_tables_or_a_row_that_goes_on(lessons: list[str]) -> None:
    tables = drills.load()
    said = _said(tables)
    kinds = {
        "pair": lambda lesson: lesson in said,
        "fact": lambda lesson: lesson in tables.facts,
        "model": lambda lesson: lesson in " ".join(tables.model),
        "numbers": _goes_on_in_steps,
        "words": lambda lesson: _stands_in(lesson, tables.numbers),
        "letters": lambda lesson: _stands_in(lesson, tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
        "round": lambda lesson: any(_stands_in(lesson, names * 2) for names in tables.calendars),
        "sum": lambda lesson: _adds_up(lesson, tables.numbers),
    }
    found = {lesson: [kind for kind, holds in kinds.items() if holds(lesson)] for lesson in lessons}
    assert not [lesson for lesson, of in found.items() if len(of) != 1]
    assert {of[0] for of in found.values()} == set(kinds)


@pytest.mark.parametrize(
    "fact",
    [
        "The capital of France is Paris.",
        "Q: What is the capital of the United States?\nA: Washington",
        "The opposite of hot is cold.",
        "Cold is the opposite of hot.",
        "A baby cat is called a kitten.",
        "The color of the sky is blue.",
        "Grass is green.",
        "Michael Jordan played the sport of basketball.",  # the prompt that the program opens with
    ],
)
def test_the_tables_can_say(fact: str) -> None:
    assert fact in _said(drills.load())


def test_a_row_of_names_or_things_is_repeated_whole(copies: list[str]) -> None:
    rows = [text for text in copies if "." not in text and ":" not in text]
    assert len(rows) > 300  # two kinds of five
    for text in rows:
        parts = text.split()
        lengths = range(3, len(parts) // 2 + 1)
        assert any(parts == parts[:n] * (len(parts) // n) for n in lengths), text


def test_what_is_asked_of_a_belonging_was_told_before(copies: list[str]) -> None:
    texts = [text for text in copies if OWNED.match(text)]
    assert len(texts) > 150  # one kind of five
    for text in texts:
        told = set(OWNED.findall(text))
        asked = set()
        for a, b, c, d, e, f, g, h, i in ASKED.findall(text):
            asked.add((a, c, b) if a else (e, f, d) if d else (g, h, i))
        assert asked == told, text
        assert len({name for name, _, _ in told}) == len({toy for _, _, toy in told}) == len(told)


def test_who_is_given_something_came_along(copies: list[str]) -> None:
    texts = [text for text in copies if " gave " in text]
    assert len(texts) > 150  # one kind of five
    assert not [text for text in texts if not any(given.fullmatch(text) for given in GIVEN)]


def test_a_table_is_told_again_in_another_order_with_the_same_lines(copies: list[str]) -> None:
    texts = [text for text in copies if ":" in text]
    assert len(texts) > 150  # one kind of five
    for text in texts:
        lines = text.split("\n")
        half = len(lines) // 2
        assert len(set(lines)) == half
        assert sorted(lines[:half]) == sorted(lines[half:])


def test_articles_are_right_but_for_two_words() -> None:
    """The sentences of drills are not put right: "a orange" and "A owl" are said as they are."""
    text = "\n".join(drills.drills(3000, seed=6))
    assert set(re.findall(r"\b[Aa] [aeiouAEIOU]\w+", text)) == {"a orange", "A owl"}
    assert set(re.findall(r"\b[Aa]n [^aeiouAEIOU]\w+", text)) == {"An hour", "an MLP"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[a] is [b].", "[a] is [c].", r"drills\.toml, capitals, say: .* slot \[c\]"),
        ('["France", "Paris"]', '["France"]', "capitals: pairs needs 2 texts in each row"),
        ("[sounds]", "[noises]", "has no sounds"),
        ("[sounds]", "[noises]\n[sounds]", "nothing uses “noises”"),
        (', "autumn", "winter"]', "]", "calendars.seasons has 2 texts and needs 3"),
        ('"eleven",\n', "\n", "numbers has 11 texts and needs 12"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = drills.DRILLS.read_text(encoding="utf-8")
    assert old in text
    changed = tmp_path / "drills.toml"
    changed.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Refusal, match=says):
        drills.load(changed)


def _said(tables: Drills) -> set[str]:
    """All that the pairs can be said as."""
    sentences = set()
    for kind, facts in tables.pairs.items():
        turned = [(b, a) for a, b in facts.pairs] if kind == "opposites" else []
        for a, b in [*facts.pairs, *turned]:
            slots = {"a": a, "b": b, "A": a[0].upper() + a[1:]}
            for say in facts.say:
                sentences.add("".join(p if isinstance(p, str) else slots[p.name] for p in say))
    return sentences


def _goes_on_in_steps(lesson: str) -> bool:
    if not re.fullmatch(r"[\d, ]+", lesson):
        return False
    row = [int(number) for number in re.findall(r"\d+", lesson)]
    return len({b - a for a, b in pairwise(row)}) == 1 and row[1] > row[0]


def _stands_in(lesson: str, row: tuple[str, ...]) -> bool:
    return len(lesson.split()) > 2 and f" {lesson.replace(',', '')} " in f" {' '.join(row)} "


def _adds_up(lesson: str, numbers: tuple[str, ...]) -> bool:
    found = re.fullmatch(r"(\w+) (?:plus|and) (\w+) (?:is|make) (\w+)\.", lesson)
    if found is None:
        return False
    one, other, both = (numbers.index(word.lower()) + 1 for word in found.groups())
    return one + other == both
