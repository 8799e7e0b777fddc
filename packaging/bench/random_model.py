"""A GPT-2 with random weights, as a Hugging Face folder or in memory: nothing to download."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.checkpoint import Checkpoint, Config
from engine.events import Dimensions, Model

EPSILON = 1e-5
SMALL = Dimensions(n_layer=12, n_head=12, n_embd=768, n_positions=1024, n_vocab=50257)
SEED = 20_260_101

# The last LayerNorm gives C numbers of variance 1, so a row of the token embedding with deviation s
# gives logits of deviation s sqrt(C): 2.8 for 0.1 and 768, peaked like a trained model's. With
# 0.02 everywhere, as GPT-2 begins its training, 0.55: so flat that rounding decides the argmax.
TOKEN_DEVIATION = 0.1
DEVIATION = 0.02


def write(folder: Path, dimensions: Dimensions = SMALL, *, seed: int = SEED) -> None:
    """Write config.json and model.safetensors, float32; the same seed gives the same bytes."""
    from safetensors.numpy import save_file  # a model in memory needs no such package

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(dimensions), indent=1) + "\n")
    save_file(_tensors(dimensions, seed), folder / "model.safetensors", {"format": "pt"})


def checkpoint(
    dimensions: Dimensions = SMALL, *, seed: int = SEED, alike: bool = False
) -> Checkpoint:
    """The same model in memory.

    Args:
        dimensions: of the model.
        seed: of its numbers.
        alike: every layer gets the very arrays of the first. A large model is made in seconds so,
            and is as much work on a device, where each layer is copied; its text says nothing.
    """
    tensors = _tensors(replace(dimensions, n_layer=1) if alike else dimensions, seed)
    if alike:
        first = {name[4:]: tensor for name, tensor in tensors.items() if name.startswith("h.0.")}
        for n in range(1, dimensions.n_layer):
            tensors |= {f"h.{n}.{name}": tensor for name, tensor in first.items()}
    return Checkpoint(
        model=Model("random", "Random weights", dimensions, verified=False),
        config=Config(dimensions, EPSILON),
        tensors=tensors,
        dtypes=dict.fromkeys(tensors, "F32"),
        sha256="",
        notes=(),
    )


def config(size: Dimensions) -> dict[str, object]:
    """What stands in config.json."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "bos_token_id": 50256,
        "eos_token_id": 50256,
        "layer_norm_epsilon": EPSILON,
        "n_ctx": size.n_positions,
        "n_embd": size.n_embd,
        "n_head": size.n_head,
        "n_layer": size.n_layer,
        "n_positions": size.n_positions,
        "vocab_size": size.n_vocab,
        "tie_word_embeddings": True,
    }


def _tensors(size: Dimensions, seed: int) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    c = size.n_embd

    def noise(*shape: int, deviation: float = DEVIATION) -> NDArray[np.float32]:
        return random.standard_normal(shape, np.float32) * np.float32(deviation)

    tensors = {
        "wte.weight": noise(size.n_vocab, c, deviation=TOKEN_DEVIATION),
        "wpe.weight": noise(size.n_positions, c),
    }
    for n in range(size.n_layer):
        tensors |= _norm(f"h.{n}.ln_1", c) | _norm(f"h.{n}.ln_2", c)
        for name, n_in, n_out in (
            ("attn.c_attn", c, 3 * c),
            ("attn.c_proj", c, c),
            ("mlp.c_fc", c, 4 * c),
            ("mlp.c_proj", 4 * c, c),
        ):
            tensors[f"h.{n}.{name}.weight"] = noise(n_in, n_out)
            tensors[f"h.{n}.{name}.bias"] = noise(n_out)
    return tensors | _norm("ln_f", c)


def _norm(name: str, c: int) -> dict[str, NDArray[np.float32]]:
    return {f"{name}.weight": np.ones(c, np.float32), f"{name}.bias": np.zeros(c, np.float32)}
