"""How this machine multiplies best: each way checked, timed on the model's own weights, and kept.

A decode step reads every weight once and finds none of them in a cache, so the ways are timed on
weights that are in none; but the code that multiplies is, as layer comes after layer, so a few
numbers are multiplied first. And in turns, as a machine has slow and fast moments.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from engine import devices, kept_file, linear, meter
from engine.checkpoint import Source
from engine.errors import EngineError
from engine.kept_file import Fingerprint
from engine.linear import Kind, Linear
from engine.meter import now_ns
from engine.model_folder import HEAD
from engine.models.packing import Plan, head_name, numbers

Form = Literal["product", "gelu", "add"]  # how a matrix is used; see `engine.linear`

SMALL = 4_000_000  # parameters below which there is nothing to gain: dispatch takes longer
USES: tuple[tuple[str, Form], ...] = (
    ("attn.c_attn", "product"),
    ("attn.c_proj", "add"),
    ("mlp.c_fc", "gelu"),
    ("mlp.c_proj", "add"),
)  # a layer's matrices in the order of a pass
WIDEST = "mlp.c_fc"
HEAD_ROWS = 8_192  # rows of the head that it is timed on: packing all 50,257 takes 0.2 s a way
CACHES = 2**26  # bytes read between two goes, so that none finds its weights in a cache
FEW = 64  # rows and columns of the matrix that brings only the code back
ROUNDS = 5  # the fastest counts: whatever else the machine does only adds time
HOPELESS = 4  # a way that takes so many times as long as another is not tried again
WORTH = 1.1  # how many times as long a kind may take that is preferred for other reasons
FASTER = 1.2  # how many times as fast a way must be to be worth its rounding


@dataclass(frozen=True, slots=True)
class Threads:
    """How many threads read one token, and how many a long prompt."""

    decode: int
    prefill: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One situation to time a way in: so many rows at once, by so many threads, so many times."""

    n_rows: int
    n_threads: int
    n_times: int


