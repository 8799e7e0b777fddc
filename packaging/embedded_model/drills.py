"""Short lessons: facts, rows to go on with, things to copy from the context, how a model works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from string import ascii_uppercase

from embedded_model import stories
from embedded_model.cast import World
from embedded_model.grammar import Template, expand, sentence
from embedded_model.tables import Tables, Words

DRILLS = Path(__file__).with_name("drills.toml")
COPY_SHARE = 0.35  # of the drills; the others are lessons
N_LESSONS = (1, 1, 2, 3, 4, 6)  # in a drill, each as likely as the others
STEPS = (1, 1, 1, 2, 5, 10)  # of rows of numbers
SHARES = {  # how often each kind of lesson comes, of the sum of all
    "capitals": 3,
    "opposites": 1,
    "sounds": 1,
    "young": 1,
    "colors": 1,
    "sports": 2,
    "counting": 1,
    "steps": 1,
    "calendar": 1,
    "sums": 1,
    "letters": 1,
    "facts": 3,
    "model": 3,
}

_PAIRS = ("capitals", "opposites", "sounds", "young", "colors", "sports")
_KINDS = tuple(kind for kind, share in SHARES.items() for _ in range(share))


def drill(random: Random) -> str:
    """One drill: something to copy, or one to six lessons.

    Raises:
        Refusal: drills.toml or stories.toml has a mistake.
    """
    return load().drill(random)


def drills(n: int, *, seed: int) -> Iterator[str]:
    """The first n drills of a seed; those of a smaller n begin those of a larger.

    Raises:
        Refusal: drills.toml or stories.toml has a mistake.
    """
    random = Random(seed)
    for _ in range(n):
        yield drill(random)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Facts of one kind: each a pair, and how a pair can be said."""

    say: tuple[Template, ...]
    pairs: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Drills:
    """All of drills.toml, checked, and the words of the stories."""

    world: World
    pairs: Mapping[str, Pairs]
    numbers: Words
    sums: tuple[Template, ...]
    calendars: tuple[Words, ...]
    facts: Words
    model: Words
    owned: Template
    asked: tuple[Template, ...]
    given: tuple[Template, ...]
    places: Words

    @property
    def people(self) -> Words:
        """All names, of girls and of boys."""
        return self.world.words["girls"] + self.world.words["boys"]

    def drill(self, random: Random) -> str:
        """See the function of this name."""
        if random.random() < COPY_SHARE:
            return self.copying(random)
        n = random.choice(N_LESSONS)
        between = random.choice((" ", "\n"))
        return between.join(self.lesson(random) for _ in range(n))

    def lesson(self, random: Random) -> str:
        """One fact, row or piece about the model."""
        kind = random.choice(_KINDS)
        if kind in self.pairs:
            return self._pair(self.pairs[kind], random, turning=kind == "opposites")
        if kind == "facts":
            return random.choice(self.facts)
        rows = {
            "counting": self._counting,
            "steps": _steps,
            "calendar": self._calendar,
            "sums": self._sum,
            "letters": _letters,
            "model": self._model,
        }
        return rows[kind](random)

    def _pair(self, facts: Pairs, random: Random, *, turning: bool) -> str:
        a, b = random.choice(facts.pairs)
        if turning and random.random() < 0.5:
            a, b = b, a
        return expand(random.choice(facts.say), {"a": a, "b": b, "A": sentence(a)}, random)

    def _counting(self, random: Random) -> str:
        start = random.randrange(8)
        words = self.numbers[start : start + random.randint(3, 12 - start)]
        return (" " if random.random() < 0.5 else ", ").join(words)

    def _calendar(self, random: Random) -> str:
        names = random.choice(self.calendars)
        start = random.randrange(len(names))
        n = random.randint(3, len(names))
        return ", ".join(names[(start + step) % len(names)] for step in range(n))

    def _sum(self, random: Random) -> str:
        a = random.randrange(1, 9)
        b = random.randrange(1, 10 - a)
        one, other, both = (self.numbers[number - 1] for number in (a, b, a + b))
        values = {"a": one, "b": other, "c": both, "A": sentence(one)}
        return expand(random.choice(self.sums), values, random)

    def _model(self, random: Random) -> str:
        start = random.randrange(len(self.model))
        return " ".join(self.model[start : start + random.randint(1, 6)])

    def copying(self, random: Random) -> str:
        """Something whose second half can be told from its first."""
        kind = random.choice((_roll, self._belongings, self._gift, self._things, self._table))
        return kind(random.sample(self.people, 8), random)

    def _belongings(self, people: Sequence[str], random: Random) -> str:
        """Who has what, then the same asked in another order."""
        n = random.randint(3, 6)
        toys = random.sample(self.world.words["toys"], n)
        colors = [random.choice(self.world.words["colors"]) for _ in range(n)]
        owners = [
            {"n": name, "toy": toy, "color": color}
            for name, toy, color in zip(people, toys, colors, strict=False)
        ]
        told = [expand(self.owned, owner, random) for owner in owners]
        random.shuffle(owners)
        asked = [expand(random.choice(self.asked), owner, random) for owner in owners]
        return " ".join(told + asked)

    def _gift(self, people: Sequence[str], random: Random) -> str:
        toy, place = random.choice(self.world.words["toys"]), random.choice(self.places)
        values = {"n": people[0], "n2": people[1], "toy": toy, "place": place}
        return expand(random.choice(self.given), values, random)

    def _things(self, _: Sequence[str], random: Random) -> str:
        """A row of things, and the same row on one to three lines more."""
        n = random.randint(3, 8)
        row = " ".join(random.sample((*self.world.animals, *self.world.words["toys"]), n))
        return "\n".join([row] * (1 + random.randint(1, 3)))

    def _table(self, people: Sequence[str], random: Random) -> str:
        """Names with an animal each, line by line, then the same lines in another order."""
        n = random.randint(3, 6)
        animals = random.sample(list(self.world.animals), n)
        lines = [f"{name}: {kind}" for name, kind in zip(people, animals, strict=False)]
        return "\n".join(lines + random.sample(lines, n))


