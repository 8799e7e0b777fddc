"""The models we know by name, read from resources/models.toml, and where they lie on this disk."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine import resources
from engine.errors import EngineError
from engine.events import Dimensions
from engine.untrusted import shown

EMBEDDED = "embedded"  # the name of whichever model travels with the program


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One entry of models.toml."""

    name: str  # what --model takes
    title: str
    description: str
    licence: str
    dimensions: Dimensions
    layer_norm_epsilon: float = 1e-5  # OpenAI's, and ours
    embedded: bool = False  # it travels with the program
    size: int | None = None  # bytes of model.safetensors
    sha256: str | None = None  # of model.safetensors; None: such a folder is never "verified"
    repository: str | None = None  # on Hugging Face
    revision: str | None = None  # the commit there that size and sha256 belong to


@cache
def known() -> tuple[KnownModel, ...]:
    """Every model of models.toml, the embedded one first.

    >>> [model.name for model in known()]
    ['decodescope-6x8', 'gpt2', 'gpt2-medium', 'gpt2-large', 'gpt2-xl']
    """
    with resources.path("models.toml").open("rb") as file:
        return tuple(
            KnownModel(name=name, dimensions=Dimensions(**entry.pop("dimensions")), **entry)
            for name, entry in tomllib.load(file).items()
        )


def find(name_or_folder: str) -> Path:
    """The folder of a model; what is in it is for `weights.read` to judge.

    Args:
        name_or_folder: "embedded", a name of `known`, or any other path as it is. A known name
            wins over a folder of that name here: write ./gpt2 for the folder.

    Raises:
        EngineError: kind "model_not_found", with the places that were searched.

    >>> find("embedded").name
    'decodescope-6x8'
    """
    model = next((m for m in known() if _answers_to(m, name_or_folder)), None)
    places = list(_places(model)) if model else [Path(name_or_folder)]
    for place in places:
        if name_or_folder and os.path.exists(place):  # a path too long or odd is no folder either
            return place
    raise EngineError(
        "model_not_found",
        name=shown(name_or_folder),
        known=", ".join(m.name for m in known()),
        looked=", ".join(shown(os.path.abspath(place), limit=200) for place in places),
    )


def _answers_to(model: KnownModel, name: str) -> bool:
    return name == model.name or (model.embedded and name == EMBEDDED)


def _places(model: KnownModel) -> Iterator[Path]:
    """Where a known model may lie, best first."""
    if model.embedded:
        yield resources.path("models", model.name)
        return
    if folder := os.environ.get("DECODESCOPE_MODELS"):
        yield Path(folder) / model.name
    yield _user_data() / "decodescope" / "models" / model.name
    if model.repository:
        # old versions of the hub's library stored openai-community/gpt2 as plain gpt2
        for repository in (model.repository, model.name):
            stored = _hub() / f"models--{repository.replace('/', '--')}"
            yield from _snapshots(stored, model.revision)


def _snapshots(stored: Path, revision: str | None) -> Iterator[Path]:
    """Checkouts in a Hugging Face cache: ours first, then what "main" is, then the others."""
    folder, main = stored / "snapshots", stored / "refs" / "main"
    try:
        found = [path for path in folder.iterdir() if _has_weights(path)]
        branch = main.read_text("utf-8", "replace").strip() if main.exists() else None
    except OSError:  # no such cache, or not ours to read
        found, branch = [], None
    yield from sorted(found, key=lambda p: (p.name != revision, p.name != branch, p.name))
    yield folder / "*"  # nothing lies there: it names the place in the sentence


def _has_weights(folder: Path) -> bool:
    """A cache also holds snapshots of which only a tokenizer or config.json was fetched."""
    names = ("model.safetensors", "model.safetensors.index.json")
    return any(os.path.exists(folder / name) for name in names)


def _hub() -> Path:
    """The Hugging Face cache, by the rules of its own library."""
    if hub := os.environ.get("HF_HUB_CACHE"):
        return Path(hub)
    if home := os.environ.get("HF_HOME"):
        return Path(home) / "hub"
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache_home) / "huggingface" / "hub"


def _user_data() -> Path:
    """Where this system keeps a user's files for programs."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path(os.path.expanduser("~/AppData/Local"))
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Application Support"))
    return Path(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"))
