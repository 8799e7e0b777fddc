"""The laws about resources: words, colours and numbers live there, and all of them are there."""

import ast
import hashlib
import re
import tomllib
from pathlib import Path

import pytest

from app import texts
from app.desk import kinds, panel_ids
from app.settings import specs
from engine import errors, resources, tokenizer
from engine.models import known

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "app").rglob("*.py"), *(ROOT / "engine").rglob("*.py")])


def source(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def raised_kinds() -> set[str]:
    """Every kind that the code names in EngineError(...)."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(source(path)):
            raised = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "EngineError"
            if raised and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return found


def test_every_kind_of_error_has_its_sentence() -> None:
    assert raised_kinds() <= errors.kinds()


def test_every_panel_has_a_page_and_a_title() -> None:
    ids = [kind.id for kind in kinds()]
    assert sorted(ids) == sorted(panel_ids())  # a file is named after its panel
    assert set(ids) == {"text", "tokens", "attention", "next_token", "kv_cache", "timeline"}
    for id in ids:
        assert texts.page(id).startswith("#")
        assert texts.text(f"panel.{id}.title")
        assert texts.text(f"panel.{id}.empty")


def test_every_setting_says_what_it_is() -> None:
    for spec in specs().values():
        assert spec.label
        assert spec.desc.endswith(".")


@pytest.mark.parametrize("path", sorted((ROOT / "app").rglob("*.py")), ids=lambda p: p.name)
def test_colours_live_in_theme_files(path: Path) -> None:
    """All but the one that stands for "any" in the icon files, which icons.py replaces."""
    for node in ast.walk(source(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = re.fullmatch("#[0-9a-fA-F]{6}", node.value)
            assert not found or path.name == "icons.py", f"{path.name}: {node.value}"
    assert "QColor(2" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((ROOT / "app").rglob("*.py")), ids=lambda p: p.name)
def test_sentences_live_in_text_files(path: Path) -> None:
    """Nothing of 60 characters or more in the code but docstrings: it would be words to read."""
    tree = source(path)
    told = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            assert len(node.value) < 60, f"{path.name}: {node.value!r}"


def test_the_ranks_are_the_ones_we_know() -> None:
    digest = hashlib.sha256(resources.path("gpt2.tiktoken").read_bytes()).hexdigest()
    assert digest == "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"


def test_the_embedded_weights_are_the_ones_of_the_card() -> None:
    model = known()[0]
    file = resources.path("models", model.name, "model.safetensors")
    assert file.stat().st_size == model.size == 35_479_280
    assert hashlib.sha256(file.read_bytes()).hexdigest() == model.sha256
    assert model.sha256.startswith("76f2f804ab24")


def test_example_prompts_fit_the_embedded_model_and_the_first_is_the_default() -> None:
    t = tokenizer.load()
    examples = texts.examples()
    assert examples[0].prompt == "Michael Jordan played the sport of"
    assert specs()["prompt"].default == examples[0].prompt
    for example in examples:
        assert 0 < len(t.encode(example.prompt)) <= 256, example.title
        assert example.look


def test_known_numbers_of_gpt2() -> None:
    small = next(model for model in known() if model.name == "gpt2").dimensions
    assert small.n_params == 124_439_808
    assert small.kv_token_bytes(4) == 73_728
    assert small.kv_token_bytes(2) == 36_864


def test_every_font_has_its_licence_beside_it() -> None:
    names = {path.name for path in resources.path("fonts").iterdir()}
    assert {"Inter-Regular.otf", "Inter-SemiBold.otf", "JetBrainsMono-Regular.ttf"} <= names
    for licence in ("OFL-Inter.txt", "OFL-JetBrainsMono.txt"):
        assert "SIL OPEN FONT LICENSE" in resources.path("fonts", licence).read_text().upper()


def test_the_version_is_told_once() -> None:
    from engine import __version__

    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert project.get("version", __version__) == __version__
    assert __version__ in (ROOT / "packaging" / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_readme_has_a_line_for_every_file_of_the_program() -> None:
    tree = (ROOT / "README.md").read_text(encoding="utf-8")
    files = [*SOURCES, *(ROOT / "packaging").rglob("*.py")]
    names = {path.name for path in files} - {"__init__.py", "__main__.py"}
    assert {name for name in names if name not in tree} == set()
