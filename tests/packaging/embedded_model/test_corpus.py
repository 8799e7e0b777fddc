"""A folder becomes documents, in one order; some are held out; bad input gets one sentence."""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from embedded_model import corpus
from embedded_model.books import Catalogue
from embedded_model.corpus import HELD_OUT, Document, held_out, read_corpus, split
from embedded_model.refusal import Refusal

ROOT = Path(__file__).parents[3]


def told(name: str, n_words: int = 60) -> str:
    """One chapter of so many words, which opens with the name."""
    return " ".join([name, *["word"] * (n_words - 2), "end."])


def line(src: str = "s", tier: str = "A", title: str = "t", text: str = "x") -> str:
    return json.dumps({"src": src, "tier": tier, "title": title, "text": text}) + "\n"


def write(folder: Path, **texts: str) -> None:
    for stem, text in texts.items():
        (folder / f"{stem}.txt").write_text(text, encoding="utf-8")


def test_listed_books_come_first_in_the_order_of_the_list_whatever_their_names(
    tmp_path: Path,
) -> None:
    """By number, by file name, by header; "Blacky the Crow" opens the list."""
    write(
        tmp_path,
        **{
            "a_first": told("Unlisted"),
            "15282": told("Travels"),
            "x": f"Title: Sylvie and Bruno\nAuthor: Lewis Carroll\n\n{told('Less')}",
            "Thornton Waldo Burgess___Blacky the Crow": told("Blacky"),
        },
    )
    assert read_corpus(tmp_path) == [
        Document("burgess", "A", "Thornton Waldo Burgess___Blacky the Crow", told("Blacky")),
        Document("carroll", "B", "Lewis Carroll___Sylvie and Bruno", told("Less")),
        Document("garis", "A", "Howard Roger Garis___Uncle Wiggily's Travels", told("Travels")),
        Document("other", "B", "a_first", told("Unlisted")),
    ]


def test_a_folder_gives_unlisted_texts_their_tier_and_none_is_tier_b(tmp_path: Path) -> None:
    for folder in ("A", "B", "C/deep", "D"):
        (tmp_path / folder).mkdir(parents=True)
        write(tmp_path / folder, book=told(folder))
    assert [(d.tier, d.text[:2]) for d in read_corpus(tmp_path)] == [
        ("A", "A "),
        ("B", "B "),
        ("C", "C/"),
        ("B", "D "),
    ]


def test_a_listed_book_keeps_its_tier_and_is_read_from_the_shorter_name(tmp_path: Path) -> None:
    (tmp_path / "C").mkdir()
    write(tmp_path / "C", **{"18190-8": told("Longer"), "18190": told("Shorter")})
    found = read_corpus(tmp_path)
    assert [(d.source, d.tier, d.text) for d in found] == [("gruelle", "A", told("Shorter"))]


def test_a_text_that_opens_with_the_same_200_characters_is_dropped(tmp_path: Path) -> None:
    same, other = told("Once", 61), told("Once", 62)  # alike for 299 characters
    late = same[:199] + "!" + same[200:]
    write(tmp_path, a=same, b=other, c=late)
    assert [d.text for d in read_corpus(tmp_path)] == [same, late]


def test_cleaned_documents_are_taken_as_they_are_after_the_books(tmp_path: Path) -> None:
    """Short, doubled and with marks; packed and plain files, by name."""
    write(tmp_path, z=told("Book"))
    (tmp_path / "b.jsonl.xz").write_bytes(lzma.compress(line(text="packed").encode()))
    (tmp_path / "a.jsonl").write_text(
        line("own", "C", "T", "_Once_ –*").replace("*", "\u2028")
        + "\n"
        + line(text=told("Book")) * 2,
        encoding="utf-8",
    )
    assert read_corpus(tmp_path) == [
        Document("other", "B", "z", told("Book")),
        Document("own", "C", "T", "_Once_ –\u2028"),
        Document("s", "A", "t", told("Book")),
        Document("s", "A", "t", told("Book")),
        Document("s", "A", "t", "packed"),
    ]


def test_latin_1_is_read_where_the_bytes_are_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes(told("Señor").encode("latin-1"))
    (tmp_path / "young.txt").write_bytes(told("Señora").encode())
    assert [d.text.split()[0] for d in read_corpus(tmp_path)] == ["Señor", "Señora"]


def test_hidden_files_and_other_kinds_are_not_read(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    for name in (".hidden/a.txt", ".b.txt", "c.md", "d.json", "E.TXT"):
        (tmp_path / name).write_text(told(name))
    assert [d.title for d in read_corpus(tmp_path)] == ["E"]


def test_a_folder_that_gives_nothing_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="not found; name one that exists"):
        read_corpus(tmp_path / "absent")
    with pytest.raises(Refusal, match=r"holds no texts; books as \.txt"):
        read_corpus(tmp_path)
    write(tmp_path, short="Too short to be a document.")
    with pytest.raises(Refusal, match="give no documents"):
        read_corpus(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("{not json}", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["a list"]', "was looked for"),
        ('{"src": "s", "tier": "A", "title": "t"}', "was looked for"),
        ('{"src": "s", "tier": "A", "title": "t", "text": 5}', "was looked for"),
        ('{"src": "s", "tier": "A", "title": "t", "text": " "}', "was looked for"),
        (r'{"src": "s", "tier": "A", "title": "t", "text": "\ud83d"}', "was looked for"),
        ('{"src": "s", "tier": "D", "title": "t", "text": "x"}', 'tier is "D"'),
    ],
)
def test_a_bad_line_is_refused_with_its_number_and_file(
    tmp_path: Path, wrong: str, sentence: str
) -> None:
    (tmp_path / "a.jsonl").write_text(line() + wrong + "\n")
    with pytest.raises(Refusal, match=rf"{sentence}.*line 2 of .*a\.jsonl"):
        read_corpus(tmp_path)


