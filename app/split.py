"""The split of a prompt: whose tokens there are to show, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass

from app import texts
from app.selection import Scene
from app.widgets.pieces import hexadecimal
from engine.events import Token
from engine.tokenizer import spans, visible


def say(name: str, **facts: object) -> str:
    """The Tokens panel's words of this name."""
    return texts.text(f"panel.tokens.{name}", **facts)


def count(what: str, n: int) -> str:
    """How many tokens, bytes or characters.

    >>> count("token", 1), count("byte", 1034)
    ('1 token', '1,034 bytes')
    """
    return say(f"one_{what}") if n == 1 else say(f"n_{what}s", n=n)


@dataclass(frozen=True, slots=True)
class Split:
    """The tokens of the run's prompt, or of the one being typed while that is another."""

    tokens: tuple[Token, ...]  # none: this prompt cannot be split, or not yet
    own: bool  # they are the run's, and can be selected
    stale: bool  # there is a run, of another prompt
    n_written: int  # tokens behind the prompt that were read as well
    limit: int | None  # positions; None: no model is loaded
    problem: str | None  # why the prompt cannot run

    @property
    def n_used(self) -> int:
        """Positions taken."""
        return len(self.tokens) + self.n_written

    @property
    def over(self) -> bool:
        """Whether that is more than there are."""
        return self.limit is not None and self.n_used > self.limit

    @property
    def meter(self) -> str:
        """The figure of the context meter."""
        if self.limit is None:
            return count("token", self.n_used)
        return say("meter", used=self.n_used, limit=self.limit)

    @property
    def meter_hint(self) -> str:
        """What the context meter's figure is made of."""
        n = len(self.tokens)
        if self.limit is None:
            return say("tip_no_limit", n=n)
        facts = {"n": n, "written": self.n_written, "used": self.n_used, "limit": self.limit}
        return say("tip_over" if self.over else "tip_context", **facts)

    def chip_hint(self, chip: int) -> str:
        """What there is to know of one token."""
        token, places = self.tokens[chip], spans(self.tokens)
        (first, end), n = places[chip], places[-1][1]
        facts = {
            "token": visible(token.piece),
            "number": token.id,
            "bytes": hexadecimal(token.piece),
        }
        lines = [say("tip_token", **facts)]
        lines.append(say("tip_span", at=chip, first=first, last=end - 1, n=n))
        return "\n".join([*lines, say("tip_draft")] if self.stale else lines)

    def counts_hint(self, n_characters: int, n_bytes: int) -> str:
        """How many characters, bytes and tokens."""
        n = len(self.tokens)
        return say("tip_counts", characters=n_characters, bytes=n_bytes, n=n, each=n_bytes / n)


def split_of(scene: Scene) -> Split:
    """What there is to show of a scene."""
    moment, draft = scene.moment, scene.draft
    problem = draft.problem if draft.prompt else None
    if moment is None or scene.draft_differs:
        stale = moment is not None
        return Split(draft.tokens or (), False, stale, 0, draft.n_positions, problem)
    n_written = max(0, moment.n_read - moment.n_prompt)
    limit = moment.trace.dimensions.n_positions
    return Split(moment.tokenized.tokens, True, False, n_written, limit, problem)
