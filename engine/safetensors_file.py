"""Read .safetensors files strictly: the header is checked before any number is read.

The file is read, never mapped: a mapped file that shrinks kills the process, and its values could
change after they were checked.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Collection, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError
from engine.untrusted import Json, open_plain, shown, table, unreadable

HEADER_CAP = 16 * 2**20  # bytes; GPT-2's header has 14,283
MAX_DIMENSIONS = 8
BLOCK = 2**22  # bytes read, and hashed, at once: a processor's cache holds them for the hash
CACHE_LINE = 64  # bytes

# numpy has no bfloat16 and no 8-bit floats: their bits come as whole numbers, beside their dtype
NUMPY_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F8_E4M3": "u1", "F8_E5M2": "u1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip

FOREIGN = {  # how files begin that people take for weights, and the kind that says what they are
    b"version https://git-lfs": "file_is_lfs_pointer",
    b"GGUF": "file_is_gguf",
    b"PK\x03\x04": "file_is_pickle",  # a zip of pickles is what torch.save writes
    b"\x80\x02": "file_is_pickle",
    b"\x80\x03": "file_is_pickle",
    b"\x80\x04": "file_is_pickle",
    b"\x80\x05": "file_is_pickle",
    b"\x1f\x8b": "file_is_compressed",
    b"<": "file_is_web_page",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one tensor lies: bytes start to end, counted from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Contents:
    """A whole file: BF16 and 8-bit floats are unsigned arrays, `dtypes` says which."""

    tensors: dict[str, NDArray[np.generic]]
    dtypes: dict[str, str]
    metadata: dict[str, str]


def read_safetensors(path: Path, *, cap: int = HEADER_CAP) -> Contents:
    """Read every tensor of a file.

    Args:
        path: the file.
        cap: the longest header to accept, in bytes.

    Raises:
        EngineError: a kind that begins with "file_", "st_" or "json_".
    """
    with SafetensorsFile(path, cap=cap) as file:
        tensors, _ = file.read(file.entries)
        dtypes = {name: entry.dtype for name, entry in file.entries.items()}
        return Contents(tensors, dtypes, file.metadata)


class SafetensorsFile:
    """An open file whose header has been checked.

    Attributes:
        name: of the file, without its folder.
        entries: in file order.
        metadata: the header's notes.
        sha256: of the whole file; known when a stream has come to its end.
    """

    sha256: str

    def __init__(self, path: Path, *, cap: int = HEADER_CAP) -> None:
        self.name = path.name
        with ExitStack() as refused:  # closes the file if a check below refuses it
            self._file = refused.enter_context(open_plain(path))
            self._size = os.fstat(self._file.fileno()).st_size
            self._head = self._read_head(cap)
            self.entries, self.metadata = self._parse()
            self._check_layout()
            refused.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def read(self, wanted: Collection[str]) -> tuple[dict[str, NDArray[np.generic]], str]:
        """Read the wanted tensors and hash the whole file, in one pass.

        Returns:
            The arrays by name, and the sha256 of exactly the bytes that were read.
        """
        return dict(self.stream(wanted)), self.sha256

    def stream(
        self, wanted: Collection[str]
    ) -> Generator[tuple[str, NDArray[np.generic]], None, None]:
        """Read the wanted tensors one by one, in file order, and hash the whole file on the way.

        Hashing costs as much as reading, so a second thread does it, meanwhile and while the caller
        works on a tensor. No tensor is held here once the next is asked for.

        Yields:
            A name and its array, which the caller may keep and must not change.
        """
        digest = hashlib.sha256(self._head)
        self._file.seek(len(self._head))
        with ThreadPoolExecutor(1) as thread:

            def read(buffer: memoryview) -> Future[None]:
                return thread.submit(digest.update, self._fill(buffer))

            for name, entry in self.entries.items():
                size = entry.end - entry.start
                if name in wanted:
                    buffer = _aligned(size)
                    hashed = [read(buffer.data[at : at + BLOCK]) for at in range(0, size, BLOCK)]
                    yield name, self._typed(name, buffer)
                    del buffer
                    for part in hashed:
                        part.result()
                else:
                    scratch = memoryview(bytearray(min(size, BLOCK)))
                    for done in range(0, size, BLOCK):
                        read(scratch[: size - done]).result()
        self.sha256 = digest.hexdigest()

    def peek(self, name: str, n_rows: int | None = None) -> NDArray[np.generic]:
        """A tensor's first rows, or all of it, read by themselves; not while a stream goes on."""
        entry = self.entries[name]
        shape = entry.shape if n_rows is None else (min(n_rows, entry.shape[0]), *entry.shape[1:])
        dtype = np.dtype(NUMPY_TYPES[entry.dtype])
        buffer = np.empty(math.prod(shape) * dtype.itemsize, np.uint8)
        self._file.seek(len(self._head) + entry.start)
        self._fill(buffer.data)
        return buffer.view(dtype).reshape(shape)

    def _fill(self, buffer: memoryview) -> memoryview:
        """The buffer, filled with the bytes that come next."""
        done = 0
        while done < len(buffer):  # one read may bring less than asked, at most 2 GiB on Linux
            try:
                count = self._file.readinto(buffer[done:])
            except OSError as error:
                raise unreadable(self.name, error) from error
            if not count:  # it shrank under us
                raise EngineError(
                    "st_truncated",
                    file=shown(self.name),
                    found=self._file.tell(),
                    expected=self._size,
                )
            done += count
        return buffer

    def _typed(self, name: str, buffer: NDArray[np.uint8]) -> NDArray[np.generic]:
        entry = self.entries[name]
        if entry.dtype == "BOOL" and buffer.size and buffer.max() > 1:
            raise EngineError("st_bool", file=shown(self.name), tensor=shown(name))
        return buffer.view(NUMPY_TYPES[entry.dtype]).reshape(entry.shape)

    def _read_head(self, cap: int) -> bytes:
        """The 8 bytes of length and the header, or why this is no such file."""
        start = self._file.read(min(self._size, 64))
        if not start:
            raise EngineError("file_empty", file=shown(self.name))
        length = int.from_bytes(start[:8], "little") if len(start) >= 8 else 0
        if length > cap or length + 8 > self._size or start[8:9] != b"{":
            for begin, kind in FOREIGN.items():
                if start.lstrip().startswith(begin):
                    raise EngineError(kind, file=shown(self.name))
            if length > cap:
                raise EngineError("st_length", file=shown(self.name), found=length, limit=cap)
            if length + 8 > self._size:  # also a file of less than 8 bytes
                raise EngineError(
                    "st_truncated", file=shown(self.name), found=self._size, expected=length + 8
                )
            raise EngineError("json_not_table", file=shown(self.name))
        self._file.seek(0)
        head = bytearray(8 + length)
        self._fill(memoryview(head))
        return bytes(head)

    def _parse(self) -> tuple[dict[str, Entry], dict[str, str]]:
        fields = table(self._head[8:], self.name)
        notes = fields.pop("__metadata__", {})
        if not isinstance(notes, dict):
            raise EngineError("st_metadata", file=shown(self.name))
        metadata = {name: note for name, note in notes.items() if isinstance(note, str)}
        if len(metadata) < len(notes):
            raise EngineError("st_metadata", file=shown(self.name))
        entries = {name: self._entry(name, field) for name, field in fields.items()}
        in_order = sorted(entries.items(), key=lambda item: (item[1].start, item[1].end))
        return dict(in_order), metadata

    def _entry(self, name: str, field: Json) -> Entry:
        where = {"file": shown(self.name), "tensor": shown(name)}
        if not isinstance(field, dict) or field.keys() != {"dtype", "shape", "data_offsets"}:
            raise EngineError("st_entry", **where)
        dtype, shape, span = field["dtype"], _sizes(field["shape"]), _sizes(field["data_offsets"])
        if not isinstance(dtype, str) or dtype not in NUMPY_TYPES:
            raise EngineError("st_dtype", **where, found=shown(dtype))
        item = np.dtype(NUMPY_TYPES[dtype]).itemsize
        # numpy multiplies the dimensions of an empty array too, so zeros must not hide the rest
        if (
            shape is None
            or len(shape) > MAX_DIMENSIONS
            or math.prod(max(n, 1) for n in shape) * item >= 2**62
        ):
            raise EngineError("st_shape", **where, found=shown(field["shape"]))
        if span is None or len(span) != 2 or span[0] > span[1]:
            raise EngineError("st_offsets", **where, found=shown(field["data_offsets"]))
        need = math.prod(shape) * item
        if span[1] - span[0] != need:
            raise EngineError("st_size", **where, found=span[1] - span[0], expected=need)
        return Entry(dtype, shape, span[0], span[1])

    def _check_layout(self) -> None:
        """Every byte after the header belongs to exactly one tensor."""
        end = 0
        for name, entry in self.entries.items():
            if entry.start != end:
                kind = "st_overlap" if entry.start < end else "st_hole"
                raise EngineError(
                    kind, file=shown(self.name), tensor=shown(name), at=min(entry.start, end)
                )
            end = entry.end
        expected = len(self._head) + end
        if expected != self._size:
            kind = "st_truncated" if expected > self._size else "st_trailing"
            raise EngineError(kind, file=shown(self.name), found=self._size, expected=expected)


def _aligned(size: int) -> NDArray[np.uint8]:
    """So many bytes, not set, that begin with a cache line, as the matrices of torch do."""
    whole = np.empty(size + CACHE_LINE, np.uint8)
    start = -whole.ctypes.data % CACHE_LINE
    return whole[start : start + size]


def _sizes(value: Json) -> tuple[int, ...] | None:
    """A list of whole numbers, 0 or more; None if it is anything else (true is no number here)."""
    if not isinstance(value, list):
        return None
    sizes = tuple(n for n in value if type(n) is int and n >= 0)
    return sizes if len(sizes) == len(value) else None
