"""The weight files of a model folder, open, and GPT-2's tensors in them by their plain names."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError
from engine.safetensors_file import Entry, SafetensorsFile
from engine.untrusted import read_table, shown, unreadable

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
HEAD, EMBEDDING, PREFIX = "lm_head.weight", "wte.weight", "transformer."
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
MAX_DIGITS = 6  # of a layer's number; more are no layer

_SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.safetensors")
_LAYER = re.compile(rf"h\.(0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})\..+")
_OUTSIDE_LAYERS = {"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"}
_MASK = re.compile(r"h\.[0-9]+\.attn\.(masked_)?bias")  # the causal mask, stored by old versions


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor in one open file, under the name it has there."""

    file: SafetensorsFile
    name: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """The open files and what they hold."""

    source: str  # the file to blame for what is missing: the weights or the index
    files: tuple[SafetensorsFile, ...]  # by name
    tensors: dict[str, Stored]  # by GPT-2's name, without "transformer."

    @property
    def split(self) -> bool:
        """Whether the weights are shards with an index."""
        return self.source == INDEX

    @property
    def n_layer(self) -> int:
        """How many layers have at least one tensor."""
        return len({match[1] for name in self.tensors if (match := _LAYER.fullmatch(name))})

    def n_unused(self, wanted: set[str]) -> int:
        """How many stored tensors are not wanted, causal masks apart."""
        n_stored = sum(len(file.entries) for file in self.files)
        n_masks = sum(1 for name in self.tensors if _MASK.fullmatch(name))
        return n_stored - n_masks - len(wanted)


def open_weights(folder: Path, stack: ExitStack) -> WeightFiles:
    """Open and check the weight files of a folder; `stack` closes them.

    Raises:
        EngineError: kind "weights_missing", "weights_pickle", "weights_foreign",
            "weights_prefix", "index_map", "index_path", "index_tensor", or one of
            `safetensors_file` and `untrusted`.
    """
    if os.path.exists(folder / WEIGHTS):
        file = stack.enter_context(SafetensorsFile(folder / WEIGHTS))
        stored = {name: Stored(file, name, entry) for name, entry in file.entries.items()}
        return WeightFiles(WEIGHTS, (file,), _plain(stored, WEIGHTS))
    if os.path.exists(folder / INDEX):
        return _open_shards(folder, stack)
    try:
        pickles = sorted(name for name in os.listdir(folder) if name.endswith(PICKLES))
    except OSError as error:
        raise unreadable(folder.name, error) from error
    if pickles:
        raise EngineError("weights_pickle", file=shown(pickles[0]))
    raise EngineError("weights_missing", folder=shown(folder, limit=200))


def _open_shards(folder: Path, stack: ExitStack) -> WeightFiles:
    weight_map = _weight_map(folder)
    files = {
        name: stack.enter_context(SafetensorsFile(folder / name))
        for name in sorted(set(weight_map.values()))
    }
    stored = {}
    for name, shard in weight_map.items():
        entry = files[shard].entries.get(name)
        if entry is None:
            raise EngineError("index_tensor", tensor=shown(name), file=shown(shard))
        stored[name] = Stored(files[shard], name, entry)
    return WeightFiles(INDEX, tuple(files.values()), _plain(stored, INDEX))


def _weight_map(folder: Path) -> dict[str, str]:
    """Which shard holds which tensor; every shard a plain name, so that none lies elsewhere."""
    found = read_table(folder / INDEX).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise EngineError("index_map", file=INDEX)
    weight_map = {}
    for tensor, shard in found.items():
        if not isinstance(shard, str):
            raise EngineError("index_map", file=INDEX)
        if shard.endswith(PICKLES):
            raise EngineError("weights_pickle", file=shown(shard))
        if not _SHARD.fullmatch(shard):
            raise EngineError("index_path", file=INDEX, found=shown(shard))
        weight_map[tensor] = shard
    return weight_map


def _plain(stored: dict[str, Stored], source: str) -> dict[str, Stored]:
    """The tensors by GPT-2's names: all of them have "transformer." in front, or none has."""
    bare = [name for name in stored if name in _OUTSIDE_LAYERS or _LAYER.fullmatch(name)]
    prefixed = [name for name in stored if name.startswith(PREFIX)]
    if bare and prefixed:
        raise EngineError(
            "weights_prefix", file=source, bare=shown(bare[0]), prefixed=shown(prefixed[0])
        )
    if not bare and not prefixed:
        raise EngineError(
            "weights_foreign", file=source, found=shown(next(iter(stored), "nothing"))
        )
    plain = {name.removeprefix(PREFIX): stored[name] for name in bare or prefixed}
    plain.pop(HEAD, None)  # the output matrix stands outside the transformer, without the prefix
    return plain | ({HEAD: stored[HEAD]} if HEAD in stored else {})
