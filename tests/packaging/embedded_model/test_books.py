"""The list of books has no doubles, and its books are known by number, name and header."""

import tomllib
from collections import Counter

import pytest
from embedded_model.books import BOOKS, Book, Catalogue

LISTED = Catalogue.load()


def titled(title: str) -> Book:
    return next(book for book in LISTED.books if book.title == title)


def test_the_list_has_203_books_and_82_tales_each_once() -> None:
    """Of the books 28 have a number; the tales are 62 of Grimm, 18 of Andersen, 2 of Wilde."""
    tales = [book for book in LISTED.books if book.source.startswith("lcats_")]
    assert (len(LISTED.books) - len(tales), len(tales)) == (203, 82)
    numbers = [book.ebook for book in LISTED.books if book.ebook is not None]
    assert len(numbers) == len(set(numbers)) == 28
    assert len({book.name for book in LISTED.books}) == 285
    assert len(LISTED._by_author) == len(LISTED._by_source) == 285  # no two answer to one name


def test_tiers_are_a_b_and_c_and_a_source_has_one() -> None:
    assert Counter(book.tier for book in LISTED.books) == {"A": 61, "B": 150, "C": 74}
    assert len({(book.source, book.tier) for book in LISTED.books}) == len(LISTED.sources) == 23


def test_every_shelf_says_where_it_is_from_and_its_licence() -> None:
    lists = tomllib.loads(BOOKS.read_text(encoding="utf-8"))
    for shelf in lists["shelf"]:
        assert shelf["from"].startswith("Project Gutenberg")
        assert shelf["licence"] == "public domain in the United States"


def test_what_is_not_in_the_public_domain_is_named_with_its_licence_and_is_no_shelf() -> None:
    opens = tomllib.loads(BOOKS.read_text(encoding="utf-8"))["open"]
    assert {entry["source"]: entry["documents"] for entry in opens} == {"asp": 301, "pb": 381}
    assert all("CC BY" in entry["licence"] for entry in opens)
    assert not LISTED.sources & {"asp", "pb"}


@pytest.mark.parametrize("stem", ["18190", "18190-8", "pg18190", "18190-0"])
def test_a_book_is_known_by_its_number(stem: str) -> None:
    assert LISTED.of_file(stem, "") == titled("Raggedy Ann Stories")


def test_a_book_is_known_by_a_name_of_author_and_title() -> None:
    assert LISTED.of_file("Lewis Carroll___Sylvie and Bruno", "") == titled("Sylvie and Bruno")


@pytest.mark.parametrize(
    "header",
    [
        "Title: The Water-Babies\nAuthor: Charles Kingsley\n",
        "\ufeffTitle: The Water-Babies\r\n\r\nAuthor: Charles Kingsley\r\n",
        "Project Gutenberg\n\nAuthor: C. Kingsley (1819)\nTitle: Water Babies; a fairy tale\n",
        "Title: The\n       Water-Babies\nAuthor: Charles\n       Kingsley\n",
    ],
)
def test_a_book_is_known_by_its_header(header: str) -> None:
    assert LISTED.of_file("some name", header) == titled("The Water-Babies")


def test_another_book_is_not_taken_for_a_listed_one() -> None:
    assert LISTED.of_file("99999999", "") is None
    assert LISTED.of_file("The Water-Babies", "") is None  # a title alone is not enough
    assert LISTED.of_file("x", "Title: The Water-Babies\nAuthor: Somebody Else\n") is None
    assert LISTED.of_file("Charles Kingsley___Westward Ho!", "") is None
    far_down = "\n" * 10_000 + "Title: The Water-Babies\nAuthor: Charles Kingsley\n"
    assert LISTED.of_file("x", far_down) is None  # a story may speak of a title


def test_a_document_names_its_book_in_three_forms() -> None:
    of_title = LISTED.of_title
    assert of_title("any", "Lewis Carroll___Sylvie and Bruno") == titled("Sylvie and Bruno")
    assert of_title("any", "GITenberg+Raggedy-Ann_18190") == titled("Raggedy Ann Stories")
    assert of_title("lcats_grimm", "corpora/grimm/frog_prince/story.json") == titled("Frog Prince")
    assert of_title("asp", "en/0004_goat-dog-and-cow.md") is None
