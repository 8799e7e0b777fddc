"""A GGUF file, read back byte by byte; llama.cpp itself is no package of the tests."""

import doctest
import struct
from pathlib import Path

import numpy as np
import pytest
from bench import gguf_file, random_model

from engine import weights
from engine.events import Dimensions

TINY = Dimensions(n_layer=1, n_head=1, n_embd=32, n_positions=32, n_vocab=50257)


def test_the_examples_are_right() -> None:
    assert doctest.testmod(gguf_file).failed == 0


def test_bfloat16_rounds_half_to_even() -> None:
    """1 + 2^-8 lies between 1 and 1 + 2^-7: the even one is 1; 1 + 3 x 2^-8 goes up."""
    numbers = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, -2], np.float32)
    assert [hex(n) for n in gguf_file.stored(numbers, "bfloat16")] == [
        *("0x3f80", "0x3f80", "0x3f82", "0xc000")
    ]


def test_a_block_of_zeros_has_a_scale_of_zero() -> None:
    assert gguf_file.stored(np.zeros(32, np.float32), "int8").tobytes() == bytes(34)


@pytest.mark.parametrize(
    ("dtype", "kind", "item"), [("float32", 0, 4), ("float16", 1, 2), ("bfloat16", 30, 2)]
)
def test_the_first_tensor_stands_where_the_file_says(
    tmp_path: Path, dtype: str, kind: int, item: int
) -> None:
    random_model.write(tmp_path, TINY)
    checkpoint = weights.read(tmp_path)
    gguf_file.write(tmp_path / "x.gguf", checkpoint, dtype)
    raw = (tmp_path / "x.gguf").read_bytes()
    # Two embeddings, twelve tensors of the layer, two of the last LayerNorm; ten pairs.
    assert raw[:24] == b"GGUF" + struct.pack("<IQQ", 3, 16, 10)
    at = raw.index(b"token_embd.weight") + len("token_embd.weight")
    assert struct.unpack_from("<IQQIQ", raw, at) == (2, 32, 50257, kind, 0)
    total = sum(
        gguf_file._aligned(t.nbytes if t.ndim == 1 or name == "wpe.weight" else t.size * item)
        for name, t in checkpoint.tensors.items()
    )
    data = raw[len(raw) - total :]
    assert (len(raw) - total) % 32 == 0
    first = gguf_file.stored(checkpoint.tensors["wte.weight"], dtype)  # type: ignore[arg-type]
    assert data[: 50257 * 32 * item] == first.tobytes()
