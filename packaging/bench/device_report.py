"""What the device check found: a row for each number beside what was foretold of it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from bench.table import text_table

Found = Iterator["Row | str"]
Basis = Literal["research", "floors", "at most", "at least", "exactly"]

OFF = 1.5  # times as much or as little as predicted: that much must be explained
UNKNOWN = "-"

# What was predicted of an H200 before anything ran on one: lowest and highest, for GPT-2 124M in
# float16 unless said. Predictions for other cards come from the formulas of `engine.floors`.
H200: dict[str, tuple[float, float]] = {
    "bandwidth": (4300, 4300),  # GB/s
    "copy": (4300, 4300),  # GB/s, read and written
    "product": (770, 800),  # TFLOP/s in 16 bits
    "launch": (0.8, 1.3),  # us
    "dispatch": (4, 6),  # us
    "eager": (900, 1400),  # us a token, as all below
    "recorded": (380, 560),
    "recorded, own kernels": (165, 220),
    "Hugging Face": (3500, 5500),
    "Hugging Face, static and compiled": (800, 1600),
    "draw": (40, 90),
    "graphs": (32, 45),  # MB
    "1.5B recorded": (2000, 2600),
    "recording": (0.98, 1.05),  # a token recorded over one that is not
    "64 streams over one": (25, 25),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement.

    `predicted` is theory where its basis is "research" or "floors", else a bound that must hold.
    """

    what: str
    measured: float
    unit: str
    predicted: float | None = None
    basis: Basis | None = None
    of_floor: float | None = None  # the memory floor over what was measured

    @property
    def ratio(self) -> float | None:
        """Measured over predicted."""
        return self.measured / self.predicted if self.predicted else None

    @property
    def broken(self) -> bool:
        """A bound that does not hold; a number that is none breaks every bound."""
        if self.predicted is None:
            return False
        holds = {
            "at most": self.measured <= self.predicted,
            "at least": self.measured >= self.predicted,
            "exactly": self.measured == self.predicted,
        }
        return not holds.get(str(self.basis), True)

    @property
    def remark(self) -> str:
        """What a reader must not miss."""
        if self.broken:
            return "BROKEN"
        theory = self.basis in ("research", "floors")
        if theory and self.ratio and not 1 / OFF <= self.ratio <= OFF:
            return f"off by more than {OFF}x"
        return ""


@dataclass
class Report:
    """All rows and sentences of one check, by section."""

    about: dict[str, str | bool]  # the machine, the versions, whether it is a dry run
    rows: dict[str, list[Row]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # sections, with the reason
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """No section failed and no bound is broken; predictions may still have been off."""
        return not self.failed and not any(row.broken for _, row in self._all())

    def take(self, section: str, found: Found) -> None:
        """Take what a section finds one by one: if it fails, only what comes after is lost."""
        start, rows = time.monotonic(), self.rows.setdefault(section, [])
        try:
            for one in found:
                if isinstance(one, Row):
                    rows.append(one)
                else:
                    self.notes.append(f"{section}: {one}")
        except Exception as error:  # drivers and compilers have errors of their own
            said = str(error).strip().partition("\n")[0]
            self.failed.append(f"{section}: {type(error).__name__}: {said}")
        self.seconds[section] = round(time.monotonic() - start, 1)

    def write(self, folder: Path) -> None:
        """Leave all that is known so far in result.json."""
        found = {
            "about": self.about,
            "seconds": self.seconds,
            "rows": [
                {"section": section, **asdict(row), "ratio": row.ratio, "remark": row.remark}
                for section, row in self._all()
            ],
            "failed": self.failed,
            "notes": self.notes,
        }
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    def lines(self) -> Iterator[str]:
        """The table and all that is to be said beside it."""
        head = ("section", "what", "measured", "predicted", "ratio", "of floor", "by", "remark")
        yield text_table(head, [_cells(section, row) for section, row in self._all()])
        yield "predicted by research or floors = theory; at most, at least, exactly = bounds"
        yield "of floor = the time that memory allows for this pass over what it took"
        yield from self.notes
        yield from (f"FAILED {reason}" for reason in self.failed)

    def _all(self) -> Iterator[tuple[str, Row]]:
        for section, rows in self.rows.items():
            for row in rows:
                yield section, row


def foretold(card: str, key: str, by_floors: float | None) -> tuple[float | None, Basis | None]:
    """A prediction and where it is from: the middle of what was written down, or the formulas.

    >>> foretold("NVIDIA H200", "eager", 800.0)
    (1122.4972160321825, 'research')
    >>> foretold("NVIDIA L4", "eager", 800.0)
    (800.0, 'floors')
    """
    if "H200" in card and key in H200:
        low, high = H200[key]
        return math.sqrt(low * high), "research"
    return (None, None) if by_floors is None else (by_floors, "floors")


def _cells(section: str, row: Row) -> tuple[str, ...]:
    return (
        section,
        row.what,
        f"{_number(row.measured)} {row.unit}",
        UNKNOWN if row.predicted is None else _number(row.predicted),
        UNKNOWN if row.ratio is None else f"{row.ratio:.2f}",
        UNKNOWN if row.of_floor is None else f"{100 * row.of_floor:.0f} %",
        row.basis or UNKNOWN,
        row.remark,
    )


def _number(x: float) -> str:
    """Four digits, and no exponent where people count.

    >>> _number(75497472), _number(1122.497), _number(3.14e-06)
    ('75,497,472', '1,122', '3.14e-06')
    """
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"
