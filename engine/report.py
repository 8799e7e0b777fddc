"""The one table of a run's figures behind --json and run.json."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine import __version__, tokenizer
from engine.events import RunFailed
from engine.meter import peak_rss_bytes
from engine.timing import Timing
from engine.tokenizer import END_OF_TEXT
from engine.trace import Trace


def report(trace: Trace) -> dict[str, Any]:
    """Everything about a run that fits in a page, as plain JSON values.

    Times are the model's own (see `engine.timing`), in milliseconds; sizes in bytes. A figure that
    the run did not reach is None. `text` is what was written, without the end-of-text mark.
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
