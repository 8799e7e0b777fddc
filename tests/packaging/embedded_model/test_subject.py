"""A model folder under measurement says what the engine says, at every position."""

from pathlib import Path

import numpy as np
import pytest
from embedded_model.corpus import held_out
from embedded_model.evaluate import stream
from embedded_model.measures import loss
from embedded_model.refusal import Refusal
from embedded_model.subject import Subject

from engine import resources
from engine.attention import head_map
from tests.corpora import tiny_gpt2


@pytest.fixture(scope="module")
def shipped() -> Subject:
    return Subject(resources.path("models", "decodescope-6x8"), n_threads=1)


def test_the_last_row_of_a_window_is_what_the_engine_says(shipped: Subject) -> None:
    """70 tokens are two pieces of logits; both sides add in float32, in another order."""
    ids = np.arange(1_000, 1_070)
    pieces = list(shipped.logits(ids))
    assert [piece.shape for piece in pieces] == [(64, 50_257), (6, 50_257)]
    said = shipped.engine._runner.logits()
    np.testing.assert_allclose(pieces[-1][-1], said, atol=1e-3)


def test_maps_are_the_heads_maps(shipped: Subject) -> None:
    ids = np.arange(1_000, 1_010)
    maps = shipped.maps(ids)
    rows = shipped.engine._runner.rows(0, 10)
    assert maps.shape == (6, 8, 10, 10)
    assert rows.q is not None
    assert rows.k is not None
    np.testing.assert_allclose(maps[3, 4], head_map(rows.q[3, 4], rows.k[3, 4]), atol=1e-6)


def test_the_first_window_of_held_out_text_has_a_known_loss(shipped: Subject) -> None:
    """The first 512 tokens of tier A: a slice of what figures.json tells, made anew."""
    ids = stream(document.text for document in held_out()[:1])[:512]
    found = loss(shipped, ids, untrained=shipped.untrained)
    assert found.n_tokens == 511
    assert found.nats == pytest.approx(3.210, abs=2e-3)
    assert found.untrained is not None
    assert found.untrained.after_untrained is None


def test_rows_outside_the_list_are_untrained(shipped: Subject) -> None:
    assert shipped.untrained is not None
    assert shipped.untrained.sum() == 50_257 - 12_288
    assert not shipped.untrained[50_256]


def test_a_folder_without_the_list_is_judged_as_trained_throughout(tmp_path: Path) -> None:
    tensors = tiny_gpt2.tensors()
    (tmp_path / "model.safetensors").write_bytes(tiny_gpt2.safetensors(tensors))
    (tmp_path / "config.json").write_bytes(tiny_gpt2.config())
    subject = Subject(tmp_path, n_threads=1)
    assert subject.trained is None
    assert subject.untrained is None


def test_a_model_with_too_few_positions_is_refused(tmp_path: Path) -> None:
    tensors = tiny_gpt2.tensors()
    tensors["wpe.weight"] = tensors["wpe.weight"][:64]
    (tmp_path / "model.safetensors").write_bytes(tiny_gpt2.safetensors(tensors))
    (tmp_path / "config.json").write_bytes(tiny_gpt2.config(n_positions=64, n_ctx=64))
    with pytest.raises(Refusal, match="has 64 positions"):
        Subject(tmp_path, n_threads=1)
