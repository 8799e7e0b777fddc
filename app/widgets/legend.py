"""A legend of things that take memory: a swatch, a name and a size."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from app import texts
from app.theme import Theme
from app.widgets.marks import draw_box, draw_mark, draw_text


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that takes memory."""

    name: str  # text id
    used: int
    reserved: int = 0
    role: str | None = None  # its colour; None: it has none of its own


def size(n: int) -> str:
    """Bytes as people read memory: 1 KiB is 1,024 B, 1 MiB is 1,024 KiB.

    >>> size(196_608), size(1_536), size(6_291_456), size(2_000_000_000)
    ('192 KiB', '1.5 KiB', '6.0 MiB', '1.86 GiB')
    """
    if n >= 1000 * 2**20:
        return texts.text("unit.gib", n=n / 2**30)
    if n >= 2**20:
        return texts.text("unit.mib", n=n / 2**20)
    return texts.text("unit.kib" if n % 1024 == 0 else "unit.kib_part", n=n / 1024)


def draw_entry(painter: QPainter, rect: QRectF, name: str, entry: Entry, theme: Theme) -> None:
    """Draw one entry into rect: swatch and name at the left, the size at the right.

    Where it fits, a mark says that the size is measured.
    """
    px = theme.pixels
    marked = rect.width() >= px(150)
    y, right = rect.top() + px(14), rect.right() - px(24 if marked else 8)
    swatch = QRectF(rect.left(), y - px(9), px(9), px(9))
    fill = None if entry.role is None else theme.color(entry.role)
    line = theme.color("faint") if entry.role is None else None
    draw_box(painter, swatch, radius=2, fill=fill, line=line)
    font, color = theme.font("mono", 11), theme.color("text")
    taken = draw_text(painter, right, y, size(entry.used), font, color, "right")
    if marked:
        draw_mark(painter, right + px(2), y, "measured", theme)
    x, font, color = swatch.right() + px(6), theme.font("ui", 11), theme.color("muted")
    draw_text(painter, x, y, name, font, color, "left", right - taken - px(6) - x)
