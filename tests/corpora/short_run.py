"""A run of three steps in round milliseconds, made by hand so that every figure can be checked.

From the start: tokenize 1 ms, prefill of 2 tokens 10, draw 2; pass 4, draw 1; a wait of 50;
pass 6, draw 1.
"""

from __future__ import annotations

import numpy as np

from engine.events import (
    Dimensions,
    Event,
    Forward,
    Machine,
    Memory,
    Model,
    RunFinished,
    RunStarted,
    Sampled,
    Span,
    Token,
    Tokenized,
)
from engine.meter import work
from engine.request import Request, Sampling

MS = 1_000_000
START = 7_000 * MS  # of the clock, when the run began; it means nothing by itself
SMALL = Dimensions(n_layer=2, n_head=2, n_embd=8, n_positions=64, n_vocab=50_257)


def span(start: int, end: int) -> Span:
    """A span in ms from the run's start."""
    return START + start * MS, START + end * MS


def forward(first: int, count: int, start: int, end: int, *, waited: int = 0) -> Forward:
    """A pass from start to end ms, of two layers, the first of them 2 ms long."""
    return Forward(
        phase="decode" if first else "prefill",
        first=first,
        count=count,
        reused=0,
        span=span(start, end),
        layer_spans=(span(start, start + 2), span(start + 2, end)),
        waited_ns=waited * MS,
        memory=Memory(0, 0, 0, 0, 0, 0, 0, None),
        work=work(SMALL, first, count, item_weight=4, item_kv=4),
    )


def sampled(position: int, piece: bytes, start: int, end: int) -> Sampled:
    """A draw from start to end ms."""
    ids, numbers = np.zeros(1, np.int32), np.zeros(1)
    return Sampled(
        position=position,
        token=Token(100 + position, piece),
        coin=0.5,
        sampling=Sampling(),
        raw_prob=1.0,
        final_prob=1.0,
        n_kept=1,
        entropy=0.0,
        rank=0,
        span=span(start, end),
        top_ids=ids,
        top_raw=numbers,
        top_final=numbers,
    )


STARTED = RunStarted(
    request=Request("Hello you", max_tokens=3),
    model=Model("tiny", "Tiny", SMALL, verified=False),
    sha256="0" * 64,
    device="cpu",
    dtype="float32",
    weight_bytes=0,
    machine=Machine("A processor", 1),
    at_ns=START,
)
TOKENIZED = Tokenized((Token(15496, b"Hello"), Token(345, b" you")), span(0, 1))
PASSES = (
    forward(0, 2, 1, 11),
    forward(2, 1, 13, 17),
    forward(3, 1, 68, 74, waited=50),
)
DRAWS = (
    sampled(2, b" are", 11, 13),
    sampled(3, b" a", 17, 18),
    sampled(4, b" cat", 74, 75),
)


def events() -> list[Event]:
    """All of it, ended at its third token."""
    steps = [event for step in zip(PASSES, DRAWS, strict=True) for event in step]
    return [STARTED, TOKENIZED, *steps, RunFinished("max tokens", START + 76 * MS)]
