"""Where the resources are: in a checkout, in an installed wheel, in a frozen build."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path


@cache
def root() -> Path:
    """The folder that holds gpt2.tiktoken, models/, texts/ and the rest."""
    frozen = getattr(sys, "_MEIPASS", None)
    base = Path(frozen) if frozen else Path(__file__).resolve().parent.parent
    return base / "resources"


def path(*parts: str) -> Path:
    """One resource's path, whether or not it exists."""
    return root().joinpath(*parts)
