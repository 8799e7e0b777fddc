"""The model that is wanted: kept once it is there, and never lost to one that is refused."""

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.errors import Banner
from app.loader import Loader
from app.settings import Settings
from app.store import Store
from app.worker import Door, Wanted
from engine.errors import EngineError
from engine.generate import Engine


class Shelf:
    """Loads what it has and refuses the rest."""

    def __init__(self, engine: Engine, *names: str) -> None:
        self.names = names
        self.asked: list[Wanted] = []
        self._engine = engine

    def load(self, model: str, device: str, dtype: str) -> Engine:
        self.asked.append(Wanted(model, device, dtype))
        if model not in self.names:
            raise EngineError("config_missing", folder=model)
        return self._engine


@pytest.fixture
def parts(qtbot: QtBot, engine: Engine) -> Iterator[tuple[Loader, Shelf, Banner, Store, Settings]]:
    shelf, store, settings = Shelf(engine, "embedded", "good"), Store(), Settings(kept=False)
    door, banner = Door(load=shelf.load), Banner()
    qtbot.addWidget(banner)
    yield Loader(store, door, settings, banner, store), shelf, banner, store, settings
    assert door.close()


def ready(store: Store) -> bool:
    return store.draft.model_state == "ready"


def test_a_model_that_is_there_is_kept_for_the_next_start(
    qtbot: QtBot, parts: tuple[Loader, Shelf, Banner, Store, Settings]
) -> None:
    loader, _, _, store, settings = parts
    with qtbot.waitSignal(loader.loaded):
        loader.start()
    with qtbot.waitSignal(loader.loaded):
        loader.load_model("good")
    assert ready(store)
    assert (store.draft.model, settings["model"]) == ("good", "good")


def test_a_refused_model_leaves_the_old_one_in_use(
    qtbot: QtBot, parts: tuple[Loader, Shelf, Banner, Store, Settings]
) -> None:
    loader, shelf, banner, store, settings = parts
    with qtbot.waitSignal(loader.loaded):
        loader.start()
    with qtbot.waitSignal(loader.loaded):  # of the old one again
        loader.load_model("/tmp/no-model")
    assert [wanted.model for wanted in shelf.asked] == ["embedded", "/tmp/no-model", "embedded"]
    assert banner.sentence.startswith("That model was refused, so Decodescope 6x8 stays in use.")
    assert "config.json is missing beside the weights" in banner.sentence
    assert ready(store)
    assert (store.draft.model, settings["model"]) == ("embedded", "embedded")


def test_without_an_old_model_a_refusal_is_the_end_of_it(
    qtbot: QtBot, parts: tuple[Loader, Shelf, Banner, Store, Settings]
) -> None:
    loader, shelf, banner, store, _ = parts
    loader.start(Wanted("gone"))
    qtbot.waitUntil(lambda: store.draft.model_state == "failed")
    assert len(shelf.asked) == 1
    assert "stays in use" not in banner.sentence


def test_another_device_keeps_the_model_that_was_named_at_the_start(
    qtbot: QtBot, parts: tuple[Loader, Shelf, Banner, Store, Settings]
) -> None:
    loader, shelf, _, _, _ = parts
    with qtbot.waitSignal(loader.loaded):
        loader.start(Wanted("good"))
    with qtbot.waitSignal(loader.loaded):
        loader.load_device("cpu", "bfloat16")
    assert shelf.asked[-1] == Wanted("good", "cpu", "bfloat16")
