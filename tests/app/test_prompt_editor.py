"""The prompt box: what goes in comes out, character for character, and nothing freezes it."""

import pytest
from PySide6.QtCore import QByteArray, QMimeData, Qt
from PySide6.QtGui import QImage, QTextCursor, QTextOption
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app import theme
from app.prompt_editor import LONGEST_WORD, PromptEditor, remarks
from engine.request import MAX_PROMPT_CHARACTERS

# Everything that Qt's document would change, and the stand-ins themselves.
KEPT = {
    "no-break space": "a\u00a0b",
    "CRLF": "Hello\r\nworld",
    "lone CR": "a\rb\r",
    "line end": "a\n\nb\n",
    "byte order mark": "\ufeffx\ufeff",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "what Qt uses for frames": "\ufdd0\ufdd1",
    "the stand-ins": "\ufdd2\ufdd3 \ufdd2\ufdd2\ufdd7",
    "a stand-in before what it stands for": "\ufdd2\r\ufdd3\r",
    "control characters": "\0\x01\x0b\x0c\x1f\x85",
    "beyond 16 bits": "👋🏽\r\n𝒳",
    "blanks": "  a  b  ",
}


@pytest.fixture
def editor(qtbot: QtBot) -> PromptEditor:
    made = PromptEditor(theme.load("dark"))
    qtbot.addWidget(made)
    made.resize(264, 100)
    return made


def paste(editor: PromptEditor, text: str) -> None:
    source = QMimeData()
    source.setData("text/plain", QByteArray(text.encode()))
    editor.insertFromMimeData(source)


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_what_is_pasted_comes_back_character_for_character(editor: PromptEditor, text: str) -> None:
    paste(editor, text)
    assert editor.text() == text


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_what_is_set_is_copied_as_it_was(editor: PromptEditor, text: str) -> None:
    editor.set_text(text)
    editor.selectAll()
    assert editor.createMimeDataFromSelection().data("text/plain").data() == text.encode()


def test_every_character_of_unicode_comes_back(editor: PromptEditor) -> None:
    for first in range(0, 0x110000, 0x8000):
        codes = range(first, first + 0x8000)
        text = "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)
        editor.set_text(text)
        assert editor.text() == text


def test_typing_beside_what_was_pasted_loses_nothing(editor: PromptEditor, qtbot: QtBot) -> None:
    paste(editor, "\ufeffa\u00a0b\r\nc\rd")
    qtbot.keyClicks(editor, "!")
    editor.moveCursor(QTextCursor.MoveOperation.Start)
    qtbot.keyClicks(editor, ">")
    assert editor.text() == ">\ufeffa\u00a0b\r\nc\rd!"


def test_undo_brings_the_exact_text_back(editor: PromptEditor) -> None:
    editor.set_text("Hello\r\nworld")
    editor.set_text("another")
    editor.undo()
    assert editor.text() == "Hello\r\nworld"


def test_a_deleted_carriage_return_is_gone_and_the_line_end_stays(editor: PromptEditor) -> None:
    editor.set_text("a\r\nb")
    cursor = editor.textCursor()
    cursor.setPosition(1)
    cursor.deleteChar()
    assert editor.text() == "a\nb"


def test_shift_return_types_a_line_end(editor: PromptEditor, qtbot: QtBot) -> None:
    qtbot.keyClicks(editor, "a")
    qtbot.keyClick(editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(editor, "b")
    assert editor.text() == "a\nb"  # Qt by itself would type U+2028


def test_a_paste_beyond_the_limit_is_refused_whole(editor: PromptEditor, qtbot: QtBot) -> None:
    editor.set_text("abc")
    with qtbot.waitSignal(editor.refused) as said:
        paste(editor, "x" * (MAX_PROMPT_CHARACTERS - 2))
    assert editor.text() == "abc"
    assert said.args == [
        "100,001 characters would be more than the limit of 100,000: nothing was pasted."
    ]


def test_a_paste_over_a_selection_counts_what_it_replaces(editor: PromptEditor) -> None:
    editor.set_text("abc")
    editor.selectAll()
    paste(editor, "word " * (MAX_PROMPT_CHARACTERS // 5))
    assert len(editor.text()) == MAX_PROMPT_CHARACTERS


def test_a_text_beyond_the_limit_is_not_set(editor: PromptEditor, qtbot: QtBot) -> None:
    with qtbot.waitSignal(editor.refused):
        editor.set_text("x" * (MAX_PROMPT_CHARACTERS + 1))
    assert editor.text() == ""


def test_a_run_without_words_is_broken_anywhere(editor: PromptEditor) -> None:
    """Breaking at words takes a second a key there: its time grows with the run's square."""
    modes = QTextOption.WrapMode
    paste(editor, "x" * (LONGEST_WORD + 1))
    assert editor.wordWrapMode() == modes.WrapAnywhere
    editor.set_text("word " * LONGEST_WORD)
    assert editor.wordWrapMode() == modes.WrapAtWordBoundaryOrAnywhere


def test_tab_goes_on_to_the_next_control(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    first, second = PromptEditor(theme.load("dark")), PromptEditor(theme.load("dark"))
    column.addWidget(first)
    column.addWidget(second)
    with qtbot.waitActive(window):
        window.show()
    first.setFocus()
    qtbot.keyClick(first, Qt.Key.Key_Tab)
    assert second.hasFocus()
    assert first.text() == ""


@pytest.mark.parametrize("name", ["dark", "light"])
def test_a_carriage_return_is_drawn_as_a_sign(
    editor: PromptEditor, qtbot: QtBot, name: theme.Name
) -> None:
    editor.restyle(theme.load(name))
    editor.set_text("a\nb")
    plain = editor.grab().toImage()
    editor.set_text("a\r\nb")
    assert isinstance(plain, QImage)
    assert editor.grab().toImage() != plain


def test_what_the_eye_cannot_see_is_told_in_words() -> None:
    assert remarks("Hello there") == []
    assert remarks("    x\n    y") == []  # indentation is to be seen
    assert remarks("hello ") == ["1 × white space at the end"]
    assert remarks("hello  world") == ["1 × more than one blank in a row"]
    assert remarks("a\u00a0b\u202fc\r\nd\re\ufefff\u2028g") == [
        "2 × no-break space",
        "1 × CRLF line end",
        "1 × lone CR",
        "1 × byte order mark",
        "1 × line separator",
    ]
