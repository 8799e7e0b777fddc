"""The bytes of a tiny GPT-2 folder, right or bent: tensors, safetensors files, config.json.

One layer, two heads, four numbers a token, but the real vocabulary and context, so that a test can
bend one thing and leave the rest true. 0.8 MB; the same bytes on every machine.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

V, C, P = 50_257, 4, 1_024

Tensors = dict[str, NDArray[Any]]

CONFIG: dict[str, Any] = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "bos_token_id": 50_256,
    "eos_token_id": 50_256,
    "n_layer": 1,
    "n_head": 2,
    "n_embd": C,
    "n_ctx": P,
    "n_positions": P,
    "vocab_size": V,
}

DTYPES = {"<f4": "F32", "<f2": "F16", "|i1": "I8", "<i8": "I64", "<u2": "BF16", "|b1": "BOOL"}


def pattern(*shape: int, salt: int = 0) -> NDArray[np.float32]:
    """Numbers within 0.2 of 0 that look random and need no generator."""
    i = np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(salt * 7919 + 1)
    mixed = i * np.uint64(2654435761) & np.uint64(2**32 - 1)
    return ((mixed / 2**32 - 0.5) * 0.4).astype("<f4").reshape(shape)


def tensors(*, n_layer: int = 1, n_vocab: int = V) -> Tensors:
    ones, zeros = np.ones(C, "<f4"), np.zeros(C, "<f4")
    found = {"wte.weight": pattern(n_vocab, C, salt=1), "wpe.weight": pattern(P, C, salt=2)}
    for n in range(n_layer):
        layer = {
            "ln_1.weight": ones,
            "ln_1.bias": zeros,
            "attn.c_attn.weight": pattern(C, 3 * C, salt=10 + n),
            "attn.c_attn.bias": pattern(3 * C, salt=20 + n),
            "attn.c_proj.weight": pattern(C, C, salt=30 + n),
            "attn.c_proj.bias": pattern(C, salt=40 + n),
            "ln_2.weight": ones,
            "ln_2.bias": zeros,
            "mlp.c_fc.weight": pattern(C, 4 * C, salt=50 + n),
            "mlp.c_fc.bias": pattern(4 * C, salt=60 + n),
            "mlp.c_proj.weight": pattern(4 * C, C, salt=70 + n),
            "mlp.c_proj.bias": pattern(C, salt=80 + n),
        }
        found |= {f"h.{n}.{name}": tensor for name, tensor in layer.items()}
    return found | {"ln_f.weight": ones, "ln_f.bias": zeros}


def header(of: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    fields, end = {}, 0
    for name, tensor in of.items():
        fields[name] = {
            "dtype": DTYPES[tensor.dtype.str],
            "shape": list(tensor.shape),
            "data_offsets": [end, end + tensor.nbytes],
        }
        end += tensor.nbytes
    return fields


def safetensors(
    of: Mapping[str, NDArray[Any]],
    *,
    fields: dict[str, Any] | None = None,
    text: str | None = None,
    length: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """A file of these tensors, with another header (fields or text), length or tail if given."""
    written = text if text is not None else json.dumps(fields if fields is not None else header(of))
    data = b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in of.values())
    return raw(written.encode(), data + tail, length=length)


def raw(head: bytes, data: bytes = bytes(16), *, length: int | None = None) -> bytes:
    """A file with any header; the data is that of one 2 x 2 float32 unless given."""
    return struct.pack("<Q", len(head) if length is None else length) + head + data


def config(**changes: object) -> bytes:
    """config.json with some values changed; None takes a key out."""
    fields = {key: value for key, value in (CONFIG | changes).items() if value is not None}
    return json.dumps(fields, indent=1).encode()
