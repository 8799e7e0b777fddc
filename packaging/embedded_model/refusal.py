"""What the recipe will not do, said in one sentence."""

from __future__ import annotations


class Refusal(Exception):
    """Bad input: what happened, what was looked for, what to do; the message is for people."""
