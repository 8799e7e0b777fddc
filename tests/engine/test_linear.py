"""Packed linear layers: every kind gives the answer of F.linear, and choosing never trusts one."""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine import linear
from engine.errors import EngineError
from engine.linear import Kind, Linear

KINDS: tuple[Kind, ...] = ("linear", "columns", "onednn", "half", "half_serial")
INT8: tuple[Kind, ...] = ("int8", "int8_rows")

Floats = NDArray[np.float32]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def layer(n_in: int, n_out: int) -> tuple[Floats, Floats]:
    """Weights that float16 holds exactly, so that every kind computes the same thing."""
    r = np.random.default_rng(0)
    weight = r.normal(0, 1 / math.sqrt(n_in), (n_in, n_out)).astype(np.float16)
    return weight.astype(np.float32), r.normal(0, 1, n_out).astype(np.float32)


def steps(n_in: int, n_out: int) -> Floats:
    """Weights that int8 holds exactly: whole numbers up to 127 in each column, of 1/64 each."""
    numbers = np.arange(n_in * n_out).reshape(n_in, n_out) * 37 % 255 - 127
    numbers[0] = 127
    return (numbers / 64).astype(np.float32)


def whole_rows(n: int, width: int) -> Tensor:
    """Rows that 7 bits hold exactly: whole numbers from -63 to 64, both of them in each."""
    numbers = torch.arange(n * width).reshape(n, width) * 29 % 128 - 63
    numbers[:, 0], numbers[:, 1] = -63, 64
    return numbers.float()


def rows(n: int, width: int) -> Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(n))


