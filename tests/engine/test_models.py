"""Names to folders: where models are looked for, and what is said when they are not there."""

from pathlib import Path

import pytest

from engine import models, resources
from engine.errors import EngineError

REVISION = "607a30d783dfa663caf39e06633721c8d4cfcd7e"


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model of this machine is found by accident."""
    for name in (
        "DECODESCOPE_MODELS",
        "HF_HUB_CACHE",
        "HF_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.platform", "linux")


def snapshot(hub: Path, revision: str, *, repository: str = "openai-community--gpt2") -> Path:
    folder = hub / f"models--{repository}" / "snapshots" / revision
    folder.mkdir(parents=True)
    (folder / "model.safetensors").touch()
    return folder


def test_the_registry_knows_our_model_and_the_four_of_openai() -> None:
    n_params = {model.name: model.dimensions.n_params for model in models.known()}
    assert n_params == {
        "decodescope-6x8": 17_735_936,
        "gpt2": 124_439_808,
        "gpt2-medium": 354_823_168,
        "gpt2-large": 774_030_080,
        "gpt2-xl": 1_557_611_200,
    }


def test_what_the_registry_says_of_the_embedded_file_is_so() -> None:
    model = models.known()[0]
    assert model.embedded
    assert (models.find("embedded") / "model.safetensors").stat().st_size == model.size


@pytest.mark.parametrize("name", ["embedded", "decodescope-6x8"])
def test_the_embedded_model_needs_no_search(name: str) -> None:
    assert models.find(name) == resources.path("models", "decodescope-6x8")


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert models.find(str(tmp_path)) == tmp_path


def test_a_name_is_looked_for_in_our_folders_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = snapshot(tmp_path / "home/.cache/huggingface/hub", REVISION)
    assert models.find("gpt2") == hub
    ours = tmp_path / "home/.local/share/decodescope/models/gpt2"
    ours.mkdir(parents=True)
    assert models.find("gpt2") == ours
    named = tmp_path / "shelf/gpt2"
    named.mkdir(parents=True)
    monkeypatch.setenv("DECODESCOPE_MODELS", str(tmp_path / "shelf"))
    assert models.find("gpt2") == named


@pytest.mark.parametrize(
    ("platform", "place"),
    [("darwin", "Library/Application Support"), ("win32", "")],
)
def test_each_system_has_its_own_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, place: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    folder = tmp_path / "home" / place / "decodescope/models/gpt2-xl"
    folder.mkdir(parents=True)
    assert models.find("gpt2-xl") == folder


def test_hf_home_moves_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    folder = snapshot(tmp_path / "hf/hub", "abc", repository="openai-community--gpt2-medium")
    assert models.find("gpt2-medium") == folder


def test_of_several_snapshots_ours_wins_then_main(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    first, second = snapshot(tmp_path, "aaa"), snapshot(tmp_path, "bbb")
    assert models.find("gpt2") == first
    main = tmp_path / "models--openai-community--gpt2/refs/main"
    main.parent.mkdir()
    main.write_text("bbb\n")
    assert models.find("gpt2") == second
    ours = snapshot(tmp_path, REVISION)
    assert models.find("gpt2") == ours


def test_a_snapshot_without_weights_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache holds such folders when only a tokenizer was fetched."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (snapshot(tmp_path, REVISION) / "model.safetensors").unlink()
    with pytest.raises(EngineError):
        models.find("gpt2")


def test_a_missing_model_is_told_with_the_places_searched(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as error:
        models.find("gpt2")
    sentence = str(error.value)
    assert error.value.kind == "model_not_found"
    assert "No model was found for gpt2." in sentence
    for place in (".local/share/decodescope/models/gpt2", "models--openai-community--gpt2"):
        assert place in sentence


@pytest.mark.parametrize("name", ["gpt5", "/no/such/folder", "a\0b", "x" * 5_000, ""])
def test_a_name_that_is_nothing_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(EngineError) as error:
        models.find(name)
    assert error.value.kind == "model_not_found"
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 600
