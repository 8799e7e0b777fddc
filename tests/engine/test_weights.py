"""Model folders: 70 hostile ones, what is read from good ones, and what is said of both."""

import json
import os
import re
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from engine import models, resources, weights
from engine.checkpoint import float32
from engine.errors import EngineError, kinds
from tests.corpora import hostile, tiny_gpt2
from tests.corpora.tiny_gpt2 import config, safetensors

NOTES = {
    "note_code": "config.json names code to run (auto_map): code in a model folder is never run.",
    "note_end_of_text": "config.json gives 100000000 as the end-of-text token; 50,256 is used, "
    "as in every GPT-2.",
    "note_unused": "Tensors in the file that GPT-2 does not use: 1.",
    "note_head": "The output matrix (lm_head.weight) is not the token embedding: it is used "
    "as stored.",
    "note_heads": "The number of heads, 1, is what config.json says: the weights "
    "cannot confirm it.",
}
CASES = {case.id: case for case in hostile.cases()}


@pytest.fixture(scope="module")
def folders() -> Iterator[Path]:
    """Where the hostile folders lie; 60 MB, so they do not stay behind."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


def folder(place: Path, **files: bytes) -> Path:
    """A good folder in which some files are other ones; `model` is the weights."""
    written = {"config": config(), "model": hostile.GOOD_FILE} | files
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.json").write_bytes(written["config"])
    (place / "model.safetensors").write_bytes(written["model"])
    return place


def refusal(place: Path) -> EngineError:
    with pytest.raises(EngineError) as error:
        weights.read(place)
    return error.value


def test_all_hostile_folders_are_there() -> None:
    assert len(CASES) == 70


@pytest.mark.parametrize("id", CASES)
def test_a_hostile_folder_gets_the_right_verdict_and_runs_nothing(
    id: str, folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[id]
    place = case.write(folders)
    monkeypatch.chdir(tmp_path)
    if case.expect == "ok" or case.expect in NOTES:
        checkpoint = weights.read(place)
        assert len(checkpoint.tensors) == 16 + (id == "B_untied_head")
        assert case.expect == "ok" or NOTES[case.expect] in checkpoint.notes
    else:
        error = refusal(place)
        assert error.kind == case.expect
        assert str(error).isprintable()
        assert 40 < len(str(error)) < 500
    assert list(tmp_path.iterdir()) == []  # no canary


def test_the_embedded_model_is_verified_and_complete() -> None:
    checkpoint = weights.read(models.find("embedded"))
    model = checkpoint.model
    assert (model.name, model.title, model.verified) == ("decodescope-6x8", "Decodescope 6x8", True)
    assert checkpoint.notes == ()
    assert checkpoint.sha256.startswith("76f2f804ab240bd2")
    assert sum(tensor.size for tensor in checkpoint.tensors.values()) == 17_735_936
    assert set(checkpoint.dtypes.values()) == {"F16"}
    assert checkpoint.config.layer_norm_epsilon == 1e-5
    assert checkpoint.tensors["h.5.attn.c_attn.weight"].shape == (256, 768)  # (in, out)


def test_reading_weights_and_names_needs_neither_torch_nor_tiktoken() -> None:
    """The window is up before torch is imported, and panels import the tokenizer's `visible`."""
    code = (
        "import sys; from engine import models, tokenizer, weights;"
        "weights.read(models.find('embedded'));"
        "sys.exit(bool({'torch', 'tiktoken', 'requests'} & sys.modules.keys()))"
    )
    root = resources.root().parent
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_shards_hold_what_one_file_holds(tmp_path: Path) -> None:
    whole = weights.read(CASES["ok_plain"].write(tmp_path))
    split = weights.read(CASES["ok_sharded"].write(tmp_path))
    assert list(split.tensors) == list(whole.tensors)
    for name, tensor in whole.tensors.items():
        assert split.tensors[name].tobytes() == tensor.tobytes()
    assert split.sha256 != whole.sha256


def test_a_model_that_nobody_knows_is_called_after_its_folder(tmp_path: Path) -> None:
    model = weights.read(folder(tmp_path / "my model")).model
    assert (model.name, model.title, model.verified) == ("my model", "my model", False)


def test_a_known_name_alone_is_no_known_model(tmp_path: Path) -> None:
    """The folder says gpt2, the dimensions do not: it must not be shown as GPT-2 124M."""
    assert weights.read(folder(tmp_path / "gpt2")).model.title == "gpt2"


