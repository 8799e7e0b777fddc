"""What went wrong, as a bar across the window: the engine's sentence and what can be done now."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from app import texts

LONGEST = 400  # characters of a sentence; the whole is in the tool tip and in the copied details


class Banner(QWidget):
    """Hidden until there is something to say; it never blocks what goes on."""

    model_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("banner")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._detail = ""
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)  # a file's name must not be markup
        self._label.setWordWrap(True)
        self._label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._model = QPushButton(texts.text("error.model"))
        self._model.clicked.connect(self._ask_model)
        self._copy = QPushButton(texts.text("error.copy"))
        self._copy.setToolTip(texts.text("error.copy_tip"))
        self._copy.clicked.connect(self._copy_detail)
        close = QPushButton(texts.text("error.dismiss"))
        close.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 8, 14, 8)
        for widget in (self._label, self._model, self._copy, close):
            row.addWidget(widget)
        self.hide()

    @property
    def sentence(self) -> str:
        """What is being said; empty when nothing is."""
        return "" if self.isHidden() else self._label.text()

    def say(self, sentence: str, *, detail: str = "", model: bool = False) -> None:
        """Show a sentence, with its details to copy and, where it helps, a way to a model."""
        self._detail = detail
        short = sentence if len(sentence) <= LONGEST else sentence[: LONGEST - 1] + "…"
        self._label.setText(short)
        self._label.setAccessibleName(sentence)
        self._copy.setVisible(bool(detail))
        self._model.setVisible(model)
        self.show()

    @Slot()
    def _ask_model(self) -> None:
        self.hide()
        self.model_asked.emit()

    @Slot()
    def _copy_detail(self) -> None:
        QGuiApplication.clipboard().setText(self._detail)
