"""What every test stands on: a screen of known size, one thread, no network, two small engines."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

_HERE = Path(__file__).parent
os.environ.setdefault(
    "QT_QPA_PLATFORM", f"offscreen:configfile={_HERE.parent / 'resources' / 'screens.json'}"
)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(_HERE.parent))

PROMPT = "Michael Jordan played the sport of"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing we test may look for a host."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is measured here is kept nowhere, and what the user keeps decides nothing here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECODESCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def engine() -> object:
    """The embedded model, loaded once, on one thread."""
    from engine.generate import Engine

    return Engine.load("embedded", "cpu", "float32", n_threads=1)


@pytest.fixture(scope="session")
def recorded(engine: object) -> object:
    """The trace of the default prompt: seed 1, 14 tokens of at most 24, everything recorded."""
    from engine.request import Request
    from engine.trace import Trace

    return Trace(engine.generate(Request(PROMPT, max_tokens=24)))  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def story(engine: object) -> object:
    """A longer trace: 13 prompt tokens and 40 written, seed 1, everything recorded."""
    from engine.request import Request
    from engine.trace import Trace

    prompt = "Once upon a time, there was a little girl named Lily."
    return Trace(engine.generate(Request(prompt, max_tokens=40)))  # type: ignore[attr-defined]
