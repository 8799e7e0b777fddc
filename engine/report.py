"""The one table of a run's figures behind --json and run.json."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from engine import __version__, tokenizer
from engine.events import Forward, Phase, RunFailed
from engine.floors import Limits, Rating
from engine.meter import peak_rss_bytes
from engine.timing import Timing, length
from engine.tokenizer import END_OF_TEXT
from engine.trace import Trace

Ratings = dict[Phase, Rating | None]


def report(trace: Trace, ratings: Ratings | None = None) -> dict[str, Any]:
    """Everything about a run that fits in a page, as plain JSON values.

    Times are the model's own (see `engine.timing`), in milliseconds; sizes in bytes. A figure that
    the run did not reach is None. `text` is what was written, without the end-of-text mark.
    `limits` is there only if there are ratings.
    """
    assert trace.started is not None
    started, request = trace.started, trace.started.request
    ids = [sampled.token.id for sampled in trace.samples]
    memory = trace.forwards[-1].memory if trace.forwards else None
    return {
        "model": started.model.name,
        "sha256": started.sha256,
        "device": started.device,
        "dtype": started.dtype,
        "prompt_ids": [token.id for token in trace.tokens[: trace.n_prompt]],
        "ids": ids,
        "text": tokenizer.load().decode([id for id in ids if id != END_OF_TEXT]),
        "stop_reason": _stop_reason(trace),
        **_times(trace),
        "kv_used_bytes": memory.kv_used if memory else 0,
        "kv_reserved_bytes": memory.kv_reserved if memory else None,
        "weight_bytes": started.weight_bytes,
        "peak_rss_bytes": peak_rss_bytes(),
        "sampling": asdict(request.sampling),
        "seed": request.seed,
        "version": __version__,
        **({} if ratings is None else {"limits": {p: _limits(r) for p, r in ratings.items()}}),
    }


def summary(trace: Trace) -> str:
    """The figures of a run in one line, for a terminal."""
    figures = _times(trace)
    parts = [
        f"TTFT {_ms(figures['ttft_ms'])}",
        f"prefill {_ms(figures['prefill_ms'])}",
        f"decode {_number(figures['decode_tok_s'], '.0f')} tok/s",
        f"ITL p50 {_ms(figures['itl_ms']['p50'])} p95 {_ms(figures['itl_ms']['p95'])}",
        f"{len(trace.samples)} tokens",
        f"ended: {_stop_reason(trace)}",
    ]
    return "  ·  ".join(parts)


def ratings(trace: Trace, rate: Callable[[Forward], Rating]) -> Ratings:
    """The prefill, and the decode step of median length, against what the machine can do at most.

    None stands for a pass that the run did not reach.
    """
    steps = sorted(trace.forwards[1:], key=lambda forward: length(forward.span))
    median = steps[(len(steps) - 1) // 2 :][:1]
    return {
        "prefill": next(map(rate, trace.forwards[:1]), None),
        "decode": next(map(rate, median), None),
    }


def limits_lines(ratings: Ratings) -> list[str]:
    """The ratings for a terminal, and what they rest on: ● is measured, ≈ theory, ƒ derived."""
    rated = {phase: rating for phase, rating in ratings.items() if rating is not None}
    lines = [_rating_line(phase, rating) for phase, rating in rated.items()]
    machines = dict.fromkeys(rating.limits for rating in rated.values())  # in order, each once
    return [*lines, *map(_machine_line, machines)]


def _rating_line(phase: Phase, rating: Rating) -> str:
    floors, verdict = rating.floors, rating.verdict
    what = f"{rating.count} tokens" if phase == "prefill" else "median step"
    times = {"memory": floors.memory_ns, "compute": floors.compute_ns}
    times |= {"dispatch": floors.dispatch_ns}
    if rating.limits.launch_ns is not None:
        times |= {"launch": floors.launch_ns}
    at_least = ", ".join(f"{name} {_ms(ns / 1e6)}" for name, ns in times.items())
    if verdict.explains:
        held = f"{verdict.bound}-bound, {verdict.nearness:.0%} of that floor"
    else:
        held = f"held by no floor ({verdict.bound} is {verdict.nearness:.0%})"
    parts = [
        f"{phase}, {what}",
        f"● {_ms(rating.span_ns / 1e6)}",
        f"≈ {_ms(floors.predicted_ns / 1e6)}: {at_least}",
        f"ƒ {held}, MBU {rating.mbu:.0%}, MFU {rating.mfu:.0%}",
    ]
    return "  ·  ".join(parts)


def _machine_line(limits: Limits) -> str:
    parts = [
        f"limits, {limits.n_threads} thread{'s' if limits.n_threads != 1 else ''}",
        f"● {limits.bandwidth / 1e9:.1f} GB/s",
        f"{limits.flops / 1e9:.1f} GFLOP/s ({limits.dtype}, {limits.matrix})",
        f"{limits.dispatch_ns / 1e3:.1f} µs an operation",
    ]
    if limits.launch_ns is not None:
        parts.append(f"{limits.launch_ns / 1e3:.1f} µs a launch")
    if not limits.quiet:
        parts.append("too low: other programs were working")
    return "  ·  ".join(parts)


def _limits(rating: Rating | None) -> dict[str, Any] | None:
    if rating is None:
        return None
    floors, verdict = rating.floors, rating.verdict
    return {
        "n_tokens": rating.count,
        "measured_ms": _in_ms(rating.span_ns),
        "floors_ms": {
            "memory": _in_ms(floors.memory_ns),
            "compute": _in_ms(floors.compute_ns),
            "dispatch": _in_ms(floors.dispatch_ns),
            "launch": _in_ms(floors.launch_ns),
        },
        "predicted_ms": _in_ms(floors.predicted_ns),
        "bound": verdict.bound,
        "nearness": verdict.nearness,
        "explains": verdict.explains,
        "mbu": rating.mbu,
        "mfu": rating.mfu,
        "n_operations": rating.n_operations,
        "n_launches": rating.n_launches,
        "machine": asdict(rating.limits),
    }


def _times(trace: Trace) -> dict[str, Any]:
    if trace.tokenized is None:
        empty = dict.fromkeys(("p50", "p95", "max"))
        return {"ttft_ms": None, "prefill_ms": None, "itl_ms": empty, "decode_tok_s": None}
    timing = Timing(trace.tokenized, trace.forwards, trace.samples)
    return {
        "ttft_ms": _in_ms(timing.ttft_ns),
        "prefill_ms": _in_ms(timing.prefill_ns),
        "itl_ms": {
            "p50": _in_ms(timing.itl_percentile(50)),
            "p95": _in_ms(timing.itl_percentile(95)),
            "max": _in_ms(max(timing.itl_ns, default=None)),
        },
        "decode_tok_s": timing.decode_tok_s,
    }


def _stop_reason(trace: Trace) -> str | None:
    if trace.ended is None:
        return None
    return "failed" if isinstance(trace.ended, RunFailed) else trace.ended.reason


def _in_ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


def _ms(value: float | None) -> str:
    return f"{_number(value, '.1f')} ms"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
