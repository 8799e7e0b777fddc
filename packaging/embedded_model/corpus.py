"""The texts the model learns from: a folder of books in, documents out, some of them held out.

    python packaging/embedded_model/corpus.py FOLDER [--missing]

prints what a folder gives, and which books of books.toml are not in it. held_out.jsonl.xz, next to
this file, holds documents that no training may see: one in a hundred of the books of tiers A and
B, all in the public domain in the United States.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

from embedded_model.books import Book, Catalogue  # noqa: E402 - the path comes first
from embedded_model.cleaning import documents as cleaned  # noqa: E402
from embedded_model.refusal import Refusal  # noqa: E402

HELD_OUT = Path(__file__).with_name("held_out.jsonl.xz")
HELD_OUT_EVERY = 100  # one document in so many is held out
TIERS = ("A", "B", "C")  # by how plain the prose is, the plainest first
MAX_BYTES = 64 << 20  # of one file, unpacked
N_OPENING = 200  # characters by which the same document is known in two books
UNLISTED = "other"  # the source of a text that books.toml does not name
_FIELDS = ("src", "tier", "title", "text")  # of a line of JSON, in the order of Document


@dataclass(frozen=True, slots=True)
class Document:
    """One story or chapter: paragraphs apart by an empty line, no headings."""

    source: str  # the shelf of books.toml, or "other"
    tier: str  # "A", "B" or "C"
    title: str  # of the book
    text: str


def read_corpus(folder: Path) -> list[Document]:
    """Every document of a folder and its subfolders, hidden files aside.

    First the books (*.txt, UTF-8 or else Latin-1), cleaned: those that books.toml lists, in its
    order and each once (of two files of one book, the one with the shorter name), then the others
    by name, in the tier of their folder A/, B/ or C/, elsewhere in tier B. A document that opens
    like an earlier one of these is dropped. Then *.jsonl and *.jsonl.xz by name: documents that
    are cleaned already, one object a line with src, tier, title and text, taken as they are.

    Raises:
        Refusal: no such folder, no texts or no documents in it, a file that cannot be read.
    """
    if not os.path.isdir(folder):  # Path.is_dir raises where a name is too long or closed to us
        raise Refusal(f"The folder with texts was not found; name one that exists: {folder}")
    books = _files(folder, (".txt",))
    packs = _files(folder, (".jsonl", ".jsonl.xz"))
    if not books and not packs:
        raise Refusal(
            "The folder holds no texts; books as .txt, or documents as .jsonl or .jsonl.xz, were"
            f" looked for, subfolders included: {folder}"
        )
    found = _from_books(folder, books)
    for path in packs:
        found += _from_jsonl(path)
    if not found:
        raise Refusal(f"The texts give no documents; longer texts are needed: {folder}")
    return found


def split(documents: list[Document]) -> tuple[list[Document], list[Document]]:
    """The documents to learn from, and those held out.

    Shuffled by random.Random(0); then every hundredth is held out, from the first on, and the
    others are learned from, in shuffled order. Whatever stands in held_out() is not learned from
    either, so that its figures mean the same for every corpus.
    """
    training, held = _every_hundredth(documents)
    unseen = {document.text for document in held_out()}
    return [document for document in training if document.text not in unseen], held


def held_out() -> list[Document]:
    """The documents that travel with the recipe and are never learned from: tier A, then B."""
    return _from_jsonl(HELD_OUT)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--missing", action="store_true", help="name the listed books not found")
    parser.add_argument("--write-held-out", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        documents = read_corpus(options.folder)
        _print_table(documents)
        _print_missing(documents, names=options.missing)
        if options.write_held_out:
            _write_held_out(documents, options.write_held_out)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        raise SystemExit(2) from None


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """The files with such a name, hidden ones aside, sorted by their path in the folder."""
    found = []
    for path in folder.rglob("*"):
        within = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in within.parts)
        if not hidden and path.name.lower().endswith(endings) and path.is_file():
            found.append((within.as_posix(), path))
    return [path for _, path in sorted(found)]


def _from_books(folder: Path, paths: list[Path]) -> list[Document]:
    catalogue = Catalogue.load()
    listed: dict[Book, Path] = {}
    others: list[Path] = []
    for path in sorted(paths, key=lambda path: len(path.name)):  # stable: then by path
        book = catalogue.of_file(path.stem, _text(path))
        if book is None:
            others.append(path)
        else:
            listed.setdefault(book, path)
    found: list[Document] = []
    for book in catalogue.books:
        if book in listed:
            texts = cleaned(_text(listed[book]))
            found += [Document(book.source, book.tier, book.name, text) for text in texts]
    for path in sorted(others, key=lambda path: path.relative_to(folder).as_posix()):
        within = path.relative_to(folder)
        tier = within.parts[0] if len(within.parts) > 1 and within.parts[0] in TIERS else "B"
        found += [Document(UNLISTED, tier, path.stem, text) for text in cleaned(_text(path))]
    by_opening: dict[str, Document] = {}
    for document in found:
        by_opening.setdefault(document.text[:N_OPENING], document)
    return list(by_opening.values())


def _from_jsonl(path: Path) -> list[Document]:
    try:
        text = _bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refusal(f"The file is not UTF-8, as JSON has to be: {path}") from None
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            found.append(_document(line, place=f"line {number} of {path}"))
    return found


def _document(line: str, *, place: str) -> Document:
    """One line of JSON as a document; `place` is for the refusal."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise Refusal(f"This is not JSON, one object was looked for: {place}") from None
    fields = [value.get(name) for name in _FIELDS] if isinstance(value, dict) else []
    texts = [field for field in fields if isinstance(field, str) and _is_text(field)]
    if len(texts) < len(_FIELDS):
        raise Refusal(
            f"An object with src, tier, title and text, each some text, was looked for: {place}"
        )
    document = Document(*texts)
    if document.tier not in TIERS:
        raise Refusal(f'The tier is "{document.tier}", it has to be A, B or C: {place}')
    return document


