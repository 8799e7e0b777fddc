"""Read a GPT-2 folder strictly, tensor by tensor: all of them there, of the right shape, finite."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import numpy as np

from engine.checkpoint import Array, Checkpoint, Config, Tensors, float32
from engine.config import Settings, read_config
from engine.errors import EngineError, sentence
from engine.events import Dimensions, Model
from engine.model_folder import EMBEDDING, HEAD, Stored, WeightFiles, open_weights
from engine.models import known
from engine.tokenizer import N_VOCAB
from engine.untrusted import shown

BLOCK = 2**18  # numbers looked at together: they stay in the processor's cache

# The bits of a float's exponent: all set means infinite or not a number.
EXPONENTS: dict[str, np.uint32 | np.uint16] = {
    "F32": np.uint32(0x7F80_0000),
    "F16": np.uint16(0x7C00),
    "BF16": np.uint16(0x7F80),
}


class Opened:
    """A model folder whose headers are checked and whose tensors are still to come.

    Attributes:
        config, dtypes: as in `Source`; an output matrix counts here even if it repeats the
            embedding, as only its numbers can tell.
        model, sha256, notes: as in `Checkpoint`, known when the stream has come to its end. What
            was read before that is of no use to anybody: the next tensor may be broken.
    """

    model: Model
    sha256: str
    notes: tuple[str, ...]

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        """Check what can be told without any number; `stack` closes the files."""
        self._folder = folder
        self._settings = settings = read_config(folder)
        self._files = open_weights(folder, stack)
        self._wanted = _wanted(self._files, settings)
        _check_shapes(self._wanted, settings.dimensions)
        self.config = Config(settings.dimensions, settings.layer_norm_epsilon)
        self.dtypes: Mapping[str, str] = MappingProxyType(
            {name: stored.entry.dtype for name, stored in self._wanted.items()}
        )

    def rows(self, name: str, n_rows: int | None = None) -> Array:
        """As in `Source`; checked as in the stream, where they come once more."""
        stored = self._wanted[name]
        found = stored.file.peek(stored.name, n_rows)
        _check_finite(found, stored)
        return found

    def stream(self) -> Tensors:
        """As in `Source`: every tensor is read, hashed and checked, and then forgotten here."""
        differs = False
        pair: dict[str, Array] = {}  # output matrix and embedding wait for each other
        for name, array in self._read():
            _check_finite(array, self._wanted[name])
            if HEAD in self._wanted and name in (HEAD, EMBEDDING):
                pair[name] = array
            else:
                yield name, array
            del array  # or it would lie beside the next one
            if len(pair) == 2:
                differs = not self._equal(pair)
                head = pair.pop(HEAD)
                if differs:
                    yield HEAD, head
                del head
                yield EMBEDDING, pair.pop(EMBEDDING)
        if differs and self._settings.tied:
            raise EngineError("weights_head", file=self._wanted[HEAD].file.name)
        self._settle(differs)

    def _read(self) -> Tensors:
        """The wanted tensors in the order of the files, whose digests then are known."""
        for file in self._files.files:
            names = {s.name: name for name, s in self._wanted.items() if s.file is file}
            for stored_name, array in file.stream(names):
                yield names[stored_name], array
                del array

    def _equal(self, pair: Mapping[str, Array]) -> bool:
        head, embedding = (float32(pair[name], self.dtypes[name]) for name in (HEAD, EMBEDDING))
        return np.array_equal(head, embedding)

    def _settle(self, differs: bool) -> None:
        """Tell which model it was, now that every byte of it is known."""
        digests = [file.sha256 for file in self._files.files]
        if self._files.split:
            self.sha256 = hashlib.sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()
        else:
            self.sha256 = digests[0]
        self.model = _identify(self._folder, self._settings, self.sha256)
        notes = list(self._settings.notes)
        if n_unused := self._files.n_unused(set(self._wanted)):
            notes.append(sentence("note_unused", {"count": n_unused}))
        if differs:
            notes.append(sentence("note_head", {}))
        if not self.model.verified:
            notes.append(sentence("note_heads", {"n_head": self.config.dimensions.n_head}))
        self.notes = tuple(notes)


@contextmanager
def opened(folder: str | Path) -> Iterator[Opened]:
    """Open a folder as Hugging Face stores GPT-2: config.json beside model.safetensors or shards.

    Nothing is allocated by a number that only config.json states; nothing in the folder is run.

    Raises:
        EngineError: a kind that begins with "model_", "config_", "weights_", "index_", "st_",
            "file_" or "json_"; its sentence names the file, what was found, and what to do. Here
            or, if the numbers are at fault, from the stream.
    """
    folder = Path(folder)
    if not os.path.isdir(folder):
        raise EngineError("model_not_folder", folder=shown(folder, limit=200))
    with ExitStack() as stack:
        yield Opened(folder, stack)


def read(folder: str | Path) -> Checkpoint:
    """Read a whole folder into memory; see `opened`."""
    with opened(folder) as source:
        found = dict(source.stream())
    tensors = {name: found[name] for name in source.dtypes if name in found}
    return Checkpoint(
        model=source.model,
        config=source.config,
        tensors=MappingProxyType(tensors),
        dtypes=MappingProxyType({name: source.dtypes[name] for name in tensors}),
        sha256=source.sha256,
        notes=source.notes,
    )


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
