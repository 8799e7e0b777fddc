"""The locks pin what the project names, each package once, with hashes and no address."""

import re
import tomllib
from pathlib import Path

import pytest
import relock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = {name: (ROOT / "packaging" / name).read_text() for name in ("lock.txt", "lock-test.txt")}


def test_the_locks_pin_every_dependency_within_the_range_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = "\n".join([*LOCKS.values(), (ROOT / "packaging" / "lock-torch.txt").read_text()])
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, flags=re.MULTILINE))
    for line in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        wanted = Requirement(line)
        assert Version(pins[canonicalize_name(wanted.name)]) in wanted.specifier


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_of_a_lock_has_its_hashes_and_no_address(lock: str) -> None:
    pins = LOCKS[lock].replace("\\\n", "").splitlines()
    pins = [line for line in pins if line and not line.startswith("#")]
    assert all("--hash=sha256:" in pin for pin in pins)
    assert "://" not in LOCKS[lock]


def test_no_package_is_pinned_twice() -> None:
    names = [name for text in LOCKS.values() for name in relock.names(text)]
    assert sorted(names) == sorted(set(names))
