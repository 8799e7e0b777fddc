"""The texts of a run as token streams, and the small vocabulary they are written in."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embedded_model import corpus, drills, stories
from embedded_model.refusal import Refusal
from embedded_model.settings import Corpus
from engine import tokenizer
from engine.tokenizer import END_OF_TEXT, N_VOCAB

NAME = "streams.npz"

Ids = tuple[NDArray[np.int64], NDArray[np.int64]]  # token ids, and where documents begin


@dataclass(frozen=True, slots=True)
class Stream:
    """Documents one after the other, each followed by <|endoftext|>."""

    rows: NDArray[np.uint16]  # (n,), places in the small vocabulary; its length stands for the rest
    starts: NDArray[np.int64]  # (n_documents,), where documents begin


@dataclass(frozen=True, slots=True)
class Streams:
    """All that a run reads."""

    vocabulary: NDArray[np.int64]  # (n_rows,), token ids, most frequent first
    training: Mapping[str, Stream]  # by "A", "B", "C", "stories", "drills"; absent if without text
    held_out: Mapping[str, Stream]  # by "A", "B", "C", "stories"

    @property
    def digest(self) -> str:
        """The same for the same vocabulary and streams, whatever file they lie in."""
        found = hashlib.sha256(self.vocabulary.tobytes())
        for part in (self.training, self.held_out):
            for name, stream in sorted(part.items()):
                found.update(name.encode() + stream.rows.tobytes() + stream.starts.tobytes())
        return found.hexdigest()


def build(documents: list[corpus.Document], settings: Corpus, *, n_rows: int) -> Streams:
    """Tokenize books, stories and drills, and give rows to the most frequent tokens.

    Every token of a story or a drill has a row, then the others by their count, a text's counts
    weighed by settings.weights.

    Raises:
        Refusal: there are fewer different tokens than rows.
    """
    books, held_out = corpus.split(documents)
    made = {
        "stories": stories.stories(settings.n_stories, seed=settings.story_seed),
        "drills": drills.drills(settings.n_drills, seed=settings.drill_seed),
    }
    training = {tier: tokenized(_texts(books, tier)) for tier in corpus.TIERS}
    training |= {name: tokenized(texts) for name, texts in made.items()}
    unseen = {tier: tokenized(_texts(held_out, tier)) for tier in corpus.TIERS}
    unseen["stories"] = tokenized(
        stories.stories(settings.n_held_out_stories, seed=settings.held_out_seed)
    )
    vocabulary = _vocabulary({name: ids for name, (ids, _) in training.items()}, settings, n_rows)
    place = np.full(N_VOCAB, n_rows, np.uint16)
    place[vocabulary] = np.arange(n_rows)
    return Streams(vocabulary, _placed(training, place), _placed(unseen, place))


def tokenized(texts: Iterable[str]) -> Ids:
    """The ids of texts, each followed by <|endoftext|>, and where each begins."""
    encode = tokenizer.load().ids
    ids: list[int] = []
    starts: list[int] = []
    for text in texts:
        starts.append(len(ids))
        ids += [*encode(text), END_OF_TEXT]
    return np.array(ids, np.int64), np.array(starts, np.int64)


def save(streams: Streams, path: Path) -> None:
    """Write one file, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {"vocabulary": streams.vocabulary}
    for part, found in (("training", streams.training), ("held_out", streams.held_out)):
        for name, stream in found.items():
            arrays |= {f"{part}.{name}.rows": stream.rows, f"{part}.{name}.starts": stream.starts}
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def load(path: Path) -> Streams:
    """Read what `save` wrote.

    Raises:
        Refusal: the file is not there, or is not one of these.
    """
    if not path.exists():
        raise Refusal(f"There is no {path.name} with the token streams here: {path.parent}")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        parts: dict[str, dict[str, Stream]] = {"training": {}, "held_out": {}}
        for name in arrays:
            if name.endswith(".rows"):
                part, key, _ = name.split(".")
                parts[part][key] = Stream(arrays[name], arrays[f"{part}.{key}.starts"])
        return Streams(arrays["vocabulary"], **parts)
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise Refusal(
            f"{path.name} could not be read ({type(error).__name__}): delete it, and name the "
            "texts with --corpus to make it anew."
        ) from error


def _texts(documents: list[corpus.Document], tier: str) -> list[str]:
    return [document.text for document in documents if document.tier == tier]


def _placed(streams: Mapping[str, Ids], place: NDArray[np.uint16]) -> dict[str, Stream]:
    return {name: Stream(place[ids], starts) for name, (ids, starts) in streams.items() if len(ids)}


def _vocabulary(
    streams: Mapping[str, NDArray[np.int64]], settings: Corpus, n_rows: int
) -> NDArray[np.int64]:
    counts = np.zeros(N_VOCAB)
    for name in ("A", "B", "C", "stories", "drills"):
        np.add.at(counts, streams[name], settings.weights[name])
    made = np.unique(np.concatenate([streams["stories"], streams["drills"]]))
    if len(made) > n_rows or np.count_nonzero(counts) < n_rows:
        raise Refusal(
            f"{n_rows:,} rows were asked for, and the texts have {np.count_nonzero(counts):,} "
            f"different tokens, {len(made):,} of them in stories and drills: set n_rows between."
        )
    counts[made] += 1e6  # before all others
    counts[END_OF_TEXT] = 1e9
    return np.argsort(-counts, kind="stable")[:n_rows]
