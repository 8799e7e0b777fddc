"""Token streams: documents end with <|endoftext|>, rows go to the most frequent tokens."""

from pathlib import Path

import numpy as np
import pytest
from embedded_model.corpus import Document
from embedded_model.refusal import Refusal
from embedded_model.settings import Corpus
from embedded_model.streams import Streams, build, load, save

from engine.tokenizer import END_OF_TEXT
from engine.tokenizer import load as tokenizer

WEIGHTS = {"A": 1.0, "B": 0.5, "C": 0.15, "stories": 1.0, "drills": 1.0}


def made(documents: list[Document], *, n_rows: int) -> Streams:
    few = Corpus(
        n_stories=2, story_seed=1, n_drills=2, drill_seed=2, n_held_out_stories=1,
        held_out_seed=99, weights=WEIGHTS,
    )  # fmt: skip
    return build(documents, few, n_rows=n_rows)


def documents(n: int, text: str, tier: str = "A") -> list[Document]:
    return [Document("own", tier, "t", f"{text} {number}") for number in range(n)]


def test_a_stream_is_its_documents_each_with_an_end() -> None:
    """Of 100 documents the first in the shuffled order is held out."""
    streams = made(documents(100, "A quick zebra"), n_rows=300)
    stream = streams.training["A"]
    assert len(stream.starts) == 99
    assert len(streams.held_out["A"].starts) == 1
    assert stream.starts[0] == 0
    ends = streams.vocabulary[stream.rows[np.append(stream.starts[1:], len(stream.rows)) - 1]]
    assert (ends == END_OF_TEXT).all()
    first = streams.vocabulary[stream.rows[: stream.starts[1] - 1]]
    assert tokenizer().decode(first.tolist()).startswith("A quick zebra ")
    assert "B" not in streams.training


def test_the_end_comes_first_then_what_stories_and_drills_say_then_the_most_frequent() -> None:
    frequent, rare = tokenizer().ids(" zebra")[0], tokenizer().ids(" walrus")[0]
    texts = documents(200, "A zebra") + documents(200, "One walrus", tier="C")
    streams = made(texts, n_rows=300)
    order = streams.vocabulary.tolist()
    assert order[0] == END_OF_TEXT
    assert frequent in order
    in_stories = set(streams.training["stories"].rows.tolist())
    assert 300 not in in_stories, "every token of a story has a row"
    assert rare not in order or order.index(frequent) < order.index(rare)  # 198 against 0.15 x 198
    assert (streams.training["A"].rows <= 300).all()


def test_rows_that_cannot_be_given_out_are_refused() -> None:
    for n_rows in (64, 40_000):
        with pytest.raises(Refusal, match="set n_rows between"):
            made(documents(100, "A zebra"), n_rows=n_rows)


def test_the_same_texts_give_the_same_streams_and_files(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        save(made(documents(100, "A zebra"), n_rows=300), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = load(tmp_path / "a.npz")
    assert again.digest == made(documents(100, "A zebra"), n_rows=300).digest
    assert again.digest != made(documents(100, "A horse"), n_rows=300).digest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz"]
    (tmp_path / "a.npz").write_bytes(b"PK")
    with pytest.raises(Refusal, match=r"a\.npz could not be read"):
        load(tmp_path / "a.npz")
    with pytest.raises(Refusal, match=r"There is no c\.npz"):
        load(tmp_path / "c.npz")
