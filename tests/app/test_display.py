"""When a window can be shown."""

import pytest

from app import display


@pytest.mark.parametrize(
    ("environ", "listening", "shown"),
    [
        ({}, True, False),
        ({"DISPLAY": ":0"}, True, True),
        ({"DISPLAY": ":0"}, False, False),  # the server is gone, the variable stayed
        ({"DISPLAY": "localhost:10.0"}, True, True),
        ({"DISPLAY": "localhost:10.0"}, False, False),
        ({"WAYLAND_DISPLAY": "wayland-0"}, False, True),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}, True, False),
        ({"QT_QPA_PLATFORM": "vnc:port=5901"}, False, True),
    ],
)
def test_a_display_counts_when_something_answers_there(
    environ: dict[str, str], listening: bool, shown: bool
) -> None:
    assert display.answers(environ, lambda *_: listening, system="linux") is shown
