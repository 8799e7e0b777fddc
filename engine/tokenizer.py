"""Text to tokens and back: GPT-2's byte pair encoding, from the ranks that lie in resources/."""

from __future__ import annotations

import base64
import codecs
import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from engine import resources
from engine.errors import EngineError
from engine.events import Span, Token
from engine.request import check_prompt
from engine.untrusted import quoted

if TYPE_CHECKING:
    import tiktoken

N_VOCAB = 50_257
END_OF_TEXT = 50_256
END_OF_TEXT_NAME = "<|endoftext|>"
MAX_WORD_CHARACTERS = 256  # every merge holds all pieces, so a word's merges grow quadratically

RANKS_SHA256 = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"

# How GPT-2 cuts text into words before any merge: contractions, letters, digits, other signs, and
# white space, of which the last space goes with the word that follows it. The possessive ++ change
# no answer; they keep a long run from being tried again and again.
WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"

# Characters that leave no mark though str.isprintable() lets them pass: joiners of graphemes,
# fillers, variation selectors.
_UNSEEN = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
_UNSEEN |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
_SIGNS = {" ": "·", "\n": "↵", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class Merge:
    """One step of byte pair encoding: two neighbouring pieces become one."""

    rank: int  # of the new piece, which is also its id; the lowest rank goes first
    left: bytes
    right: bytes
    at: int  # where the new piece stands in `pieces`
    pieces: tuple[bytes, ...]  # the whole word after this merge


@cache
def load() -> Tokenizer:
    """GPT-2's tokenizer, from the ranks that come with the program; no network.

    Raises:
        EngineError: kind "ranks_missing", "ranks_damaged" or "tokenizer_failed".

    >>> [token.id for token in load().encode("inference")]
    [259, 4288]
    """
    return Tokenizer(read_ranks(resources.path("gpt2.tiktoken")))


def read_ranks(path: Path) -> dict[bytes, int]:
    """Read a rank file, a line a piece: the piece in base64, then its rank.

    Raises:
        EngineError: kind "ranks_missing" or "ranks_damaged".
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise EngineError("ranks_missing", path=str(path)) from error
    found = hashlib.sha256(raw).hexdigest()
    if found != RANKS_SHA256:
        raise EngineError("ranks_damaged", found=found, expected=RANKS_SHA256, path=str(path))
    return {
        base64.b64decode(piece): int(rank) for piece, rank in map(bytes.split, raw.splitlines())
    }


class Tokenizer:
    """GPT-2's byte pair encoding; `load` makes the one that everybody shares."""

    n_vocab = N_VOCAB

    def __init__(self, ranks: dict[bytes, int]) -> None:
        self._ranks = ranks
        self._pieces = [*sorted(ranks, key=ranks.__getitem__), END_OF_TEXT_NAME.encode()]
        self._encoding = _encoding(ranks)

    def encode(self, text: str, *, special: bool = False) -> tuple[Token, ...]:
        """Cut text into tokens; their pieces joined are the text's UTF-8 bytes.

        Args:
            text: at most `engine.request.MAX_PROMPT_CHARACTERS` characters; "" gives ().
            special: read <|endoftext|> as the token 50256; otherwise it is text like any other.

        Raises:
            EngineError: kind "wrong_type", "prompt_not_text", "prompt_too_long" or
                "tokenizer_failed".
        """
        if text == "":
            return ()
        check_prompt(text)
        return tuple(Token(id, self._pieces[id]) for id in self.ids(text, special=special))

    def ids(self, text: str, *, special: bool = False) -> list[int]:
        """The ids alone, of a text of any length: for texts that are known to be text.

        Raises:
            EngineError: kind "tokenizer_failed".

        >>> load().ids("inference")
        [259, 4288]
        """
        allowed = {END_OF_TEXT_NAME} if special else set()
        try:
            return self._encoding.encode(text, allowed_special=allowed, disallowed_special=())
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in tiktoken is no Exception
            raise EngineError("tokenizer_failed", reason=type(error).__name__) from error

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; U+FFFD stands for bytes that are no UTF-8.

        Raises:
            EngineError: kind "token".
        """
        return b"".join(self.token(id).piece for id in ids).decode("utf-8", "replace")

    def token(self, id: int) -> Token:
        """The token of an id; 50256 has the piece "<|endoftext|>", which it never is in text.

        Raises:
            EngineError: kind "token".
        """
        checked = _checked(id)
        return Token(checked, self._pieces[checked])

    def stream(self) -> Stream:
        """A decoder that takes ids one by one."""
        return Stream(self)

    def merge_steps(self, word: str) -> tuple[Merge, ...]:
        """How a word becomes its tokens, merge by merge; the last pieces are those of `encode`.

        At first every byte is a piece. Then the pair whose union has the lowest rank is merged,
        the leftmost first, until no union is in the vocabulary. GPT-2 cuts text into words before
        it merges; where `word` is several of them (see `WORDS`), each is merged by itself and the
        steps are told together, by rank.

        Raises:
            EngineError: as `encode`, and kind "word_too_long".

        >>> [step.pieces for step in load().merge_steps("the")]
        [(b't', b'he'), (b'the',)]
        """
        tokens = self.encode(word)
        if len(word) > MAX_WORD_CHARACTERS:
            raise EngineError("word_too_long", found=len(word), limit=MAX_WORD_CHARACTERS)
        # No merge ever crosses the border of two final tokens, so merging inside each final token
        # takes the same steps as merging the words, and needs no second copy of the cutting rule.
        groups = [[bytes([byte]) for byte in token.piece] for token in tokens]
        steps = []
        while best := min(self._candidates(groups), default=None):
            rank, g, i = best
            left, right = groups[g][i : i + 2]
            groups[g][i : i + 2] = [left + right]
            at = sum(len(group) for group in groups[:g]) + i
            steps.append(Merge(rank, left, right, at, tuple(p for group in groups for p in group)))
        return tuple(steps)

    def _candidates(self, groups: list[list[bytes]]) -> Iterable[tuple[int, int, int]]:
        """(rank, group, index) of every pair that may be merged."""
        for g, group in enumerate(groups):
            for i, (left, right) in enumerate(pairwise(group)):
                if (rank := self._ranks.get(left + right)) is not None:
                    yield rank, g, i


class Stream:
    """Ids in, text out: each push gives the text that became complete with it.

    A token may end inside a character; its bytes wait for the rest. All that was given, joined,
    is `Tokenizer.decode` of all ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, id: int) -> str:
        """Add a token; returns the text that is complete now, often "" inside an emoji."""
        return self._decoder.decode(self._tokenizer.token(id).piece)

    def finish(self) -> str:
        """The rest: U+FFFD if the last character was cut, else ""; the stream is then as new."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest


def spans(tokens: Sequence[Token]) -> tuple[Span, ...]:
    """Where each token's bytes lie in the UTF-8 of the whole: (start, end).

    >>> spans(load().encode("inference"))
    ((0, 2), (2, 9))
    """
    return tuple(pairwise(accumulate((len(token.piece) for token in tokens), initial=0)))


def visible(piece: bytes) -> str:
    r"""A piece as it can be drawn in a box: on one line, with nothing unseen.

    A space is ·, a line feed ↵; a byte that is no text by itself is \xNN, a character that leaves
    no mark or moves others \uNNNN; a mark that would sit on the box before gets a carrier.

    >>> [visible(piece) for piece in (b" the", b"\n\n", b"\xe2\x80", "\u200b".encode())]
    ['·the', '↵↵', '\\xe2\\x80', '\\u200b']
    """
    text = piece.decode("utf-8", "backslashreplace")
    shown = "".join(map(_sign, text))
    return "◌" + shown if shown and unicodedata.category(shown[0]).startswith("M") else shown


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character.isprintable() and ord(character) not in _UNSEEN:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _checked(id: object) -> int:
    if isinstance(id, bool) or not isinstance(id, Integral) or not 0 <= int(id) < N_VOCAB:
        raise EngineError("token", found=quoted(id))
    return int(id)


def _encoding(ranks: dict[bytes, int]) -> tiktoken.Encoding:
    import tiktoken  # here, as it takes 40 ms and panels want this file for `visible` alone

    try:
        return tiktoken.Encoding(
            "gpt2",
            pat_str=WORDS,
            mergeable_ranks=ranks,
            special_tokens={END_OF_TEXT_NAME: END_OF_TEXT},
            explicit_n_vocab=N_VOCAB,
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in tiktoken is no Exception
        raise EngineError("tokenizer_failed", reason=type(error).__name__) from error
