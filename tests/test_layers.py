"""The laws about who may know whom, read from the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TORCH = {"models/gpt2.py", "models/packing.py", "state.py", "linear.py", "devices.py", "runners.py"}
TORCH |= {"models/streams.py", "models/kernels.py", "batch.py", "device_sampling.py", "graphs.py"}
TORCH |= {"models/kernel_step.py", "queues.py"}
TORCH |= {"choice.py", "meter.py", "generate.py", "dispatch.py", "probe.py", "vector_sums.py"}


def files(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module a file imports, and whether it does so at import time."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    deferred = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) or _for_types_only(outer)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, id(node) not in deferred
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            assert node.module is not None
            yield node.module, id(node) not in deferred
            for name in node.names:
                yield f"{node.module}.{name.name}", id(node) not in deferred


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def top(module: str) -> str:
    return module.split(".")[0]


@pytest.mark.parametrize("path", files("engine"), ids=lambda p: p.name)
def test_the_engine_knows_no_window(path: Path) -> None:
    known = {top(module) for module, _ in imports(path)}
    assert not known & {"app", "PySide6", "shiboken6", "pyqtgraph"}


@pytest.mark.parametrize("path", files("engine"), ids=lambda p: p.name)
def test_torch_is_imported_only_where_it_computes(path: Path) -> None:
    if str(path.relative_to(ROOT / "engine")) not in TORCH:
        assert "torch" not in {top(module) for module, _ in imports(path)}
    if path.name == "meter.py":
        assert "torch" not in {top(module) for module, now in imports(path) if now}


@pytest.mark.parametrize("path", files("app"), ids=lambda p: p.name)
def test_the_window_meets_torch_only_behind_the_worker(path: Path) -> None:
    heavy = {"torch", "engine.generate", "engine.runners", "engine.state", "engine.linear"}
    heavy |= {"engine.models.gpt2", "engine.dispatch", "engine.probe", "engine.vector_sums"}
    heavy |= {"engine.models.streams", "engine.models.packing", "engine.batch", "engine.choice"}
    heavy |= {"engine.devices", "engine.device_sampling", "engine.graphs", "engine.queues"}
    met = {module for module, _ in imports(path)} & heavy
    assert not met or path.name == "worker.py"
    now = {module for module, at_import in imports(path) if at_import}
    assert not now & heavy


@pytest.mark.parametrize("path", files("app/panels"), ids=lambda p: p.name)
def test_a_panel_knows_no_other_panel_and_no_worker(path: Path) -> None:
    own = {f"app.panels.{path.stem}", "app.panels.base"}
    panels = {module for module, _ in imports(path) if module.startswith("app.panels.")}
    assert {".".join(module.split(".")[:3]) for module in panels} <= own
    known = {module for module, _ in imports(path)}
    assert not known & {"app.worker", "app.main_window", "app.reins", "app.desk", "threading"}


@pytest.mark.parametrize("path", files("app/widgets"), ids=lambda p: p.name)
def test_widgets_know_nothing_of_traces(path: Path) -> None:
    known = {module for module, _ in imports(path)}
    assert not known & {"engine.trace", "engine.session", "app.store", "app.selection"}


def test_importing_the_window_does_not_import_torch() -> None:
    code = "import app.start, sys; print('torch' in sys.modules, 'tiktoken' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert said.stdout.split() == ["False", "False"], said.stderr


FORBIDDEN = (
    ("import pickle", "runs code"),
    ("pickle.load", "runs code"),
    ("torch.load", "runs code"),
    ("allow_pickle", "runs code"),
    ("QSettings", "unpickles what it reads"),
    ("processEvents", "re-enters slots"),
    ("terminate(", "kills a thread that holds locks"),
    ("setHtml", "token text would be markup"),
    ("RichText", "token text would be markup"),
    ("get_encoding", "asks the network"),
    ("from_pretrained", "asks the network"),
    ("urllib", "asks the network"),
    ("requests", "asks the network"),
    ("shell=True", "runs code"),
)


@pytest.mark.parametrize("path", [*files("engine"), *files("app")], ids=lambda p: p.name)
def test_nothing_runs_foreign_code_asks_the_network_or_blocks(path: Path) -> None:
    code = "\n".join(ast.unparse(n) for n in ast.parse(path.read_text("utf-8")).body if _acts(n))
    for word, why in FORBIDDEN:
        assert word not in code, f"{path.name}: {word} {why}"


def _acts(node: ast.stmt) -> bool:
    """All but docstrings: they may name what the code must not do."""
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(body, list):
            inner.body = [s for s in body if not _is_text(s)] or [ast.Pass()]  # type: ignore[attr-defined]
    return not _is_text(node)


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@pytest.mark.parametrize("path", [*files("engine"), *files("app")], ids=lambda p: p.name)
def test_a_file_stops_at_300_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 300


@pytest.mark.parametrize("path", [*files("engine"), *files("app")], ids=lambda p: p.name)
def test_random_numbers_come_from_the_coin_alone(path: Path) -> None:
    if path.name in ("sampling.py", "choice.py"):  # choice.py checks kernels on seeded noise
        return
    source = path.read_text("utf-8")
    for word in ("np.random", "torch.rand", "random.random", "random.uniform", "random.choice"):
        assert word not in source
