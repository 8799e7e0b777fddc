"""A book becomes its chapters: each rule on a small text, then all of them on a small book."""

import doctest

import pytest
from embedded_model import cleaning
from embedded_model.cleaning import body, documents, ends_chapter, flow, is_prose, is_table, plain

PROSE = "The old fox went over the hill and down to the farm by the long road."  # 16 words

BOOK = """\
The Project Gutenberg EBook of The Fox, by Nobody

Title: The Fox

*** START OF THIS PROJECT GUTENBERG EBOOK THE FOX ***

Produced by volunteers.

THE FOX

_by_ NOBODY

CONTENTS

  I. The Hill       1
  II. The Farm      9

CHAPTER I. THE HILL

“It’s a _fine_ day—and a cold one,” said the fox. [Illustration: The
fox] He went over the hill and down to
the farm.[Footnote 1: A farm.]

Printed in Boston.

  Little hen, little hen,
  Come out of your den!

CHAPTER II. THE FARM

The hen slept.

*** END OF THIS PROJECT GUTENBERG EBOOK THE FOX ***

This licence speaks of a fox at great length and in many words, but it is no part of the book.
"""


def test_the_examples_of_the_rules_hold() -> None:
    result = doctest.testmod(cleaning)
    assert (result.failed, result.attempted) == (0, 9)  # one or two lines each of nine functions


def test_a_book_becomes_its_chapters_without_all_that_is_not_told() -> None:
    """The second chapter has 3 words, too few; notes, contents and licence are gone."""
    assert documents(BOOK, min_words=20) == [
        '"It\'s a fine day - and a cold one," said the fox. '
        "He went over the hill and down to the farm.\n\n"
        "Little hen, little hen,\nCome out of your den!"
    ]


def test_windows_and_old_mac_line_ends_change_nothing() -> None:
    expected = documents(BOOK, min_words=3)
    assert len(expected) == 2
    assert documents(BOOK.replace("\n", "\r\n"), min_words=3) == expected
    assert documents(BOOK.replace("\n", "\r"), min_words=3) == expected


def test_a_chapter_needs_sixty_words_unless_told_otherwise() -> None:
    sixty = " ".join(["word"] * 59) + " end."
    assert documents(sixty) == [sixty]
    assert documents(sixty.removeprefix("word ")) == []
    assert documents("Few words in here.", min_words=4) == ["Few words in here."]


def test_the_old_licence_in_front_called_the_small_print_is_cut() -> None:
    text = "Etext\n*END THE SMALL PRINT! rules *Ver.04*\nmore *END*\nOnce upon a time."
    assert body(text) == "\nOnce upon a time."


@pytest.mark.parametrize(
    "closing",
    [
        "*** END OF THE PROJECT GUTENBERG EBOOK X ***",
        "***END OF X",
        "End of Project Gutenberg's X",
        "  END OF THIS PROJECT GUTENBERG EBOOK",
    ],
)
def test_the_book_ends_at_every_form_of_the_closing_line(closing: str) -> None:
    assert body(f"Once.\n{closing}\nThe licence.") == "Once.\n"


def test_the_words_end_of_project_within_a_line_end_nothing() -> None:
    text = "He wrote: End of Project Gutenberg."
    assert body(text) == text


def test_signs_get_their_plain_form() -> None:
    assert plain("\ufeff‘a’ “b” c–d e—f g…\u00a0`h`") == "'a' \"b\" c-d e--f g... 'h'"
    assert plain("ﬁve") == "five"  # a ligature is letters


def test_marks_of_italics_and_bold_go_and_their_words_stay() -> None:
    assert plain("_two words_ =bold= snake_case a=b") == "two words bold snakecase a=b"
    assert (
        plain("_=bold in italics=_ and =_italics in bold_=")
        == "bold in italics and italics in bold"
    )
    assert plain("~|{a}<b>\\^#*") == "ab"


