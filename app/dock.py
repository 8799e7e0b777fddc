"""The frame around a panel: rounded ground, title row with one line and one figure, and a menu."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QHelpEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QDockWidget, QMenu, QToolButton, QToolTip, QVBoxLayout, QWidget

from app import texts
from app.theme import Theme
from app.widgets.marks import draw_text, text_width

ROW = 36  # the title row's height
RADIUS = 8.0
SIDE = 14


class TitleRow(QWidget):
    """Title, the line that says what is shown, the live figure, and the menu button."""

    def __init__(self, title: str, theme: Theme) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._title = title
        self._line = self._figure = ""
        self._cut = False  # not all of it fits
        self._theme = theme
        self.button = QToolButton(self)
        self.button.setObjectName("panel_menu")
        self.button.setText("⋯")
        self.button.setToolTip(texts.text("panel.menu_tip"))
        self.button.setAccessibleName(f"{title}: {texts.text('panel.menu')}")
        self.button.setProperty("flat", True)
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self)
        self.button.setMenu(self.menu)

    def say(self, line: str, figure: str) -> None:
        """Show another line and figure."""
        if (line, figure) != (self._line, self._figure):
            self._line, self._figure = line, figure
            self.update()

    def restyle(self, theme: Theme) -> None:
        self._theme = theme
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(160, self._theme.pixels(ROW))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self._theme.pixels(ROW))

    def resizeEvent(self, event: object) -> None:
        side = self._theme.pixels(26)
        self.button.setGeometry(self.width() - side - 8, (self.height() - side) // 2, side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_ground(painter, QRectF(self.rect()), self._theme, top=True)
        self.paint_words(painter, QRectF(self.rect()), right=self.button.width() + 14)
        painter.end()

    def paint_words(self, painter: QPainter, rect: QRectF, *, right: float) -> None:
        """Title, line and figure; the line gives way first."""
        theme, base = self._theme, rect.center().y() + self._theme.pixels(4)
        end = rect.right() - right
        strong, ui, small = theme.font("strong", 12), theme.font("ui", 12), theme.font("ui", 11)
        x = rect.left() + SIDE
        x += draw_text(painter, x, base, self._title, strong, theme.color("text"), width=end - x)
        figure, room = 0.0, max(0.0, end - x - 16)
        self._cut = text_width(self._figure, small) > room
        if self._figure:
            muted = theme.color("muted")
            figure = draw_text(
                painter, end, base, self._figure, small, muted, align="right", width=room
            )
        room = end - figure - x - 22
        self._cut |= text_width(self._line, ui) > room
        if self._line and room > 24:
            draw_text(painter, x + 10, base, self._line, ui, theme.color("muted"), width=room)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            words = "\n".join(filter(None, (self._line, self._figure))) if self._cut else ""
            if words:
                QToolTip.showText(event.globalPos(), texts.as_tip(words), self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)


class Ground(QWidget):
    """The lower part of the frame, holding a panel's content."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._theme = theme
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 0, 1, round(RADIUS))

    def hold(self, content: QWidget) -> None:
        """Take the panel's content."""
        layout = self.layout()
        assert layout is not None
        layout.addWidget(content)

    def restyle(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_ground(painter, QRectF(self.rect()), self._theme, top=False)
        painter.end()


class Dock(QDockWidget):
    """A dock that looks like one rounded panel."""

    def __init__(self, id: str, title: str, theme: Theme) -> None:
        super().__init__(title)
        self.id = id
        self.setObjectName(f"dock.{id}")
        self.row = TitleRow(title, theme)
        self.ground = Ground(theme)
        self.setTitleBarWidget(self.row)
        self.setWidget(self.ground)

    @Slot()
    def float(self) -> None:
        """Out of the window into one of its own, or back; dragging the title does the same."""
        self.setFloating(not self.isFloating())

    def restyle(self, theme: Theme) -> None:
        self.row.restyle(theme)
        self.ground.restyle(theme)


def paint_ground(painter: QPainter, rect: QRectF, theme: Theme, *, top: bool) -> None:
    """Half of a rounded panel: its upper end for the title row, its lower end for the rest."""
    painter.fillRect(rect, theme.color("window"))
    whole = rect.adjusted(0.5, 0.5, -0.5, -0.5)
    if top:
        whole.setHeight(whole.height() + 2 * RADIUS)
    else:
        whole.setTop(whole.top() - 2 * RADIUS)
    path = QPainterPath()
    path.addRoundedRect(whole, RADIUS, RADIUS)
    painter.setPen(QPen(theme.color("line"), 1))
    painter.setBrush(theme.color("panel"))
    painter.drawPath(path)
    painter.setBrush(Qt.BrushStyle.NoBrush)
