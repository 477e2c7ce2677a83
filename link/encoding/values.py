"""Values as bytes, equal for equal values: numbers, texts, bytes, arrays, and tuples of these."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from link.files.json_text import read_json

MAX_DIMENSIONS: Final = 4
_KINDS: Final = "biu"  # of arrays: whole numbers and truth values


def pack(value: Any) -> bytes:
    """A value as bytes: a header, and one after the other what texts and arrays hold.

    Args:
        value: None, a bool, an int, a str, bytes, an array of whole numbers or truth values, or a list or tuple of
            such values.

    Raises:
        TypeError: It is something else.
    """
    bodies: list[bytes] = []
    header = _describe(value, bodies)
    return json.dumps(header, separators=(",", ":")).encode() + b"\n" + b"".join(bodies)


def unpack(packed: bytes) -> Any:
    """What `pack` made, lists as tuples; arrays may not be written to.

    Raises:
        ValueError: It is something else.
    """
    text, newline, body = packed.partition(b"\n")
    if not newline:
        raise _foreign()
    value, rest = _take(read_json(text), memoryview(body))
    if rest:
        raise _foreign()
    return value


def _describe(value: Any, bodies: list[bytes]) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return ["s", value]
    if isinstance(value, bytes):
        bodies.append(value)
        return ["b", len(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        little = value.astype(value.dtype.newbyteorder("<"), order="C")
        bodies.append(little.tobytes())
        return ["a", little.dtype.str, list(value.shape)]
    if isinstance(value, list | tuple):
        return ["t", [_describe(each, bodies) for each in value]]
    raise TypeError(f"a {type(value).__name__} is no value that is packed")


def _take(header: Any, body: memoryview) -> tuple[Any, memoryview]:
    match header:
        case None | bool() | int():
            return header, body
        case ["s", str(text)]:
            return text, body
        case ["b", int(size)]:
            taken, body = _cut(body, size)
            return bytes(taken), body
        case ["a", str(name), [*shape]] if len(shape) <= MAX_DIMENSIONS and all(map(_is_size, shape)):
            try:
                dtype = np.dtype(name)
            except (TypeError, ValueError):
                raise _foreign() from None
            if dtype.kind not in _KINDS or dtype.str != name:
                raise _foreign()
            size = dtype.itemsize
            for length in shape:
                size *= length
            taken, body = _cut(body, size)
            return np.frombuffer(taken, dtype).reshape(shape), body
        case ["t", [*parts]]:
            values = []
            for part in parts:
                value, body = _take(part, body)
                values.append(value)
            return tuple(values), body
    raise _foreign()


def _is_size(number: Any) -> bool:
    return type(number) is int and number >= 0


def _cut(body: memoryview, size: int) -> tuple[memoryview, memoryview]:
    if not 0 <= size <= len(body):
        raise _foreign()
    return body[:size], body[size:]


def _foreign() -> ValueError:
    return ValueError("these bytes are no packed value")
