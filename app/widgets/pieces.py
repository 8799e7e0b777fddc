"""How pieces of bytes are told: as running text that becomes complete, and as hexadecimal."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from engine.events import Token
from engine.tokenizer import END_OF_TEXT, END_OF_TEXT_NAME, visible

MOST_BYTES = 16  # of a piece that are listed; the longest has 128

_BLANKS = re.compile(r"([ \n\t]+)")


class Reader:
    """Tokens in, what to draw for each out: a character comes with the token that completes it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: Token) -> tuple[str, bool]:
        r"""The text that became complete, or what to draw in a chip, and whether it is a chip.

        A token that ends inside a character is a chip: its bytes wait for the next one's. So is
        the end of a text. U+FFFD stands only for bytes that can no longer become text.

        >>> reader = Reader()
        >>> [reader.push(Token(0, piece)) for piece in (b" a", b" \xf0\x9f\x98", b"\x80", b"\n")]
        [(' a', False), ('·\\xf0\\x9f\\x98', True), ('😀', False), ('\n', False)]
        """
        if token.id == END_OF_TEXT:
            self._decoder.reset()
            return END_OF_TEXT_NAME, True
        text = self._decoder.decode(token.piece)
        waiting = self._decoder.getstate()[0][-len(token.piece) :]
        if waiting:
            return visible(text.encode()) + visible(waiting), True
        return drawable(text), False


@lru_cache(maxsize=4096)
def drawable(text: str) -> str:
    r"""Running text with nothing unseen in it; blanks, line ends and tabs stay what they are.

    >>> drawable("a b\n\u200bc")
    'a b\n\\u200bc'
    """
    parts = _BLANKS.split(text)  # text, blanks, text, ...
    parts[::2] = [visible(part.encode()) for part in parts[::2]]
    return "".join(parts)


def hexadecimal(piece: bytes) -> str:
    """The bytes of a piece; of a long one the first, and how many there are.

    >>> hexadecimal(b" the"), hexadecimal(b" " * 80)[-15:]
    ('20 74 68 65', '20 … (80 bytes)')
    """
    if len(piece) <= MOST_BYTES:
        return piece.hex(" ")
    return f"{piece[:MOST_BYTES].hex(' ')} … ({len(piece)} bytes)"
