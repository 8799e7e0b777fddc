"""A "What is this?" page in a small frame beside what it explains; Esc closes it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtGui import (
    QFont,
    QKeyEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QTextBrowser, QToolButton, QVBoxLayout, QWidget

from app import texts
from app.theme import Theme

WIDTH, MAX_HEIGHT, PADDING, MARGIN = 456, 720, 18, 8
SIDE = 26  # of the button that closes it, at the right of the page


class Explain(QFrame):
    """Shows one of our own pages; what a token says never comes here, it could be markup.

    It lies inside the window of what it explains: a window of its own could not be placed on
    every desktop.
    """

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.hide()
        self.setProperty("popover", "true")
        self._theme = theme
        self._browser = QTextBrowser()
        self._browser.setOpenLinks(False)
        self._browser.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._browser.document().setDocumentMargin(0)
        self._browser.document().setIndentWidth(18)
        self._browser.installEventFilter(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(PADDING, PADDING, PADDING + SIDE // 2, PADDING)
        column.addWidget(self._browser)
        self._close = QToolButton(self)
        self._close.setText("×")
        self._close.setAccessibleName(texts.text("explain.close"))
        self._close.setToolTip(texts.text("explain.close_tip"))
        self._close.setProperty("flat", True)
        self._close.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._close.clicked.connect(self.close)

    def restyle(self, theme: Theme) -> None:
        """Take another theme, for the next page."""
        self._theme = theme

    def show_page(self, title: str, markdown: str, *, beside: QWidget) -> None:
        """Open with a page next to a widget, over it only where its window has no other room."""
        window = beside.window()
        self.setParent(window)
        self.setAccessibleName(title)
        self._fill(markdown)
        room = window.rect().adjusted(MARGIN, MARGIN, -MARGIN, -MARGIN)
        width = min(self._theme.pixels(WIDTH), room.width())
        whole = self._height(width)
        height = min(whole, self._theme.pixels(MAX_HEIGHT), room.height())
        bar = Qt.ScrollBarPolicy  # left to itself, one that was needed before takes room for good
        self._browser.setVerticalScrollBarPolicy(
            bar.ScrollBarAlwaysOn if whole > height else bar.ScrollBarAlwaysOff
        )
        what = QRect(beside.mapTo(window, QPoint()), beside.size())
        self.setGeometry(QRect(_place(QSize(width, height), what, room), QSize(width, height)))
        side = self._theme.pixels(SIDE)
        self._close.setGeometry(width - side - 2, 2, side, side)
        self._close.raise_()
        self.raise_()
        self.show()
        self._browser.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.FocusOut:
            self.close()  # a click elsewhere
        elif event.type() == QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            if event.key() == Qt.Key.Key_Escape:
                event.accept()  # it closes the page and does not stop a run
                return True
        return super().eventFilter(watched, event)

    def plain_text(self) -> str:
        """The page as it reads."""
        return self._browser.toPlainText()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def _height(self, width: int) -> int:
        """What the page takes at a width, without scrolling."""
        document = self._browser.document().clone(self)
        document.setTextWidth(width - 2 * PADDING - SIDE // 2 - 2)
        height = int(document.size().height())
        document.deleteLater()
        return height + 2 * PADDING + 4

    def _fill(self, markdown: str) -> None:
        self._browser.document().setDefaultFont(self._theme.font("ui", 12))
        self._browser.setMarkdown(markdown)
        block = self._browser.document().begin()
        while block.isValid():
            self._space(block)
            self._letter(block)
            block = block.next()
        self._browser.moveCursor(QTextCursor.MoveOperation.Start)

    def _space(self, block: QTextBlock) -> None:
        """Line height and gaps of one paragraph."""
        form = block.blockFormat()
        form.setLineHeight(135, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        form.setTopMargin(0)
        form.setBottomMargin(self._theme.pixels(4 if block.textList() else 8))
        QTextCursor(block).setBlockFormat(form)

    def _letter(self, block: QTextBlock) -> None:
        """Our fonts in place of the system's that Markdown brings."""
        heading = block.blockFormat().headingLevel() > 0
        for start, length, form in _fragments(block):
            look = QTextCharFormat()
            look.setFont(self._font(form, heading=heading))
            color = "decode" if form.fontFixedPitch() else "text"
            look.setForeground(self._theme.color(color))
            cursor = QTextCursor(block.document())
            cursor.setPosition(start)
            cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
            cursor.setCharFormat(look)

    def _font(self, form: QTextCharFormat, *, heading: bool) -> QFont:
        if form.fontFixedPitch():
            return self._theme.font("mono", 12)
        if heading:
            return self._theme.font("strong", 16)
        bold = form.fontWeight() > QFont.Weight.Medium
        font = self._theme.font("strong" if bold else "ui", 12)
        font.setItalic(form.fontItalic())
        return font


def _place(size: QSize, what: QRect, room: QRect) -> QPoint:
    """Where a page goes: right of what it explains, left of it, below, above, or over it."""
    beyond = what.adjusted(-MARGIN - size.width(), -MARGIN - size.height(), MARGIN, MARGIN)
    top = min(max(what.top(), room.top()), room.bottom() + 1 - size.height())
    left = min(max(what.right() + 1 - size.width(), room.left()), room.right() + 1 - size.width())
    choices = (
        QPoint(beyond.right() + 1, top),
        QPoint(beyond.left(), top),
        QPoint(left, beyond.bottom() + 1),
        QPoint(left, beyond.top()),
    )
    fits = (corner for corner in choices if room.contains(QRect(corner, size)))
    return next(fits, QPoint(left, top))


def _fragments(block: QTextBlock) -> list[tuple[int, int, QTextCharFormat]]:
    """Start, length and format of each stretch, read before any format is changed."""
    stretches = []
    at = block.begin()
    while not at.atEnd():
        part = at.fragment()
        stretches.append((part.position(), part.length(), part.charFormat()))
        at += 1
    return stretches
