"""What pip prints and how it ends, as the person at the terminal is told."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import packages
import pytest
from steps import Failure, Step

shell = pytest.mark.skipif(os.name == "nt", reason="the stand-in for Python is a shell script")


def test_what_pip_prints_becomes_names_and_bytes(tmp_path: Path) -> None:
    wheel = tmp_path / "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    wheel.write_bytes(bytes(300))
    seen = [
        packages.arrival("Downloading sympy-1.14.0-py3-none-any.whl (6.3 MB)"),
        packages.arrival("Using cached six-1.0-py3-none-any.whl (11 kB)"),
        packages.arrival(f"Processing {wheel}"),
        packages.arrival("Downloading sympy-1.14.0-py3-none-any.whl.metadata (12 kB)"),
        packages.arrival("Collecting sympy==1.14.0"),
    ]
    assert seen == [
        packages.Arrival("sympy", 6_300_000, downloaded=True),
        packages.Arrival("six", 11_000, downloaded=False),
        packages.Arrival("torch", 300, downloaded=False),
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("Temporary failure in name resolution", "index cannot be reached"),
        ("SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "PIP_CERT"),
        ("Could not find a suitable TLS CA certificate bundle, invalid path: /ca", "PIP_CERT"),
        (
            "NewConnectionError: refused\nERROR: No matching distribution found for numpy",
            "index cannot be reached",  # the cause, not what followed from it
        ),
        ("ERROR: No matching distribution found for torch==2.13.0", "no wheel for this Python"),
        ("ERROR: something new", "its last lines say why"),
    ],
)
def test_a_failure_of_pip_has_a_reason(output: str, why: str) -> None:
    assert why in packages.reason(output)


@pytest.fixture
def pip(tmp_path: Path) -> Callable[..., Path]:
    """Make a Python whose pip prints these lines and ends with this code."""

    def make(*lines: str, code: int) -> Path:
        python = tmp_path / "bin" / "python"
        python.parent.mkdir(exist_ok=True)
        python.write_text("\n".join(["#!/bin/sh", *(f"echo '{x}'" for x in lines), f"exit {code}"]))
        python.chmod(0o755)
        return python

    return make


@shell
def test_a_failing_pip_is_one_sentence_its_last_lines_and_a_log(
    pip: Callable[..., Path], tmp_path: Path
) -> None:
    step = Step(tmp_path / "log")
    with pytest.raises(Failure, match="the disk is full") as failure:
        packages.install(pip("No space left on device", code=1), ["numpy"], step)
    assert failure.value.details == ("No space left on device", f"Log: {step.log}")
    assert step.log.read_text() == "No space left on device\n"


@shell
@pytest.mark.parametrize(
    ("line", "code", "left"),
    [
        ("Collecting numpy", 1, False),  # nothing was written yet: the folder is as it was
        ("Installing collected packages: numpy", 1, True),
        ("Installing collected packages: numpy", 0, False),
    ],
)
def test_packages_cut_off_halfway_leave_a_mark(
    pip: Callable[..., Path], tmp_path: Path, line: str, code: int, left: bool
) -> None:
    with contextlib.suppress(Failure):
        packages.install(pip(line, code=code), ["numpy"], Step(tmp_path / "log"))
    assert (tmp_path / packages.UNFINISHED).exists() is left
