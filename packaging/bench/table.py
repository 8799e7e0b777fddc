"""From single runs to medians, fractions of the floors, ratios, and the lines that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from engine.events import Dimensions
from engine.floors import SECOND, Limits, floors
from engine.meter import work

QUIET = 0.05  # foreign share up to which a run counts as undisturbed
OURS = "ours"
BARE = "ours, recording off"


@dataclass(frozen=True, slots=True)
class Run:
    """One prompt, once, in one engine."""

    engine: str
    dtype: str
    prompt: int  # tokens
    round: int
    ids: tuple[int, ...]  # written
    first_s: float
    rest_s: float
    foreign: float | None  # share of the processors that others used, None: not known

    @property
    def tok_s(self) -> float | None:
        """Tokens a second after the first; None where there was no second."""
        return (len(self.ids) - 1) / self.rest_s if len(self.ids) > 1 else None

    @property
    def quiet(self) -> bool:
        """Nobody else was seen using the processor."""
        return self.foreign is None or self.foreign <= QUIET


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is known of an engine before it runs, and its peak after."""

    load_s: float
    item_weight: int  # bytes
    peak_rss_bytes: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One engine and prompt in `--json`: medians over the rounds."""

    engine: str
    dtype: str
    threads: int
    prompt: int
    ttft_ms: float
    decode_tok_s: float | None
    load_s: float
    peak_rss_bytes: int | None  # of the process, which has read all prompts
    floor_fraction: float | None  # of decode: the time its floor allows over the time it took


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours over theirs, both speeds: more than 1 is ours faster."""

    against: str
    dtype: str
    prompt: int
    decode: float | None
    first: float
    busy: bool  # not one round was undisturbed, so this says little


@dataclass(frozen=True, slots=True)
class Roofs:
    """What no pass of a model can be faster than on this machine.

    A pass waits for its bytes or for its multiplications, whichever takes longer: the memory and
    the compute floor of `engine.floors`. What Python costs is left out, as engines differ in that.
    """

    dimensions: Dimensions
    limits: Mapping[str, Limits]  # by dtype, one at least; a dtype without is held to the memory

    @property
    def bandwidth(self) -> float:
        """Bytes a second; memory does not mind what is multiplied, so the best of all dtypes."""
        return max(limits.bandwidth for limits in self.limits.values())

    def prefill_s(self, n: int, dtype: str, item: int) -> float | None:
        """Of reading a prompt of n tokens; None where the rate of this dtype is not known."""
        return self._least_s(0, n, dtype, item) if dtype in self.limits else None

    def decode_s(self, prompt: int, n_steps: int, dtype: str, item: int) -> float:
        """Of so many single steps after a prompt."""
        return sum(self._least_s(prompt + step, 1, dtype, item) for step in range(n_steps))

    def _least_s(self, first: int, count: int, dtype: str, item: int) -> float:
        must = work(self.dimensions, first, count, item_weight=item, item_kv=4)
        known = self.limits.get(dtype)
        limits = replace(known or next(iter(self.limits.values())), bandwidth=self.bandwidth)
        found = floors(must, limits, n_operations=0, n_launches=0)
        return max(found.memory_ns, found.compute_ns if known else 0.0) / SECOND


def best(found: Sequence[Limits]) -> Limits:
    """Of several measurements of the same, the highest rates: what it can do when it is let."""
    return replace(
        found[0],
        bandwidth=max(limits.bandwidth for limits in found),
        flops=max(limits.flops for limits in found),
    )


def rows(
    runs: Sequence[Run], loaded: dict[tuple[str, str], Loaded], roofs: Roofs, *, threads: int
) -> list[Row]:
    """One for every engine, dtype and prompt, in the order they ran."""
    return [
        Row(
            engine=engine,
            dtype=dtype,
            threads=threads,
            prompt=prompt,
            ttft_ms=round(1e3 * median(run.first_s for run in found), 3),
            decode_tok_s=_rounded(_median(run.tok_s for run in found), 2),
            load_s=round(loaded[engine, dtype].load_s, 3),
            peak_rss_bytes=loaded[engine, dtype].peak_rss_bytes,
            floor_fraction=_rounded(
                _median(_decode_fraction(run, roofs, loaded[engine, dtype]) for run in found), 3
            ),
        )
        for (engine, dtype, prompt), found in _counted(runs).items()
    ]


