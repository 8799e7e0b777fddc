"""From the plain text of a book to its chapters: no headers, headings, notes, tables or marks.

The rules are made for Project Gutenberg's texts, hard-wrapped, with an empty line between
paragraphs. They would rather lose a paragraph than keep one that is no prose: a short paragraph
that begins with the word "I" counts as the heading of chapter I, for instance.
"""

from __future__ import annotations

import re
import unicodedata

# What stands before and after the book proper.
_START = re.compile(r"^\*\*\* ?START OF (THE|THIS) PROJECT GUTENBERG.*$", re.M | re.I)
_SMALL_PRINT = re.compile(r"\*END\*?\s*THE SMALL PRINT!.*?\*END\*", re.I | re.S)
_END = re.compile(
    r"^\W*(END OF (THE |THIS )?PROJECT GUTENBERG|End of (the )?Project Gutenberg|\*\*\* ?END OF)",
    re.M | re.I,
)

# Signs with a plain form; those that NFKC makes plain (…, no-break space) are not here.
_PLAIN = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "`": "'", "—": "--", "–": "-", "\ufeff": ""}
)

_EDITORS_NOTE = re.compile(
    r"\[(?:Illustration|Footnote|Transcriber|Sidenote|Note|Decoration|Blank)[^\]]*\]", re.I
)
_ITALIC = re.compile(r"(?<![\w_])_([^_]{1,400}?)_(?![\w_])")
_BOLD = re.compile(r"(?<![\w=])=([^=\n]+)=(?![\w=])")
_MARK = re.compile(r"[_*#~|{}<>\\^]")

_EMPTY_LINES = re.compile(r"\n\s*\n")
_HEADING = re.compile(
    r"^(CHAPTER|LESSON|PART|BOOK|STORY|CONTENTS|LIST OF|SECTION|SCENE|ACT|[IVXLC]+\.?)\b", re.I
)
_ABOUT_THE_BOOK = re.compile(
    r"gutenberg|copyright|etext|e-text|transcriber|proofread|all rights reserved|www\.|http"
    r"|illustrat|produced by|printed|publish|frontispiece|\bvol\.|\bpp?\. ?\d|edition|preface"
    r"|\[\d+\]",
    re.I,
)
_COLUMNS = re.compile(r"\S {3,}\S")
_PAGE_NUMBER = re.compile(r"[\s.]\d+\s*$")
_ENDINGS = ".!?\"',:;)-"  # how a paragraph ends that is no title

_N_TITLE_WORDS = 10  # a heading or title has no more
_N_VERSE = 50  # characters; lines of verse are shorter


def documents(text: str, *, min_words: int = 60) -> list[str]:
    r"""The chapters of a book, paragraphs apart by an empty line; shorter ones are left out.

    Args:
        text: the whole file, line ends of any kind.
        min_words: how many words a chapter needs, at least 1.

    >>> documents("CHAPTER I\n\nOne fine day the fox went out.\n\n_He was\nhungry!_", min_words=9)
    ['One fine day the fox went out.\n\nHe was\nhungry!']
    """
    assert min_words >= 1
    found: list[str] = []
    chapter: list[str] = []
    for paragraph in [*_paragraphs(plain(text)), None]:
        if paragraph is not None:
            chapter.append(paragraph)
            continue
        if sum(len(part.split()) for part in chapter) >= min_words:
            found.append("\n\n".join(chapter))
        chapter = []
    return found


