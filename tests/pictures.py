"""Panels painted off screen, and what can be found in the picture."""

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from app.panels.base import Panel


def painted(panel: Panel, width: int | None = None, height: int | None = None) -> QImage:
    """The panel's body as large as its canvas, or as asked."""
    size = panel.canvas.size()
    width, height = width or size.width(), height or size.height()
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(panel.theme.color("panel"))
    painter = QPainter(image)
    panel.draw(painter, QRectF(14, 0, width - 28, height - 12))
    painter.end()
    return image


def colors(image: QImage) -> set[int]:
    """Every colour in the picture."""
    pixels = np.frombuffer(image.constBits(), np.uint32)  # (height x width,)
    return set(np.unique(pixels).tolist())


def shows(image: QImage, panel: Panel, role: str) -> bool:
    """Whether a colour is in the picture, pure."""
    return panel.theme.color(role).rgb() in colors(image)
