"""What a race comes to, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench.race import Race
from bench.table import BARE, QUIET, Ratio, n_alike, prefill_fractions, ratios, rows, text_table

UNKNOWN = "-"


def lines(race: Race) -> Iterator[str]:
    """The limits of the machine, a row for every engine and prompt, the ratios, and the notes."""
    roofs = race.roofs
    rates = "".join(f", {x.flops / 1e9:,.0f} GFLOP/s {name}" for name, x in roofs.limits.items())
    read = f"{roofs.bandwidth / 1e9:.1f} GB/s read"
    yield f"limits of this machine, the best of all rounds: {read}{rates}"
    yield ""
    yield _rows(race)
    found = ratios(race.runs)
    if peers := [ratio for ratio in found if ratio.against != BARE]:
        yield ""
        yield "ours over theirs, more than 1 is ours faster (peak: ours over theirs in bytes)"
        yield _ratios(race, peers)
    if bare := [ratio for ratio in found if ratio.against == BARE]:
        yield ""
        yield "recording on over off"
        yield text_table(
            ("dtype", "prompt", "decode", "first token"),
            [(r.dtype, r.prompt, _times(r.decode, r.busy), _times(r.first, r.busy)) for r in bare],
        )
    yield ""
    yield from _disturbance(race, found)
    yield from race.notes


def _rows(race: Race) -> str:
    prefill = prefill_fractions(race.runs, race.loaded, race.roofs)
    alike = n_alike(race.runs)
    table = []
    for row in rows(race.runs, race.loaded, race.roofs, threads=race.n_threads):
        key = (row.engine, row.dtype, row.prompt)
        table.append(
            (
                row.engine,
                row.dtype,
                row.prompt,
                f"{row.ttft_ms:.1f}",
                UNKNOWN if row.decode_tok_s is None else f"{row.decode_tok_s:.1f}",
                f"{row.load_s:.2f}",
                UNKNOWN if row.peak_rss_bytes is None else f"{row.peak_rss_bytes / 1e6:,.0f}",
                _percent(prefill[key]),
                _percent(row.floor_fraction),
                "{} of {}".format(*alike[key]) if key in alike else UNKNOWN,
            )
        )
    head = ("engine", "dtype", "prompt", "TTFT ms", "tok/s", "load s", "peak MB")
    return text_table((*head, "prefill of floor", "decode of floor", "ids as ours"), table)


def _ratios(race: Race, found: Sequence[Ratio]) -> str:
    table = []
    for ratio in found:
        ours = race.loaded["ours", ratio.dtype].peak_rss_bytes
        theirs = race.loaded[ratio.against, ratio.dtype].peak_rss_bytes
        table.append(
            (
                ratio.against,
                ratio.dtype,
                ratio.prompt,
                _times(ratio.decode, ratio.busy),
                _times(ratio.first, ratio.busy),
                _times(ours / theirs if ours and theirs else None, False),
            )
        )
    return text_table(("against", "dtype", "prompt", "decode", "first token", "peak"), table)


def _disturbance(race: Race, found: Sequence[Ratio]) -> Iterator[str]:
    """How far others used the processor, and what that means for the ratios."""
    shares = [run.foreign for run in race.runs if run.foreign is not None]
    if not shares:
        yield "whether others used the processor is not known on this system"
        return
    n_busy = sum(not run.quiet for run in race.runs)
    yield (
        f"others used {100 * median(shares):.0f} % of the processors in the median run and "
        f"{100 * max(shares):.0f} % at most; {n_busy} of {len(race.runs)} runs were disturbed "
        f"(more than {100 * QUIET:.0f} %) and count only where no undisturbed one is left"
    )
    if any(ratio.busy for ratio in found):
        yield "? = no round was undisturbed on both sides: take this ratio for a hint, no more"


def _times(ratio: float | None, busy: bool) -> str:
    return UNKNOWN if ratio is None else f"{ratio:.2f}{'?' if busy else ''}"


def _percent(fraction: float | None) -> str:
    return UNKNOWN if fraction is None else f"{100 * fraction:.0f} %"
