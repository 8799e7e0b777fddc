"""Zoom and scale: everything fits until one zooms, the time under the mouse stays there."""

import numpy as np
import pytest

from app.widgets.zoom import Scale, Zoom, nice_step


def test_all_is_in_sight_however_it_grows() -> None:
    zoom = Zoom()
    assert [zoom.seen(total) for total in (0, 5e6, 9e6)] == [(0, 1), (0, 5e6), (0, 9e6)]


def test_the_time_under_the_mouse_stays_where_it_is() -> None:
    zoom = Zoom()
    zoom.zoom(2, about=30e6, total=100e6)
    start, end = zoom.seen(100e6)
    assert end - start == 50e6
    assert (30e6 - start) / (end - start) == pytest.approx(0.3)  # as it was in 0 to 100


def test_a_zoomed_view_stays_while_the_run_grows() -> None:
    zoom = Zoom()
    zoom.zoom(4, about=0, total=100e6)
    assert zoom.seen(100e6) == zoom.seen(500e6) == (0, 25e6)


def test_zooming_out_past_everything_fits_again() -> None:
    zoom = Zoom()
    zoom.zoom(2, about=50e6, total=100e6)
    zoom.zoom(0.25, about=50e6, total=100e6)
    assert zoom.seen(200e6) == (0, 200e6)


def test_zooming_in_ends_at_a_microsecond() -> None:
    zoom = Zoom()
    zoom.zoom(1e9, about=50e6, total=100e6)
    start, end = zoom.seen(100e6)
    assert end - start == pytest.approx(1_000)


def test_moving_stops_at_the_ends() -> None:
    zoom = Zoom()
    zoom.zoom(2, about=0, total=100e6)
    zoom.move(80e6, total=100e6)
    assert zoom.seen(100e6) == (50e6, 100e6)
    zoom.move(-5e6, total=100e6)
    assert zoom.seen(100e6) == (0, 50e6)


def test_where_all_is_in_sight_nothing_moves() -> None:
    zoom = Zoom()
    zoom.move(80e6, total=100e6)
    assert zoom.seen(100e6) == (0, 100e6)


def test_a_shorter_run_is_shown_at_its_end_and_the_view_comes_back() -> None:
    zoom = Zoom()
    zoom.zoom(2, about=100e6, total=100e6)  # 50 to 100
    assert zoom.seen(60e6) == (10e6, 60e6)  # scrubbed back
    assert zoom.seen(100e6) == (50e6, 100e6)


def test_a_scale_turns_times_into_whole_pixels_and_back() -> None:
    scale = Scale(left=10, width=100, start=0, end=50e6)
    assert scale.x(np.array([-1e6, 0, 25.2e6, 50e6, 90e6])).tolist() == [10, 10, 60, 110, 110]
    assert scale.ns(60) == 25e6


@pytest.mark.parametrize(
    ("length", "most", "step"),
    [(178, 10, 20), (100, 10, 10), (101, 10, 20), (23, 5, 5), (0.7, 4, 0.2), (9, 1, 10)],
)
def test_a_step_is_one_two_or_five_times_a_power_of_ten(
    length: float, most: float, step: float
) -> None:
    assert nice_step(length, most=most) == pytest.approx(step)
