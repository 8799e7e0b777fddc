"""Pieces as text and as bytes: characters come whole, broken ones are said, nothing is unseen."""

from __future__ import annotations

import pytest

from app.widgets.pieces import Reader, drawable, hexadecimal
from engine import tokenizer
from engine.events import Token


def read(*pieces: bytes) -> list[tuple[str, bool]]:
    reader = Reader()
    return [reader.push(Token(0, piece)) for piece in pieces]


def test_a_character_comes_with_the_token_that_completes_it() -> None:
    assert read(b" a", b"\xf0\x9f", b"\x98", b"\x80", b"!") == [
        (" a", False),
        ("\\xf0\\x9f", True),
        ("\\x98", True),
        ("😀", False),
        ("!", False),
    ]


def test_what_is_complete_before_the_cut_is_shown_with_it() -> None:
    assert read(b" \xe2\x80", b"\x9c") == [("·\\xe2\\x80", True), ("“", False)]
    assert read(b"\xf0\x9f\x98", b"\x80\xf0", b"\x9f\x98\x80")[1:] == [
        ("😀\\xf0", True),
        ("😀", False),
    ]


def test_only_bytes_that_can_no_longer_become_text_are_broken() -> None:
    assert read(b"\xf0\x9f", b" the") == [("\\xf0\\x9f", True), ("\ufffd the", False)]


def test_the_end_of_a_text_is_a_mark_and_breaks_a_character_off() -> None:
    reader = Reader()
    reader.push(Token(0, b"\xf0\x9f"))
    assert reader.push(tokenizer.load().token(50256)) == ("<|endoftext|>", True)
    assert reader.push(Token(0, b"The")) == ("The", False)


@pytest.mark.parametrize("text", ["naïve 😀 “東京”", "a\n\tb", "Hello, world"])
def test_all_text_that_comes_out_is_the_text_that_went_in(text: str) -> None:
    reader = Reader()
    told = [reader.push(token) for token in tokenizer.load().encode(text)]
    assert "".join(part for part, small in told if not small).replace(" ", "") == text.replace(
        " ", ""
    )  # a space may be in a chip, as ·


def test_blanks_and_line_ends_stay_and_what_leaves_no_mark_is_named() -> None:
    assert drawable(" a\t b\n\n") == " a\t b\n\n"
    assert drawable("a\u200bb\r\n\u00a0") == "a\\u200bb\\r\n\\u00a0"


def test_of_a_long_piece_the_first_bytes_are_listed() -> None:
    assert hexadecimal(b" the") == "20 74 68 65"
    assert hexadecimal(b"-" * 16) == " ".join(["2d"] * 16)
    assert hexadecimal(b"-" * 64) == " ".join(["2d"] * 16) + " … (64 bytes)"
