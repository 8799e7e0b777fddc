"""How far int8 weights answer from the same model in float32: measured when it is loaded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine import softmax, tokenizer
from engine.checkpoint import Source
from engine.errors import EngineError, sentence
from engine.events import Floats
from engine.runners import Runner

# 64 tokens, written for this.
TEXT = (
    "The ferry leaves at noon, and the last cars roll on board while the crew loosens the ropes. "
    "A girl counts the gulls on the railing. Her father, who has made this trip many times, reads "
    "an old newspaper and says that the wind will turn before they reach the island, as always in "
    "May."
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """What the rounding does to the answers, over some positions."""

    n_positions: int
    kl: float  # mean of KL(exact || rounded), nats
    agreement: float  # share of the positions at which both find the same id likeliest


def note(source: Source, runner: Runner) -> str:
    """The deviation on `TEXT` as a sentence, or why it could not be measured.

    Args:
        source: the model, open; its tensors are read once more.
        runner: of the same model with rounded weights; what it had read is forgotten.

    Raises:
        EngineError: what the source says.
    """
    ids = [token.id for token in tokenizer.load().encode(TEXT)]
    try:
        found = measure(source, runner, ids)
    except EngineError as error:
        if error.kind != "memory":
            raise
        return sentence("note_no_deviation", error.facts)
    weights = runner.weights
    rows = weights.head.rounds_rows or weights.layers[0].qkv.rounds_rows
    kind = "note_deviation_rows" if rows else "note_deviation"
    return sentence(
        kind,
        {
            "n_positions": found.n_positions,
            "kl": f"{found.kl:.2g}",
            "agreement": f"{100 * found.agreement:.0f}",
        },
    )


def measure(source: Source, runner: Runner, ids: Sequence[int]) -> Deviation:
    """Read the ids with this runner and with one in float32, which is there just for this.

    Args:
        source: as in `note`.
        runner: as in `note`.
        ids: as many as there are positions are read.

    Raises:
        EngineError: kind "memory": no room for both; or what the source says.
    """
    ids = ids[: runner.dimensions.n_positions]
    exact = Runner(
        source,
        device=runner.device,
        dtype="float32",
        n_threads=runner.threads(len(ids)),
        kind="columns",  # as most files have them, so that they need not be turned
    )
    pairs = list(zip(_answers(exact, ids), _answers(runner, ids), strict=True))
    return Deviation(
        n_positions=len(ids),
        kl=sum(divergence(p, q) for p, q in pairs) / len(ids),
        agreement=sum(bool(p.argmax() == q.argmax()) for p, q in pairs) / len(ids),
    )


def divergence(p: Floats, q: Floats) -> float:
    """KL(p || q) = sum of p (log p - log q), in nats.

    Args:
        p: (V,) finite logits, that are made probabilities in float64.
        q: likewise.

    >>> round(divergence(np.log([0.5, 0.5]), np.log([0.25, 0.75])), 6)  # ln(4 / 3) / 2
    0.143841
    """
    log_p, log_q = _log_softmax(p), _log_softmax(q)
    return float(np.vdot(np.exp(log_p), log_p - log_q))


def _answers(runner: Runner, ids: Sequence[int]) -> Floats:
    """Logits after each of the ids, (n, V)."""
    for _ in runner.prefill(ids, first=0):
        pass
    weights, rows = runner.weights, runner.state.residual[-1, 0, : len(ids)]  # (n, C)
    logits: Floats = weights.head(weights.last(rows)).float().cpu().numpy()  # (n, V)
    runner.state.position = 0
    return logits


def _log_softmax(logits: Floats) -> NDArray[np.float64]:
    largest = float(logits.max())
    total, _ = softmax.sums(logits, largest)
    return softmax.exponents(logits, largest) - math.log(total)
