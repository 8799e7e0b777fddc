"""The kernels compiled for cards that are not here, just as a step launches them."""

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.events import Dimensions
from engine.linear import Linear
from engine.models import kernels
from engine.models.gpt2 import Layer, Norm, Weights
from engine.state import State

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") == "1",
    reason="Triton is not installed, or interprets",
)

SMALL = Dimensions(2, 12, 768, 1_024, 50_257)  # two layers of GPT-2 small
XL = Dimensions(2, 25, 1_600, 1_024, 50_257)  # and of GPT-2 XL, whose programs are the largest
FIVE = ("write_qkv", "attend", "project_attention", "expand", "contract")
TYPES = {
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int64: "*i64",
}


class Shape(Linear):
    """A matrix without numbers."""

    def __init__(self, n_in: int, n_out: int, dtype: torch.dtype, *, bias: bool = True) -> None:
        self.rows = torch.empty(n_out, n_in, dtype=dtype, device="meta")
        self.bias = torch.empty(n_out, dtype=dtype, device="meta") if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class Recorder:
    """Stands for a kernel and notes how it is launched."""

    def __init__(self, kernel: Any, launches: list["Recorder"]) -> None:  # noqa: ANN401
        self.kernel, self.launches = kernel, launches
        self.args: tuple[Any, ...] = ()
        self.sizes: dict[str, int] = {}
        self.n_warps = 4  # unless the launch says so

    def __getitem__(self, grid: tuple[int, ...]) -> "Recorder":
        return Recorder(self.kernel, self.launches)

    def __call__(self, *args: Any, **sizes: int) -> None:  # noqa: ANN401
        self.n_warps = sizes.pop("num_warps", self.n_warps)
        self.args, self.sizes = args, sizes
        self.launches.append(self)


def weights_of(dimensions: Dimensions, dtype: torch.dtype) -> Weights:
    c = dimensions.n_embd
    norm = Norm(torch.empty(c, device="meta"), torch.empty(c, device="meta"), 1e-5)
    qkv, project = Shape(c, 3 * c, dtype), Shape(c, c, dtype)
    layer = Layer(norm, qkv, project, norm, Shape(c, 4 * c, dtype), Shape(4 * c, c, dtype))
    head = Shape(c, dimensions.n_vocab, dtype, bias=False)
    positions = torch.empty(dimensions.n_positions, c, device="meta")
    assert head.rows is not None
    return Weights(head.rows, positions, (layer,) * dimensions.n_layer, norm, head)


def launched(
    monkeypatch: pytest.MonkeyPatch, dimensions: Dimensions, dtype: torch.dtype
) -> list[Recorder]:
    from engine.models import kernel_step  # needs Triton

    launches: list[Recorder] = []
    for name in ("embed", *FIVE, "write_logits"):
        monkeypatch.setattr(kernel_step, name, Recorder(getattr(kernel_step, name), launches))
    state, one = State(dimensions, device="meta"), torch.zeros(1, dtype=torch.int64, device="meta")
    kernels.tick(weights_of(dimensions, dtype), state, one, one, context=1_024)
    return launches


def compiled(launch: Recorder, capability: int) -> bytes:
    """The machine code for this capability: 90 is sm_90."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = [parameter.name for parameter in launch.kernel.params]
    given = dict(zip(names, launch.args, strict=False))
    types = {name: TYPES[x.dtype] if isinstance(x, Tensor) else "fp32" for name, x in given.items()}
    types |= dict.fromkeys(launch.sizes, "constexpr")
    aligned = {  # torch's memory starts at multiples of 256, and so do the rows of all GPT-2s
        (n,): [["tt.divisibility", 16]] for n, x in enumerate(launch.args) if isinstance(x, Tensor)
    }
    code = triton.compile(
        ASTSource(launch.kernel, types, launch.sizes, aligned),
        target=GPUTarget("cuda", capability, 32),
        options={"num_warps": launch.n_warps},
    )
    binary: bytes = code.asm["cubin"]
    return binary


def usage(binary: bytes, folder: Path) -> dict[str, int]:
    """What a program takes: REG a thread, and bytes of STACK and LOCAL, where registers spill."""
    from triton import knobs

    file = folder / "kernel.cubin"
    file.write_bytes(binary)
    command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: int(n) for name, n in re.findall(r"(REG|STACK|LOCAL):(\d+)", said)}


def test_a_step_is_five_launches_a_layer_and_two(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [x.kernel.__name__ for x in launched(monkeypatch, SMALL, torch.float16)]
    assert names == ["embed", *FIVE, *FIVE, "write_logits"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimensions", "dtype", "capability"),
    [(SMALL, torch.float16, 80), (SMALL, torch.float16, 90), (XL, torch.float32, 90)],
    ids=str,
)
def test_they_compile_without_spilling_registers(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    dimensions: Dimensions,
    dtype: torch.dtype,
    capability: int,
) -> None:
    """On an A100 (sm_80) and an H100 or H200 (sm_90); the most registers are those of XL."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    launches = launched(monkeypatch, dimensions, dtype)
    for launch in (*launches[:6], launches[-1]):  # the embedding, one layer, the logits
        used = usage(compiled(launch, capability), tmp_path)
        assert used["STACK"] == used["LOCAL"] == 0, launch.kernel.__name__
        assert used["REG"] <= 176, launch.kernel.__name__  # 172 by Triton 3.6: write_logits of XL
