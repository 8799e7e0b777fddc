"""The list of books in books.toml, and how a file or a document is known to be one of them."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from pathlib import Path

BOOKS = Path(__file__).with_name("books.toml")
N_HEADER = 10_000  # characters in which Project Gutenberg's header names title and author


@dataclass(frozen=True, slots=True)
class Book:
    """One text that the model reads."""

    source: str  # the shelf
    tier: str  # "A", "B" or "C"
    author: str
    title: str
    ebook: int | None  # Project Gutenberg's number, where known

    @property
    def name(self) -> str:
        """As a file would be called: "Lewis Carroll___Sylvie and Bruno"."""
        return f"{self.author}___{self.title}"


class Catalogue:
    """The listed books in reading order, found by number or by author and title."""

    def __init__(self, books: list[Book]) -> None:
        self.books = books
        self._by_ebook = {book.ebook: book for book in books if book.ebook is not None}
        self._by_author = {(_surname(book.author), _words(book.title)): book for book in books}
        self._by_source = {(book.source, _words(book.title)): book for book in books}

    @classmethod
    def load(cls) -> Catalogue:
        shelves = tomllib.loads(BOOKS.read_text(encoding="utf-8"))["shelf"]
        return cls(
            [
                Book(
                    shelf["source"],
                    shelf["tier"],
                    shelf["author"],
                    book["title"],
                    book.get("ebook"),
                )
                for shelf in shelves
                for book in shelf["books"]
            ]
        )

    @property
    def sources(self) -> set[str]:
        """The names of the shelves, all in the public domain."""
        return {book.source for book in self.books}

    def of_file(self, stem: str, text: str) -> Book | None:
        """The listed book that a text file holds, or None.

        Args:
            stem: the file's name without .txt: "Lewis Carroll___Sylvie and Bruno", or the
                e-book number as in "20133", "20133-8", "pg20133".
            text: what is in it; the header of Project Gutenberg is read if the name says nothing.
        """
        if number := re.fullmatch(r"(?:pg)?(\d{1,9})(?:-\w+)?", stem):
            return self._by_ebook.get(int(number[1])) or self._of_header(text)
        return self._of_name(stem) or self._of_header(text)

    def of_title(self, source: str, title: str) -> Book | None:
        """The listed book that a document names as its title, in any form a corpus uses.

        These are "Lewis Carroll___Sylvie and Bruno", a repository's name with the e-book number
        as in "GITenberg+Raggedy-Ann-Stories_18190", and "corpora/grimm/ashputtel/story.json".
        """
        if tale := re.fullmatch(r".*/([^/]+)/story\.json", title):
            return self._by_source.get((source, _words(tale[1])))
        if number := re.fullmatch(r".*_(\d{1,9})", title):
            return self._by_ebook.get(int(number[1]))
        return self._of_name(title)

    def _of_name(self, name: str) -> Book | None:
        author, parted, title = name.partition("___")
        return self._by_author.get((_surname(author), _words(title))) if parted else None

    def _of_header(self, text: str) -> Book | None:
        header = text[:N_HEADER].replace("\r", "").lstrip("\ufeff")
        title, author = _field("Title", header), _field("Author", header)
        if not title or not author:
            return None
        for form in (title, re.split(r"[:;]", title)[0]):  # with the subtitle, then without
            if book := self._by_author.get((_surname(author), _words(form))):
                return book
        return None


def _field(name: str, header: str) -> str:
    """What follows "Title:" or "Author:", with the indented lines that go on below it."""
    found = re.search(rf"^{name}:[ \t]*(.*(?:\n[ \t]+\S.*)*)", header, re.MULTILINE)
    return found[1] if found else ""


def _surname(author: str) -> str:
    """The last word, as first names come in many forms: "L. Frank Baum", "Lyman Frank Baum".

    >>> _surname("J. M. Barrie [James Matthew Barrie]")
    'barrie'
    """
    words = _words(re.sub(r"\[.*?\]|\(.*?\)", "", author)).split()
    return words[-1] if words else ""


def _words(title: str) -> str:
    """The title in small letters without punctuation and without its article.

    >>> _words("The Water-Babies")
    'water babies'
    """
    plain = unicodedata.normalize("NFKC", title).casefold().replace("_", " ")
    words = re.sub(r"[^\w]+", " ", plain).split()
    return " ".join(words[1:] if words[:1] in (["the"], ["a"], ["an"]) else words)
