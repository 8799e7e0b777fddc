"""Read a GPT-2 folder strictly into numpy: every tensor there, of the right shape, finite."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from engine.config import Settings, read_config
from engine.errors import EngineError, sentence
from engine.events import Dimensions, Model
from engine.model_folder import HEAD, Stored, WeightFiles, open_weights
from engine.models import known
from engine.tokenizer import N_VOCAB
from engine.untrusted import shown

Array = NDArray[np.generic]

BLOCK = 2**18  # numbers looked at together: they stay in the processor's cache

# The bits of a float's exponent: all set means infinite or not a number.
EXPONENTS: dict[str, np.uint32 | np.uint16] = {
    "F32": np.uint32(0x7F80_0000),
    "F16": np.uint16(0x7C00),
    "BF16": np.uint16(0x7F80),
}


@dataclass(frozen=True, slots=True)
class Config:
    """What the arithmetic needs to know beside the tensors."""

    dimensions: Dimensions
    layer_norm_epsilon: float
    title: str  # for people: from models.toml if the model is known, else the folder's name


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model read from disk, complete and checked.

    Tensor names are GPT-2's without "transformer."; matrices lie (in, out). `lm_head.weight` is
    there only if the output matrix differs from the token embedding.
    """

    model: Model
    config: Config
    tensors: Mapping[str, Array]  # as stored: float32, float16, or uint16 holding bfloat16
    dtypes: Mapping[str, str]  # "F32", "F16" or "BF16"
    sha256: str  # of model.safetensors; of the shards' digests (32 bytes each, by name) if split
    notes: tuple[str, ...]  # sentences: what was left out, what could not be checked


def read(folder: str | Path) -> Checkpoint:
    """Read a folder as Hugging Face stores GPT-2: config.json beside model.safetensors or shards.

    Nothing is allocated by a number that only config.json states; nothing in the folder is run.

    Raises:
        EngineError: a kind that begins with "model_", "config_", "weights_", "index_", "st_",
            "file_" or "json_"; its sentence names the file, what was found, and what to do.
    """
    folder = Path(folder)
    if not os.path.isdir(folder):
        raise EngineError("model_not_folder", folder=shown(folder, limit=200))
    settings = read_config(folder)
    notes = list(settings.notes)
    with ExitStack() as stack:
        files = open_weights(folder, stack)
        wanted = _wanted(files, settings)
        _check_shapes(wanted, settings.dimensions)
        tensors, digest = _read_files(files, wanted)
        if n_unused := files.n_unused(set(wanted)):
            notes.append(sentence("note_unused", {"count": n_unused}))
    for name, tensor in tensors.items():
        _check_finite(tensor, wanted[name])
    notes += _settle_head(tensors, wanted, settings)
    model = _identify(folder, settings, digest)
    if not model.verified:
        notes.append(sentence("note_heads", {"n_head": settings.dimensions.n_head}))
    return Checkpoint(
        model=model,
        config=Config(settings.dimensions, settings.layer_norm_epsilon, model.title),
        tensors=MappingProxyType(tensors),
        dtypes=MappingProxyType({name: wanted[name].entry.dtype for name in tensors}),
        sha256=digest,
        notes=tuple(notes),
    )


def float32(array: Array, dtype: str) -> NDArray[np.float32]:
    """Widen a stored tensor; every float16 and bfloat16 is exactly a float32.

    Args:
        array: as in `Checkpoint.tensors`; a float32 array is returned as it is, not copied.
        dtype: its "F32", "F16" or "BF16".

    >>> float32(np.array([0x3F80, 0xC000], np.uint16), "BF16").tolist()
    [1.0, -2.0]
    """
    if dtype == "BF16":  # bfloat16 is the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32, copy=False)


def _wanted(files: WeightFiles, settings: Settings) -> dict[str, Stored]:
    """The tensors to read: all that GPT-2 has, and the output matrix if it is there or must be."""
    size = settings.dimensions
    if files.n_layer != size.n_layer:  # before anything is made n_layer times
        raise EngineError(
            "weights_layers", file=files.source, found=files.n_layer, expected=size.n_layer
        )
    names = list(_shapes(size))
    if settings.tied is not False and HEAD not in files.tensors:
        names.remove(HEAD)
    missing = [name for name in names if name not in files.tensors]
    if missing:
        raise EngineError(
            "weights_tensor", file=files.source, tensor=missing[0], count=len(missing)
        )
    return {name: files.tensors[name] for name in names}