@cache
def load(path: Path = DRILLS) -> Drills:
    """Read and check a file of drills.

    Raises:
        Refusal: naming the key, and what is wrong with it.
    """
    file = Tables.open(path)
    calendars = file.lists("calendars", n_lists=1, n_words=3)
    drills = Drills(
        world=stories.load().world,
        pairs={key: _read_pairs(file.section(key)) for key in _PAIRS},
        numbers=file.words("numbers", at_least=12),
        sums=file.templates("sums", known=("a", "b", "c", "A")),
        calendars=tuple(calendars.values()),
        facts=file.words("facts"),
        model=file.words("model"),
        owned=file.template(file.text("owned"), known=("n", "toy", "color"), where="owned"),
        asked=file.templates("asked", known=("n", "toy", "color")),
        given=file.templates("given", known=("n", "n2", "toy", "place")),
        places=file.words("places"),
    )
    file.end()
    return drills


def _read_pairs(file: Tables) -> Pairs:
    pairs = Pairs(file.templates("say", known=("a", "b", "A")), file.rows("pairs", width=2))
    file.end()
    return pairs


def _steps(random: Random) -> str:
    start = random.randrange(1, 60)
    n = random.randint(4, 12)
    step = random.choice(STEPS)
    between = ", " if random.random() < 0.6 else " "
    return between.join(str(start + step * place) for place in range(n))


def _letters(random: Random) -> str:
    start = random.randrange(15)
    return " ".join(ascii_uppercase[start : start + random.randint(5, 26 - start)])


def _roll(people: Sequence[str], random: Random) -> str:
    """A row of names, two to four times."""
    row = " ".join(people[: random.randint(3, 7)])
    return " ".join([row] * random.randint(2, 4))
