"""Who and what a story is about, drawn from lists of words: the values of its slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from embedded_model.grammar import Template, expand, sentence
from embedded_model.refusal import Refusal
from embedded_model.tables import Tables, Words

# Lists of words and how many they need at least, so that a cast and a drill can be drawn.
N_WORDS = {
    "girls": 4,
    "boys": 4,
    "colors": 3,
    "furs": 1,
    "toys": 6,
    "foods": 2,
    "places": 3,
    "nearby": 1,
    "adjectives": 1,
    "bad": 1,
    "good": 1,
    "weather": 1,
    "cats": 1,
    "birds": 1,
    "dogs": 1,
}
N_ANIMALS = 6
WIDTHS = {"grownups": 3, "riddles": 2, "tasks": 5, "creatures": 5, "rhyming": 4}
NAMED_SHARE = 0.5  # of the animals; the others go by their kind

SECOND = frozenset(  # slots of the second character
    {"n2", "kind2", "he2", "him2", "his2", "himself2", "He2", "His2", "the2"}
)
_RHYMING = ("rhyme1", "rhyme2", "rhyme3", "rhyme4", "Rhyme1", "Rhyme3")
_FORMS = {"he": ("him", "his", "himself"), "she": ("her", "her", "herself")}


@dataclass(frozen=True, slots=True)
class Character:
    """One of the two that a story has."""

    name: str
    kind: str  # girl, boy, fox, ...
    he: str  # he or she

    def introduced(self, random: Random) -> str:
        """The character at first sight: a fox named Rusty; or the fox, if that is its name."""
        if self.name != self.kind.capitalize():
            return f"a {self.kind} named {self.name}"
        return f"{random.choice(('the', 'a little', 'a young'))} {self.kind}"


@dataclass(frozen=True, slots=True)
class World:
    """All that stories can be about. The order of the draws is what makes a seed's stories."""

    words: Mapping[str, Words]
    tables: Mapping[str, tuple[Words, ...]]
    animals: Mapping[str, Words]  # names by kind
    rhymes: tuple[Template, ...]

    def facts(self, random: Random) -> dict[str, str]:
        """A riddle, a task, a creature, a rhyme and the weather, by slot."""
        riddle, answer = random.choice(self.tables["riddles"])
        task, *steps = random.choice(self.tables["tasks"])
        creature, lives, eats, has, does = random.choice(self.tables["creatures"])
        words = random.choice(self.tables["rhyming"])
        rhyming = dict(zip(_RHYMING, (*words, sentence(words[0]), sentence(words[2])), strict=True))
        return {
            "riddle": riddle,
            "answer": answer,
            "task": task,
            **{f"step{number}": step for number, step in enumerate(steps, 1)},
            "creature": creature,
            "lives": lives,
            "eats": eats,
            "has": has,
            "does": does,
            "rhyme": expand(random.choice(self.rhymes), rhyming, random),
            "weather": random.choice(self.words["weather"]),
        }

    def cast(self, random: Random, *, animals: bool) -> dict[str, str]:
        """Two characters, both children or both animals, a grown-up and things, by slot."""
        words = self.words
        adjective, kind = random.choice(words["adjectives"]), random.choice(list(self.animals))
        animal2 = random.choice(list(self.animals))
        taken: set[str] = set()
        draw = self._animal if animals else self._child
        one, two = draw(taken, random), draw(taken, random)
        parent, grownup, he = random.choice(self.tables["grownups"])
        animal = random.choice([each for each in self.animals if each not in taken])
        color, color2, _ = random.sample(words["colors"], 3)
        toy, toy2 = random.sample(words["toys"], 2)
        food, food2 = random.sample(words["foods"], 2)
        place, place2, _ = random.sample(words["places"], 3)
        return {
            **_forms(one, ""),
            **_forms(two, "2"),
            **{"parent": parent, "P": grownup, "Phe": he, "Phim": _FORMS[he][0]},
            **{"animal": animal, "animal2": animal2},
            **{"color": color, "color2": color2},
            **{"Color": color.capitalize(), "Color2": color2.capitalize()},
            **{"toy": toy, "toy2": toy2, "food": food, "food2": food2},
            **{"place": place, "place2": place2},
            "ship": f"{adjective.capitalize()} {kind.capitalize()}",
            "fur": random.choice(words["furs"]),
            "nearby": random.choice(words["nearby"]),
            "adj": random.choice(words["adjectives"]),
            "bad": random.choice(words["bad"]),
            "good": random.choice(words["good"]),
            "the1": one.introduced(random),
            "the2": two.introduced(random),
            "The1": sentence(one.introduced(random)),
            "bird": random.choice(words["birds"]),
            "dog": random.choice(words["dogs"]),
            "cat": random.choice(words["cats"]),
        }

    def _child(self, taken: set[str], random: Random) -> Character:
        while True:
            he = random.choice(("he", "she"))
            name = random.choice(self.words["boys" if he == "he" else "girls"])
            if name not in taken:
                taken.add(name)
                return Character(name, "boy" if he == "he" else "girl", he)

    def _animal(self, taken: set[str], random: Random) -> Character:
        while True:
            kind = random.choice(list(self.animals))
            if kind in taken:
                continue
            taken.add(kind)
            he = random.choice(("he", "she"))
            named = random.random() < NAMED_SHARE
            name = random.choice(self.animals[kind]) if named else kind.capitalize()
            if name not in taken:
                taken.add(name)
                return Character(name, kind, he)


def read(file: Tables) -> World:
    """Take the world's lists from a file.

    Raises:
        Refusal: one is missing, too short or not as it should be.
    """
    world = World(
        words={key: file.words(key, at_least=n) for key, n in N_WORDS.items()},
        tables={key: file.rows(key, width=width) for key, width in WIDTHS.items()},
        animals=file.lists("animals", n_lists=N_ANIMALS),
        rhymes=file.templates("rhymes", known=_RHYMING),
    )
    for _, name, he in world.tables["grownups"]:
        if he not in _FORMS:
            raise Refusal(f"{file.name}: grownups has “{he}” for {name}; it is to be he or she.")
    return world


def _forms(character: Character, suffix: str) -> dict[str, str]:
    him, his, himself = _FORMS[character.he]
    forms = {
        "n": character.name,
        "kind": character.kind,
        "he": character.he,
        "him": him,
        "his": his,
        "himself": himself,
        "He": character.he.capitalize(),
        "His": his.capitalize(),
    }
    return {slot + suffix: form for slot, form in forms.items()}
