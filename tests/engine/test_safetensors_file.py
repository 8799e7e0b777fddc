"""The container reader: it reads what the format's own library reads, or refuses with a reason."""

import hashlib
import json
import os
import random
import re
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as library_load

from engine.errors import EngineError
from engine.safetensors_file import SafetensorsFile, read_safetensors
from tests.corpora import tiny_gpt2

TENSORS = {
    "f": np.arange(6, dtype="<f4").reshape(2, 3),
    "h": np.array([0.5, -0.25], "<f2"),
    "i": np.array([[1], [-1]], "<i8"),
    "b": np.array([True, False, True, True]),
    "scalar": np.array(7, "<f4"),
    "none": np.zeros((0, 4), "<f4"),
}
GOOD = tiny_gpt2.safetensors(
    TENSORS, fields={"__metadata__": {"made": "för"}} | tiny_gpt2.header(TENSORS)
)

# What a mutation puts in: numbers at the edges, other types, brackets, quotes, names already there.
SNIPPETS = (
    b"-1", b"0", b"1e9", b"18446744073709551616", b"true", b"null", b"[]", b"{}", b"[[[[", b"NaN",
    b'"F32"', b'"f"', b'"\\ud800"', b"\xff", b'"', b",", b":", b'"dtype":"F16",', b"\x00",
)  # fmt: skip


def refusal(content: bytes, folder: Path, *, cap: int = 2**24) -> EngineError:
    path = folder / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(EngineError) as error:
        read_safetensors(path, cap=cap)
    return error.value


def test_a_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOOD)
    contents = read_safetensors(tmp_path / "x")
    assert contents.metadata == {"made": "för"}
    assert list(contents.dtypes.values()) == ["F32", "F16", "I64", "BOOL", "F32", "F32"]
    for name, tensor in TENSORS.items():
        found = contents.tensors[name]
        assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
        assert found.tobytes() == tensor.tobytes()


def test_bfloat16_comes_as_its_bits(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(tiny_gpt2.safetensors({"w": np.array([0x3F80], "<u2")}))
    contents = read_safetensors(tmp_path / "x")
    assert (contents.dtypes, contents.tensors["w"].tolist()) == ({"w": "BF16"}, [0x3F80])


def test_the_digest_is_of_the_whole_file_however_little_of_it_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOOD)
    with SafetensorsFile(tmp_path / "x") as file:
        arrays, digest = file.read({"scalar"})
        _, again = file.read(())
    assert list(arrays) == ["scalar"]
    assert digest == again == hashlib.sha256(GOOD).hexdigest()


def test_a_stream_goes_in_file_order_and_knows_the_digest_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOOD)
    with SafetensorsFile(tmp_path / "x") as file:
        stream = file.stream({"scalar", "f", "b"})
        assert [next(stream)[0] for _ in range(3)] == ["f", "b", "scalar"]
        assert not hasattr(file, "sha256")  # "none" is still to come
        assert next(stream, None) is None
        assert file.sha256 == hashlib.sha256(GOOD).hexdigest()