def prefill_fractions(
    runs: Sequence[Run], loaded: dict[tuple[str, str], Loaded], roofs: Roofs
) -> dict[tuple[str, str, int], float | None]:
    """The floor of reading the prompt over the time to the first token."""
    return {
        key: _median(
            floor / run.first_s if (floor := _prefill_floor(run, roofs, loaded)) else None
            for run in found
        )
        for key, found in _counted(runs).items()
    }


def ratios(runs: Sequence[Run]) -> list[Ratio]:
    """Ours against every other, dtype by dtype: medians over the rounds of the rounds' ratios.

    Only rounds in which both ran undisturbed count; if there is none, all do, and `busy` says so.
    """
    by_round = {(r.engine, r.dtype, r.prompt, r.round): r for r in runs}
    pairs: dict[tuple[str, str, int], list[tuple[Run, Run]]] = {}
    for theirs in runs:
        ours = by_round.get((OURS, theirs.dtype, theirs.prompt, theirs.round))
        if ours is not None and theirs.engine != OURS:
            key = (theirs.engine, theirs.dtype, theirs.prompt)
            pairs.setdefault(key, []).append((ours, theirs))
    found = []
    for (engine, dtype, prompt), both in pairs.items():
        quiet = [pair for pair in both if all(run.quiet for run in pair)]
        counted = quiet or both
        decode = _median(a.tok_s / b.tok_s if a.tok_s and b.tok_s else None for a, b in counted)
        first = median(b.first_s / a.first_s for a, b in counted)
        found.append(Ratio(engine, dtype, prompt, decode, first, busy=not quiet))
    return found


def n_alike(runs: Sequence[Run]) -> dict[tuple[str, str, int], tuple[int, int]]:
    """How many of each engine's first ids are those of ours in the same dtype, and of how many."""
    ours = {(r.dtype, r.prompt): r.ids for r in runs if r.engine == OURS}
    found = {}
    for run in runs:
        wanted = ours.get((run.dtype, run.prompt))
        if wanted is not None and run.engine != OURS:
            pairs = list(zip(run.ids, wanted, strict=False))
            same = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
            found[run.engine, run.dtype, run.prompt] = (same, len(pairs))
    return found


def text_table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Columns as wide as they must be; the first two to the left, the others to the right.

    >>> print(text_table(["engine", "n"], [["ours", "1"]]))
    engine  n
    ours    1
    """
    cells = [[str(cell) for cell in line] for line in (head, *lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides: list[Callable[[str, int], str]] = [str.ljust, str.ljust]
    sides += [str.rjust] * (len(head) - 2)
    return "\n".join(
        "  ".join(side(cell, n) for side, cell, n in zip(sides, line, widths, strict=True)).rstrip()
        for line in cells
    )


def _counted(runs: Sequence[Run]) -> dict[tuple[str, str, int], list[Run]]:
    """The undisturbed runs of each engine and prompt, or all of them where there is none."""
    found: dict[tuple[str, str, int], list[Run]] = {}
    for run in runs:
        found.setdefault((run.engine, run.dtype, run.prompt), []).append(run)
    return {key: [run for run in all_ if run.quiet] or all_ for key, all_ in found.items()}


def _decode_fraction(run: Run, roofs: Roofs, loaded: Loaded) -> float | None:
    n_steps = len(run.ids) - 1
    if n_steps < 1:
        return None
    return roofs.decode_s(run.prompt, n_steps, run.dtype, loaded.item_weight) / run.rest_s


def _prefill_floor(run: Run, roofs: Roofs, loaded: dict[tuple[str, str], Loaded]) -> float | None:
    item = loaded[run.engine, run.dtype].item_weight
    return roofs.prefill_s(run.prompt, run.dtype, item)


def _median(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return median(known) if known else None


def _rounded(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)
