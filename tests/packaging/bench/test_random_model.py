"""The random weights: read by our engine, the same each time, and far from flat."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench import random_model

from engine import weights
from engine.events import Dimensions

TINY = Dimensions(n_layer=1, n_head=2, n_embd=8, n_positions=32, n_vocab=50257)


def test_a_seed_gives_the_same_bytes_and_a_folder_that_our_reader_takes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        random_model.write(tmp_path / name, TINY)
    first, second = (
        hashlib.sha256((tmp_path / name / "model.safetensors").read_bytes()).digest()
        for name in ("a", "b")
    )
    assert first == second
    checkpoint = weights.read(tmp_path / "a")
    assert checkpoint.config.dimensions == TINY
    assert set(checkpoint.dtypes.values()) == {"F32"}


def test_the_token_embedding_makes_logits_that_are_peaked() -> None:
    """0.1 sqrt(768) = 2.8, and GPT-2 124M's own shape."""
    assert random_model.TOKEN_DEVIATION * np.sqrt(random_model.SMALL.n_embd) > 2.7
    assert random_model.SMALL.n_params == 124_439_808


def test_in_memory_it_is_the_model_of_the_folder(tmp_path: Path) -> None:
    random_model.write(tmp_path, TINY)
    read, made = weights.read(tmp_path), random_model.checkpoint(TINY)
    assert made.config == read.config
    assert made.dtypes == read.dtypes
    for name, tensor in read.tensors.items():
        assert np.array_equal(made.tensors[name], tensor)


def test_layers_that_are_alike_are_the_very_same_arrays() -> None:
    three = random_model.checkpoint(replace(TINY, n_layer=3), alike=True)
    assert set(three.tensors) == set(random_model.checkpoint(replace(TINY, n_layer=3)).tensors)
    assert three.tensors["h.2.mlp.c_fc.weight"] is three.tensors["h.0.mlp.c_fc.weight"]
