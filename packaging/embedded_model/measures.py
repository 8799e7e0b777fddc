"""What a model can do, in numbers: losses, copying, where heads look, mass on untrained rows.

Logarithms are natural: losses are in nats. L layers, H heads, V ids in the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from engine import heads, tokenizer
from engine.heads import PATTERNS, Pattern
from engine.tokenizer import END_OF_TEXT

Floats = NDArray[np.float32]
Ids = NDArray[np.intp]
Mask = NDArray[np.bool_]
Scores = dict[Pattern, NDArray[np.float64]]  # (L, H) shares of attention, 0 to 1

N_SEGMENTS, SEGMENT = 16, 48  # random sequences, and the tokens of each before it comes again
N_FREQUENT, SEED = 4_000, 3  # the draw of those tokens: from how many of the most frequent ones
N_SEQUENCES, SEQUENCE = 16, 128  # natural sequences on which heads are watched, and their tokens


class Model(Protocol):
    """What the measures ask of a model."""

    n_positions: int

    def logits(self, ids: Ids) -> Iterable[Floats]:
        """What follows each token of a window: (n, V), in pieces of rows that may be changed."""

    def maps(self, ids: Ids) -> Floats:
        """Where each head looks on a window: (L, H, n, n), query rows, key columns."""


@dataclass(frozen=True, slots=True)
class Share:
    """Probability that falls on rows that training never saw; None: there was no such place."""

    mean: float
    after_trained: float | None  # mean over predictions made right after a token with a trained row
    largest_after_trained: float | None  # of one such prediction
    after_untrained: float | None  # mean over the other predictions


@dataclass(frozen=True, slots=True)
class Loss:
    """How well a stream of tokens is foretold; see `loss`."""

    nats: float  # a token
    bits_per_byte: float
    n_tokens: int  # foretold
    untrained: Share | None

    @property
    def perplexity(self) -> float:
        """exp(nats): as unsure as between so many equally likely tokens."""
        return math.exp(self.nats)


@dataclass(frozen=True, slots=True)
class Copying:
    """How well random tokens are foretold, the first time and the second; see `copying`."""

    first: float  # nats a token
    second: float  # nats a token
    right: float  # share of the second time at which the likeliest token is the true one


def loss(model: Model, ids: Ids, *, untrained: Mask | None = None) -> Loss:
    """The mean loss over a stream of tokens, cut into windows.

    With T = model.n_positions, windows of T tokens lie side by side; what is left at the end is
    not read. In each window x, x[0..i] foretells x[i + 1] for i from 0 to T - 2: the first token of
    a window is never foretold. Over all i of all windows:

        nats a token = mean of -ln p(x[i + 1])
        bits a byte = sum of -ln p(x[i + 1]) / ln 2 / sum of the bytes of x[i + 1]

    <|endoftext|> has to be foretold and counts 0 bytes: it is no text.

    Args:
        model: what is measured.
        ids: (n,) at least T tokens.
        untrained: (V,) true for rows that training never saw; None: their share is left out.
    """
    n_windows = len(ids) // model.n_positions
    assert n_windows
    windows = ids[: n_windows * model.n_positions].reshape(n_windows, -1)  # (n_windows, T)
    found = [_judge(z, next, untrained) for x in windows for z, next in _predictions(model, x)]
    nats = np.concatenate([nats for nats, _ in found])  # (n_windows (T - 1),)
    shares = np.concatenate([shares for _, shares in found])  # (n_windows (T - 1),)
    n_bytes = _n_bytes(windows[:, 1:])
    return Loss(
        nats=float(nats.mean()),
        bits_per_byte=float(nats.sum()) / math.log(2) / n_bytes,
        n_tokens=len(nats),
        untrained=None if untrained is None else _share(shares, untrained[windows[:, :-1]]),
    )


def repeats(frequent: Ids) -> Ids:
    """Random tokens, each sequence of 48 followed by itself: (16, 96), always the same draw.

    Args:
        frequent: ids to draw from, of which the first 4,000 are used, all equally likely.
    """
    among = frequent[:N_FREQUENT]
    draw = torch.Generator().manual_seed(SEED)
    picks = torch.randint(0, len(among), (N_SEGMENTS, SEGMENT), generator=draw).numpy()
    segments = among[picks]  # (16, 48)
    return np.concatenate([segments, segments], axis=1)  # (16, 96)


def copying(model: Model, repeated: Ids) -> Copying:
    """The mean loss of sequences that come twice, the first time and the second.

    The first token of each time counts for neither: nothing tells of it.

    Args:
        model: what is measured.
        repeated: (n, 2 S) as `repeats` gives them.
    """
    nats, right = [], []
    for x in repeated:
        for z, next in _predictions(model, x):
            right.append(z.argmax(axis=-1) == next)
            nats.append(_judge(z, next, None)[0])
    losses = np.concatenate(nats).reshape(len(repeated), -1)  # (n, 2 S - 1)
    hits = np.concatenate(right).reshape(len(repeated), -1)  # (n, 2 S - 1)
    half = repeated.shape[1] // 2
    return Copying(
        first=float(losses[:, : half - 1].mean()),
        second=float(losses[:, half:].mean()),
        right=float(hits[:, half:].mean()),
    )


def head_scores(model: Model, natural: Ids, repeated: Ids) -> Scores:
    """How much of its attention each head gives to each of the five patterns of `heads.scores`.

    Previous, first and current are taken on natural text; duplicate and induction where random
    tokens come again, because in natural text a word before has many reasons. Each is the mean over
    the queries of all sequences that have a key for the pattern.

    Args:
        model: what is measured.
        natural: (n, m) sequences of a text.
        repeated: (n, 2 S) as `repeats` gives them.
    """
    on_text, on_repeats = _pooled(model, natural), _pooled(model, repeated)
    found = {pattern: on_text[pattern] for pattern in PATTERNS[:3]}
    return found | {pattern: on_repeats[pattern] for pattern in PATTERNS[3:]}


def _predictions(model: Model, x: Ids) -> Iterator[tuple[Floats, Ids]]:
    """Logits (n, V) of a window, piece by piece, and the ids (n,) that came next."""
    first = 0
    for z in model.logits(x):
        next = x[first + 1 : first + 1 + len(z)]
        yield z[: len(next)], next  # nothing came after the last token
        first += len(z)


def _share(shares: Floats, after_untrained: Mask) -> Share:
    """Means of (n,) shares by the token that each prediction was made after."""
    others = shares[after_untrained.reshape(-1)]
    trained = shares[~after_untrained.reshape(-1)]
    return Share(
        mean=float(shares.mean()),
        after_trained=float(trained.mean()) if trained.size else None,
        largest_after_trained=float(trained.max()) if trained.size else None,
        after_untrained=float(others.mean()) if others.size else None,
    )


def _judge(z: Floats, next: Ids, group: Mask | None) -> tuple[NDArray[np.float64], Floats]:
    """Nats (n,) of the ids that came next, and the group's probability (n,); z is used up."""
    z -= z.max(axis=-1, keepdims=True)
    true = z[np.arange(len(next)), next].astype(np.float64)  # (n,)
    np.exp(z, out=z)
    total = z.sum(axis=-1)  # (n,)
    share = np.zeros_like(total) if group is None else z @ group.astype(np.float32) / total  # (n,)
    return np.log(total.astype(np.float64)) - true, share


def _pooled(model: Model, sequences: Ids) -> Scores:
    """Each head's scores on all the sequences together, each weighted by its queries."""
    sums: Scores = {}
    counts: Scores = {}
    for x in sequences:
        maps = model.maps(x)  # (L, H, n, n)
        for place in np.ndindex(*maps.shape[:2]):
            for pattern, score in heads.scores(maps[place], x.tolist()).items():
                for table in (sums, counts):
                    table.setdefault(pattern, np.zeros(maps.shape[:2]))
                sums[pattern][place] += score.share * score.n_queries
                counts[pattern][place] += score.n_queries
    return {pattern: sums[pattern] / counts[pattern] for pattern in sums}


def _n_bytes(ids: Ids) -> int:
    """How many bytes of text these ids stand for, in any shape."""
    tokens = tokenizer.load()
    different, counts = np.unique(ids, return_counts=True)
    return sum(
        count * len(tokens.token(id).piece)
        for id, count in zip(different.tolist(), counts.tolist(), strict=True)
        if id != END_OF_TEXT
    )
