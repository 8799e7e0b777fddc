"""trained_tokens.txt: which tokens of a model folder have a row that training made.

Ids as decimal numbers, most frequent token first, 16 a line. A folder without the file is one whose
rows were all trained.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embedded_model.refusal import Refusal
from engine.tokenizer import N_VOCAB

Ids = NDArray[np.intp]

NAME = "trained_tokens.txt"
A_LINE = 16


def read(folder: Path) -> Ids | None:
    """The ids, most frequent first, or None where the folder does not say.

    Raises:
        Refusal: the file holds something other than ids, one twice, or nothing.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        words = path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{NAME} cannot be read as text: export the model again. {path}") from error
    ids: dict[int, None] = {}
    for word in words:
        id = int(word) if word.isdigit() and len(word) < 6 else N_VOCAB
        if id >= N_VOCAB or id in ids:
            raise Refusal(
                f"{NAME} holds {word[:20]!r} where an id from 0 to {N_VOCAB - 1:,} was looked for "
                f"that had not come before: export the model again. {path}"
            )
        ids[id] = None
    if not ids:
        raise Refusal(f"{NAME} is empty and ids were looked for: export the model again. {path}")
    return np.array(list(ids), np.intp)  # (K,)


def write(folder: Path, ids: Ids) -> None:
    """Put the ids into a model folder; `read` gives them back."""
    lines = [
        " ".join(str(id) for id in ids[first : first + A_LINE])
        for first in range(0, len(ids), A_LINE)
    ]
    (folder / NAME).write_text("\n".join(lines) + "\n", encoding="ascii", newline="\n")
