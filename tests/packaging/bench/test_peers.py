"""Ours among the engines of the bench."""

from pathlib import Path

import pytest
from bench.peers import Ours


def test_preparing_ours_loads_it_as_it_will_be_loaded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How this machine multiplies best depends on all three, and is kept by the first load."""
    loaded: list[tuple[Path, str, int]] = []
    monkeypatch.setattr(Ours, "__init__", lambda self, *args: loaded.append(args))
    assert Ours.prepare(tmp_path, tmp_path / "place", "bfloat16", 2) == tmp_path
    assert loaded == [(tmp_path, "bfloat16", 2)]
