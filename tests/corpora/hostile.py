"""70 model folders, each right or wrong in one thing only, with what the reader must say of them.

The pickles and evil.py would make an empty folder HOSTILE_CANARY_* where they run; they are
written as bytes and never loaded, so such a folder means that a reader ran code.
"""

import io
import json
import os
import pickle
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.corpora.tiny_gpt2 import C as WIDTH
from tests.corpora.tiny_gpt2 import V, config, header, pattern, raw, safetensors, tensors

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
GOOD = tensors()
GOOD_FILE = safetensors(GOOD)


@dataclass(frozen=True, slots=True)
class Case:
    id: str  # A: the container, B: the tensors, C: config.json, D: shards, E: pickles
    what: str
    expect: str  # "ok", the kind of the refusal, or the kind of the note that must be there
    files: dict[str, bytes]

    def write(self, folder: Path) -> Path:
        """Write this case's folder into `folder`, and beside it a file that is out of bounds."""
        place = folder / self.id
        for name, content in (self.files | {"../outside/secret.safetensors": GOOD_FILE}).items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return place


class Canary:
    """Unpickled, it makes the folder that betrays it."""

    def __init__(self, id: str) -> None:
        self.id = id

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (f"HOSTILE_CANARY_{self.id}",)


def cases() -> tuple[Case, ...]:
    return (*_controls(), *_containers(), *_tensors(), *_configs(), *_shards(), *_pickles())


def _weights(id: str, what: str, expect: str, weights: bytes) -> Case:
    return Case(id, what, expect, {"config.json": config(), WEIGHTS: weights})


def _controls() -> Iterator[Case]:
    halves = {name: tensor.astype("<f2") for name, tensor in GOOD.items()}
    prefixed = {f"transformer.{name}": tensor for name, tensor in GOOD.items()}
    mask = np.tril(np.ones((1, 1, 192, 192), "<f4"))
    masked = {"h.0.attn.bias": mask, "h.0.attn.masked_bias": np.array(-1e4, "<f4")}
    yield _weights("ok_plain", "a tiny GPT-2", "ok", GOOD_FILE)
    yield _weights("ok_f16", "all tensors F16", "ok", safetensors(halves))
    yield _weights("ok_prefix", "every name begins with transformer.", "ok", safetensors(prefixed))
    yield _weights(
        "ok_attn_bias", "causal masks, as in old files", "ok", safetensors(GOOD | masked)
    )
    yield _sharded("ok_sharded", "two shards and an index", "ok")


