"""What the controls held last time: from the settings at the start, back to them at the end."""

from __future__ import annotations

from typing import Any

from app.selection import Draft
from app.settings import Settings
from engine.request import Sampling


def draft_from(settings: Settings) -> dict[str, Any]:
    """The fields of a Draft that were kept."""
    s = settings
    return {
        "prompt": s["prompt"],
        "sampling": Sampling(s["temperature"], s["top_k"], s["top_p"]),
        "max_tokens": s["max_tokens"],
        "seed": s["seed"],
        "special": s["special"],
        "model": s["model"],
    }


def keep(settings: Settings, draft: Draft) -> None:
    """Put what the controls hold into the settings."""
    values = {
        "temperature": draft.sampling.temperature,
        "top_k": draft.sampling.top_k,
        "top_p": draft.sampling.top_p,
        "max_tokens": draft.max_tokens,
        "seed": draft.seed,
        "special": draft.special,
        "prompt": draft.prompt,
    }
    for name, value in values.items():
        try:
            settings.set(name, value)
        except ValueError:
            continue  # a prompt with half a character cannot be kept: the older one stays