def test_a_stream_of_many_blocks_hashes_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors of 24, 4, 16, 4, 4 and 0 bytes in blocks of 5."""
    monkeypatch.setattr("engine.safetensors_file.BLOCK", 5)
    (tmp_path / "x").write_bytes(GOOD)
    with SafetensorsFile(tmp_path / "x") as file:
        arrays, digest = file.read({"f", "none"})
    assert arrays["f"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["none"].shape == (0, 4)
    assert digest == hashlib.sha256(GOOD).hexdigest()


def test_a_stream_left_halfway_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOOD)
    before = threading.active_count()
    with SafetensorsFile(tmp_path / "x") as file:
        stream = file.stream(file.entries)
        next(stream)
        assert threading.active_count() == before + 1  # it hashes
        stream.close()
        assert threading.active_count() == before
        assert not hasattr(file, "sha256")


def test_a_file_that_shrinks_while_it_is_read_is_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(GOOD)
    with SafetensorsFile(path) as file:
        stream = file.stream(file.entries)
        next(stream)
        os.truncate(path, len(GOOD) - 20)
        with pytest.raises(EngineError) as error:
            list(stream)
    assert error.value.kind == "st_truncated"
    assert error.value.facts["expected"] == len(GOOD)


def test_first_rows_can_be_had_by_themselves_before_a_stream(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOOD)
    with SafetensorsFile(tmp_path / "x") as file:
        assert file.peek("f", 1).tolist() == [[0, 1, 2]]
        assert file.peek("f", 9).tolist() == [[0, 1, 2], [3, 4, 5]]  # no more than there are
        assert file.peek("h").tolist() == [0.5, -0.25]
        assert file.peek("scalar").shape == ()
        assert file.read(())[1] == hashlib.sha256(GOOD).hexdigest()


def test_arrays_begin_with_a_cache_line(tmp_path: Path) -> None:
    contents_of = tiny_gpt2.safetensors({"odd": np.ones(3, np.int8), "w": np.ones(5, "<f4")})
    (tmp_path / "x").write_bytes(contents_of)
    found = read_safetensors(tmp_path / "x").tensors["w"]
    assert found.ctypes.data % 64 == 0
    assert found.tolist() == [1, 1, 1, 1, 1]


def test_the_cap_on_the_header_is_the_callers(tmp_path: Path) -> None:
    error = refusal(GOOD, tmp_path, cap=100)
    assert (error.kind, error.facts["limit"]) == ("st_length", 100)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"a": 5}, "st_entry"),
        ({"a": {"dtype": "U8", "shape": [16]}}, "st_entry"),
        ({"a": {"dtype": "U8", "shape": [16], "data_offsets": [0, 16], "x": 1}}, "st_entry"),
        ({"a": {"dtype": ["U8"], "shape": [16], "data_offsets": [0, 16]}}, "st_dtype"),
        ({"a": {"dtype": "U8", "shape": 16, "data_offsets": [0, 16]}}, "st_shape"),
        ({"a": {"dtype": "U8", "shape": [True, 16], "data_offsets": [0, 16]}}, "st_shape"),
        ({"a": {"dtype": "U8", "shape": [16.0], "data_offsets": [0, 16]}}, "st_shape"),
        ({"a": {"dtype": "U8", "shape": [1] * 9, "data_offsets": [0, 1]}}, "st_shape"),
        ({"a": {"dtype": "U8", "shape": [0, 2**62], "data_offsets": [0, 0]}}, "st_shape"),
        ({"a": {"dtype": "U8", "shape": [16], "data_offsets": [0, 16, 16]}}, "st_offsets"),
        ({"a": {"dtype": "U8", "shape": [16], "data_offsets": [16, 0]}}, "st_offsets"),
        ({"a": {"dtype": "U8", "shape": [15], "data_offsets": [1, 16]}}, "st_hole"),
        ({"a": {"dtype": "U8", "shape": [15], "data_offsets": [0, 15]}}, "st_trailing"),
        ({"a": {"dtype": "U8", "shape": [17], "data_offsets": [0, 17]}}, "st_truncated"),
        ({"a": {"dtype": "BOOL", "shape": [16], "data_offsets": [0, 16]}}, "st_bool"),
        ({"__metadata__": []}, "st_metadata"),
    ],
)
def test_a_header_that_lies_is_refused(
    fields: dict[str, object], kind: str, tmp_path: Path
) -> None:
    assert (
        refusal(tiny_gpt2.raw(json.dumps(fields).encode(), bytes(range(16))), tmp_path).kind == kind
    )


@pytest.mark.parametrize(
    ("begin", "kind"),
    [
        (b"PK\x03\x04 torch", "file_is_pickle"),
        (b"\x80\x04\x95 pickle", "file_is_pickle"),
        (b"\x1f\x8b\x08 gzip", "file_is_compressed"),
        (b"\n<!doctype html>", "file_is_web_page"),
        (b"hello, I am no model", "st_length"),
        (b"short", "st_truncated"),
    ],
)
def test_another_kind_of_file_is_called_by_its_name(
    begin: bytes, kind: str, tmp_path: Path
) -> None:
    assert refusal(begin, tmp_path).kind == kind


def test_a_name_that_could_garble_a_terminal_is_escaped_and_cut(tmp_path: Path) -> None:
    name = "\u202e\x1b[2J" + "x" * 500
    error = refusal(tiny_gpt2.raw(json.dumps({name: 5}).encode()), tmp_path)
    assert "'\\u202e\\x1b[2Jxxx" in str(error)
    assert len(str(error)) < 300


def test_a_file_that_shrinks_while_it_is_open_is_an_error_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOOD)
    with SafetensorsFile(tmp_path / "x") as file:
        os.truncate(tmp_path / "x", len(GOOD) - 30)
        with pytest.raises(EngineError) as error:
            file.read(file.entries)
    assert error.value.kind == "st_truncated"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system here")
def test_a_pipe_is_not_opened_as_it_would_wait_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    for path, kind in ((tmp_path / "x", "file_not_plain"), (tmp_path / "y", "file_missing")):
        with pytest.raises(EngineError) as error:
            read_safetensors(path)
        assert error.value.kind == kind


def test_2000_mutated_files_are_read_as_the_library_reads_them_or_refused(tmp_path: Path) -> None:
    dice = random.Random(1)
    refused, n_read = set(), 0
    for _ in range(2_000):
        content = mutated(dice)
        (tmp_path / "x").write_bytes(content)
        try:
            contents = read_safetensors(tmp_path / "x")
        except EngineError as error:
            refused.add((error.kind, str(error)))
            continue
        n_read += 1
        theirs = library_load(content)
        assert theirs.keys() == contents.tensors.keys()
        assert all(theirs[n].tobytes() == t.tobytes() for n, t in contents.tensors.items())
    assert all(sentence.isprintable() for _, sentence in refused)
    assert len({kind for kind, _ in refused}) >= 10  # the mutations reach most of the checks
    assert n_read > 20  # one inside a name leaves a good file


def mutated(dice: random.Random) -> bytes:
    """The good file with one to three changes in its header, sometimes in length or data."""
    (length,) = struct.unpack("<Q", GOOD[:8])
    head, data = bytearray(GOOD[8 : 8 + length]), GOOD[8 + length :]
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(head))
        match dice.randrange(5):
            case 0:
                head[at] ^= 1 << dice.randrange(8)
            case 1:
                head[at : at + dice.randint(0, 8)] = dice.choice(SNIPPETS)
            case 2:
                del head[at : at + dice.randint(1, 12)]
            case (
                _
            ):  # one number or string becomes another: the JSON stays sound, its sense does not
                words = list(re.finditer(rb'"[^"]*"|-?[0-9]+', head)) or [re.match(b"", head)]
                old, new = dice.choice(words), dice.choice(words)
                wanted = new[0] if dice.random() < 0.5 else dice.choice(SNIPPETS)
                head[old.start() : old.end()] = wanted
        if not head:
            head = bytearray(b"{}")
    stated = dice.choice((0, length, 2**63, len(head) + 1)) if dice.random() < 0.1 else len(head)
    cut = dice.randrange(len(data)) if dice.random() < 0.1 else len(data)
    return struct.pack("<Q", stated) + bytes(head) + data[:cut]