def test_a_hugging_face_cache_is_read_through_its_links_and_named_by_its_repository(
    tmp_path: Path,
) -> None:
    blobs = folder(tmp_path / "models--someone--tiny/blobs")
    revision = tmp_path / "models--someone--tiny/snapshots/abc"
    revision.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        os.symlink(blobs / name, revision / name)
    assert weights.read(revision).model.name == "tiny"


def test_known_weights_with_another_config_are_refused(tmp_path: Path) -> None:
    """Four heads fit the shapes of eight: only the checksum can tell."""
    ours = models.find("embedded")
    fields = json.loads((ours / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(fields | {"n_head": 4}))
    os.symlink(ours / "model.safetensors", tmp_path / "model.safetensors")
    assert refusal(tmp_path).kind == "config_contradicts"


def test_an_output_matrix_that_repeats_the_embedding_is_dropped(tmp_path: Path) -> None:
    same = hostile.GOOD | {"lm_head.weight": hostile.GOOD["wte.weight"]}
    for tied in (None, True, False):
        written = config(tie_word_embeddings=tied)
        checkpoint = weights.read(folder(tmp_path, config=written, model=safetensors(same)))
        assert "lm_head.weight" not in checkpoint.tensors
        assert NOTES["note_head"] not in checkpoint.notes


def test_what_config_says_of_the_output_matrix_holds(tmp_path: Path) -> None:
    other = _own_head()
    untied, tied = (config(tie_word_embeddings=value) for value in (False, True))
    checkpoint = weights.read(folder(tmp_path, config=untied, model=safetensors(other)))
    assert checkpoint.tensors["lm_head.weight"].shape == (50_257, 4)
    assert refusal(folder(tmp_path, config=tied, model=safetensors(other))).kind == "weights_head"
    error = refusal(folder(tmp_path, config=untied))
    assert (error.kind, error.facts["tensor"]) == ("weights_tensor", "lm_head.weight")


def test_a_stream_brings_what_a_whole_folder_holds(tmp_path: Path) -> None:
    for id in ("ok_plain", "ok_sharded"):
        place = CASES[id].write(tmp_path)
        whole = weights.read(place)
        with weights.opened(place) as source:
            for name, tensor in source.stream():
                assert tensor.tobytes() == whole.tensors[name].tobytes()
        assert source.dtypes == whole.dtypes
        assert (source.model, source.sha256, source.notes) == (
            whole.model,
            whole.sha256,
            whole.notes,
        )


def test_no_tensor_of_a_stream_is_held_once_the_next_one_comes(tmp_path: Path) -> None:
    """Or a whole checkpoint would lie in memory beside the packed one."""
    same = hostile.GOOD | {"lm_head.weight": hostile.GOOD["wte.weight"]}
    for stored, n in ((hostile.GOOD, 16), (same, 16), (_own_head(), 17)):
        seen = []
        with weights.opened(folder(tmp_path, model=safetensors(stored))) as source:
            for _, tensor in source.stream():
                seen.append(weakref.ref(tensor))
                del tensor
                assert [ref() for ref in seen if ref() is not None][1:] == []
        assert len(seen) == n


@pytest.mark.parametrize("first", ["wte.weight", "lm_head.weight"])
def test_an_output_matrix_of_its_own_comes_right_before_the_embedding(
    first: str, tmp_path: Path
) -> None:
    stored = {first: _own_head()[first]} | _own_head()  # at the beginning of the file
    checkpoint = weights.read(folder(tmp_path, model=safetensors(stored)))
    with weights.opened(tmp_path) as source:
        streamed = [name for name, _ in source.stream()]
    for names in (streamed, [name for name, _ in checkpoint.stream()]):
        at = names.index("lm_head.weight")
        assert names[at : at + 2] == ["lm_head.weight", "wte.weight"]
    assert list(checkpoint.tensors)[::16] == ["wte.weight", "lm_head.weight"]  # as in GPT-2


def test_a_stream_that_breaks_off_says_of_no_model_what_it_was(tmp_path: Path) -> None:
    spoilt = hostile.GOOD | {"ln_f.bias": np.array([0, 0, np.inf, 0], "<f4")}
    with weights.opened(folder(tmp_path, model=safetensors(spoilt))) as source:
        with pytest.raises(EngineError) as error:
            list(source.stream())
        assert error.value.kind == "weights_not_finite"
        assert not hasattr(source, "model")


def test_a_number_that_is_none_weighs_more_than_a_head_that_does_not_belong(
    tmp_path: Path,
) -> None:
    tied = config(tie_word_embeddings=True)
    spoilt = _own_head() | {"wpe.weight": np.full((1_024, 4), np.nan, "<f4")}
    spoilt["wpe.weight"] = spoilt.pop("wpe.weight")  # the last in the file
    assert refusal(folder(tmp_path, config=tied, model=safetensors(spoilt))).kind == (
        "weights_not_finite"
    )


def test_rows_ahead_of_the_stream_are_checked_too(tmp_path: Path) -> None:
    embedding = hostile.GOOD["wte.weight"].copy()
    embedding[5, 1] = np.nan
    place = folder(tmp_path, model=safetensors(hostile.GOOD | {"wte.weight": embedding}))
    with weights.opened(place) as source:
        assert (source.rows("wte.weight", 5) == embedding[:5]).all()
        with pytest.raises(EngineError) as error:
            source.rows("wte.weight", 6)
    assert (error.value.kind, error.value.facts["at"]) == ("weights_not_finite", "[5, 1]")


def _own_head() -> tiny_gpt2.Tensors:
    return hostile.GOOD | {"lm_head.weight": tiny_gpt2.pattern(tiny_gpt2.V, 4, salt=9)}


def test_a_sentence_names_tensor_shape_and_place(tmp_path: Path) -> None:
    assert str(refusal(CASES["B_linear_layout"].write(tmp_path))) == (
        "h.0.attn.c_attn.weight in model.safetensors has shape [12, 4]; it should be [4, 12], so "
        "it seems stored transposed: use a file saved by GPT-2's own layout."
    )
    assert " holds inf at [19, 1], " in str(refusal(CASES["B_inf"].write(tmp_path)))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"n_head": True}, "config_count"),
        ({"n_head": 2.0}, "config_count"),
        ({"n_layer": 0}, "config_count"),
        ({"n_inner": 8}, "config_option"),
        ({"scale_attn_weights": False}, "config_option"),
        ({"scale_attn_weights": 1}, "config_option"),
        ({"tie_word_embeddings": "yes"}, "config_tied"),
        ({"layer_norm_epsilon": 0}, "config_epsilon"),
        ({"layer_norm_epsilon": True}, "config_epsilon"),
        ({"layer_norm_epsilon": 1e999}, "json_damaged"),  # written as Infinity, which JSON lacks
    ],
)
def test_a_config_that_cannot_be_honoured_is_refused(
    changes: dict[str, object], kind: str, tmp_path: Path
) -> None:
    assert refusal(folder(tmp_path, config=config(**changes))).kind == kind


