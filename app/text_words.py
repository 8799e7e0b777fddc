"""What the Text panel says: where each token comes from, with the numbers, and the text itself."""

from __future__ import annotations

import math

from app import texts
from app.widgets.bars import percent
from app.widgets.pieces import hexadecimal
from engine.events import RunFinished, Sampled
from engine.timing import length
from engine.tokenizer import END_OF_TEXT, visible
from engine.trace import Moment


def say(name: str, **facts: object) -> str:
    """The panel's words of this name."""
    return texts.text(f"panel.text.{name}", **facts)


def bits(p: float) -> float:
    """Surprisal, -log2 p.

    >>> bits(0.25), bits(1.0)
    (2.0, 0.0)
    """
    return 0.0 - math.log2(p) if p > 0 else math.inf  # 0 - 0 is no -0


def written(moment: Moment) -> str:
    """What the model wrote, as text; the end-of-text mark is none."""
    tokens = moment.tokens[moment.n_prompt :]
    pieces = b"".join(token.piece for token in tokens if token.id != END_OF_TEXT)
    return pieces.decode("utf-8", "replace")


def ending(moment: Moment) -> str:
    """Why the run ended with this moment; "" if it went on."""
    ended = moment.finished
    if ended is None:
        return ""
    reason = ended.reason if isinstance(ended, RunFinished) else "failed"
    return say(f"ended_{reason.replace(' ', '_')}")


def hint(moment: Moment, index: int, *, waits: bool) -> str:
    """What there is to know of a token; `waits`: it ends inside a character."""
    token = moment.tokens[index]
    piece = visible(token.piece)
    if token.id == END_OF_TEXT:
        lines = [say("tip_end", token=piece, number=token.id)]
    else:
        told = hexadecimal(token.piece)
        lines = [say("tip_token", token=piece, number=token.id, bytes=told)]
        lines += [say("tip_waits")] if waits else []
    sampled = moment.sample_of(index)
    lines += _of_read(moment, index) if sampled is None else _of_drawn(moment, sampled)
    return "\n".join(lines)


def _of_read(moment: Moment, index: int) -> list[str]:
    """How a prompt token came into the cache."""
    prefill = moment.trace.forwards[0]
    if index < prefill.reused:
        return [say("tip_reused")]
    return [say("tip_read", n=prefill.count, ms=length(prefill.span) / 1e6)]


def _of_drawn(moment: Moment, sampled: Sampled) -> list[str]:
    """How a written token was drawn, and how long its pass and its draw took."""
    passed = moment.trace.forwards[sampled.position - moment.n_prompt]
    p, rule, n = sampled.raw_prob, sampled.sampling, moment.trace.dimensions.n_vocab
    lines = [
        say("tip_raw", raw=percent(p), rank=sampled.rank + 1, n=n),
        say("tip_surprisal", p=p, bits=bits(p)),
        say(
            "tip_final",
            final=percent(sampled.final_prob),
            temperature=rule.temperature,
            top_k=rule.top_k,
            top_p=rule.top_p,
        ),
        say(
            f"tip_{passed.phase}",
            n=passed.count,
            pass_ms=length(passed.span) / 1e6,
            draw_ms=length(sampled.span) / 1e6,
        ),
    ]
    return lines if sampled.coin is not None else [*lines, say("tip_picked")]
