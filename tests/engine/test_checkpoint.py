"""A model's tensors on their way to the packer: in any order, one at a time, all or none."""

import weakref
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import weights
from engine.checkpoint import Array, Checkpoint, Tensors
from engine.errors import EngineError
from engine.linear import Kind
from engine.runners import Runner
from tests.corpora import hostile
from tests.engine.test_runners import IDS, TINY, checkpoint, read, tensors


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


@pytest.mark.parametrize("kind", ["linear", "columns", "onednn", "half", "half_serial"])
def test_tensors_may_come_in_any_order(kind: Kind) -> None:
    half = {name: array.astype(np.float16) for name, array in tensors(TINY).items()}
    turned = dict(sorted(half.items(), reverse=True))  # matrices before their biases too
    answers = []
    for arrays in (half, turned):
        try:
            runner = Runner(checkpoint(arrays, dtype="F16"), device="cpu", n_threads=1, kind=kind)
        except RuntimeError:
            pytest.skip(f"this torch has no {kind}")
        read(runner, IDS[:9])
        answers.append(runner.logits())
    assert np.array_equal(*answers)


def test_no_tensor_is_kept_beside_its_packed_copy() -> None:
    """In the order in which files are written, by name: a bias waits for its matrix."""
    seen: dict[str, weakref.ref[Array]] = {}

    class Stream(Checkpoint):
        def stream(self) -> Tensors:
            for name in sorted(self.tensors):
                fresh = self.tensors[name].copy()
                seen[name] = weakref.ref(fresh)
                yield name, fresh
                del fresh
                alive = {name for name, ref in seen.items() if ref() is not None}
                assert alive <= {f"{name.removesuffix('.bias')}.bias", "wte.weight"}

    whole = checkpoint(tensors(TINY))
    source = Stream(*(getattr(whole, field.name) for field in fields(whole)))
    try:
        runner = Runner(source, device="cpu", n_threads=1, kind="onednn")
    except RuntimeError:
        pytest.skip("this torch has no onednn")
    assert len(seen) == 28
    assert [name for name, ref in seen.items() if ref() is not None] == ["wte.weight"]  # the table
    assert runner.weight_bytes == 4 * TINY.n_params + 4 * 97 * 32


def test_a_folder_is_packed_as_it_is_read(tmp_path: Path) -> None:
    for id in ("ok_plain", "ok_f16", "ok_sharded", "B_untied_head"):
        place = hostile_folder(id, tmp_path)
        answers = []
        with weights.opened(place) as source:
            for one in (source, weights.read(place)):
                runner = Runner(one, device="cpu", n_threads=1, kind="linear")
                read(runner, IDS[:5])
                answers.append(runner.logits())
        assert np.array_equal(*answers)


def test_a_folder_that_is_bad_halfway_becomes_no_runner(tmp_path: Path) -> None:
    with weights.opened(hostile_folder("B_inf", tmp_path)) as source:
        with pytest.raises(EngineError) as error:
            Runner(source, device="cpu", n_threads=1, kind="linear")
        assert error.value.kind == "weights_not_finite"


def hostile_folder(id: str, place: Path) -> Path:
    return next(case for case in hostile.cases() if case.id == id).write(place)