def _is_text(field: str) -> bool:
    r"""Whether something is there, and no half of a character ("\ud83d" alone), as JSON allows."""
    return bool(field.strip()) and not re.search("[\ud800-\udfff]", field)


def _text(path: Path) -> str:
    """A book as it is; of old ones not all are UTF-8."""
    data = _bytes(path)
    if b"\0" in data:
        raise Refusal(f"The file is not plain text in UTF-8 or Latin-1; save it as UTF-8: {path}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _bytes(path: Path) -> bytes:
    """What is in the file, unpacked, never more than MAX_BYTES."""
    packed = path.name.lower().endswith(".xz")
    try:
        with lzma.open(path) if packed else path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (lzma.LZMAError, EOFError):
        raise Refusal(
            f"The file is broken or is no xz file; fetch or pack it again: {path}"
        ) from None
    except OSError as error:
        raise Refusal(f"The file cannot be read ({error.strerror}): {path}") from None
    if len(data) > MAX_BYTES:
        raise Refusal(f"The file is larger than {MAX_BYTES >> 20} MB; cut it into several: {path}")
    return data


def _every_hundredth(documents: list[Document]) -> tuple[list[Document], list[Document]]:
    """The shuffled documents without every hundredth, and every hundredth."""
    shuffled = list(documents)
    random.Random(0).shuffle(shuffled)
    held = shuffled[::HELD_OUT_EVERY]
    return [d for i, d in enumerate(shuffled) if i % HELD_OUT_EVERY], held


def _print_table(documents: list[Document]) -> None:
    """A line a source and tier, in the order of the corpus."""
    count: Counter[tuple[str, str]] = Counter()
    words: Counter[tuple[str, str]] = Counter()
    for document in documents:
        count[document.source, document.tier] += 1
        words[document.source, document.tier] += len(document.text.split())
    _, held = _every_hundredth(documents)
    n_held = Counter((document.source, document.tier) for document in held)
    print(_row("source", "tier", "documents", "words", "held out"))
    for shelf in count:
        print(_row(*shelf, f"{count[shelf]:,}", f"{words[shelf]:,}", str(n_held[shelf])))
    print(_row("all", "", f"{count.total():,}", f"{words.total():,}", str(n_held.total())))


def _row(*cells: str) -> str:
    source, tier, *numbers = cells
    return f"{source:26}{tier:4}" + "".join(f"{number:>12}" for number in numbers)


def _print_missing(documents: Iterable[Document], *, names: bool) -> None:
    catalogue = Catalogue.load()
    found = {catalogue.of_title(d.source, d.title) for d in documents}
    missing = [book for book in catalogue.books if book not in found]
    print(f"{len(missing)} of the {len(catalogue.books)} books of books.toml were not found.")
    if names:
        for book in missing:
            print(book.name)


def _write_held_out(documents: list[Document], path: Path) -> None:
    """Write held_out.jsonl.xz anew: tiers A and B of the books, none of the open sources."""
    sources = Catalogue.load().sources
    _, held = _every_hundredth(documents)
    lines = [
        json.dumps(dict(zip(_FIELDS, astuple(d), strict=True))) + "\n"
        for tier in ("A", "B")
        for d in held
        if d.tier == tier and d.source in sources
    ]
    try:
        path.write_bytes(lzma.compress("".join(lines).encode()))
    except OSError as error:
        raise Refusal(f"The file cannot be written ({error.strerror}): {path}") from None


if __name__ == "__main__":
    main()