@dataclass(frozen=True, slots=True)
class Way:
    """A number type and a kind that keeps weights in it."""

    dtype: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weights to try the ways on, and what a pass makes of their product."""

    weight: NDArray[np.float32]  # (in, out)
    bias: NDArray[np.float32] | None  # (out,)
    form: Form = "product"


def plan(source: Source, device: str, dtype: str, threads: Threads) -> Plan:
    """Decide how a model's matrices are packed: one way for the layers, one for the head.

    What the clock said is kept, and asked again only if machine, model size or versions change.

    Args:
        source: the model.
        device: "cpu", "cuda" or "mps".
        dtype: one that the device takes, or "auto": the exact float32, unless weights rounded to
            16 bits are faster by `FASTER` and the model is large enough for that to matter. Never
            int8, which has to be asked for.
        threads: for the CPU.
    """
    ways = _ways(source, device, dtype)
    if len(ways) == 1 or source.config.dimensions.n_params < SMALL:
        return _plan(device, ways[0], ways[0].kind)
    fingerprint = _fingerprint(source, dtype, ways, threads)
    name = f"packing-{dtype}-{source.config.dimensions.n_embd}-{threads.decode}"
    head = _head(source)
    kept = _kept(kept_file.read(name, fingerprint), ways)
    if kept is not None and _right(_matrix(source, WIDEST), kept[0]) and _right(head, kept[1]):
        return _plan(device, kept[0], kept[1].kind)
    watch = meter.Watch()
    one = Trial(1, threads.decode, 64)
    layer = [_matrix(source, *use) for use in USES]
    best = fastest(layer, ways, [one, Trial(64, threads.prefill, 1)])
    last = fastest(
        [head],
        [way for way in ways if way.dtype == best.dtype and _item(way) == _item(best)],
        [one],
        rather=() if HEAD in source.dtypes else ("linear", "columns"),  # spares the table
    )
    if watch.quiet:
        kept_file.write(name, fingerprint, [best.dtype, best.kind, last.kind])
    return _plan(device, best, last.kind)


def fastest(
    matrices: Sequence[Matrix],
    ways: Sequence[Way],
    trials: Sequence[Trial],
    *,
    rather: Collection[Kind] = (),
) -> Way:
    """The fastest way on this CPU that answers as `F.linear` does, summed over the trials.

    A way that rounds more than another has to be `FASTER` than it.

    Args:
        matrices: used one after the other in each go.
        ways: to choose from; the first one if none of them can be used.
        trials: what to time.
        rather: a way of these kinds is taken if it takes at most `WORTH` times as long.
    """
    wanted = [_reference(matrix) for matrix in matrices]
    packed = {way: found for way in ways if (found := _all_packed(matrices, wanted, way))}
    if not packed:
        return ways[0]
    times = _times(matrices, packed, trials)
    least = min(map(_rounds, times))
    careful = {way: ns for way, ns in times.items() if _rounds(way) == least}
    if min(careful.values()) <= FASTER * min(times.values()):
        times = careful
    best = min(times.values())
    good = [way for way in times if way.kind in rather and times[way] <= WORTH * best]
    return min(good or times, key=times.__getitem__)


def _ways(source: Source, device: str, dtype: str) -> list[Way]:
    """The ways worth trying, plain ones first."""
    exact = devices.exact_in_half(source)
    if dtype != "auto":
        return [Way(dtype, kind) for kind in _kinds(device, dtype, exact)]
    usual = devices.dtype("auto", device)
    ways = [Way(usual, kind) for kind in _kinds(device, usual, exact)]
    if device == "cpu":  # float16 would be faster still, but packing it takes as long as a run
        ways.append(Way("bfloat16", "onednn"))  # other kinds need no less time than float32
    return ways


def _kinds(device: str, dtype: str, exact: bool) -> tuple[Kind, ...]:
    return linear.kinds(device, devices.DTYPES[dtype], exact_in_half=exact)


def _plan(device: str, way: Way, head: Kind) -> Plan:
    return Plan(device, devices.DTYPES[way.dtype], way.kind, head)


def _item(way: Way) -> int:
    return linear.item_bytes(way.kind, devices.DTYPES[way.dtype])


def _rounds(way: Way) -> int:
    """How many things the way rounds: none, the weights, or the rows to 8 bits as well."""
    return (way.dtype != "float32") + (way.kind == "int8_rows")


def _matrix(source: Source, name: str, form: Form = "product") -> Matrix:
    weight, bias = (numbers(source, f"h.0.{name}.{part}") for part in ("weight", "bias"))
    return Matrix(weight, bias, form)


def _head(source: Source) -> Matrix:
    return Matrix(numbers(source, head_name(source), n_rows=HEAD_ROWS).T, None)


def _fingerprint(source: Source, dtype: str, ways: Sequence[Way], threads: Threads) -> Fingerprint:
    """All that the choice depends on; if any of it changes, the ways are timed anew."""
    return {
        "dtype": dtype,
        "ways": " ".join(f"{way.dtype}-{way.kind}" for way in ways),
        "n_embd": source.config.dimensions.n_embd,
        "head": head_name(source),
        "decode": threads.decode,
        "prefill": threads.prefill,
        **meter.fingerprint("cpu"),
    }


def _kept(value: object, ways: Sequence[Way]) -> tuple[Way, Way] | None:
    """Layers and head as they were kept, if they are among the ways."""
    if not isinstance(value, list) or len(value) != 3:
        return None
    layers = [way for way in ways if [way.dtype, way.kind] == value[:2]]
    head = [way for way in ways if [way.dtype, way.kind] == [value[0], value[2]]]
    return (layers[0], head[0]) if layers and head else None


def _right(matrix: Matrix, way: Way) -> bool:
    return _packed(matrix, _reference(matrix), way) is not None


def _all_packed(
    matrices: Sequence[Matrix], wanted: Sequence[Sequence[torch.Tensor]], way: Way
) -> list[Linear]:
    """All matrices packed, or none where one of them cannot be or answers differently."""
    packed: list[Linear] = []
    for pair in zip(matrices, wanted, strict=True):
        if (one := _packed(*pair, way)) is None:
            return []
        packed.append(one)
    return packed


def _packed(matrix: Matrix, wanted: Sequence[torch.Tensor], way: Way) -> Linear | None:
    """The packed layer, or None where it cannot be made or answers differently."""
    try:
        packed = _pack(matrix, way)
        found = _answers(packed, *matrix.weight.shape)
    except (RuntimeError, EngineError):  # torch does not have it here, or the numbers do not fit
        return None
    bound = linear.TOLERANCE[devices.DTYPES[way.dtype]]
    return packed if all(_close(a, b, bound) for a, b in zip(found, wanted, strict=True)) else None


def _pack(matrix: Matrix, way: Way) -> Linear:
    dtype = devices.DTYPES[way.dtype]
    return linear.pack(matrix.weight, matrix.bias, dtype=dtype, kind=way.kind)


def _reference(matrix: Matrix) -> Sequence[torch.Tensor]:
    return _answers(linear.pack(matrix.weight, matrix.bias), *matrix.weight.shape)


def _answers(packed: Linear, n_in: int, n_out: int) -> Sequence[torch.Tensor]:
    """What a layer says of three random rows, in each of its ways."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(3, n_in, generator=random)
    residual = torch.randn(3, n_out, generator=random)
    with torch.inference_mode():
        return packed(x), packed.gelu(x), packed.add(x, residual)


def _close(found: torch.Tensor, wanted: torch.Tensor, bound: float) -> bool:
    worst = (found.float() - wanted).abs().max()
    return bool(worst <= bound * wanted.abs().max())


def _times(
    matrices: Sequence[Matrix], packed: dict[Way, list[Linear]], trials: Sequence[Trial]
) -> dict[Way, int]:
    """Nanoseconds over all trials, of each way that is not hopeless."""
    caches = torch.zeros(CACHES // 4)
    few = np.zeros((FEW, FEW), np.float32)
    small = {way: _pack(Matrix(few, few[0]), way) for way in packed}
    times = dict.fromkeys(packed, 0)
    for trial in trials:
        linear.use_threads(trial.n_threads)
        best: dict[Way, int] = {}
        for n in range(ROUNDS):
            for way, linears in packed.items():
                if n and best[way] > HOPELESS * min(best.values()):
                    continue
                took = _time(matrices, linears, small[way], trial.n_rows, caches)
                best[way] = min(took, best.get(way, took))
        for way, ns in best.items():
            times[way] += ns * trial.n_times
    return times


def _time(
    matrices: Sequence[Matrix],
    linears: Sequence[Linear],
    small: Linear,
    n_rows: int,
    caches: torch.Tensor,
) -> int:
    shapes = [matrix.weight.shape for matrix in matrices]
    rows = [(torch.zeros(n_rows, n_in), torch.zeros(n_rows, n_out)) for n_in, n_out in shapes]
    with torch.inference_mode():
        caches.sum()
        small(torch.zeros(n_rows, FEW))
        start = now_ns()
        for matrix, one, (x, residual) in zip(matrices, linears, rows, strict=True):
            if matrix.form == "add":
                one.add(x, residual)
            elif matrix.form == "gelu":
                one.gelu(x)
            else:
                one(x)
        return now_ns() - start
