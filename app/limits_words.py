"""What the Timeline says of the machine's limits: the verdict, the floors, and their formulas."""

from __future__ import annotations

from dataclasses import replace

from app.limits import Known, Missing
from app.selection import Scene
from app.timeline_words import duration, say, tick
from app.widgets.floor_bars import Row, Sheet
from app.widgets.marks import Mark
from engine.events import Forward, RunStarted
from engine.floors import Limits, Rating

BUTTONS = {"unmeasured": "limits_measure", "failed": "limits_again"}


def sheet(scene: Scene) -> Sheet | None:
    """The bars of the selected pass, or the sentence that says why there are none.

    None before a run, and before anybody has looked what is known of the limits.
    """
    moment, step, known = scene.moment, scene.chosen_step, scene.limits
    if moment is None or step is None or known is None:
        return None
    forward = moment.trace.forwards[step]
    rating = known.rating(moment.started, forward)
    if isinstance(rating, str):
        button = BUTTONS.get(rating)
        words = _missing(rating, known, moment.started)
        return Sheet(words, button="" if button is None else say(button))
    head, figure = verdict(rating)
    return Sheet(
        head,
        figure,
        say("limits_step", n=step + 1) if step else say("prefill_word"),
        _rows(rating, forward),
        "" if known.quiet else say("limits_busy"),
        "" if known.quiet else say("limits_again"),
    )


def verdict(rating: Rating) -> tuple[str, str]:
    """What held a pass back, and the figure that says how much."""
    found = rating.verdict
    share, floor = percent(found.nearness), say(f"floor_{found.bound}")
    if not found.explains:
        return say("limits_no_floor"), say("limits_highest", floor=floor, percent=share)
    if found.nearness > 1:
        return say("limits_beaten", floor=floor), share
    return say(f"limits_{found.bound}"), say("limits_near", percent=share)


def hint(scene: Scene) -> str:
    """The formulas of all figures of the selected pass, with the numbers that they are made of."""
    moment, step, known = scene.moment, scene.chosen_step, scene.limits
    if moment is None or step is None or known is None:
        return ""
    forward = moment.trace.forwards[step]
    rating = known.rating(moment.started, forward)
    if isinstance(rating, str):
        return _missing(rating, known, moment.started)
    took = duration(rating.span_ns)
    lines = [
        say(f"hint_limits_{forward.phase}", step=step + 1, n=forward.count, took=took),
        *_floor_lines(rating, forward),
        *_verdict_lines(rating),
        *_use_lines(rating, forward),
        *_limits_lines(known, rating.limits),
    ]
    return "\n".join(lines)


def percent(share: float) -> str:
    """A share of 1 as people read it."""
    return say("percent", value=100 * share)


def _missing(reason: Missing, known: Known, started: RunStarted) -> str:
    if reason == "failed":
        return known.reason
    machine = started.machine.name
    return say(f"limits_{reason}", machine=machine, device=started.device, dtype=started.dtype)


def _rows(rating: Rating, forward: Forward) -> tuple[Row, ...]:
    """The measured time, what it should be, and the floors; the highest of these stays longest."""
    floors, found = rating.floors, rating.verdict
    shares = {"memory": say("mbu", percent=percent(rating.mbu))}
    shares |= {"compute": say("mfu", percent=percent(rating.mfu))}
    times = {"memory": floors.memory_ns, "compute": floors.compute_ns}
    times |= {"dispatch": floors.dispatch_ns}
    if floors.queued:
        times |= {"launch": floors.launch_ns}
    precision = _precision(rating.span_ns)

    def row(name: str, ns: float, mark: Mark, role: str, rank: int) -> Row:
        return Row(say(f"floor_{name}"), ns, tick(ns, precision), mark, role, rank=rank)

    rows = [
        row("measured", rating.span_ns, "measured", forward.phase, 0),
        row("predicted", floors.predicted_ns, "theory", "cut", len(times) + 1),
    ]
    for rank, (name, ns) in enumerate(times.items(), 1):
        holds = ns == found.floor_ns
        floor = row(name, ns, "theory", "muted" if holds else "weights", 0 if holds else rank)
        strong = holds and found.explains
        rows.append(replace(floor, share=shares.get(name, ""), strong=strong))
    return tuple(rows)


def _precision(span_ns: int) -> float:
    """To which ns times beside this one are said: all alike, with three digits of it or so."""
    if span_ns >= 100e6:
        return 1e6
    return 1e5 if span_ns >= 1e6 else 1e3


def _floor_lines(rating: Rating, forward: Forward) -> list[str]:
    floors, limits, work = rating.floors, rating.limits, forward.work
    queued = "_queued" if floors.queued else ""
    lines = [
        say(
            "hint_limits_memory",
            time=duration(floors.memory_ns),
            weights=work.weight_bytes,
            kv=work.kv_bytes,
            bandwidth=_bandwidth(limits),
        ),
        say(
            "hint_limits_compute",
            time=duration(floors.compute_ns),
            flops=work.flops,
            rate=_rate(limits),
        ),
        say(
            "hint_limits_dispatch",
            time=duration(floors.dispatch_ns),
            n=rating.n_operations,
            each=_us(limits.dispatch_ns),
        ),
    ]
    if limits.launch_ns is not None:
        each, time = _us(limits.launch_ns), duration(floors.launch_ns)
        lines.append(say("hint_limits_launch", time=time, n=rating.n_launches, each=each))
    predicted = duration(floors.predicted_ns)
    return [*lines, say(f"hint_limits_predicted{queued}", time=predicted)]


def _verdict_lines(rating: Rating) -> list[str]:
    found = rating.verdict
    near = say(
        "hint_limits_near",
        percent=percent(found.nearness),
        floor=say(f"floor_{found.bound}"),
        time=duration(found.floor_ns),
        took=duration(rating.span_ns),
    )
    if not found.explains:
        return [near, say("hint_limits_no_floor")]
    return [near, say("hint_limits_beaten")] if found.nearness > 1 else [near]


def _use_lines(rating: Rating, forward: Forward) -> list[str]:
    work, took = forward.work, duration(rating.span_ns)
    return [
        say(
            "hint_limits_mbu",
            percent=percent(rating.mbu),
            moved=work.weight_bytes + work.kv_bytes,
            took=took,
            bandwidth=_bandwidth(rating.limits),
        ),
        say(
            "hint_limits_mfu",
            percent=percent(rating.mfu),
            flops=work.flops,
            took=took,
            rate=_rate(rating.limits),
        ),
    ]


def _limits_lines(known: Known, limits: Limits) -> list[str]:
    where = say(
        "hint_limits_where_one" if limits.n_threads == 1 else "hint_limits_where",
        bandwidth=_bandwidth(limits),
        rate=_rate(limits),
        dtype=limits.dtype,
        matrix=limits.matrix,
        each=_us(limits.dispatch_ns),
        n=limits.n_threads,
        machine=known.place.machine,
    )
    return [where] if known.quiet else [where, say("hint_limits_busy")]


def _bandwidth(limits: Limits) -> str:
    return say("gb_s", value=limits.bandwidth / 1e9)


def _rate(limits: Limits) -> str:
    return say("gflop_s", value=limits.flops / 1e9)


def _us(ns: float) -> str:
    return say("us", value=ns / 1e3)
