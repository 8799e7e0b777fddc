"""Which build of torch fits this machine: CUDA where the driver can run it, else the small one."""

from __future__ import annotations

import ctypes
import platform
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from steps import Failure

Build = Literal["cuda", "cpu", "default"]

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CUDA = 13000  # the locked torch's own Linux build is made for CUDA 13.0, as the driver counts it
SECONDS = 3.0  # how long the CPU index may take to answer


@dataclass(frozen=True, slots=True)
class Torch:
    """The torch that this machine gets."""

    version: str
    build: Build
    driver: int | None  # the newest CUDA that the NVIDIA driver runs: 12040 is 12.4

    @property
    def title(self) -> str:
        """What is about to be installed, and why not the other when a card is there."""
        names = {"cuda": "CUDA build (gigabytes)", "cpu": "CPU build", "default": "usual build"}
        text = f"torch {self.version}, {names[self.build]}"
        if self.build == "cpu" and self.driver is not None and self.driver < CUDA:
            has, needs = _dotted(self.driver), _dotted(CUDA)
            text += f": the NVIDIA driver runs CUDA {has}, the CUDA build needs {needs}"
        return text

    def arguments(self, *, cpu_index: bool) -> list[str]:
        """What pip is asked for; what torch needs on every machine is installed before it."""
        if self.build == "cpu" and cpu_index:
            return ["--no-deps", "--index-url", CPU_INDEX, f"torch=={self.version}"]
        # === leaves out a build with a local label, such as +cpu in a folder of wheels.
        return [f"torch{'===' if self.build == 'cuda' else '=='}{self.version}"]


def fitting(lock: Path, *, wish: str) -> Torch:
    """The locked torch in the build for this machine, or the build that is wished for.

    Raises:
        Failure: the wish is no build.
    """
    if wish not in ("", "cpu", "cuda"):
        raise Failure(f"DECODESCOPE_TORCH is cpu or cuda, or not set; got {wish}.")
    lines = lock.read_text(encoding="utf-8").splitlines()
    version = next(line for line in lines if line.startswith("torch==")).removeprefix("torch==")
    driver = driver_cuda() if platform.system() == "Linux" else None
    return Torch(version, choose(driver=driver, system=platform.system(), wish=wish), driver)


def choose(*, driver: int | None, system: str, wish: str = "") -> Build:
    """The build for a machine. Only Linux has a choice: elsewhere the index holds one build.

    >>> choose(driver=13010, system="Linux"), choose(driver=None, system="Linux")
    ('cuda', 'cpu')
    """
    if system != "Linux":
        return "default"
    fits = driver is not None and driver >= CUDA
    return "cuda" if wish == "cuda" or (fits and wish != "cpu") else "cpu"


def driver_cuda() -> int | None:
    """The newest CUDA the driver runs (12040 is 12.4), or None without a driver or a card."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    n_cards, newest = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(n_cards)) or not n_cards.value:
        return None
    return None if cuda.cuDriverGetVersion(ctypes.byref(newest)) else newest.value


def cpu_index_answers() -> bool:
    """Whether the index of the CPU builds answers in time."""
    answered = threading.Event()

    def ask() -> None:
        request = urllib.request.Request(f"{CPU_INDEX}/torch/", method="HEAD")
        try:
            with urllib.request.urlopen(request, timeout=SECONDS):
                answered.set()
        except (urllib.error.URLError, OSError, ValueError):
            return

    # A thread bounds the whole question: looking up the name has no timeout of its own.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(SECONDS)
    return answered.is_set()


def _dotted(cuda: int) -> str:
    return f"{cuda // 1000}.{cuda % 1000 // 10}"
