"""Rows that grow in one piece, and go on where a prefill left room for them."""

import numpy as np

from engine.events import Floats
from engine.rows import Rows, roomy


def filled(rows: Floats, value: float) -> Floats:
    rows[...] = value
    return rows


def test_rows_lie_in_one_piece_and_grow() -> None:
    rows = Rows(np.zeros((2, 1, 3), np.float32), axis=1, room=2)
    views = [rows.extend(np.full((2, 1, 3), n, np.float32)) for n in range(5)]
    assert rows.used.shape == (2, 5, 3)
    assert rows.used[:, :, 0].tolist() == [[0, 1, 2, 3, 4]] * 2
    assert [view[0, 0, 0] for view in views] == [0, 1, 2, 3, 4]
    assert rows.nbytes == 2 * 5 * 3 * 4


def test_what_is_given_out_cannot_be_written_to() -> None:
    rows = Rows(np.zeros((1, 1), np.float32), axis=0, room=4)
    assert not rows.extend(np.ones((1, 1), np.float32)).flags.writeable
    assert not rows.used.flags.writeable


def test_rows_with_room_are_taken_in_without_copying() -> None:
    given = filled(roomy((2, 3, 4), axis=1, room=10), 1)
    rows = Rows(given, axis=1, room=0)
    assert np.shares_memory(rows.extend(given), given)
    rows.extend(np.full((2, 7, 4), 2, np.float32))
    assert np.shares_memory(rows.used, given)
    assert rows.used[0, :, 0].tolist() == [1] * 3 + [2] * 7


def test_a_second_buffer_copies_them_as_two_writers_would_overwrite_each_other() -> None:
    given = filled(roomy((1, 2), axis=0, room=10), 1)
    one, two = Rows(given, axis=0, room=10), Rows(given, axis=0, room=10)
    for rows in (one, two):
        rows.extend(given)
    one.extend(np.full((1, 2), 3, np.float32))
    two.extend(np.full((1, 2), 4, np.float32))
    assert one.used.tolist() == [[1, 1], [3, 3]]
    assert two.used.tolist() == [[1, 1], [4, 4]]


def test_more_rows_than_there_is_room_for_move_to_a_larger_array() -> None:
    given = filled(roomy((1, 2), axis=0, room=2), 1)
    rows = Rows(given, axis=0, room=2)
    first = rows.extend(given)
    rows.extend(np.full((2, 2), 2, np.float32))
    assert rows.used.tolist() == [[1, 1], [2, 2], [2, 2]]
    assert first.tolist() == [[1, 1]]


def test_a_part_of_rows_with_room_is_an_array_like_any() -> None:
    given = filled(roomy((3, 2), axis=0, room=10), 1)
    rows = Rows(given[1:], axis=0, room=10)
    assert not np.shares_memory(rows.extend(given[1:]), given)


def test_nobody_keeps_rows_alive_that_no_buffer_took() -> None:
    from engine import rows

    before = len(rows._unclaimed)
    given = roomy((1, 2), axis=0, room=10)
    assert len(rows._unclaimed) == before + 1
    del given
    assert len(rows._unclaimed) == before