def packed(
    weight: Floats, bias: Floats | None, kind: Kind, dtype: torch.dtype = torch.float32
) -> Linear:
    dtype = torch.int8 if kind in INT8 else dtype
    try:
        return linear.pack(weight, bias, dtype=dtype, kind=kind)
    except RuntimeError as error:
        pytest.skip(f"not on this machine: {error}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 3, 64])
def test_every_kind_answers_as_f_linear(kind: Kind, n: int) -> None:
    weight, bias = layer(48, 112)
    layer_ = packed(weight, bias, kind)
    x, residual = rows(n, 48), rows(n, 112)
    with torch.inference_mode():
        wanted = functional.linear(x, torch.from_numpy(weight.T), torch.from_numpy(bias))
        bound = {"rtol": 0.0, "atol": 1e-5}  # 48 products of size 1, each rounded to 1e-7
        torch.testing.assert_close(layer_(x), wanted, **bound)
        gelu = functional.gelu(wanted, approximate="tanh")
        torch.testing.assert_close(layer_.gelu(x), gelu, **bound)
        torch.testing.assert_close(layer_.add(x, residual), residual + wanted, **bound)


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_has_no_bias_and_an_odd_width(kind: Kind) -> None:
    weight, _ = layer(32, 257)
    x = rows(1, 32)
    with torch.inference_mode():
        found = packed(weight, None, kind)(x)
    torch.testing.assert_close(found, x @ torch.from_numpy(weight), rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("kind", ["linear", "columns", "onednn"])
def test_bfloat16_rounds_the_layer_but_never_the_residual(kind: Kind) -> None:
    weight, bias = layer(48, 112)
    layer_ = packed(weight, bias, kind, torch.bfloat16)
    x, residual = rows(3, 48), rows(3, 112) * 1000
    wanted = functional.linear(x, torch.from_numpy(weight.T), torch.from_numpy(bias))
    with torch.inference_mode():
        found = layer_.add(x, residual)
    assert found.dtype is torch.float32
    # 8 bits of a bfloat16 are 2^-8 of answers up to 4; of the residual they would be 4
    torch.testing.assert_close(found, residual + wanted, rtol=0.0, atol=0.06)


@pytest.mark.parametrize("kind", INT8)
@pytest.mark.parametrize("n", [1, 3, 64])
@pytest.mark.parametrize("n_in", [48, 33])
def test_what_int8_holds_exactly_is_not_rounded(kind: Kind, n: int, n_in: int) -> None:
    """Of 33 columns torch's own kernel would read 48: numbers that are not the layer's."""
    weight, bias = steps(n_in, 113), rows(1, 113)[0]
    layer_ = packed(weight, bias.numpy(), kind)
    x, residual = whole_rows(n, n_in), rows(n, 113) * 1000
    product = x @ torch.from_numpy(weight)
    # one kind gives its sums in bfloat16: of its 8 bits the last is 2^-8, half of it is lost
    bound = {"rtol": 2**-8, "atol": 0.01} if kind == "int8" else {"rtol": 1e-5, "atol": 1e-3}
    with torch.inference_mode():
        found = layer_(x)
        torch.testing.assert_close(found - bias, product, **bound)
        gelu = functional.gelu(found, approximate="tanh")
        torch.testing.assert_close(layer_.gelu(x), gelu)
        torch.testing.assert_close(layer_.add(x, residual), residual + found)


@pytest.mark.parametrize("kind", INT8)
def test_int8_is_off_by_half_a_step_of_a_column_at_most(kind: Kind) -> None:
    weight, _ = layer(48, 112)
    weight[:, 1] *= 1000  # large weights in one column do not spoil the others
    layer_ = packed(weight, None, kind)
    with torch.inference_mode():
        found = layer_(torch.eye(48)).numpy()  # the weights as they are multiplied
    step = np.abs(weight).max(axis=0) / 127
    # scale and answer are bfloat16 and may be off by 2^-9 each
    assert (np.abs(found - weight) <= step / 2 + 2**-8 * np.abs(weight)).all()
    assert (np.abs(found - weight) > step / 4).any()


@pytest.mark.parametrize("kind", INT8)
def test_int8_has_an_answer_for_rows_and_columns_of_zeros(kind: Kind) -> None:
    weight, bias = layer(48, 112)
    weight[:, 5] = 0
    layer_ = packed(weight, bias, kind)
    x = torch.stack([torch.zeros(48), rows(1, 48)[0]])
    with torch.inference_mode():
        found, alone = layer_(x), layer_(torch.zeros(1, 48))
    assert torch.equal(found[0], torch.from_numpy(bias))
    assert torch.equal(alone[0], torch.from_numpy(bias))
    assert float(found[1, 5]) == bias[5]


def test_a_large_row_does_not_take_the_bits_of_a_small_one() -> None:
    weight, _ = layer(48, 112)
    x = rows(1, 48)
    layer_ = packed(weight, None, "int8_rows")
    with torch.inference_mode():
        together, alone = layer_(torch.cat([x, 1000 * x])), layer_(x)
    wanted = x @ torch.from_numpy(weight)
    for found in (together[:1], together[1:] / 1000, alone):
        # Two roundings of 1/127 of the largest number; one scale for all would leave nothing.
        assert float((found - wanted).abs().max()) <= 0.03 * float(wanted.abs().max())


@pytest.mark.parametrize("kind", INT8)
def test_int8_answers_within_its_tolerance(kind: Kind) -> None:
    weight, bias = layer(768, 256)
    x = rows(3, 768)
    wanted = functional.linear(x, torch.from_numpy(weight.T), torch.from_numpy(bias))
    with torch.inference_mode():
        off = float((packed(weight, bias, kind)(x) - wanted).abs().max() / wanted.abs().max())
    assert off <= linear.TOLERANCE[torch.int8]
    assert linear.TOLERANCE[torch.int8] == 0.05


@pytest.mark.parametrize(
    ("kind", "n_bytes"),
    [
        ("linear", 4 * 48 * 112 + 4 * 112),
        ("columns", 4 * 48 * 112 + 4 * 112),
        ("onednn", 4 * 48 * 112 + 4 * 112),
        ("half", 2 * 48 * 112 + 4 * 112),  # the bias stays float32
        ("half_serial", 2 * 48 * 112 + 4 * 112),
        ("int8", 48 * 112 + 2 * 112 + 4 * 112),  # a scale for each output
        ("int8_rows", 48 * 112 + 12 * 112 + 4 * 112),  # scale, place of 0 and sum
    ],
)
def test_bytes_are_those_of_the_packed_weights(kind: Kind, n_bytes: int) -> None:
    assert packed(*layer(48, 112), kind).nbytes == n_bytes


def test_packing_copies_so_that_read_only_weights_are_welcome() -> None:
    weight, bias = layer(48, 112)
    x = rows(1, 48)
    weight.flags.writeable = False
    layer_ = linear.pack(weight, bias)
    before = layer_(x)
    weight.flags.writeable = True
    weight[:] = 0
    assert torch.equal(layer_(x), before)


def test_no_kind_says_that_parts_of_torch_will_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two threads, as a window may load an engine while a script runs one."""
    weight, bias = layer(48, 112)
    torch.set_warn_always(True)  # each warning of torch comes once a process, unless asked
    try:
        with warnings.catch_warnings(record=True) as said, ThreadPoolExecutor(2) as pool:
            warnings.simplefilter("always")
            for kind in (*KINDS, *INT8):
                layers = pool.map(lambda _, kind=kind: packed(weight, bias, kind), range(4))
                for _ in pool.map(lambda x: x(rows(1, 48)), layers):
                    pass
    finally:
        torch.set_warn_always(False)
    assert [str(warning.message) for warning in said] == []


def test_half_is_only_tried_where_it_loses_nothing() -> None:
    half = {"half", "half_serial"}
    assert half <= set(linear.kinds("cpu", torch.float32, exact_in_half=True))
    assert not half & set(linear.kinds("cpu", torch.float32, exact_in_half=False))
    assert not half & set(linear.kinds("cpu", torch.bfloat16, exact_in_half=True))
    assert linear.kinds("cuda", torch.float16, exact_in_half=True) == ("linear",)


def test_int8_rows_are_only_tried_where_torch_can_multiply_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linear, "has_fbgemm", lambda: True)
    assert linear.kinds("cpu", torch.int8) == ("int8", "int8_rows")
    monkeypatch.setattr(linear, "has_fbgemm", lambda: False)
    assert linear.kinds("cpu", torch.int8) == ("int8",)


@pytest.mark.parametrize("kind", ["linear", "columns"])
def test_a_matrix_that_already_lies_right_is_not_copied(kind: Kind) -> None:
    weight, bias = layer(48, 112)
    there = weight if kind == "columns" else np.asfortranarray(weight)
    packed = linear.pack(there, bias, kind=kind)
    assert packed.rows is not None
    assert packed.rows.data_ptr() == there.ctypes.data
    there.flags.writeable = False  # torch cannot hold what must not be written
    copied = linear.pack(there, bias, kind=kind).rows
    assert copied is not None
    assert copied.data_ptr() != there.ctypes.data


def test_a_weight_too_large_for_float16_is_refused_with_the_number() -> None:
    weight, bias = layer(48, 112)
    weight[3, 5] = -70_000.0
    with pytest.raises(EngineError) as error:
        linear.pack(weight, bias, dtype=torch.float16, kind="half")
    assert str(error.value) == (
        "The weights reach 70,000, and float16 ends at 65,504. Choose float32 or bfloat16."
    )


def test_threads_are_set_only_when_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    linear.use_threads(torch.get_num_threads())
    assert asked == []
    linear.use_threads(torch.get_num_threads() + 1)
    assert asked == [2]
