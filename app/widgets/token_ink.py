"""How one token is drawn: as a chip, or as a piece of running text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from app.theme import Theme
from app.widgets.marks import elided

Style = Literal["chip", "run"]

# As designed, in pixels at scale 1.
CHIP_HEIGHT, CHIP_PITCH, CHIP_GAP, CHIP_PADDING = 40, 46, 6, 14
SMALL_GAP, SMALL_PADDING = 1, 8  # of a chip in running text
RUN_PITCH, RUN_BOX = 25, 20  # between lines; of a tint
RUN_BASE, SMALL_BASE, CHIP_BASES = 15, 14, (16, 32)  # baselines below a box's top
RADIUS = 5.0
LINE_END = "↵"


@dataclass(frozen=True, slots=True)
class Item:
    """One token as it is drawn."""

    text: str  # chip: the visible piece; run: the text itself, with its spaces and line ends
    sub: str = ""  # below the piece of a chip
    tint: float = 0.0  # 0 to 1, how strongly the ground is coloured
    role: str = "prefill"  # the colour of the tint
    muted: bool = False
    small: bool = False  # run: a small chip in the line, for what is not text by itself


class Ink:
    """Fonts, colours and measures of one style and theme, looked up once and not for each token."""

    def __init__(self, style: Style, theme: Theme) -> None:
        chip = style == "chip"
        self.theme = theme
        self.pitch = float(theme.pixels(CHIP_PITCH if chip else RUN_PITCH))
        self.tall = float(theme.pixels(CHIP_HEIGHT if chip else RUN_BOX))
        self._font = theme.font("mono", 12 if chip else 14)
        self._small_font = theme.font("mono", 10)
        self._metrics = QFontMetricsF(self._font)
        self._small_metrics = QFontMetricsF(self._small_font)
        self._widths: dict[str, float] = {}
        self._small_widths: dict[str, float] = {}
        self._colors: dict[tuple[str, int], QColor] = {}
        bases = (*CHIP_BASES, RUN_BASE, SMALL_BASE)
        self._upper, self._lower, self._run, self._small = map(theme.pixels, bases)

    def measure(self, text: str) -> float:
        """How wide text is."""
        width = self._widths.get(text)
        if width is None:
            width = self._widths[text] = self._metrics.horizontalAdvance(text)
        return width

    def chip_size(self, item: Item) -> tuple[float, float]:
        """How wide a chip would like to be, and how much is left free behind it."""
        pixels = self.theme.pixels
        if item.small:
            return self._measure_small(item.text) + pixels(SMALL_PADDING), pixels(SMALL_GAP)
        widest = max(self.measure(item.text), self._measure_small(item.sub))
        return widest + pixels(CHIP_PADDING), pixels(CHIP_GAP)

    def draw_chip(self, painter: QPainter, rect: QRectF, item: Item, *, hovered: bool) -> None:
        """Draw the piece in a box and what stands below it, or a small chip's one line."""
        painter.setPen(Qt.PenStyle.NoPen)
        # Two grounds: an outline made with a pen takes five times as long.
        painter.setBrush(self._color("faint" if hovered else "line"))
        painter.drawRoundedRect(rect, RADIUS, RADIUS)
        inner = rect.adjusted(1, 1, -1, -1)
        painter.setBrush(self._color("raised"))
        painter.drawRoundedRect(inner, RADIUS - 1, RADIUS - 1)
        if item.tint:
            painter.setBrush(self._color(item.role, _alpha(item.tint)))
            painter.drawRoundedRect(inner, RADIUS - 1, RADIUS - 1)
        if item.small:
            self._draw_centred(painter, rect, self._small, item.text, small=True, role="muted")
            return
        role = "muted" if item.muted else "text"
        self._draw_centred(painter, rect, self._upper, item.text, small=False, role=role)
        self._draw_centred(painter, rect, self._lower, item.sub, small=True, role="muted")

    def draw_run(
        self, painter: QPainter, rect: QRectF, item: Item, text: str, *, ends: bool, hovered: bool
    ) -> None:
        """Draw a part of an item's text; a line end is ↵ behind it."""
        if item.tint:
            painter.fillRect(rect, self._color(item.role, _alpha(item.tint)))
        if hovered:
            painter.fillRect(rect, self._color("faint", 60))
        painter.setFont(self._font)
        painter.setPen(self._color("muted" if item.muted else "text"))
        y = rect.top() + self._run
        painter.drawText(QPointF(rect.left(), y), text)
        if ends:
            painter.setPen(self._color("faint"))
            painter.drawText(QPointF(rect.left() + self.measure(text), y), LINE_END)

    def _draw_centred(
        self, painter: QPainter, rect: QRectF, base: int, text: str, *, small: bool, role: str
    ) -> None:
        font: QFont = self._small_font if small else self._font
        width = self._measure_small(text) if small else self.measure(text)
        room = rect.width() - 4
        if width > room:
            text = elided(text, font, room)
            width = QFontMetricsF(font).horizontalAdvance(text)
        painter.setFont(font)
        painter.setPen(self._color(role))
        painter.drawText(QPointF(rect.center().x() - width / 2, rect.top() + base), text)

    def _measure_small(self, text: str) -> float:
        width = self._small_widths.get(text)
        if width is None:
            width = self._small_widths[text] = self._small_metrics.horizontalAdvance(text)
        return width

    def _color(self, role: str, alpha: int = 255) -> QColor:
        color = self._colors.get((role, alpha))
        if color is None:
            color = self._colors[role, alpha] = self.theme.color(role, alpha)
        return color


def _alpha(tint: float) -> int:
    """A tint as opacity; on the strongest, words keep a contrast of 4.5 to 1."""
    return round(255 * 0.5 * min(1.0, max(0.0, tint)))