def test_broken_files_are_refused_by_name(tmp_path: Path) -> None:
    packed, whole = tmp_path / "a.jsonl.xz", lzma.compress(line().encode())
    for broken in (b"no xz", whole[:-9], whole[:20] + b"\1" + whole[21:], b""):
        packed.write_bytes(broken)
        with pytest.raises(Refusal, match=r"broken or is no xz file.*a\.jsonl\.xz"):
            read_corpus(tmp_path)
    packed.write_bytes(lzma.compress(b"\xff"))
    with pytest.raises(Refusal, match="not UTF-8"):
        read_corpus(tmp_path)
    packed.unlink()
    (tmp_path / "b.txt").write_bytes("UTF-16".encode("utf-16"))
    with pytest.raises(Refusal, match="not plain text"):
        read_corpus(tmp_path)


def test_a_file_is_too_large_by_what_is_in_it_packed_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "MAX_BYTES", 1 << 20)
    packed, book = tmp_path / "a.jsonl.xz", tmp_path / "a.txt"
    packed.write_bytes(lzma.compress(b" " * (1 << 20) + b" "))
    with pytest.raises(Refusal, match=r"larger than 1 MB; cut it.*a\.jsonl\.xz"):
        read_corpus(tmp_path)
    packed.unlink()
    book.write_bytes(b" " * (1 << 20) + b" ")
    with pytest.raises(Refusal, match=r"larger than 1 MB; cut it.*a\.txt"):
        read_corpus(tmp_path)


def test_every_hundredth_of_the_shuffled_documents_is_held_out() -> None:
    """The literal numbers are those of random.Random(0) shuffling 0 to 200."""
    documents = [Document("s", "A", "t", str(i)) for i in range(201)]
    training, held = split(documents)
    assert [d.text for d in held] == ["173", "67", "98"]
    assert [d.text for d in training[:5]] == ["150", "17", "104", "131", "44"]
    assert sorted(int(d.text) for d in training + held) == list(range(201))
    assert [d.text for d in documents[:3]] == ["0", "1", "2"]  # the caller's list stays as it is


def test_the_first_is_held_out_even_of_a_single_document_and_nothing_of_none() -> None:
    only = Document("s", "A", "t", "only")
    assert split([only]) == ([], [only])
    assert split([]) == ([], [])


def test_what_travels_with_the_recipe_as_held_out_is_never_learned_from() -> None:
    own = [Document("s", "C", "t", str(i)) for i in range(100)]
    renamed = [Document("mine", "C", "mine", d.text) for d in held_out()]
    training, held = split(own + renamed)
    assert not {d.text for d in training} & {d.text for d in held_out()}
    assert len(held) == 2  # of 134 documents
    assert {d.text for d in own} <= {d.text for d in training + held}


def test_the_held_out_documents_are_19_of_tier_a_then_15_of_tier_b() -> None:
    """Figures over them are compared from one training to the next: they may not change."""
    documents = held_out()
    assert [d.tier for d in documents] == ["A"] * 19 + ["B"] * 15
    n_bytes = [sum(len(d.text.encode()) for d in documents if d.tier == tier) for tier in "AB"]
    assert n_bytes == [125_793, 99_000]
    assert documents[0].text.startswith("The ringing of the Bunker doorbell was not unusual.")
    assert len({d.text for d in documents}) == 34


def test_the_held_out_documents_are_all_of_listed_books_in_the_public_domain() -> None:
    catalogue = Catalogue.load()
    for document in held_out():
        book = catalogue.of_title(document.source, document.title)
        assert book is not None
        assert (book.source, book.tier) == (document.source, document.tier)
    assert HELD_OUT.stat().st_size < 200_000


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    script = ROOT / "packaging" / "embedded_model" / "corpus.py"
    return subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, check=False
    )


def test_the_command_prints_a_table_and_the_books_not_found(tmp_path: Path) -> None:
    write(tmp_path, **{"18190": told("Raggedy"), "mine": told("Mine", 1_000)})
    answer = run(tmp_path, "--missing")
    table = [row.split() for row in answer.stdout.splitlines()]
    assert table[:4] == [
        ["source", "tier", "documents", "words", "held", "out"],
        ["gruelle", "A", "1", "60", "1"],
        ["other", "B", "1", "1,000", "0"],
        ["all", "2", "1,060", "1"],
    ]
    assert answer.stdout.splitlines()[4] == "284 of the 285 books of books.toml were not found."
    assert len(table) == 5 + 284
    assert "Johnny Gruelle___Raggedy Ann Stories" not in answer.stdout
    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_command_refuses_in_one_sentence(tmp_path: Path) -> None:
    answer = run(tmp_path / "absent")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("The folder with texts was not found; name one that exists: ")
    assert answer.stderr.count("\n") == 1


def test_the_held_out_file_is_written_from_tiers_a_and_b_of_the_books_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every document is held out here; "asp" is not in the public domain, C is left to others."""
    monkeypatch.setattr(corpus, "HELD_OUT_EVERY", 1)
    shelves = [("baum", "B"), ("asp", "A"), ("hope", "A"), ("long", "C")]
    documents = [Document(source, tier, "t", source) for source, tier in shelves]
    corpus._write_held_out(documents, tmp_path / "first.xz")
    corpus._write_held_out(documents, tmp_path / "again.xz")
    written = lzma.decompress((tmp_path / "first.xz").read_bytes()).decode()
    assert written == line("hope", "A", "t", "hope") + line("baum", "B", "t", "baum")
    assert (tmp_path / "first.xz").read_bytes() == (tmp_path / "again.xz").read_bytes()
