"""The entry: any Python can read it, and an unfit one is told what is needed."""

import ast
import doctest
import importlib
import sys
from pathlib import Path

import bootstrap
import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (ROOT / "packaging").glob("*.py"))
SHARED = ROOT / "app" / "display.py"  # the one module of the app that the bootstrap uses as well


@pytest.mark.parametrize("module", MODULES)
def test_what_the_docstrings_show_is_so(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize(
    "path",
    [*(ROOT / "packaging").glob("*.py"), SHARED, SHARED.with_name("__init__.py")],
    ids=lambda path: path.stem,
)
def test_nothing_but_the_standard_library_is_imported(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
    imported -= {"app"} if path.stem == "commands" else set()
    assert imported <= {*sys.stdlib_module_names, *MODULES}


def test_an_old_python_can_read_the_entry_and_is_told_what_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ast.parse((ROOT / "packaging" / "bootstrap.py").read_text(), feature_version=(3, 6))
    monkeypatch.setattr(bootstrap, "runs", lambda name: name == "python3.12")
    assert bootstrap.misfit((3, 10)) == (
        "Decodescope needs Python 3.11 to 3.14 and this is Python 3.10: run this with python3.12."
    )
    monkeypatch.setattr(bootstrap, "runs", lambda name: False)
    assert bootstrap.misfit((3, 15)).endswith("3.15: install one and run this with it.")
