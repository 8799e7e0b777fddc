"""Whether a window can be shown here."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Mapping

OFFSCREEN_PLATFORMS = ("offscreen", "minimal")
X11_NAME = r"(unix)?(?P<host>[^:]*):(?P<number>\d+)(\.\d+)?"  # host:display.screen


def connects(family: int, address: str | tuple[str, int]) -> bool:
    """Whether something listens at this socket."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as client:
            client.settimeout(1)
            client.connect(address)
    except OSError:
        return False
    return True


def answers(
    environ: Mapping[str, str],
    listens: Callable[[int, str | tuple[str, int]], bool] = connects,
    *,
    system: str = sys.platform,
) -> bool:
    """Whether there is a display; one that is named but gone (an ended ssh session) is not there.

    >>> answers({}, system="linux"), answers({}, system="darwin")
    (False, True)
    """
    platform = environ.get("QT_QPA_PLATFORM", "")
    if platform:
        return not platform.startswith(OFFSCREEN_PLATFORMS)
    if not system.startswith("linux") or environ.get("WAYLAND_DISPLAY"):
        return True
    x11 = re.fullmatch(X11_NAME, environ.get("DISPLAY", ""))
    if not x11:
        return False
    number = int(x11["number"])
    if x11["host"]:
        return listens(socket.AF_INET, (x11["host"], 6000 + number))
    path = f"/tmp/.X11-unix/X{number}"
    return listens(socket.AF_UNIX, path) or listens(socket.AF_UNIX, f"\0{path}")
