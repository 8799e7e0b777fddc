"""The figures of a model: plain numbers for figures.json, and the table and samples of its card."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from embedded_model.measures import N_FREQUENT, SEGMENT, Copying, Loss, Scores
from embedded_model.refusal import Refusal
from engine.heads import STRONG

Figures = dict[str, Any]  # what figures.json holds

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
NOTE = (
    "Heads are written layer.head, from 0, with the share of their attention that goes to the "
    "pattern; named are those that give it at least half."
)
N_NAMED = 4  # heads of a pattern that the table names; of others it tells how many

TEXTS = {
    "shipped": "The held-out texts that come with the recipe",
    "corpus": "The held-out texts of a corpus",
}
STREAMS = {
    "A": "Books, tier A, the plainest",
    "B": "Books, tier B",
    "C": "Books, tier C",
    "stories": "Stories of the grammar",
}
SHORT = {"A": "tier A", "B": "tier B", "C": "tier C", "stories": "stories"}
UNTRAINED = {
    "after_trained": "Probability on token rows that training never saw, after a token it saw",
    "largest_after_trained": "The most of it in one place",
    "after_untrained": "The same, after a token it never saw",
}
HEADS = {
    "previous": "Previous-token heads",
    "first": "First-token heads",
    "current": "Current-token heads",
    "duplicate": "Duplicate-token heads",
    "induction": "Induction heads",
}


def of_loss(loss: Loss, *, n_documents: int) -> Figures:
    """A stream's figures, rounded so that another machine writes the same."""
    found: Figures = {
        "documents": n_documents,
        "tokens": loss.n_tokens,
        "nats": round(loss.nats, 3),
        "perplexity": _significant(loss.perplexity),
        "bits_per_byte": round(loss.bits_per_byte, 3),
    }
    if loss.untrained is not None:
        share = loss.untrained
        found["share_on_untrained_rows"] = {
            "mean": _significant(share.mean),
            "after_trained": _significant(share.after_trained),
            "largest_after_trained": _significant(share.largest_after_trained),
            "after_untrained": _significant(share.after_untrained),
        }
    return found


def of_copying(copying: Copying, *, by_frequency: bool) -> Figures:
    """The figures of copying; by_frequency: the tokens are the most frequent ones, not any."""
    return {
        "first": round(copying.first, 3),
        "second": round(copying.second, 3),
        "right": round(copying.right, 3),
        "by_frequency": by_frequency,
    }


def of_heads(scores: Scores) -> Figures:
    """Every head's share by its name "layer.head", and the best one's name, a pattern each."""
    found: Figures = {}
    for pattern, shares in scores.items():
        layer, head = np.unravel_index(shares.argmax(), shares.shape)
        named = {
            f"{place[0]}.{place[1]}": round(float(x), 3) for place, x in np.ndenumerate(shares)
        }
        found[pattern] = {"best": f"{layer}.{head}", "shares": named}
    return found


def block(figures: Figures) -> str:
    """What stands in a model card between the marks: the table and the samples."""
    return f"{table(figures)}\n\n{NOTE}\n\n{samples(figures)}"


def table(figures: Figures) -> str:
    """A Markdown table, a row a figure."""
    size = figures["model"]
    rows = [
        f"| {TEXTS[figures['held_out']]}; {size['n_positions']} positions, full vocabulary | |",
        "|---|---|",
    ]
    rows += [_row(STREAMS[name], _told(loss)) for name, loss in figures["losses"].items()]
    rows += _untrained(figures["losses"])
    copying = figures["copying"]
    among = "most frequent" if copying["by_frequency"] else "first in the vocabulary"
    rows.append(
        _row(
            f"{SEGMENT} random tokens and the same again (of the {N_FREQUENT:,} {among})",
            f"{copying['first']:.3f} nats a token the first time, {copying['second']:.3f} the "
            f"second; {100 * copying['right']:.1f} % of the second right",
        )
    )
    rows += [_row(title, _heads(figures["heads"][pattern])) for pattern, title in HEADS.items()]
    return "\n".join(rows)


def samples(figures: Figures) -> str:
    """The samples as Markdown quotes, the prompts in bold."""
    rule = figures["sampling"]
    lines = [
        f"Samples at temperature {rule['temperature']}, top-k {rule['top_k']}, top-p "
        f"{rule['top_p']}, seed {rule['seed']}, none chosen by hand; … where they were cut after "
        f"{rule['max_tokens']} tokens:"
    ]
    for sample in figures["samples"]:
        cut = "" if sample["end"] == "end of text" else " …"
        lines.append(f"> **{_plain(sample['prompt'])}**{_plain(sample['text'])}{cut}")
    return "\n\n".join(lines)


def into_card(card: str, block: str) -> str:
    """A model card with another block between its marks.

    Raises:
        Refusal: the marks are not there, each once and in this order.
    """
    before, begin, rest = card.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or card.count(BEGIN) + card.count(END) != 2:
        raise Refusal(
            f"The model card has no place for the figures: put the lines {BEGIN} and {END} where "
            "they are to stand."
        )
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _told(loss: Figures) -> str:
    return (
        f"{loss['nats']:.3f} nats a token (perplexity {loss['perplexity']:.3g}; "
        f"{loss['bits_per_byte']:.3f} bits a byte) over {loss['tokens']:,} tokens of "
        f"{loss['documents']:,} documents"
    )


def _untrained(losses: Figures) -> list[str]:
    """Rows about the token rows that training never saw, if there are any."""
    shares = {
        name: loss["share_on_untrained_rows"]
        for name, loss in losses.items()
        if "share_on_untrained_rows" in loss
    }
    if not shares:
        return []
    rows = []
    for key, title in UNTRAINED.items():
        told = [
            f"{SHORT[name]} {100 * share[key]:.3g} %"
            for name, share in shares.items()
            if share[key] is not None
        ]
        rows.append(_row(title, ", ".join(told) or "no such place"))
    return rows


def _heads(found: Figures) -> str:
    """The heads that give a pattern at least half of their attention, the strongest first."""
    shares = found["shares"]
    strong = sorted((n for n in shares if shares[n] >= STRONG), key=lambda n: (-shares[n], n))
    if not strong:
        return f"none; {found['best']} comes closest ({shares[found['best']]:.3f})"
    told = ", ".join(f"{name} ({shares[name]:.3f})" for name in strong[:N_NAMED])
    return told if len(strong) <= N_NAMED else f"{told} and {len(strong) - N_NAMED} more"


def _significant(x: float | None) -> float | None:
    """Three digits that say something."""
    return None if x is None else float(f"{x:.3g}")


def _plain(text: str) -> str:
    """Text that Markdown takes for nothing else, on one line."""
    escaped = re.sub(r"([\\`*_\[\]<>#|~&])", r"\\\1", text)
    return re.sub(r"[\r\n]+", " ↵ ", escaped)
