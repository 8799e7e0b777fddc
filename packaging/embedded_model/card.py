"""The model card of an exported model: card.md, filled with facts of its run and of its file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from embedded_model.checkpoint import Checkpoint
from embedded_model.figures import SHORT
from embedded_model.rest_rows import Filled, Share
from embedded_model.settings import COPYING, Settings, Stage, Start
from embedded_model.streams import Stream, Streams
from engine.tokenizer import N_VOCAB

TEMPLATE = Path(__file__).with_name("card.md")

TITLES = {
    "stories": "Short stories of the grammar",
    "A": "Texts of tier A, the plainest",
    "B": "Texts of tier B",
    "C": "Texts of tier C",
    "drills": "Drills",
    COPYING: "Copying: random tokens, repeated; only the repeats are scored",
}
WAVES = "The positions began as smooth waves in half of the dimensions"


def card(
    title: str, *, run: Checkpoint, streams: Streams, filled: Filled, n_bytes: int, sha256: str
) -> str:
    """The card as Markdown, with an empty block for the figures.

    Args:
        title: the model's name for people.
        run: where the run stood when it was exported.
        streams: what it read.
        filled: the table that was exported.
        n_bytes: of model.safetensors.
        sha256: of model.safetensors.
    """
    settings, rates = run.settings, run.settings.optimizer
    layers = sum(t.numel() for name, t in run.weights.items() if name.startswith("h."))
    others = sum(t.numel() for name, t in run.weights.items() if name != "wte.weight") - layers
    facts = {
        "title": title,
        "unfinished": "" if run.step >= settings.n_steps else _unfinished(run),
        "n_layer": settings.model.n_layer,
        "n_head": settings.model.n_head,
        "n_embd": settings.model.n_embd,
        "n_positions": f"{settings.model.n_positions:,}",
        "n_vocab": f"{N_VOCAB:,}",
        "n_rows": f"{settings.model.n_rows:,}",
        "n_untrained": f"{N_VOCAB - settings.model.n_rows:,}",
        "n_params": f"{filled.table.numel() + layers + others:,}",
        "n_params_embedding": count(filled.table.numel()),
        "n_params_layers": count(layers),
        "n_bytes": f"{n_bytes:,}",
        "sha256": sha256,
        "texts": _texts(run, streams),
        "held_out": _held_out(streams.held_out),
        "length": _length(run),
        "matrix_rate": rates.matrix_rate,
        "other_rate": rates.other_rate,
        "weight_decay": rates.weight_decay,
        "warm_up": percent(rates.warm_up),
        "last_rate": percent(rates.last_rate),
        "arithmetic": run.arithmetic,
        "threads": f"{run.n_threads} thread{'s' * (run.n_threads != 1)}",
        "seed": settings.run.seed,
        "measured": _measured(run),
        "start": _start(settings.start),
        "rest": _rest(filled),
    }
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(facts)


def count(n: int) -> str:
    """A number for people.

    >>> count(12_865_792), count(4_096)
    ('12.9 million', '4,096')
    """
    return f"{n / 1e6:.3g} million" if n >= 1e6 else f"{n:,}"


def percent(part: float) -> str:
    """A part of a whole for people.

    >>> percent(0.3), percent(0.00018667), percent(3e-9)
    ('30 %', '0.0187 %', 'less than 0.0001 %')
    """
    return f"{100 * part:.3g} %" if part == 0 or part >= 1e-6 else "less than 0.0001 %"


def _unfinished(run: Checkpoint) -> str:
    steps = f"{run.step:,} of {run.settings.n_steps:,} steps"
    return f" **It is unfinished:** it was exported after {steps} of its run."


def _texts(run: Checkpoint, streams: Streams) -> str:
    """A table: a row a text, a column a stage that the run came to."""
    settings = run.settings
    stages = _stages(run)
    heads = [f"to {count(_tokens(settings, s))} tokens, {s.context} at once" for s in stages]
    lines = [
        _row("Text", "Documents", "Tokens", "of them without a row", *heads),
        _row(*["---"] * (4 + len(stages))),
    ]
    shares = [_shares(stage, streams) for stage in stages]
    for name, title in TITLES.items():
        if any(name in found for found in shares):
            told = _told(streams.training.get(name), settings.model.n_rows)
            lines.append(_row(title, *told, *(percent(found.get(name, 0)) for found in shares)))
    return "\n".join(lines)


def _stages(run: Checkpoint) -> list[Stage]:
    """The stages that began, at least the first."""
    stages = run.settings.stage
    begins = [0.0, *(stage.until for stage in stages)]
    done = run.step / run.settings.n_steps
    return [
        stage for stage, begin in zip(stages, begins, strict=False) if begin < done or not begin
    ]


def _tokens(settings: Settings, stage: Stage) -> int:
    """How many were read in the whole run when a stage is over."""
    return round(stage.until * settings.n_steps) * settings.run.batch_tokens


def _shares(stage: Stage, streams: Streams) -> dict[str, float]:
    """Parts of the rows; texts that there are not leave theirs to the others."""
    found = stage.shares_of(streams.training)
    return {name: share / sum(found.values()) for name, share in found.items()}


def _told(stream: Stream | None, n_rows: int) -> tuple[str, str, str]:
    """Documents, tokens, and the part of them without a row; of copying, which has none, "–"."""
    if stream is None:
        return "–", "–", "–"
    rest = float((stream.rows == n_rows).mean())
    return f"{len(stream.starts):,}", f"{len(stream.rows):,}", percent(rest)


def _held_out(streams: Mapping[str, Stream]) -> str:
    if not streams:
        return "Nothing was held out."
    told = [
        f"{SHORT[name]} ({len(stream.starts):,} documents, {len(stream.rows):,} tokens)"
        for name, stream in sorted(streams.items())
    ]
    return f"Held out, and never trained on: {', '.join(told)}."


def _length(run: Checkpoint) -> str:
    settings = run.settings
    n = settings.run.batch_tokens
    told = f"{settings.n_steps:,} steps of {n:,} tokens, {count(settings.n_steps * n)} in all"
    if run.step < settings.n_steps:
        told = f"{run.step:,} steps with {count(run.step * n)} tokens, of a run of {told}"
    if run.read_before:
        told += f", from weights that had read {count(run.read_before)} tokens before"
    return told


def _measured(run: Checkpoint) -> str:
    """The last line of the log."""
    if not run.log:
        return "Nothing was measured on the way."
    line = run.log[-1]
    held_out = [f"{line[name]:.2f} on {told}" for name, told in SHORT.items() if name in line]
    return (
        f"Measured on the way, last at step {line['step']:,}, in nats a token over the small "
        f"vocabulary: {line['loss']:.2f} while training, held out "
        f"{', '.join(held_out) or 'nothing'}; random tokens {line['copy_first']:.2f} the first "
        f"time and {line['copy_second']:.2f} when they come again."
    )


def _start(start: Start) -> str:
    """What the weights were given before training, if anything."""
    if not start.position_scale:
        return ""
    if not start.look_back_heads:
        return f"- **Positions had a head start.** {WAVES}. Everything was then trained.\n"
    last = start.look_back_heads - 1
    heads = f"heads 0.0 to 0.{last}" if last else "head 0.0"
    return (
        f"- **Some heads had a head start.** {WAVES}, and {heads} (layer.head, from 0) began as "
        '"look one token back" on them. Everything was then trained.\n'
    )


def _rest(filled: Filled) -> str:
    told = f"{_share(filled.training)} on its texts"
    if filled.held_out is None:
        return told
    return f"{told}, {_share(filled.held_out)} on held-out texts"


def _share(share: Share) -> str:
    return f"{percent(share.mean)} of the probability (in one place {percent(share.largest)})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
