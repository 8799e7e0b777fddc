"""The box to type a prompt in; it gives back exactly what was typed or pasted."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator

from PySide6.QtCore import QByteArray, QMimeData, QRectF, Qt, Signal, Slot
from PySide6.QtGui import (
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QTextBlock,
    QTextCursor,
    QTextOption,
)
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app import texts
from app.theme import Theme
from app.widgets.marks import draw_text
from engine.request import MAX_PROMPT_CHARACTERS

# What Qt's document would turn into a line end or drop, and the noncharacters that stand for it
# there: no keyboard types them, and undo, copy and paste carry them along. A stand-in that is
# itself part of a text stands behind _ITSELF.
_ITSELF = "\ufdd2"
_STAND_INS = {
    "\r": "\ufdd3",
    "\u2029": "\ufdd4",
    "\ufeff": "\ufdd5",  # dropped only at the start, but it is nowhere to be seen
    "\ufdd0": "\ufdd6",
    "\ufdd1": "\ufdd7",
}
_HELD = {ord(real): held for real, held in _STAND_INS.items()}
_HELD |= {ord(held): _ITSELF + held for held in (_ITSELF, *_STAND_INS.values())}
_REAL = {held: real for real, held in _STAND_INS.items()}
_FOUND = re.compile("\ufdd2([\ufdd2-\ufdd7])|[\ufdd3-\ufdd7]")
_SIGN = re.compile("([\ufdd3\ufdd4])")
_SIGNS = {"\ufdd3": "↵", "\ufdd4": "¶"}  # drawn in place of the stand-ins that have a shape

# Breaking at words in a run without any takes time that grows with its square: a second at
# 100,000 characters, at each key. Breaking anywhere takes 30 ms.
LONGEST_WORD = 2_000


class PromptEditor(QPlainTextEdit):
    """A text box whose `text` is exact: no-break spaces, CR, BOM and separators stay."""

    edited = Signal()  # the text is another, by whatever hand
    refused = Signal(str)  # a sentence: why something was not pasted

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # all lines wrap
        self.setPlaceholderText(texts.text("controls.prompt_placeholder"))
        self.setAccessibleName(texts.text("controls.prompt"))
        self.setToolTip(texts.text("controls.prompt_tip"))
        self.setProperty("code", True)  # the style sheet's monospaced font
        self.restyle(theme)
        self.textChanged.connect(self._follow)

    def text(self) -> str:
        """What was typed or pasted, character for character."""
        return real(self.document().toRawText())

    def set_text(self, text: str) -> None:
        """Show another text, unless it is far too long; undo brings the old one back."""
        if text != self.text():
            cursor = QTextCursor(self.document())
            cursor.select(QTextCursor.SelectionType.Document)
            self._insert(cursor, text)

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self._theme = theme
        self.setFont(theme.font("mono", 12))
        self.setMinimumHeight(theme.pixels(32))  # one line
        self.viewport().update()

    def insertFromMimeData(self, source: QMimeData) -> None:
        text = source.text()
        # On its way into Python a leading byte order mark is lost; the bytes still have it.
        if source.data("text/plain").startsWith(BOM_UTF8):
            text = "\ufeff" + text.removeprefix("\ufeff")
        self._insert(self.textCursor(), text)
        self.ensureCursorVisible()

    def createMimeDataFromSelection(self) -> QMimeData:
        copied, text = QMimeData(), real(self.textCursor().selectedText())
        copied.setData("text/plain", QByteArray(text.encode(errors="replace")))
        return copied

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shift_return = event.modifiers() & Qt.KeyboardModifier.ShiftModifier and event.key() in (
            Qt.Key.Key_Return,
            Qt.Key.Key_Enter,
        )
        if shift_return:  # Qt would type U+2028, which nobody means
            self.textCursor().insertBlock()
            self.ensureCursorVisible()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        for at, sign in self._visible_signs():
            self._draw_sign(painter, at, sign)
        painter.end()

    def _insert(self, cursor: QTextCursor, text: str) -> None:
        """Put text where the cursor is, or nothing at all if the widget would freeze on it."""
        found = len(self.text()) - len(real(cursor.selectedText())) + len(text)
        if found > MAX_PROMPT_CHARACTERS:
            limit = MAX_PROMPT_CHARACTERS
            self.refused.emit(texts.text("controls.prompt_too_long", found=found, limit=limit))
            return
        self._wrap(max(_longest_word(text), _longest_word(self.text())))
        cursor.insertText(text.translate(_HELD))

    @Slot()
    def _follow(self) -> None:
        self._wrap(_longest_word(self.text()))
        self.edited.emit()

    def _wrap(self, longest: int) -> None:
        modes = QTextOption.WrapMode
        mode = modes.WrapAtWordBoundaryOrAnywhere
        if longest > LONGEST_WORD:
            mode = modes.WrapAnywhere
        if mode != self.wordWrapMode():
            self.setWordWrapMode(mode)

    def _visible_signs(self) -> Iterator[tuple[int, str]]:
        """Where in the document stand-ins are to be drawn, and as what."""
        block: QTextBlock = self.firstVisibleBlock()
        bottom = self.viewport().height()
        while block.isValid():
            top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
            if top > bottom:
                return
            at = block.position()
            for piece in _SIGN.split(block.text()):
                if piece in _SIGNS:
                    yield at, _SIGNS[piece]
                at += len(piece.encode("utf-16-le")) // 2  # what Qt counts in
            block = block.next()

    def _draw_sign(self, painter: QPainter, at: int, sign: str) -> None:
        cursor = self.textCursor()
        role = QPalette.ColorRole.Base
        if cursor.selectionStart() <= at < cursor.selectionEnd():
            role = QPalette.ColorRole.Highlight
        cursor.setPosition(at)
        place = QRectF(self.cursorRect(cursor))
        place.setWidth(self.fontMetrics().horizontalAdvance("M"))
        painter.fillRect(place, self.palette().color(role))
        base = place.top() + self.fontMetrics().ascent()
        draw_text(painter, place.left(), base, sign, self.font(), self._theme.color("faint"))


def real(held: str) -> str:
    """The text that a document's raw text stands for."""
    text = held.replace("\u2029", "\n")  # the document's own line end
    return _FOUND.sub(lambda found: found[1] or _REAL[found[0]], text)


def remarks(text: str) -> list[str]:
    """What the eye cannot see in a prompt and the model does read, in a few words each."""
    crlf = text.count("\r\n")
    counts = {
        "trailing": len(text) - len(text.rstrip()),
        "no_break": text.count("\u00a0") + text.count("\u202f"),
        "crlf": crlf,
        "cr": text.count("\r") - crlf,
        "bom": text.count("\ufeff"),
        "separator": text.count("\u2028") + text.count("\u2029"),
        "double": len(re.findall(r"(?<=\S) {2,}(?=\S)", text)),
    }
    return [texts.text(f"controls.lint.{id}", n=n) for id, n in counts.items() if n]


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)
