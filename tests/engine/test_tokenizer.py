"""Text to tokens and back: 48 known answers, streams, merges, and what is refused."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from engine import tokenizer
from engine.errors import EngineError
from engine.events import Token
from engine.tokenizer import END_OF_TEXT, N_VOCAB, visible

T = tokenizer.load()
CASES = json.loads((Path(__file__).parents[1] / "corpora" / "tokens.json").read_text())["cases"]
TEXTS = [case for case in CASES if not case.get("decode_only")]


def ids(text: str, *, special: bool = False) -> list[int]:
    return [token.id for token in T.encode(text, special=special)]


def is_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def streamed(of: list[int]) -> list[str]:
    stream = T.stream()
    return [*(stream.push(id) for id in of), stream.finish()]


def test_the_two_texts_of_the_introduction_have_their_ids() -> None:
    assert ids("Michael Jordan played the sport of") == [13256, 8078, 2826, 262, 6332, 286]
    assert ids("inference") == [259, 4288]
    assert ids(" inference") == [32278]  # the space belongs to the token


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["id"])
def test_a_text_has_its_ids_pieces_and_spans(case: dict[str, Any]) -> None:
    tokens = T.encode(case["text"])
    assert [token.id for token in tokens] == case["ids"]
    assert [token.piece.hex() for token in tokens] == case["pieces_hex"]
    assert [list(span) for span in tokenizer.spans(tokens)] == case["byte_spans"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_ids_give_their_text_at_once_and_one_by_one(case: dict[str, Any]) -> None:
    assert T.decode(case["ids"]) == case["text"]
    assert streamed(case["ids"]) == case["stream"]


def test_all_cases_are_there() -> None:
    assert (len(CASES), len(TEXTS)) == (48, 43)


def test_no_text_is_no_tokens() -> None:
    assert (T.encode(""), T.decode([]), streamed([])) == ((), "", [""])


def test_end_of_text_is_text_unless_it_is_asked_for() -> None:
    assert ids("<|endoftext|>") == [27, 91, 437, 1659, 5239, 91, 29]
    assert ids("a<|endoftext|>b", special=True) == [64, END_OF_TEXT, 65]
    assert T.token(END_OF_TEXT) == Token(50256, b"<|endoftext|>")


def test_every_id_has_a_piece_and_half_of_a_character_does_not_survive_alone() -> None:
    pieces = [T.token(id).piece for id in range(N_VOCAB)]
    assert len(set(pieces)) == N_VOCAB == T.n_vocab
    assert max(map(len, pieces)) == 128
    assert sum(not is_text(piece) for piece in pieces) == 344


def test_a_stream_joined_is_the_whole_text() -> None:
    dice = random.Random(1)
    broken = [id for id in range(N_VOCAB) if not T.token(id).piece.isascii()]
    for _ in range(2_000):
        pool = broken if dice.random() < 0.7 else range(N_VOCAB)
        chosen = dice.choices(pool, k=dice.randint(1, 12))
        assert "".join(streamed(chosen)) == T.decode(chosen)


def test_a_stream_never_takes_back_what_it_gave() -> None:
    """A thumb is four bytes in two tokens: nothing shows until it is whole, and no U+FFFD."""
    assert streamed(ids("👍")) == ["", "👍", ""]


def test_a_word_is_merged_lowest_rank_first() -> None:
    steps = T.merge_steps("inference")
    assert [step.left + step.right for step in steps] == [
        b"in", b"re", b"ce", b"ere", b"nce", b"erence", b"ference",
    ]  # fmt: skip
    assert [step.rank for step in steps] == sorted(step.rank for step in steps)
    assert steps[0].pieces == (b"in", b"f", b"e", b"r", b"e", b"n", b"c", b"e")
    assert steps[-1].pieces == (b"in", b"ference")  # ids 259 and 4288


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["id"])
def test_the_last_merge_leaves_the_pieces_of_encode(case: dict[str, Any]) -> None:
    text = case["text"]
    before = [bytes([byte]) for byte in text.encode()]
    for step in T.merge_steps(text):
        assert before[step.at : step.at + 2] == [step.left, step.right]
        before[step.at : step.at + 2] = [step.left + step.right]
        assert (*before,) == step.pieces
        assert T.token(step.rank).piece == step.left + step.right
    assert before == [token.piece for token in T.encode(text)]


def test_a_single_byte_needs_no_merge() -> None:
    assert T.merge_steps("a") == ()


@pytest.mark.parametrize(
    ("text", "kind"),
    [("x" * 100_001, "prompt_too_long"), ("\ud83d", "prompt_not_text"), (b"a", "wrong_type")],
)
def test_what_is_no_prompt_is_no_text_to_encode(text: str, kind: str) -> None:
    with pytest.raises(EngineError) as error:
        T.encode(text)
    assert error.value.kind == kind


def test_merges_of_a_long_text_are_refused() -> None:
    with pytest.raises(EngineError) as error:
        T.merge_steps("ab" * 129)
    assert (error.value.kind, error.value.facts["found"]) == ("word_too_long", 258)


@pytest.mark.parametrize("bad", [-1, 50_257, 1.0, True, "5", None])
def test_an_id_outside_the_vocabulary_is_refused(bad: int) -> None:
    for ask in (T.token, T.stream().push, lambda id: T.decode([id])):
        with pytest.raises(EngineError) as error:
            ask(bad)
        assert error.value.kind == "token"


class Panic(BaseException):
    """What tiktoken raises on some texts: no Exception."""


class Broken:
    def __init__(self, raised: BaseException) -> None:
        self.raised = raised

    def encode(self, *_: object, **__: object) -> list[int]:
        raise self.raised


def test_a_panic_in_the_library_is_an_error_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(T, "_encoding", Broken(Panic()))
    with pytest.raises(EngineError) as error:
        T.encode("hello")
    assert str(error.value).startswith("The tokenizer gave up on this text (Panic)")


def test_ctrl_c_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(T, "_encoding", Broken(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        T.encode("hello")


def test_ranks_that_are_gone_or_changed_are_refused(tmp_path: Path) -> None:
    changed = tmp_path / "gpt2.tiktoken"
    changed.write_bytes(b"IQ== 0\nIg== 1\n")
    for path, kind in ((changed, "ranks_damaged"), (tmp_path / "none", "ranks_missing")):
        with pytest.raises(EngineError) as error:
            tokenizer.read_ranks(path)
        assert error.value.kind == kind
        assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("piece", "drawn"),
    [
        (b" the", "·the"),
        (b"\n\n", "↵↵"),
        (b"\t\r", "\\t\\r"),
        (b"\xe2\x80", "\\xe2\\x80"),  # the beginning of a character
        ("é".encode(), "é"),
        ("日本".encode(), "日本"),
        ("\u00a0".encode(), "\\u00a0"),  # a no-break space is not the space it looks like
        ("\u200b".encode(), "\\u200b"),  # zero width
        ("\u202e".encode(), "\\u202e"),  # would turn the line around
        ("\ufe0f".encode(), "\\ufe0f"),  # chooses how the sign before it looks
        ("\u0301".encode(), "◌\u0301"),  # an accent, on a carrier
        (b"\x00", "\\u0000"),
        (b"\xf3\xa0\x80\x81", "\\U000e0001"),
        (b"<|endoftext|>", "<|endoftext|>"),
        (b"", ""),
    ],
)
def test_a_piece_is_drawn_so_that_nothing_hides(piece: bytes, drawn: str) -> None:
    assert visible(piece) == drawn


def test_every_piece_of_the_vocabulary_can_be_drawn_on_one_line() -> None:
    assert all(visible(T.token(id).piece).isprintable() for id in range(N_VOCAB))
