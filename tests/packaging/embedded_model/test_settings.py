"""The settings of the shipped run, and the sentence for a file that cannot be one."""

from pathlib import Path
from typing import Any

import pytest
from embedded_model.refusal import Refusal
from embedded_model.settings import Settings, read, settled


def test_the_shipped_run_is_16_000_steps_in_three_stages() -> None:
    """As the model card says: context 128 up to 12.3 M tokens, 256 up to about 25 M, then 512."""
    shipped = read()
    assert shipped.n_steps == 16_000
    contexts = [shipped.stage_at(step).context for step in (0, 5_999, 6_000, 12_159, 12_160)]
    assert contexts == [128, 128, 256, 256, 512]
    assert 6_000 * shipped.run.batch_tokens == 12_288_000
    assert shipped.stage_at(15_999).shares["copying"] == 0.07


def test_settings_come_back_from_plain_values(small: Settings) -> None:
    assert settled(small.plain(), source="again") == small


@pytest.mark.parametrize(
    ("section", "change", "named"),
    [
        ("model", {"n_head": 3}, "multiple of n_head"),
        ("model", {"n_layer": "six"}, "'six' for n_layer"),
        ("model", {"n_layer": True}, "True for n_layer"),
        ("model", {"n_layers": 6}, "n_layers, which no run knows"),
        ("run", {"tokens": 0}, "one step long"),
        ("run", {"seed": -1}, "-1 for seed"),
        ("optimizer", {"clip": float("inf")}, "inf for clip"),
        ("start", {"look_back_heads": 9}, "more than n_head"),
        ("corpus", {"weights": {"A": 1.0}}, "weights must name"),
        ("corpus", {"weights": 1}, "needs weights"),
    ],
)
def test_a_value_that_cannot_be_is_named(
    small: Settings, section: str, change: dict[str, Any], named: str
) -> None:
    plain = small.plain()
    plain[section] |= change
    with pytest.raises(Refusal, match=named):
        settled(plain, source="settings.toml")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"until": 0.4}, "must rise"),
        ({"until": 0.9}, "last until 1.0"),
        ({"context": 64}, "context of 64 does not fit"),
        ({"context": 4}, "context of 4 does not fit"),
        ({"shares": {"news": 1.0}}, "from news"),
        ({"shares": {"A": 0.0}}, "all 0"),
        ({"shares": {}}, "all 0"),
    ],
)
def test_a_stage_that_cannot_be_is_named(
    small: Settings, change: dict[str, Any], named: str
) -> None:
    plain = small.plain()
    plain["stage"][-1].update(change)
    with pytest.raises(Refusal, match=named):
        settled(plain, source="settings.toml")


def test_a_missing_section_and_an_unknown_one_are_named(small: Settings) -> None:
    plain = small.plain()
    del plain["start"]
    with pytest.raises(Refusal, match=r"\[start\] is missing"):
        settled(plain, source="x")
    with pytest.raises(Refusal, match=r"\[extra\]"):
        settled(small.plain() | {"extra": {}}, source="x")
    with pytest.raises(Refusal, match="at least one"):
        settled(small.plain() | {"stage": ()}, source="x")


def test_a_file_that_is_not_there_or_not_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="could not be read"):
        read(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[model")
    with pytest.raises(Refusal, match="is not TOML"):
        read(tmp_path / "bad.toml")