def test_only_notes_of_editors_are_cut_from_brackets() -> None:
    text = "a [Illustration] b [FOOTNOTE 2: of\ntwo lines] c [Sidenote: x] d [aside] e"
    assert plain(text).split() == ["a", "b", "c", "d", "[aside]", "e"]


@pytest.mark.parametrize(
    "heading",
    ["CHAPTER IV", "Lesson the First", "xii", "Part 2.", "IN THE BIG WOODS", "A. D. B. C."],
)
def test_headings_end_a_chapter(heading: str) -> None:
    assert ends_chapter(heading)
    assert documents(f"{PROSE}\n\n{heading}\n\n{PROSE}", min_words=16) == [PROSE, PROSE]


def test_ten_words_may_be_a_heading_and_eleven_are_not() -> None:
    assert ends_chapter("Chapter two in which the fox goes to the farm")  # 10
    assert not ends_chapter("Chapter two in which the old fox goes to the farm")  # 11
    assert not ends_chapter("Partly cloudy.")  # a longer word than "part"


def test_a_line_is_a_heading_where_more_than_three_fifths_of_its_letters_are_capitals() -> None:
    assert ends_chapter("THE FOX ran")  # 6 of 9
    assert not ends_chapter("THE FOX ran of")  # 6 of 11
    assert not ends_chapter("A B!")  # fewer than four letters say nothing


def test_a_short_line_that_does_not_end_like_a_sentence_ends_a_chapter() -> None:
    assert documents(f"{PROSE}\n\nThe Speckled Hen\n\n{PROSE}", min_words=16) == [PROSE, PROSE]
    assert documents(f"{PROSE}\n\nThe speckled hen!\n\n{PROSE}", min_words=16) == [
        f"{PROSE}\n\nThe speckled hen!\n\n{PROSE}"
    ]


@pytest.mark.parametrize(
    "left_out",
    [
        "Copyright, 1911, by the author of this little book.",
        "See http and www.example for more of these fine tales.",
        "As was told on p. 12 of the first of these tales.",
        "This was said before [3] by somebody else.",
        "He is ill.",  # 7 letters; 8 are needed
        "1, 2, 3, 4, 5, 6, 7, 8 and 9 are numbers.",  # 14 letters of 41 signs
        "Θάλασσα, cried the men when they saw the water.",  # 7 letters that are not English
    ],
)
def test_what_is_no_prose_is_left_out_and_the_chapter_goes_on(left_out: str) -> None:
    assert not is_prose(left_out)
    assert documents(f"{PROSE}\n\n{left_out}\n\n{PROSE}", min_words=32) == [f"{PROSE}\n\n{PROSE}"]


def test_two_foreign_letters_are_no_reason_to_leave_a_paragraph_out() -> None:
    assert is_prose("Señor Núnez came in.")  # ñ and ú
    assert not is_prose("Señor Núñez came in.")  # ñ, ú and ñ


def test_a_table_has_columns_or_page_numbers_in_most_lines() -> None:
    assert is_table(["The Fox and Hen    by itself", "The Old Dog    also"])
    assert is_table(["The Fox.....3", "The Hen 14", "The Dog"])
    assert not is_table(["The Fox.....3", "The Hen", "The Dog"])
    table = "The Fox and the Hen .... 3\nThe Dog and the Hen .... 9"
    assert documents(f"{PROSE}\n\n{table}\n\n{PROSE}", min_words=32) == [f"{PROSE}\n\n{PROSE}"]


def test_verse_keeps_its_lines_and_prose_is_joined() -> None:
    assert flow(["  Twinkle,", "  little   bat!"]) == "Twinkle,\nlittle bat!"
    assert flow(["a" * 49, "b"]) == "a" * 49 + "\nb"
    assert flow(["a" * 50, "b"]) == "a" * 50 + " b"


def test_dashes_stand_free() -> None:
    assert flow(["He ran--and -- oh, --fell."]) == "He ran - and - oh, - fell."
