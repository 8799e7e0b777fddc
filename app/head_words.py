"""What can be said of one head in words: a cell of its map, where a weight comes from, its tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from app import texts
from app.widgets.heads_view import Caption
from engine import heads
from engine.events import Floats
from engine.heads import GrowingHead, Pattern, Score
from engine.tokenizer import visible
from engine.trace import Moment, Trace

Cell = tuple[int, int]  # (query, key)

label = cache(visible)  # one entry a piece that was seen: at most the vocabulary


@dataclass(frozen=True)
class HeadWords:
    """One head at one moment."""

    moment: Moment
    layer: int
    head: int
    weights: Floats = field(repr=False, compare=False)  # (n_read, n_read)
    labels: tuple[str, ...] = field(repr=False)  # of every token that was read, as it is drawn
    scores: Mapping[Pattern, Score]

    @cached_property
    def tag(self) -> str:
        """The pattern that this head follows strongly, with its number; "" if there is none."""
        found = heads.tag(self.scores)
        return _say(f"tag_{found[0]}", share=found[1].share) if found else ""

    @property
    def patterns(self) -> str:
        """The head, then every pattern's score and what it means, a line each."""
        lines = [
            _say(f"score_{pattern}", share=score.share, n=score.n_queries)
            for pattern, score in self.scores.items()
        ]
        return "\n".join((_say("caption", layer=self.layer, head=self.head), *lines))

    def strongest(self, query: int) -> Cell:
        """The key that a query looks at most."""
        return query, int(self.weights[query, : query + 1].argmax())

    def caption(self, cell: Cell, notice: str) -> Caption:
        """What stands under the map about a cell."""
        facts = self._facts(cell)
        figure = f"{self.weights[cell]:.3f}"
        return Caption(_say("cell", **facts), _say("cell_short", **facts), figure, notice)

    def look(self, cell: Cell) -> str:
        """A cell as a sentence, its weight included."""
        return _say("look", **self._facts(cell))

    def derivation(self, cell: Cell) -> str:
        """A cell, and how its weight follows from the recorded Q and K, with the numbers."""
        score, log_sum = heads.terms(self.moment, self.layer, self.head, query=cell[0], key=cell[1])
        size = self.moment.trace.dimensions.head_size
        facts = {**self._facts(cell), "size": size, "score": score, "log_sum": log_sum}
        return "\n".join(_say(id, **facts) for id in ("look", "look_tip", "look_sum"))

    def _facts(self, cell: Cell) -> dict[str, object]:
        row, column = cell
        return {
            "query": self.labels[row],
            "row": row,
            "key": self.labels[column],
            "column": column,
            "weight": float(self.weights[row, column]),
        }


class HeadReader:
    """Reads heads out of moments and keeps what was read last, so that a frame costs a row."""

    def __init__(self) -> None:
        self._head = GrowingHead()
        self._words: HeadWords | None = None
        self._thumbnails: tuple[ReferenceType[Trace], int, NDArray[np.uint8]] | None = None

    def words(self, moment: Moment, layer: int, head: int) -> HeadWords:
        """One head at this moment; its queries and keys must be here."""
        weights = self._head.at(moment, layer, head)
        assert weights is not None
        if self._words is None or self._words.weights is not weights:
            labels = tuple(label(token.piece) for token in moment.tokens[: moment.n_read])
            scores = self._head.scores()
            self._words = HeadWords(moment, layer, head, weights, labels, scores)
        return self._words

    def thumbnails(self, moment: Moment) -> NDArray[np.uint8]:
        """(L, H, m, m), the same array as long as nothing was read; queries and keys must be here.

        A copy: the run goes on drawing into the array that the trace hands out.
        """
        kept, of, n = self._thumbnails, ref(moment.trace), moment.n_read
        if kept is None or kept[:2] != (of, n):
            thumbnails = moment.thumbnails()
            assert thumbnails is not None
            kept = self._thumbnails = of, n, thumbnails.copy()
        return kept[2]


def _say(id: str, **facts: object) -> str:
    return texts.text(f"panel.attention.{id}", **facts)
