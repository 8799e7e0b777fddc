"""A GPT-2 written as llama.cpp reads it: one GGUF file in float32, 16 bits or 8-bit blocks.

The format is GGUF version 3 (docs/gguf.md in ggml's repository): a head of counts, the metadata as
typed pairs, a line for every tensor, then the tensors, each at a multiple of 32 bytes. All numbers
are little-endian. There is no vocabulary in the file: the bench speaks in ids.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from engine.checkpoint import Checkpoint, float32

Floats = NDArray[np.float32]
Array = NDArray[np.generic]

ALIGNMENT = 32
BLOCK = 32  # numbers that share one scale in Q8_0
UINT32, FLOAT32, STRING = 4, 6, 8  # types of metadata
TENSOR_TYPE = {"float32": 0, "float16": 1, "int8": 8, "bfloat16": 30}  # F32, F16, Q8_0, BF16
FILE_TYPE = {"float32": 0, "float16": 1, "int8": 7, "bfloat16": 32}

NAMES = {
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
OUTSIDE_LAYERS = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "lm_head": "output",
}


def write(path: Path, checkpoint: Checkpoint, dtype: str) -> None:
    """Write a model; matrices in `dtype`, the rest in float32, as llama.cpp's own converter does.

    Args:
        path: of the file to be.
        checkpoint: the model.
        dtype: "float32", "float16", "bfloat16" or "int8" (Q8_0).
    """
    tensors = {name: (kind, shape) for name, kind, shape, _ in _tensors(checkpoint, dtype)}
    with path.open("wb") as file:
        pairs = _metadata(checkpoint, dtype)
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)))
        for key, (type_, value) in pairs.items():
            file.write(_string(key) + struct.pack("<I", type_) + value)
        offset = 0
        for name, (kind, shape) in tensors.items():
            sides = shape[::-1]  # GGUF names the fastest side first
            file.write(_string(name) + struct.pack(f"<I{len(sides)}Q", len(sides), *sides))
            file.write(struct.pack("<IQ", TENSOR_TYPE[kind], offset))
            offset += _aligned(n_bytes(shape, kind))
        _pad(file)
        for _, kind, _, numbers in _tensors(checkpoint, dtype):
            file.write(stored(numbers, kind).tobytes())
            _pad(file)


def stored(numbers: Floats, dtype: str) -> Array:
    """Numbers as they lie in the file.

    Q8_0 cuts a row into blocks of 32: one float16 scale, the largest magnitude / 127, then 32
    signed bytes, each the number over the scale, rounded half away from zero.

    >>> stored(np.array([1, -2.5, 127], np.float32).repeat([1, 1, 30]), "int8").tobytes()[:5].hex()
    '003c01fd7f'
    """
    if dtype == "float32":
        return numbers
    if dtype == "float16":
        return numbers.astype(np.float16)
    if dtype == "bfloat16":  # round half to even: the upper half of a float32
        bits = numbers.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    blocks = numbers.reshape(-1, BLOCK)  # (blocks, 32)
    scale = np.abs(blocks).max(1, keepdims=True) / np.float32(127)  # (blocks, 1)
    steps = blocks * np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)  # (blocks, 32)
    rounded = np.trunc(steps + np.copysign(np.float32(0.5), steps)).astype(np.int8)
    return np.concatenate([scale.astype(np.float16).view(np.int8), rounded], 1)  # (blocks, 34)


def n_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of a tensor in the file.

    >>> n_bytes((768, 768), "int8")
    626688
    """
    n = int(np.prod(shape))
    blocks = n // BLOCK * (BLOCK + 2)
    return {"float32": 4 * n, "float16": 2 * n, "bfloat16": 2 * n, "int8": blocks}[dtype]


def _metadata(checkpoint: Checkpoint, dtype: str) -> dict[str, tuple[int, bytes]]:
    size = checkpoint.config.dimensions
    counts = {
        "gpt2.context_length": size.n_positions,
        "gpt2.embedding_length": size.n_embd,
        "gpt2.block_count": size.n_layer,
        "gpt2.feed_forward_length": 4 * size.n_embd,
        "gpt2.attention.head_count": size.n_head,
        "gpt2.vocab_size": size.n_vocab,
        "general.file_type": FILE_TYPE[dtype],
    }
    epsilon = struct.pack("<f", checkpoint.config.layer_norm_epsilon)
    return {
        "general.architecture": (STRING, _string("gpt2")),
        **{key: (UINT32, struct.pack("<I", n)) for key, n in counts.items()},
        "gpt2.attention.layer_norm_epsilon": (FLOAT32, epsilon),
        "tokenizer.ggml.model": (STRING, _string("none")),
    }


def _tensors(
    checkpoint: Checkpoint, dtype: str
) -> Iterator[tuple[str, str, tuple[int, ...], Floats]]:
    """Name, dtype, shape (out, in) and numbers of every tensor."""
    for name, tensor in checkpoint.tensors.items():
        numbers = float32(tensor, checkpoint.dtypes[name])
        if name.startswith("h.") and numbers.ndim == 2:
            numbers = np.ascontiguousarray(numbers.T)  # (out, in)
        as_is = numbers.ndim == 1 or name == "wpe.weight"
        yield _name(name), "float32" if as_is else dtype, numbers.shape, numbers


def _name(name: str) -> str:
    """llama.cpp's name of a tensor.

    >>> _name("h.3.attn.c_attn.bias"), _name("ln_f.weight")
    ('blk.3.attn_qkv.bias', 'output_norm.weight')
    """
    rest, part = name.rsplit(".", 1)
    if not rest.startswith("h."):
        return f"{OUTSIDE_LAYERS[rest]}.{part}"
    _, n, inner = rest.split(".", 2)
    return f"blk.{n}.{NAMES[inner]}.{part}"


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _aligned(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def _pad(file: BinaryIO) -> None:
    file.write(b"\0" * (_aligned(file.tell()) - file.tell()))