def _shapes(size: Dimensions) -> dict[str, tuple[int, ...]]:
    """GPT-2's tensors; a matrix is (in, out)."""
    c = size.n_embd
    layer = {
        "ln_1.weight": (c,), "ln_1.bias": (c,),
        "attn.c_attn.weight": (c, 3 * c), "attn.c_attn.bias": (3 * c,),
        "attn.c_proj.weight": (c, c), "attn.c_proj.bias": (c,),
        "ln_2.weight": (c,), "ln_2.bias": (c,),
        "mlp.c_fc.weight": (c, 4 * c), "mlp.c_fc.bias": (4 * c,),
        "mlp.c_proj.weight": (4 * c, c), "mlp.c_proj.bias": (c,),
    }  # fmt: skip
    return {
        "wte.weight": (size.n_vocab, c),
        "wpe.weight": (size.n_positions, c),
        **{f"h.{n}.{name}": shape for n in range(size.n_layer) for name, shape in layer.items()},
        "ln_f.weight": (c,),
        "ln_f.bias": (c,),
        HEAD: (size.n_vocab, c),
    }


def _check_shapes(wanted: dict[str, Stored], size: Dimensions) -> None:
    shapes = _shapes(size)
    for name, stored in wanted.items():
        facts = {"file": stored.file.name, "tensor": name}
        if stored.entry.dtype not in EXPONENTS:
            raise EngineError("weights_dtype", **facts, found=stored.entry.dtype)
        found, expected = stored.entry.shape, shapes[name]
        if found != expected:
            turned = len(found) == 2 and found == expected[::-1]
            kind = "weights_transposed" if turned else "weights_shape"
            raise EngineError(kind, **facts, found=_shape(found), expected=_shape(expected))
    if size.n_vocab != N_VOCAB:
        raise EngineError("vocab_mismatch", found=size.n_vocab, expected=N_VOCAB)


def _shape(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(f"{n:,}" for n in shape) + "]"


def _read_files(files: WeightFiles, wanted: dict[str, Stored]) -> tuple[dict[str, Array], str]:
    """The wanted arrays in GPT-2's order, and the digest of the bytes they came from."""
    arrays: dict[tuple[str, str], Array] = {}
    digests = []
    for file in files.files:
        names = {stored.name for stored in wanted.values() if stored.file is file}
        found, digest = file.read(names)
        arrays |= {(file.name, name): array for name, array in found.items()}
        digests.append(digest)
    tensors = {name: arrays[s.file.name, s.name] for name, s in wanted.items()}
    if files.split:
        return tensors, hashlib.sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()
    return tensors, digests[0]


def _check_finite(tensor: Array, stored: Stored) -> None:
    exponent = EXPONENTS[stored.entry.dtype]
    bits = tensor.reshape(-1).view(exponent.dtype)  # (numbers,)
    for start in range(0, bits.size, BLOCK):
        if (bits[start : start + BLOCK] & exponent).max() == exponent:
            at = start + int((bits[start : start + BLOCK] & exponent).argmax())
            value = float32(tensor.reshape(-1)[at : at + 1], stored.entry.dtype)
            raise EngineError(
                "weights_not_finite",
                file=stored.file.name,
                tensor=shown(stored.name),
                found=str(value[0]),
                at=_shape(tuple(int(i) for i in np.unravel_index(at, tensor.shape))),
            )


def _settle_head(
    tensors: dict[str, Array], wanted: dict[str, Stored], settings: Settings
) -> list[str]:
    """Drop an output matrix that repeats the token embedding; note one that differs."""
    if HEAD not in tensors:
        return []
    head, embedding = (
        float32(tensors[name], wanted[name].entry.dtype) for name in (HEAD, "wte.weight")
    )
    if np.array_equal(head, embedding):
        del tensors[HEAD]
        return []
    if settings.tied:
        raise EngineError("weights_head", file=wanted[HEAD].file.name)
    return [sentence("note_head", {})]


def _identify(folder: Path, settings: Settings, sha256: str) -> Model:
    """Which known model these bytes are, or what the folder calls itself."""
    size = settings.dimensions
    for model in known():
        if model.sha256 == sha256:
            if (model.dimensions, model.layer_norm_epsilon) != (size, settings.layer_norm_epsilon):
                raise EngineError("config_contradicts", title=model.title, name=model.name)
            return Model(model.name, model.title, size, verified=True)
    name = _folder_name(folder)
    for model in known():
        if model.name == name and model.dimensions == size:
            return Model(name, model.title, size, verified=False)
    return Model(name, name, size, verified=False)


def _folder_name(folder: Path) -> str:
    """The folder's own name; in a Hugging Face cache, where that is a hash, the repository's."""
    folder = Path(os.path.abspath(folder))
    if folder.parent.name == "snapshots":
        return shown(folder.parent.parent.name.split("--")[-1])
    return shown(folder.name or folder)
