"""The real window around the embedded model, for every test that uses it as a person does."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from pytestqt.qtbot import QtBot

from app.main_window import MainWindow
from app.settings import Settings
from app.theme import Themes
from engine.generate import Engine


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of this machine is neither read nor written; the folder is made if needed."""
    folder = tmp_path_factory.getbasetemp() / "caches" / uuid4().hex
    monkeypatch.setenv("DECODESCOPE_CACHE", str(folder))


@pytest.fixture
def window(qtbot: QtBot, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[MainWindow]:
    """Its limits are not looked for by themselves: that would take the tests' time."""
    monkeypatch.setattr("app.gauge.IDLE_MS", 3_600_000)
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
