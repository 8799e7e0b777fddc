"""The "What is this?" page: our own fonts, inside its window, gone on Esc."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QPushButton, QTextBrowser, QToolButton
from pytestqt.qtbot import QtBot

from app import texts, theme
from app.widgets.explain import Explain

PAGE = "# Coin\n\nOne number in `[0, 1)`.\n\n- It is **not** hidden.\n"


@pytest.fixture
def window(qtbot: QtBot) -> QMainWindow:
    made = QMainWindow()
    qtbot.addWidget(made)
    made.resize(900, 700)
    made.setCentralWidget(QPushButton("beside"))
    with qtbot.waitExposed(made):
        made.show()
    return made


def opened(window: QMainWindow, markdown: str = PAGE) -> Explain:
    page = Explain(theme.load("dark"), window)
    page.show_page("Coin", markdown, beside=window.centralWidget())
    return page


def test_a_page_is_shown_as_it_reads(window: QMainWindow) -> None:
    page = opened(window)
    assert page.isVisible()
    assert page.plain_text() == "Coin\nOne number in [0, 1).\nIt is not hidden."


def test_escape_closes_it(window: QMainWindow, qtbot: QtBot) -> None:
    page = opened(window)
    qtbot.keyClick(page.findChild(QTextBrowser), Qt.Key.Key_Escape)
    assert not page.isVisible()


def test_escape_does_not_reach_what_the_window_does_on_escape(
    window: QMainWindow, qtbot: QtBot
) -> None:
    """There it stops a run."""
    stop = QAction(window)
    stop.setShortcut(QKeySequence("Esc"))
    stopped: list[bool] = []
    stop.triggered.connect(stopped.append)
    window.addAction(stop)
    page = opened(window)
    qtbot.keyClick(page.findChild(QTextBrowser), Qt.Key.Key_Escape)
    assert not page.isVisible()
    assert stopped == []


def test_its_button_closes_it(window: QMainWindow, qtbot: QtBot) -> None:
    page = opened(window)
    qtbot.mouseClick(page.findChild(QToolButton), Qt.MouseButton.LeftButton)
    assert not page.isVisible()


def test_going_elsewhere_closes_it(window: QMainWindow) -> None:
    page = opened(window)
    page.findChild(QTextBrowser).clearFocus()  # type: ignore[union-attr]
    assert not page.isVisible()


@pytest.mark.parametrize("size", [(900, 700), (320, 240)])
def test_it_lies_inside_its_window(window: QMainWindow, size: tuple[int, int]) -> None:
    window.resize(*size)
    page = opened(window, texts.page("attention"))
    assert window.rect().contains(page.geometry())


def test_it_is_as_high_as_its_page(window: QMainWindow) -> None:
    short = opened(window)
    assert short.height() < 200
    assert not short.findChild(QTextBrowser).verticalScrollBar().isVisible()  # type: ignore[union-attr]


def test_a_long_page_after_a_short_one_needs_no_bar_where_there_is_room(
    window: QMainWindow,
) -> None:
    page = opened(window)
    page.show_page("KV cache", texts.page("kv_cache"), beside=window.centralWidget())
    assert not page.findChild(QTextBrowser).verticalScrollBar().isVisible()  # type: ignore[union-attr]


def test_every_letter_is_in_a_font_that_travels_with_the_app(window: QMainWindow) -> None:
    document = opened(window).findChild(QTextBrowser).document()  # type: ignore[union-attr]
    families = set()
    block = document.begin()
    while block.isValid():
        at = block.begin()
        while not at.atEnd():
            families.add(at.fragment().charFormat().font().family())
            at += 1
        block = block.next()
    assert families == {"Inter", "JetBrains Mono"}
