"""A model folder's config.json, checked: dimensions, epsilon, and the options we do not have."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError, sentence
from engine.events import Dimensions
from engine.tokenizer import END_OF_TEXT
from engine.untrusted import Json, read_table, shown

FILE = "config.json"
CAP = 2**20  # bytes; GPT-2's has 665

# Options that change the arithmetic, with the one value this program computes. An absent option
# has that value: it is Hugging Face's default too.
OPTIONS: dict[str, Json] = {
    "activation_function": "gelu_new",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "add_cross_attention": False,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What config.json says of a model, as far as this program uses it."""

    dimensions: Dimensions
    layer_norm_epsilon: float
    tied: bool | None  # the output matrix is the token embedding; None = not said
    notes: tuple[str, ...]  # sentences about what was read differently, or not at all


def read_config(folder: Path) -> Settings:
    """Read and check a folder's config.json.

    Raises:
        EngineError: kind "config_missing", "config_type", "config_key", "config_count",
            "config_heads", "config_epsilon", "config_option", "config_tied", or one that begins
            with "file_" or "json_".
    """
    if not os.path.exists(folder / FILE):
        raise EngineError("config_missing", folder=shown(folder, limit=200))
    fields = read_table(folder / FILE, cap=CAP)
    model_type = fields.get("model_type", "gpt2")
    if model_type != "gpt2":
        raise EngineError("config_type", found=shown(model_type))
    dimensions = Dimensions(
        n_layer=_count(fields, "n_layer"),
        n_head=_count(fields, "n_head"),
        n_embd=_count(fields, "n_embd"),
        n_positions=_count(fields, "n_positions"),
        n_vocab=_count(fields, "vocab_size"),
    )
    if dimensions.n_embd % dimensions.n_head:
        raise EngineError("config_heads", n_embd=dimensions.n_embd, n_head=dimensions.n_head)
    _check_options(fields, n_embd=dimensions.n_embd)
    tied = fields.get("tie_word_embeddings")
    if tied is not None and not isinstance(tied, bool):
        raise EngineError("config_tied", found=_json(tied))
    return Settings(dimensions, _epsilon(fields), tied, tuple(_notes(fields)))


def _count(fields: dict[str, Json], key: str) -> int:
    value = _given(fields, key)
    if type(value) is not int or value < 1:  # true is an int to Python, and no count
        raise EngineError("config_count", key=key, found=_json(value))
    return value


def _epsilon(fields: dict[str, Json]) -> float:
    value = _given(fields, "layer_norm_epsilon")
    if not isinstance(value, int | float) or not 0 < value < 1:  # true is 1, so it is out too
        raise EngineError("config_epsilon", found=_json(value))
    return float(value)


def _given(fields: dict[str, Json], key: str) -> Json:
    if key not in fields:
        raise EngineError("config_key", key=key)
    return fields[key]


def _check_options(fields: dict[str, Json], *, n_embd: int) -> None:
    for key, wanted in (OPTIONS | {"n_inner": 4 * n_embd}).items():
        value = fields.get(key, wanted)
        if key == "n_inner" and value is None:  # null stands for 4 n_embd
            continue
        if type(value) is not type(wanted) or value != wanted:
            raise EngineError("config_option", key=key, found=_json(value), wanted=_json(wanted))


def _json(value: Json) -> str:
    """A value as config.json spells it: "2" keeps its quotes, true its small t."""
    return shown(json.dumps(value))


def _notes(fields: dict[str, Json]) -> list[str]:
    notes = []
    if "auto_map" in fields:
        notes.append(sentence("note_code", {}))
    end = fields.get("eos_token_id", END_OF_TEXT)
    if end != END_OF_TEXT:
        notes.append(sentence("note_end_of_text", {"found": _json(end), "used": END_OF_TEXT}))
    return notes
