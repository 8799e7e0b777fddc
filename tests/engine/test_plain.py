"""Records as plain values and back: what fits is taken, what does not is refused."""

from dataclasses import replace

import pytest

from engine import plain
from engine.events import Forward, Memory, Work

FORWARD = Forward(
    phase="decode",
    first=6,
    count=1,
    reused=0,
    span=(0, 5),
    layer_spans=((0, 1), (1, 2)),
    waited_ns=0,
    memory=Memory(1, 2, 3, 4, 5, 6, 7, None),
    work=Work(1, 2, 3),
    device_ns=4,
)


def test_a_record_comes_back_as_it_was() -> None:
    assert plain.decode(Forward, plain.encode(FORWARD)) == FORWARD


def test_a_trace_saved_before_passes_had_a_device_clock_still_opens() -> None:
    table = plain.encode(FORWARD)
    del table["device_ns"]
    assert plain.decode(Forward, table) == replace(FORWARD, device_ns=None)


@pytest.mark.parametrize("change", [{"extra": 1}, {"span": None}, {"first": "six"}])
def test_a_field_too_many_or_of_another_type_is_refused(change: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        plain.decode(Forward, plain.encode(FORWARD) | change)


@pytest.mark.parametrize("name", ["first", "memory", "work"])
def test_a_field_that_must_be_there_is_missed(name: str) -> None:
    table = plain.encode(FORWARD)
    del table[name]
    with pytest.raises(TypeError):
        plain.decode(Forward, table)
