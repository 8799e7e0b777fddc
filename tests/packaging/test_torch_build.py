"""Which torch a machine gets, and how pip is asked for it."""

from pathlib import Path

import pytest
import torch_build
from steps import Failure
from torch_build import Torch

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("driver", "system", "wish", "build"),
    [
        (None, "Linux", "", "cpu"),
        (13000, "Linux", "", "cuda"),
        (12080, "Linux", "", "cpu"),  # CUDA 12.8: the driver is too old for a build for 13.0
        (13000, "Linux", "cpu", "cpu"),
        (None, "Linux", "cuda", "cuda"),
        (None, "Darwin", "", "default"),
        (None, "Windows", "cuda", "default"),
    ],
)
def test_torch_fits_the_machine(driver: int | None, system: str, wish: str, build: str) -> None:
    assert torch_build.choose(driver=driver, system=system, wish=wish) == build


def test_the_cpu_build_comes_alone_from_its_index_and_else_from_where_pip_looks() -> None:
    torch = Torch("2.13.0", "cpu", None)
    assert torch.arguments(cpu_index=True)[-3:] == [
        "--index-url",
        torch_build.CPU_INDEX,
        "torch==2.13.0",
    ]
    assert torch.arguments(cpu_index=False) == ["torch==2.13.0"]


def test_the_cuda_build_is_not_mistaken_for_a_local_one() -> None:
    """== would take 2.13.0+cpu from a folder of wheels; === takes 2.13.0 to the letter."""
    assert Torch("2.13.0", "cuda", 13000).arguments(cpu_index=False) == ["torch===2.13.0"]


def test_a_driver_that_is_too_old_is_named() -> None:
    title = Torch("2.13.0", "cpu", 12040).title
    assert "driver runs CUDA 12.4, the CUDA build needs 13.0" in title


def test_a_build_that_does_not_exist_is_refused() -> None:
    with pytest.raises(Failure, match="cpu or cuda, or not set; got rocm"):
        torch_build.fitting(ROOT / "packaging" / "lock-torch.txt", wish="rocm")
