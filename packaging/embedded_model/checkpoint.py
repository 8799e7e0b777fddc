"""A run on disk: every number to go on from, in one file that is written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from embedded_model.refusal import Refusal
from embedded_model.settings import Settings, settled

NAME = "checkpoint.safetensors"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a run stands."""

    settings: Settings
    step: int  # steps taken
    read_before: int  # tokens that the weights it began with had read; 0: they were random
    arithmetic: str  # "float32" or "bfloat16"
    n_threads: int
    digest: str  # of the streams it reads
    losses: tuple[float, ...]  # of the steps since the last line of the log
    log: tuple[dict[str, Any], ...]  # what was measured, a line each
    weights: Mapping[str, Tensor]  # by the network's names
    optimizer: Mapping[str, Tensor]


def write(checkpoint: Checkpoint, folder: Path) -> None:
    """Write `NAME` into a folder: a power cut leaves the old file or the new one."""
    tensors = {f"weights.{name}": t for name, t in checkpoint.weights.items()}
    tensors |= {f"optimizer.{name}": t for name, t in checkpoint.optimizer.items()}
    about = {
        "format": FORMAT,
        "settings": checkpoint.settings.plain(),
        "step": checkpoint.step,
        "read_before": checkpoint.read_before,
        "arithmetic": checkpoint.arithmetic,
        "n_threads": checkpoint.n_threads,
        "digest": checkpoint.digest,
        "losses": checkpoint.losses,
        "log": checkpoint.log,
    }
    unfinished = folder / f"{NAME}.part"
    with unfinished.open("wb") as file:
        file.write(
            save({n: t.contiguous() for n, t in tensors.items()}, {"run": json.dumps(about)})
        )
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, folder / NAME)


def read(folder: Path) -> Checkpoint:
    """Read what `write` wrote.

    Raises:
        Refusal: there is none in this folder, or it is damaged.
    """
    path = folder / NAME
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise Refusal(f"There is no {NAME} to go on from in this folder: {folder}.") from error
    try:
        tensors = load(raw)
        about = json.loads(_metadata(raw)["run"])
        if about["format"] != FORMAT:
            raise Refusal(f"{NAME} is of format {about['format']}; this program reads {FORMAT}.")
        return Checkpoint(
            settings=settled(about["settings"], source=NAME),
            step=int(about["step"]),
            read_before=int(about["read_before"]),
            arithmetic=str(about["arithmetic"]),
            n_threads=int(about["n_threads"]),
            digest=str(about["digest"]),
            losses=tuple(about["losses"]),
            log=tuple(about["log"]),
            weights=_part(tensors, "weights."),
            optimizer=_part(tensors, "optimizer."),
        )
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise Refusal(
            f"{NAME} is damaged ({type(error).__name__}); it lies in {folder}."
        ) from error


def _metadata(raw: bytes) -> dict[str, str]:
    """What stands beside the tensors in the header of a safetensors file."""
    length = int.from_bytes(raw[:8], "little")
    found: dict[str, str] = json.loads(raw[8 : 8 + length])["__metadata__"]
    return found


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
