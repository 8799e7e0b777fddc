"""Records as plain JSON values and back, checked against the types of their fields."""

from __future__ import annotations

import math
import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from engine.events import Event, Forward, RunFailed, RunFinished, RunStarted, Sampled, Tokenized

EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (RunStarted, Tokenized, Forward, Sampled, RunFinished, RunFailed)
}


def encode(value: object) -> Any:
    """A record without its arrays: dataclasses as objects, tuples as lists, bytes as hex.

    >>> from engine.events import Token
    >>> encode(Token(262, b" the"))
    {'id': 262, 'piece': '20746865'}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value) if f.compare}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    return value


def decode(kind: Any, value: Any) -> Any:
    """The value as `kind`: the opposite of `encode`. Arrays come back as None or empty.

    Raises:
        TypeError or ValueError: the value does not fit the type.
    """
    if is_dataclass(kind):
        return _decode_record(kind, value)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(kind, value)
    if origin is Literal:
        return _expect(value in get_args(kind), value, kind)
    if origin is tuple:
        return _decode_tuple(get_args(kind), value)
    if kind is bytes:
        return bytes.fromhex(value)
    if kind is float:
        _expect(type(value) in (int, float) and math.isfinite(value), value, kind)
        return float(value)
    return _expect(type(value) is kind, value, kind)


def _decode_record(kind: Any, value: Any) -> Any:
    hints = _hints(kind)
    plain = [f for f in fields(kind) if f.compare]
    _expect(isinstance(value, dict) and set(value) <= {f.name for f in plain}, value, kind)
    _expect({f.name for f in plain if f.default is not None} <= set(value), value, kind)
    found = {f.name: decode(hints[f.name], value[f.name]) for f in plain if f.name in value}
    missing = [f.name for f in fields(kind) if not f.compare and kind is Sampled]
    return kind(**found, **{name: np.empty(0) for name in missing})


def _decode_union(kind: Any, value: Any) -> Any:
    if value is None:
        return _expect(type(None) in get_args(kind), value, kind)
    (inner,) = (part for part in get_args(kind) if part is not type(None))
    return decode(inner, value)


def _decode_tuple(parts: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    _expect(isinstance(value, list), value, tuple)
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(decode(parts[0], item) for item in value)
    _expect(len(parts) == len(value), value, parts)
    return tuple(decode(part, item) for part, item in zip(parts, value, strict=True))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _expect(fits: bool, value: Any, kind: Any) -> Any:
    if not fits:
        raise TypeError(f"{str(value)[:60]!r} is not {getattr(kind, '__name__', kind)}")
    return value
