"""Token labels along both sides of a map, kept as small pictures: text costs more than pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QImage, QPainter, QTransform

from app.theme import Theme
from app.widgets.marks import draw_text, elided

GAP = 6  # between a label and the map
MOST_KEPT = 1024  # pictures, each of a few hundred pixels

Place = tuple[int, float]  # a token's index and the middle of its row or column along the side


def widest(labels: Iterable[str], theme: Theme) -> float:
    """How much room the widest label takes, its gap to the map included."""
    metrics = QFontMetricsF(theme.font("mono", 11))
    return max(map(metrics.horizontalAdvance, set(labels)), default=0.0) + theme.pixels(GAP + 2)


class MapLabels:
    """Draws labels that end at a map's left edge and others that stand on its upper edge.

    A growing map draws the same labels again and again, at other places: their pictures are kept.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, int], tuple[QImage, QImage]] = {}
        self._look: tuple[Theme, float] | None = None

    def draw(
        self,
        painter: QPainter,
        corner: QPointF,
        labels: Sequence[str],
        places: Sequence[Place],
        theme: Theme,
        *,
        selected: int | None,
        factor: float,
    ) -> None:
        """Draw a label on both sides for each place.

        Args:
            painter: of a picture whose origin lies on a device pixel.
            corner: the map's upper left corner; the labels have the room before and above it.
            labels: of all tokens.
            places: of those tokens that get a label.
            theme: gives font and colours.
            selected: the token whose label is in the colour of the selection.
            factor: device pixels in one unit.
        """
        if self._look != (theme, factor) or len(self._kept) > MOST_KEPT:
            self._look = (theme, factor)
            self._kept.clear()
        gap = theme.pixels(GAP)
        for index, middle in places:
            role = "select" if index == selected else "muted"
            across, _ = self._pictures(labels[index], role, corner.x() - gap, theme, factor)
            size = across.deviceIndependentSize()
            x, y = corner.x() - gap - size.width(), corner.y() + middle - size.height() / 2
            painter.drawImage(_whole(x, y, factor), across)
            _, up = self._pictures(labels[index], role, corner.y() - gap, theme, factor)
            size = up.deviceIndependentSize()
            x, y = corner.x() + middle - size.width() / 2, corner.y() - gap - size.height()
            painter.drawImage(_whole(x, y, factor), up)

    def _pictures(
        self, label: str, role: str, room: float, theme: Theme, factor: float
    ) -> tuple[QImage, QImage]:
        """A label as it lies and as it stands."""
        key = (label, role, int(room))
        if key not in self._kept:
            font = theme.font("mono", 11)
            metrics = QFontMetricsF(font)
            text = elided(label, font, room)
            width = math.ceil(metrics.horizontalAdvance(text) * factor)
            size = QSize(max(1, width), math.ceil(metrics.height() * factor))
            image = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
            image.setDevicePixelRatio(factor)
            image.fill(Qt.GlobalColor.transparent)
            painter = QPainter(image)
            draw_text(painter, 0, metrics.ascent(), text, font, theme.color(role))
            painter.end()
            self._kept[key] = image, image.transformed(QTransform().rotate(-90))
        return self._kept[key]


def draw_as_text(
    painter: QPainter,
    corner: QPointF,
    labels: Sequence[str],
    places: Sequence[Place],
    theme: Theme,
    *,
    selected: int | None,
) -> None:
    """The same labels as text, for files that keep text."""
    font, gap = theme.font("mono", 11), theme.pixels(GAP)
    metrics = QFontMetricsF(font)
    baseline = (metrics.ascent() - metrics.descent()) / 2
    for index, middle in places:
        color, label = theme.color("select" if index == selected else "muted"), labels[index]
        room, y = corner.x() - gap, corner.y() + middle + baseline
        draw_text(painter, corner.x() - gap, y, label, font, color, "right", room)
        painter.save()
        painter.translate(corner.x() + middle + baseline, corner.y() - gap)
        painter.rotate(-90)
        draw_text(painter, 0, 0, label, font, color, width=corner.y() - gap)
        painter.restore()


def _whole(x: float, y: float, factor: float) -> QPointF:
    """The nearest place on device pixels."""
    return QPointF(round(x * factor) / factor, round(y * factor) / factor)
