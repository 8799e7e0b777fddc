"""A model's tensors and what is known of them, as those who pack them ask for them."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.events import Dimensions, Model
from engine.model_folder import HEAD

Array = NDArray[np.generic]
Tensors = Generator[tuple[str, Array], None, None]


@dataclass(frozen=True, slots=True)
class Config:
    """What the arithmetic needs to know beside the tensors."""

    dimensions: Dimensions
    layer_norm_epsilon: float


class Source(Protocol):
    """A model to be packed: what is known of it beforehand, and its tensors one by one.

    Names are GPT-2's without "transformer."; matrices lie (in, out).
    """

    @property
    def config(self) -> Config:
        """What the arithmetic needs to know."""

    @property
    def dtypes(self) -> Mapping[str, str]:
        """Of each tensor: "F32", "F16" or "BF16", which comes as uint16."""

    def rows(self, name: str, n_rows: int | None = None) -> Array:
        """A tensor's first rows, or all of it, ahead of the stream."""

    def stream(self) -> Tensors:
        """Each tensor once, by name, not to be changed.

        An output matrix that differs from the token embedding comes before it; one that repeats
        it does not come.
        """


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model read from disk, complete and checked.

    `lm_head.weight` is there only if the output matrix differs from the token embedding.
    """

    model: Model
    config: Config
    tensors: Mapping[str, Array]  # as stored: float32, float16, or uint16 holding bfloat16
    dtypes: Mapping[str, str]  # "F32", "F16" or "BF16"
    sha256: str  # of model.safetensors; of the shards' digests (32 bytes each, by name) if split
    notes: tuple[str, ...]  # sentences: what was left out, what could not be checked

    def rows(self, name: str, n_rows: int | None = None) -> Array:
        """As in `Source`."""
        return self.tensors[name][:n_rows]

    def stream(self) -> Tensors:
        """As in `Source`."""
        yield from sorted(self.tensors.items(), key=lambda item: item[0] != HEAD)


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
