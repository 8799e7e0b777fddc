"""Choosing how to multiply: by the clock, on cold weights, and never a way that answers wrongly."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import choice, kept_file, linear, meter, resources, weights
from engine.choice import Matrix, Threads, Trial, Way, fastest, plan
from engine.linear import Kind
from engine.models.packing import Plan

TRIALS = (Trial(1, 1, 64), Trial(8, 1, 1))
EXACT: tuple[Kind, ...] = ("linear", "columns", "onednn", "half", "half_serial")
FLOAT = [Way("float32", kind) for kind in EXACT]
THREADS = Threads(decode=1, prefill=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(choice, "CACHES", 4)  # reading 64 MiB between two goes takes a while
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(1)


def matrix() -> Matrix:
    """Weights that float16 holds exactly, so that every kind computes the same thing."""
    r = np.random.default_rng(0)
    weight = r.normal(0, 0.15, (48, 112)).astype(np.float16).astype(np.float32)
    return Matrix(weight, r.normal(0, 1, 112).astype(np.float32))


def clock(monkeypatch: pytest.MonkeyPatch, ns: dict[Way, tuple[int, int]]) -> None:
    """A made-up clock: how long each way takes for one row, and for more."""
    by_linear: dict[int, tuple[int, int]] = {}
    packed = choice._packed

    def packing(matrix: Matrix, wanted: Sequence[torch.Tensor], way: Way) -> linear.Linear | None:
        found = packed(matrix, wanted, way)
        if found is not None:
            by_linear[id(found)] = ns[way]
        return found

    monkeypatch.setattr(choice, "_packed", packing)
    monkeypatch.setattr(
        choice,
        "_time",
        lambda _, packed, small, n_rows, caches: by_linear[id(packed[0])][min(n_rows, 2) - 1],
    )


def embedded(dtype: str = "auto") -> Plan:
    with weights.opened(resources.path("models", "decodescope-6x8")) as source:
        return plan(source, "cpu", dtype, THREADS)


@pytest.mark.parametrize(
    ("n_steps", "rather", "chosen"),
    [
        (64, (), "linear"),
        (200, (), "columns"),
        (100, ("columns",), "columns"),  # 1,010 against 1,100: hardly longer
        (90, ("columns",), "linear"),  # 910 against 1,090: too long
        (200, ("linear",), "columns"),
    ],
)
def test_the_fastest_over_all_trials_is_chosen_or_one_preferred_that_is_hardly_slower(
    n_steps: int, rather: tuple[Kind, ...], chosen: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = FLOAT[:2]
    clock(monkeypatch, {ways[0]: (10, 10), ways[1]: (1, 1_000)})
    trials = (Trial(1, 1, n_steps), Trial(8, 1, 1))
    found = fastest([matrix()], ways, trials, rather=rather)
    assert found.kind == chosen  # 10 n_steps + 10 against n_steps + 1,000


@pytest.mark.parametrize(("ns", "dtype"), [(84, "float32"), (82, "bfloat16")])
def test_rounded_weights_must_be_a_fifth_faster(
    ns: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = [Way("float32", "columns"), Way("bfloat16", "linear")]
    clock(monkeypatch, {ways[0]: (100, 100), ways[1]: (ns, ns)})
    assert fastest([matrix()], ways, TRIALS).dtype == dtype  # 100 is 1.19 x 84, and 1.22 x 82


@pytest.mark.skipif(not linear.has_fbgemm(), reason="no int8 rows on this processor")
@pytest.mark.parametrize(("ns", "kind"), [(84, "int8"), (82, "int8_rows")])
def test_rounded_rows_must_be_a_fifth_faster_too(
    ns: int, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = [Way("int8", "int8"), Way("int8", "int8_rows")]
    clock(monkeypatch, {ways[0]: (100, 100), ways[1]: (ns, ns)})
    assert fastest([matrix()], ways, TRIALS).kind == kind


def test_int8_is_taken_if_it_is_asked_for_and_never_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Way] = []

    def first(matrix: Matrix, ways: Sequence[Way], *_: object, **__: object) -> Way:
        asked.extend(ways)
        return ways[0]

    monkeypatch.setattr(choice, "fastest", first)
    assert embedded("int8") == Plan("cpu", torch.int8, "int8", "int8")
    assert {way.dtype for way in asked} == {"int8"}
    asked.clear()
    embedded("auto")
    assert {way.dtype for way in asked} == {"float32", "bfloat16"}


def test_a_hopeless_way_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    ways = FLOAT[:2]
    clock(monkeypatch, {ways[0]: (1, 1), ways[1]: (5, 5)})
    made_up = choice._time

    def time(*given: object) -> int:
        tried.append(made_up(*given))  # type: ignore[arg-type]
        return tried[-1]

    monkeypatch.setattr(choice, "_time", time)
    assert fastest([matrix()], ways, TRIALS[:1]) == ways[0]
    assert (tried.count(1), tried.count(5)) == (5, 1)


def test_the_clock_finds_the_code_in_a_cache_and_the_weights_in_none() -> None:
    """In a step layer comes after layer: that a first call of all is slow tells nothing."""
    done: list[tuple[str, tuple[int, ...]]] = []

    class Said(linear.Linear):
        def __init__(self, name: str) -> None:
            self._name = name

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            done.append((self._name, tuple(x.shape)))
            return x

        def gelu(self, x: torch.Tensor) -> torch.Tensor:
            done.append((f"{self._name} gelu", tuple(x.shape)))
            return x

        def add(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
            done.append((f"{self._name} add", tuple(residual.shape)))
            return x

    class Caches:
        def sum(self) -> None:
            done.append(("caches", ()))

    weight = np.zeros((48, 96), np.float32)
    matrices = [Matrix(weight, None), Matrix(weight, None, "gelu"), Matrix(weight.T, None, "add")]
    layer = Said("layer")
    choice._time(matrices, [layer] * 3, Said("small"), 3, Caches())  # type: ignore[arg-type]
    assert done == [
        ("caches", ()),
        ("small", (3, 64)),
        ("layer", (3, 48)),
        ("layer gelu", (3, 48)),
        ("layer add", (3, 48)),
    ]


def test_the_choice_is_one_that_works_here() -> None:
    found = fastest([matrix()], FLOAT, TRIALS)
    assert linear.pack(matrix().weight, matrix().bias, kind=found.kind).nbytes > 0


@pytest.mark.parametrize("wrong", ["__call__", "gelu", "add"])
def test_a_way_that_answers_wrongly_is_never_chosen(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear._OneDnn, wrong, lambda self, x, *more: torch.zeros(len(x), 112))
    assert fastest([matrix()], [FLOAT[0], FLOAT[2]], TRIALS).kind == "linear"


@pytest.mark.parametrize("kind", ["onednn", "half", "half_serial"])
def test_what_this_torch_does_not_have_is_not_chosen(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(place: object, name: str) -> None:
        raise RuntimeError(name)

    monkeypatch.setattr(linear, "_found", missing)
    assert fastest([matrix()], [FLOAT[0], Way("float32", kind)], TRIALS).kind == "linear"


def test_what_float16_cannot_hold_is_not_tried_in_it() -> None:
    large = matrix()
    large.weight[0, 0] = 70_000.0
    ways = [Way("float32", "linear"), Way("float16", "half")]
    assert fastest([large], ways, TRIALS).dtype == "float32"


def test_a_choice_is_kept_and_not_timed_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter.Watch, "quiet", True)
    first = embedded()
    assert [file.name for file in folder.iterdir()] == ["packing-auto-256-1.json"]
    monkeypatch.setattr(choice, "fastest", None)
    assert embedded() == first


def test_a_choice_made_while_other_programs_worked_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter.Watch, "quiet", False)
    embedded()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "value", [None, 3, [], ["float32", "half"], ["float32", "magic", "linear"], ["int3"] * 3]
)
def test_what_was_kept_is_used_only_if_it_makes_sense(value: kept_file.Json) -> None:
    assert choice._kept(value, FLOAT) is None


def test_a_kept_way_that_no_longer_answers_rightly_is_timed_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        kept_file, "read", lambda name, fingerprint: ["float32", "onednn", "onednn"]
    )
    monkeypatch.setattr(linear._OneDnn, "__call__", lambda self, x: torch.zeros(1, 1))
    assert embedded().layers != "onednn"


def test_a_model_too_small_for_the_clock_is_packed_plainly(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "SMALL", 10**9)
    monkeypatch.setattr(choice, "fastest", None)
    assert embedded() == Plan("cpu", torch.float32, "linear", "linear")


def test_a_card_is_not_asked_by_the_clock_of_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "fastest", None)
    with weights.opened(resources.path("models", "decodescope-6x8")) as source:
        found = plan(source, "cuda", "auto", THREADS)
    assert found == Plan("cuda", torch.float16, "linear", "linear")