def test_a_bfloat16_that_is_no_number_is_found(tmp_path: Path) -> None:
    bits = {n: (t.view("<u4") >> 16).astype("<u2") for n, t in hostile.GOOD.items()}
    assert set(weights.read(folder(tmp_path, model=safetensors(bits))).dtypes.values()) == {"BF16"}
    bits["ln_f.bias"][3] = 0x7FC0
    error = refusal(folder(tmp_path, model=safetensors(bits)))
    assert (error.kind, error.facts["found"]) == ("weights_not_finite", "nan")


def test_every_float16_and_bfloat16_widens_exactly() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    half = float32(bits.view(np.float16), "F16")
    finite = np.isfinite(half)
    assert (half[finite].astype(np.float16).view(np.uint16) == bits[finite]).all()
    assert (float32(bits, "BF16").view(np.uint32) >> 16 == bits).all()
    assert float32(np.array([0x3FC0], np.uint16), "BF16").tolist() == [1.5]


def test_float32_is_not_copied() -> None:
    array = np.ones(3, np.float32)
    assert float32(array, "F32") is array


@pytest.mark.parametrize("place", ["no/such/folder", "config.json"])
def test_a_path_that_is_no_folder_is_refused(place: str, tmp_path: Path) -> None:
    assert refusal(folder(tmp_path) / place).kind == "model_not_folder"


def test_an_empty_folder_says_what_belongs_there(tmp_path: Path) -> None:
    assert refusal(tmp_path).kind == "config_missing"
    (tmp_path / "config.json").write_bytes(config())
    assert refusal(tmp_path).kind == "weights_missing"


def test_every_kind_of_the_readers_has_a_sentence() -> None:
    sources = ("untrusted", "safetensors_file", "config", "model_folder", "weights", "tokenizer")
    for name in sources:
        text = (resources.root().parent / "engine" / f"{name}.py").read_text()
        used = re.findall(r'(?:EngineError|sentence)\(\s*"(\w+)"', text)
        assert used
        assert set(used) <= kinds()
