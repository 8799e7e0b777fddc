"""Short stories for children from a grammar: one plot, one cast, every thing kept to the end.

    python packaging/embedded_model/stories.py [--plot NAME] [--count 3] [--seed 1]

prints some, which is how to look at a plot that was added to stories.toml.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

from embedded_model.cast import SECOND, World, read  # noqa: E402 - the path comes first
from embedded_model.grammar import Template, expand, finish, sentence  # noqa: E402
from embedded_model.refusal import Refusal  # noqa: E402
from embedded_model.tables import Tables  # noqa: E402

STORIES = Path(__file__).with_name("stories.toml")
WHO = ("a child", "two children", "an animal", "two animals")
SCENERY = ("all", "detours", "none")
OPENER_SHARE = 0.35  # of the stories that can take an opener
DETOUR_SHARE = 0.18  # of the gaps between paragraphs that can take a detour
PARTED_SHARE = 0.6  # of the stories; the others are written in one paragraph


def story(random: Random, plot: str | None = None) -> str:
    """One story of the grammar we ship, of the plot named or of any.

    Raises:
        Refusal: there is no such plot, or stories.toml has a mistake.
    """
    return load().tell(random, plot).text


def stories(n: int, *, seed: int) -> Iterator[str]:
    """The first n stories of a seed; those of a smaller n begin those of a larger.

    Raises:
        Refusal: stories.toml has a mistake.
    """
    random = Random(seed)
    for _ in range(n):
        yield story(random)


@dataclass(frozen=True, slots=True)
class Plot:
    """What happens: paragraphs of lines, about whom, with how much scenery put in."""

    name: str
    who: str  # one of WHO
    scenery: str  # one of SCENERY
    paragraphs: tuple[tuple[Template, ...], ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A story, and what its slots stood for."""

    plot: str
    text: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """All of stories.toml, checked; see there what each is."""

    world: World
    plots: tuple[Plot, ...]
    intro: Template
    openers: tuple[Template, ...]
    detours: tuple[Template, ...]
    endings: tuple[Template, ...]

    def tell(self, random: Random, name: str | None = None) -> Told:
        """Draw a plot (unless named), what is known, scenery, cast, words, in this order.

        Raises:
            Refusal: there is no plot of this name.
        """
        plot = random.choice(self.plots) if name is None else self._plot(name)
        facts = self.world.facts(random)
        paragraphs = self._staged(plot, random)
        drawn = facts | self.world.cast(random, animals="animal" in plot.who)
        values = {**drawn, "intro": self.intro, "ending": random.choice(self.endings)}
        told = []
        for lines in paragraphs:
            sentences = [sentence(expand(line, values, random)) for line in lines]
            told.append(" ".join(each for each in sentences if each))
        between = "\n\n" if random.random() < PARTED_SHARE else " "
        return Told(plot.name, finish(between.join(told)), drawn)

    def _plot(self, name: str) -> Plot:
        for plot in self.plots:
            if plot.name == name:
                return plot
        names = ", ".join(plot.name for plot in self.plots)
        raise Refusal(f"There is no plot “{name}”; the plots are {names}.")

    def _staged(self, plot: Plot, random: Random) -> list[list[Template]]:
        """The plot's paragraphs, with an opener and detours put in where they can be."""
        staged = [list(lines) for lines in plot.paragraphs]
        # Openers and detours speak of streets, schools and grown-ups: they suit children only.
        if plot.scenery == "none" or "animal" in plot.who or len(staged) == 1:
            return staged
        if random.random() < OPENER_SHARE and plot.scenery == "all":
            staged[0].insert(0, random.choice(self.openers))
        for lines in staged[:-1]:
            if random.random() < DETOUR_SHARE:
                lines.append(random.choice(self.detours))
        return staged


@cache
def load(path: Path = STORIES) -> Grammar:
    """Read and check a grammar.

    Raises:
        Refusal: naming the plot or key, and what is wrong with it.
    """
    file = Tables.open(path)
    world = read(file)
    everyone = {*world.facts(Random(0)), *world.cast(Random(0), animals=False)}
    alone = everyone - SECOND  # what a piece may say that stands in every plot
    intro = file.template(file.text("intro"), known=alone, where="intro")
    openers = file.templates("openers", known=alone)
    detours = file.templates("detours", known=alone)
    endings = file.templates("endings", known=alone)
    plots: dict[str, Plot] = {}
    for entry in file.entries("plot", fields=("name", "who", "text"), optional=("scenery",)):
        known = {"intro", "ending", *(everyone if entry["who"].startswith("two") else alone)}
        plot = _read_plot(entry, file=file, known=known)
        if plot.name in plots:
            raise Refusal(f"{file.name} has two plots named {plot.name}; rename one.")
        plots[plot.name] = plot
    file.end()
    return Grammar(world, tuple(plots.values()), intro, openers, detours, endings)


def _read_plot(entry: Mapping[str, str], *, file: Tables, known: set[str]) -> Plot:
    name, who, scenery = entry["name"], entry["who"], entry.get("scenery", "all")
    where = f"plot {name}"
    for field, value, allowed in (("who", who, WHO), ("scenery", scenery, SCENERY)):
        if value not in allowed:
            raise Refusal(
                f"{file.name}, {where}: {field} is “{value}”; it can be {', '.join(allowed)}."
            )
    paragraphs = tuple(
        tuple(file.template(line, known=known, where=where) for line in paragraph.splitlines())
        for paragraph in re.split(r"\n\s*\n", entry["text"].strip())
    )
    return Plot(name, who, scenery, paragraphs)


def main(arguments: list[str] | None = None) -> int:
    """Print stories."""
    parser = argparse.ArgumentParser(description="Print stories of the grammar.")
    parser.add_argument("--plot", help="only this plot; else any")
    parser.add_argument("--count", type=int, default=3, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same stories")
    options = parser.parse_args(arguments)
    random = Random(options.seed)
    try:
        for _ in range(options.count):
            print(story(random, options.plot), end="\n\n")
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