def body(text: str) -> str:
    r"""The book without Project Gutenberg's header, licence and closing lines; lines end in "\n".

    >>> body("Title: T\r\n*** START OF THIS PROJECT GUTENBERG EBOOK T ***\r\nOnce.\r\n*** END OF T")
    '\nOnce.\n'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for header in (_START, _SMALL_PRINT):
        if found := header.search(text):
            text = text[found.end() :]
    if found := _END.search(text):
        text = text[: found.start()]
    return text


def plain(text: str) -> str:
    r"""The body in plain signs, without editors' notes and typographers' marks.

    >>> plain("“Don’t—I _beg_ you…” [Illustration: A fox] =he= said. * * *")
    '"Don\'t--I beg you..."  he said.   '
    """
    text = unicodedata.normalize("NFKC", body(text)).translate(_PLAIN)
    text = _EDITORS_NOTE.sub("", text)
    text = _ITALIC.sub(r"\1", text)  # before bold, which is not seen next to a "_"
    text = _BOLD.sub(r"\1", text)
    return _MARK.sub("", text)


def ends_chapter(joined: str) -> bool:
    """Whether a paragraph is a heading: it opens like one and is short, or is mostly capitals.

    >>> [ends_chapter(joined) for joined in ("Chapter 2. The Fox", "THE FOX", "The Fox", "IV.")]
    [True, True, False, True]
    """
    letters = [sign for sign in joined if sign.isalpha()]
    if _HEADING.match(joined) and len(joined.split()) <= _N_TITLE_WORDS:
        return True
    return len(letters) > 3 and sum(sign.isupper() for sign in letters) > 0.6 * len(letters)


def is_prose(joined: str) -> bool:
    """Whether a paragraph tells something: mostly letters, English signs, not about the book.

    >>> [is_prose(joined) for joined in ("He ran away.", "12 34 56 78 to 90", "Printed in Boston.")]
    [True, False, False]
    """
    n_letters = sum(sign.isalpha() for sign in joined)
    if n_letters < 8 or n_letters / len(joined) < 0.6 or _ABOUT_THE_BOOK.search(joined):
        return False
    return sum(ord(sign) > 127 for sign in joined) <= 2


def is_table(lines: list[str]) -> bool:
    """Whether most lines stand in columns, or most end in a number, as in a list of chapters.

    >>> is_table(["The fox ... 12", "The hen    20"]), is_table(["There were 3", "hens."])
    (True, False)
    """
    columns = sum(bool(_COLUMNS.search(line.strip())) for line in lines)
    numbers = sum(bool(_PAGE_NUMBER.search(line)) for line in lines)
    return max(columns, numbers) > len(lines) / 2


def is_verse(lines: list[str]) -> bool:
    """Whether the lines are short enough to have been broken on purpose; they are kept apart.

    >>> is_verse(["Twinkle, twinkle,", "little bat!"]), is_verse(["Twinkle!"])
    (True, False)
    """
    return len(lines) >= 2 and max(len(line.strip()) for line in lines) < _N_VERSE


def is_title(paragraph: str) -> bool:
    """Whether a paragraph is short and does not end like a sentence.

    >>> is_title("The Fox and the Hen"), is_title("The fox ran."), is_title("word " * 11)
    (True, False, False)
    """
    return paragraph[-1] not in _ENDINGS and len(paragraph.split()) <= _N_TITLE_WORDS


def flow(lines: list[str]) -> str:
    r"""The lines as a paragraph: one line of prose, or verse line by line; dashes stand free.

    >>> flow(["  He ran--and   ran--over the hills and over the fields,", "and he was gone."])
    'He ran - and ran - over the hills and over the fields, and he was gone.'
    """
    joint = "\n" if is_verse(lines) else " "
    paragraph = joint.join(" ".join(line.split()) for line in lines)
    return re.sub(r" {2,}", " ", re.sub(r" ?-- ?", " - ", paragraph))


def _paragraphs(text: str) -> list[str | None]:
    """The paragraphs of plain text that are kept; None where a chapter ends."""
    found: list[str | None] = []
    for block in _EMPTY_LINES.split(text):
        lines = [line for line in block.split("\n") if line.strip()]
        if not lines:
            continue
        joined = " ".join(" ".join(lines).split())
        if ends_chapter(joined):
            found.append(None)
        elif is_prose(joined) and not is_table(lines):
            paragraph = flow(lines)
            found.append(None if is_title(paragraph) else paragraph)
    return found