def _containers() -> Iterator[Case]:
    def one(old: str = "", new: str = "") -> bytes:
        text = '{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
        return text.replace(old, new).encode()

    yield _weights("A_empty", "0 bytes", "file_empty", b"")
    yield _weights(
        "A_hdrlen_past_end",
        "a header longer than the file",
        "st_truncated",
        safetensors(GOOD, length=1_000_000),
    )
    yield _weights(
        "A_hdrlen_u64max", "header length 2^64 - 1", "st_length", raw(b"{}", length=2**64 - 1)
    )
    for id, what, expect, head in (
        ("A_hdr_not_utf8", "byte 0xFF in the header", "json_not_text", b'{"a\xff":{}}'),
        ("A_hdr_list", "the header is a list", "json_not_table", b"[]"),
        ("A_hdr_trailing_comma", "a comma too many", "json_damaged", one()[:-1] + b",}"),
        ("A_deep", "200,000 opening brackets", "json_deep", b'{"a":' + b"[" * 200_000),
        ("A_neg_offset", "offsets [-16, 0]", "st_offsets", one("0,16", "-16,0")),
        ("A_huge_offset", "offsets [0, 2^63]", "st_size", one("0,16", f"0,{2**63}")),
        ("A_shape_overflow", "a product over 2^64", "st_shape", one("2,2", f"{2**62},8")),
        ("A_shape_negative", "shape [-2, -2]", "st_shape", one("2,2", "-2,-2")),
    ):  # fmt: skip
        yield _weights(id, what, expect, raw(head))
    yield _weights(
        "A_no_tensors", "an empty header and no data", "weights_foreign", raw(b"{}", b"")
    )
    yield from _bent_headers()
    yield _weights(
        "A_trunc_half",
        "the second half is missing",
        "st_truncated",
        GOOD_FILE[: len(GOOD_FILE) // 2],
    )
    yield _weights(
        "A_polyglot_zip",
        "a zip archive after the data",
        "st_trailing",
        safetensors(GOOD, tail=_zip("x")),
    )
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:248d\nsize 548105171\n"
    yield _weights("A_lfs_pointer", "a Git LFS pointer", "file_is_lfs_pointer", pointer)
    yield _weights("A_gguf", "a GGUF file", "file_is_gguf", b"GGUF\x03" + b"\xff" * 83)
    named = safetensors(GOOD | {"../../evil": np.ones(2, "<f4")})
    yield _weights("A_name_path", "an extra tensor named ../../evil", "note_unused", named)


def _bent_headers() -> Iterator[Case]:
    def bent(id: str, what: str, expect: str, name: str, **changes: object) -> Case:
        fields = header(GOOD)
        fields[name] = fields[name] | changes
        return _weights(id, what, expect, safetensors(GOOD, fields=fields))

    first = '{"wpe.weight":{"dtype":"F32","shape":[1,4],"data_offsets":[0,16]},'
    twice = safetensors(GOOD, text=first + json.dumps(header(GOOD))[1:])
    yield _weights("A_dup_name", "wpe.weight listed twice", "json_twice", twice)
    same = {f"w{i}": header({"w": np.zeros((200, 200), "<f4")})["w"] for i in range(4_000)}
    bomb = raw(json.dumps(same).encode(), bytes(160_000))
    yield _weights("A_overlap_bomb", "640 MB of tensors on 160 kB", "st_overlap", bomb)
    fields = header(GOOD)
    for name in list(fields)[1:]:
        start, end = fields[name]["data_offsets"]
        fields[name]["data_offsets"] = [start + 64, end + 64]
    hole = safetensors(GOOD, fields=fields, tail=bytes(64))
    yield _weights("A_hole", "64 bytes that belong to no tensor", "st_hole", hole)
    yield bent("A_shape_bytes2", "8 numbers in 16 bytes", "st_size", "ln_f.bias", shape=[2, 2, 2])
    yield bent("A_dtype_unknown", "number type F7", "st_dtype", "wpe.weight", dtype="F7")
    notes = {"__metadata__": {"step": 1}} | header(GOOD)
    yield _weights(
        "A_meta_int", "a note that is a number", "st_metadata", safetensors(GOOD, fields=notes)
    )


def _tensors() -> Iterator[Case]:
    def swapped(name: str, tensor: NDArray[Any]) -> bytes:
        return safetensors(GOOD | {name: tensor})

    def rows(n: int) -> NDArray[np.float32]:
        return pattern(n, WIDTH)

    def spoilt(name: str, at: int, value: float) -> bytes:
        tensor = GOOD[name].copy()
        tensor.flat[at] = value
        return swapped(name, tensor)

    fc, attn = "h.0.mlp.c_fc", "h.0.attn.c_attn.weight"
    lacking = {name: tensor for name, tensor in GOOD.items() if name != f"{fc}.bias"}
    mixed = {("transformer." * (i % 2)) + name: t for i, (name, t) in enumerate(GOOD.items())}
    llama = {
        "model.embed_tokens.weight": pattern(V, WIDTH, salt=1),
        "lm_head.weight": pattern(8, 4),
    }
    halves = {name: tensor.astype("<f2") for name, tensor in GOOD.items()}
    head = {"lm_head.weight": pattern(V, WIDTH, salt=123).astype("<f2")}
    one, whole = np.array(0.5, "<f4"), np.zeros((V, WIDTH), "|i1")
    zeros = {name: np.zeros_like(tensor) for name, tensor in GOOD.items()}
    for id, what, expect, weights in (
        ("B_missing_fc_bias", "a bias is missing", "weights_tensor", safetensors(lacking)),
        ("B_linear_layout", "stored (out, in)", "weights_transposed", swapped(attn, GOOD[attn].T)),
        ("B_wte_rows", "50,000 token rows", "weights_shape", swapped("wte.weight", rows(50_000))),
        ("B_wpe_rows", "512 position rows", "weights_shape", swapped("wpe.weight", rows(512))),
        ("B_bias_scalar", "a bias of one number", "weights_shape", swapped(f"{fc}.bias", one)),
        ("B_nan", "one NaN", "weights_not_finite", spoilt(f"{fc}.weight", 5, np.nan)),
        ("B_inf", "one infinity", "weights_not_finite", spoilt("wte.weight", 77, np.inf)),
        ("B_zero", "all weights 0: every token ties", "ok", safetensors(zeros)),
        ("B_i8", "whole numbers", "weights_dtype", swapped("wte.weight", whole)),
        ("B_mixed_prefix", "half of the names prefixed", "weights_prefix", safetensors(mixed)),
        ("B_llama_names", "a Llama", "weights_foreign", safetensors(llama)),
        ("B_untied_head", "an output matrix of its own", "note_head", safetensors(halves | head)),
        ("B_more_layers", "3 layers for 1", "weights_layers", safetensors(tensors(n_layer=3))),
    ):  # fmt: skip
        yield _weights(id, what, expect, weights)


def _configs() -> Iterator[Case]:
    twice = config().replace(b'"n_head": 2', b'"n_head": 2, "n_head": 4')
    markup = '<img src="file:///etc/passwd"><b>' + "x" * 100_000
    scaled = {"scale_attn_by_inverse_layer_idx": True}
    code = {"AutoModelForCausalLM": "evil.Evil", "AutoConfig": "evil.Evil"}
    for id, what, expect, written in (
        ("C_badjson", "cut in the middle", "json_damaged", config()[:120]),
        ("C_bom", "a byte-order mark in front", "ok", b"\xef\xbb\xbf" + config()),
        ("C_no_n_head", "n_head is missing", "config_key", config(n_head=None)),
        ("C_head_no_divide", "3 heads in 4 numbers", "config_heads", config(n_head=3)),
        ("C_head_string", 'n_head "2"', "config_count", config(n_head="2")),
        ("C_head_wrong_ok", "1 head, not 2: the shapes fit", "note_heads", config(n_head=1)),
        ("C_layer_huge", "10^9 layers", "weights_layers", config(n_layer=10**9)),
        ("C_ctx_huge", "10^12 positions", "weights_shape", config(n_positions=10**12)),
        ("C_vocab_50304", "a padded vocabulary", "weights_shape", config(vocab_size=50_304)),
        ("C_type_llama", "a Llama by its own word", "config_type", config(model_type="llama")),
        ("C_act_relu", "another activation", "config_option", config(activation_function="relu")),
        ("C_eps_string", 'epsilon "1e-5"', "config_epsilon", config(layer_norm_epsilon="1e-5")),
        ("C_inverse_layer", "another attention scale", "config_option", config(**scaled)),
        ("C_eos_range", "an end token of its own", "note_end_of_text", config(eos_token_id=10**8)),
        ("C_dup_keys", "n_head twice", "json_twice", twice),
        ("C_html_name", "markup for a name", "ok", config(_name_or_path=markup)),
    ):  # fmt: skip
        yield Case(id, what, expect, {"config.json": written, WEIGHTS: GOOD_FILE})
    yield Case("C_missing", "no config.json", "config_missing", {WEIGHTS: GOOD_FILE})
    small = {"config.json": config(vocab_size=1_000), WEIGHTS: safetensors(tensors(n_vocab=1_000))}
    yield Case("C_vocab_small", "another tokenizer's 1,000 tokens", "vocab_mismatch", small)
    evil = b"import os\nos.mkdir('HOSTILE_CANARY_C_auto_map')\nclass Evil:\n    pass\n"
    files = {"config.json": config(auto_map=code), WEIGHTS: GOOD_FILE, "evil.py": evil}
    yield Case("C_auto_map", "code beside the weights", "note_code", files)


def _shards() -> Iterator[Case]:
    for id, shard in (
        ("D_dotdot", "../outside/secret.safetensors"),
        ("D_absolute", "/etc/passwd"),
        ("D_backslash", "..\\outside\\secret.safetensors"),
    ):
        yield _sharded(id, f"a shard at {shard}", "index_path", where={"wpe.weight": shard})
    yield _sharded("D_missing_shard", "one shard is not there", "file_missing", present=SHARDS[:1])
    yield _sharded(
        "D_wrong_shard",
        "a tensor in the other shard",
        "index_tensor",
        where={"ln_f.bias": SHARDS[0]},
    )
    yield _sharded("D_wm_number", "a number for a shard", "index_map", where={"wpe.weight": 5})
    yield _sharded(
        "D_bin_shard", "a pickle for a shard", "weights_pickle", where={"wpe.weight": "model.bin"}
    )


def _sharded(
    id: str,
    what: str,
    expect: str,
    *,
    where: dict[str, object] | None = None,
    present: tuple[str, ...] = SHARDS,
) -> Case:
    weight_map: dict[str, Any] = {name: SHARDS[name != "wte.weight"] for name in GOOD}
    halves = {SHARDS[0]: {}, SHARDS[1]: {}}
    for name, shard in weight_map.items():
        halves[shard][name] = GOOD[name]
    files = {shard: safetensors(halves[shard]) for shard in present}
    index = {"metadata": {"total_size": 821_000}, "weight_map": weight_map | (where or {})}
    files |= {"config.json": config(), INDEX: json.dumps(index).encode()}
    return Case(id, what, expect, files)


def _pickles() -> Iterator[Case]:
    def payload(id: str) -> bytes:
        return pickle.dumps(Canary(id), 2)

    archive = _zip(payload("E_bin_only"))
    alone = {"config.json": config(), "pytorch_model.bin": archive}
    yield Case("E_bin_only", "only a pickle", "weights_pickle", alone)
    yield _weights(
        "E_pickle_as_st", "a pickle under another name", "file_is_pickle", payload("E_pickle_as_st")
    )
    beside = ("training_args.bin", "optimizer.pt", "vocab.pkl", "pytorch_model.bin")
    files = {name: payload("E_extra_pickles") for name in beside}
    files |= {"config.json": config(), WEIGHTS: GOOD_FILE}
    yield Case("E_extra_pickles", "pickles beside good weights", "ok", files)


def _zip(content: str | bytes) -> bytes:
    """An archive such as torch.save writes, the same bytes every time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("archive/data.pkl", (1980, 1, 1, 0, 0, 0)), content)
    return file.getvalue()
