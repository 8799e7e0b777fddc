"""Latencies and rates of a run, from the spans of its events.

All of it is the model's own time: a step lasts as long as its pass and its draw, and what the run
spent suspended (a pause, a pace, a slow window) is in no figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.events import Forward, Sampled, Span, Tokenized


@dataclass(frozen=True)
class Timing:
    """One run's clock up to some step; the i-th sample belongs to the i-th pass."""

    tokenized: Tokenized
    forwards: Sequence[Forward]
    samples: Sequence[Sampled]

    @property
    def tokenize_ns(self) -> int:
        """Text to tokens."""
        return length(self.tokenized.span)

    @property
    def prefill_ns(self) -> int | None:
        """The pass over the prompt."""
        return length(self.forwards[0].span) if self.forwards else None

    @property
    def ttft_ns(self) -> int | None:
        """Time to first token: tokenize + prefill + draw."""
        if not self.samples:
            return None
        return self.tokenize_ns + length(self.forwards[0].span) + length(self.samples[0].span)

    @property
    def prefill_tok_s(self) -> float | None:
        """Prompt tokens read, reused ones left out, a second of prefill."""
        if not self.forwards:
            return None
        return self.forwards[0].count * 1e9 / max(1, length(self.forwards[0].span))

    @cached_property
    def itl_ns(self) -> tuple[int, ...]:
        """Inter-token latency of each token but the first: its pass + its draw."""
        pairs = zip(self.forwards[1:], self.samples[1:], strict=False)
        return tuple(length(forward.span) + length(sampled.span) for forward, sampled in pairs)

    @property
    def decode_tok_s(self) -> float | None:
        """(N - 1) / sum of the inter-token latencies; None where there is no second token."""
        return len(self.itl_ns) * 1e9 / max(1, sum(self.itl_ns)) if self.itl_ns else None

    def itl_percentile(self, percent: float) -> float | None:
        """A percentile of the inter-token latencies in ns, interpolated between neighbours."""
        if not self.itl_ns:
            return None
        ordered = sorted(self.itl_ns)
        place = percent / 100 * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def length(span: Span) -> int:
    """Nanoseconds from start to end."""
    return span[1] - span[0]


def own_span(start: int, end: int, waited: int, device_ns: int | None) -> Span:
    """A pass's span without what was hidden from the clock by a caller who let it wait.

    A device that works ahead does so behind the draw, which costs nobody anything, but also while
    the run is suspended (a pace, a pause): that is in no figure, and so must not make a pass look
    shorter than it was. Its span ends when its numbers are here and lasts

        max(end - start, min(device_ns, end - start + waited))

    Args:
        start: when the run asked for the pass, on the CPU's clock, ns.
        end: when its numbers were here.
        waited: ns that the run was suspended before it asked.
        device_ns: how long the device worked at it; None: it began when it was asked.

    >>> own_span(1000, 1300, 0, 500)  # 200 of 500 ns were behind the draw
    (1000, 1300)
    >>> own_span(1000, 1010, 50_000, 500)  # all of it was behind a pause
    (510, 1010)
    """
    took = end - start
    if device_ns is not None:
        took = max(took, min(device_ns, took + waited))
    return end - took, end
