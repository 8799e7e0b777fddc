"""System packages: which are asked for, and what is said when they cannot be installed."""

from pathlib import Path

import libraries
import pytest
from steps import Failure, Step


def test_the_x11_libraries_are_asked_for_only_where_an_x11_window_opens() -> None:
    def n_needed(environ: dict[str, str], *, window: bool) -> int:
        return len(libraries.needed(environ, window=window, system="linux"))

    assert n_needed({"DISPLAY": ":0"}, window=True) == 12
    assert n_needed({"DISPLAY": ":0"}, window=False) == 6
    assert n_needed({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, window=True) == 6


def test_only_what_does_not_load_is_missing() -> None:
    absent = libraries.missing(libraries.OFFSCREEN, found=lambda soname: soname != "libEGL.so.1")
    assert absent == {"libEGL.so.1": "libegl1"}


def test_who_may_not_install_gets_the_one_line_to_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(libraries, "has_apt", lambda: True)
    monkeypatch.setattr(libraries, "can_apt", lambda: False)
    with pytest.raises(Failure, match="type this line") as failure:
        libraries.provide(
            {"libGL.so.1": "libgl1", "libEGL.so.1": "libegl1"}, Step(tmp_path / "log")
        )
    line = "sudo apt-get install -y --no-install-recommends libegl1 libgl1"
    assert failure.value.details == (line,)


def test_a_system_without_apt_is_told_what_to_look_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(libraries, "has_apt", lambda: False)
    with pytest.raises(Failure, match=r"lacks libEGL\.so\.1, libGL\.so\.1 and has no apt"):
        libraries.provide(
            {"libGL.so.1": "libgl1", "libEGL.so.1": "libegl1"}, Step(tmp_path / "log")
        )
