"""What the Timeline says: times and rates, and hints with the numbers that figures are made of."""

from __future__ import annotations

import math
from functools import lru_cache

from app import texts
from engine.events import Forward
from engine.timing import Timing, length
from engine.tokenizer import visible
from engine.trace import Moment


def say(name: str, **facts: object) -> str:
    """The panel's words of this name."""
    return texts.text(f"panel.timeline.{name}", **facts)


def duration(ns: float | None) -> str:
    """Nanoseconds in the unit that people compare, three digits or so."""
    if ns is None:
        return say("none")
    ms = ns / 1e6
    if ms >= 10_000:
        return say("s", value=f"{ms / 1e3:,.1f}")
    decimals = 0 if ms >= 100 else 1 if ms >= 1 else 3
    return say("ms", value=f"{ms:,.{decimals}f}")


@lru_cache(maxsize=1024)
def tick(ns: float, step: float) -> str:
    """A time on an axis whose marks are `step` apart, all of them in one unit and precision."""
    unit, per_unit = ("s", 1e9) if step >= 1e9 else ("ms", 1e6)
    decimals = max(0, -math.floor(math.log10(step / per_unit) + 1e-9))
    return say(unit, value=f"{ns / per_unit:,.{decimals}f}")


def rate(tok_s: float | None) -> str:
    """Tokens a second."""
    return say("none") if tok_s is None else say("rate", value=f"{tok_s:,.0f}")


def figures(timing: Timing) -> str:
    """The line beside the title."""
    return say(
        "subtitle",
        ttft=duration(timing.ttft_ns),
        prefill=rate(timing.prefill_tok_s),
        decode=rate(timing.decode_tok_s),
        p50=duration(timing.itl_percentile(50)),
        p95=duration(timing.itl_percentile(95)),
    )


def hint_of_run(moment: Moment) -> str:
    """The figures of the title row, each with the numbers that it is made of."""
    timing = moment.timing
    first = None if not timing.samples else length(timing.samples[0].span)
    return say(
        "hint_run",
        ttft=duration(timing.ttft_ns),
        tokenize=duration(timing.tokenize_ns),
        prefill=duration(timing.prefill_ns),
        draw=duration(first),
        prefill_rate=rate(timing.prefill_tok_s),
        n_read=timing.forwards[0].count,
        decode_rate=rate(timing.decode_tok_s),
        n_itl=len(timing.itl_ns),
        itl=duration(sum(timing.itl_ns) if timing.itl_ns else None),
        p50=duration(timing.itl_percentile(50)),
        p95=duration(timing.itl_percentile(95)),
        waited=duration(sum(forward.waited_ns for forward in timing.forwards)),
    )


def hint_of_step(moment: Moment, step: int) -> str:
    """What one step did, how long it took and what the model itself needs for it."""
    forward, drawn = moment.trace.forwards[step], moment.sample_at(step)
    last = forward.first + forward.count - 1
    token = visible(moment.trace.tokens[last].piece)
    lines = [say(f"hint_{forward.phase}", n=forward.count, last=last, token=token)]
    if forward.reused:
        lines.append(say("hint_reused", n=forward.reused))
    took = length(forward.span)
    if drawn is None:
        lines.append(say("hint_undrawn", took=duration(took)))
    else:
        tokenized = moment.timing.tokenize_ns if step == 0 else 0
        total = took + length(drawn.span) + tokenized
        lines += [
            say("hint_drawn", token=visible(drawn.token.piece), position=drawn.position),
            say(
                "hint_itl" if step else "hint_ttft",
                total=duration(total),
                tokenize=duration(tokenized),
                took=duration(took),
                draw=duration(length(drawn.span)),
            ),
        ]
    started = moment.started
    return "\n".join(
        [
            *lines,
            say("hint_waited", time=duration(forward.waited_ns)),
            _hint_of_work(moment, forward),
            say(
                "hint_where",
                machine=started.machine.name,
                device=started.device,
                dtype=started.dtype,
            ),
        ]
    )


def _hint_of_work(moment: Moment, forward: Forward) -> str:
    """What the pass has to compute and move, as `engine.meter.work` has it, in numbers."""
    d, work, count = moment.trace.dimensions, forward.work, forward.count
    moved = forward.first + 2 * count
    return say(
        "hint_work",
        flops=work.flops,
        matrices=12 * d.n_layer * d.n_embd**2,
        count=count,
        n_vocab=d.n_vocab,
        n_embd=d.n_embd,
        n_layer=d.n_layer,
        pairs=count * forward.first + count * (count + 1) // 2,
        weight_bytes=work.weight_bytes,
        kv_bytes=work.kv_bytes,
        per_position=work.kv_bytes // moved,
        n_read=forward.first + count,
    )
