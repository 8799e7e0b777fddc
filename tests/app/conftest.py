"""The real window around the embedded model, for every test that uses it as a person does."""

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.settings import Settings
from app.theme import Themes
from engine.generate import Engine


@pytest.fixture
def window(qtbot: QtBot, engine: Engine) -> Iterator[MainWindow]:
    themes = Themes()
    themes.choose("dark")
    themes.apply()
    window = MainWindow(Settings(kept=False), themes, load=lambda *_: engine)
    qtbot.addWidget(window)
    window.resize(1440, 900)
    window.desk.arrange()
    window.set_pace("full")
    with qtbot.waitExposed(window):
        window.show()
    with qtbot.waitSignal(window.door.loaded):
        window.start()
    yield window
    window.close()
    assert window.door.close()
