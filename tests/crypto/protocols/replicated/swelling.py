"""A party that sends messages of a right kind which would cost their receiver more than they cost the sender."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

from google.protobuf import symbol_database
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from link.core import MAX_BODY_BYTES
from protos.v1.link_pb2 import Frame

WAYS: Final = ("longer", "most", "repeated", "by the byte", "endless", "empty pieces")
_ROOM: Final = 1 << 10  # for tags and lengths
_MOST_PIECES: Final = 20_000  # whose frames take some megabytes at the sender itself, which is in this process, too


def _longer(message: Message, field: FieldDescriptor, value: Any) -> None:
    if isinstance(value, bytes):
        setattr(message, field.name, value + bytes(MAX_BODY_BYTES - message.ByteSize() - _ROOM))


def _most(message: Message, field: FieldDescriptor, value: Any) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        bits = 32 if field.type in (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_INT32) else 64
        setattr(message, field.name, (1 << bits) - 1)


def _repeated(message: Message, field: FieldDescriptor, value: Any) -> None:
    if field.is_repeated:
        value.extend([type(value[0])()] * 1_000_000)


_CHANGES: Final[dict[str, Callable[[Message, FieldDescriptor, Any], None]]] = {
    "longer": _longer,
    "most": _most,
    "repeated": _repeated,
}


def swollen(way: str, frame: Frame) -> list[Frame]:
    """What goes out in place of a frame; the same frame alone where it has nothing that swells so."""
    message: Message = symbol_database.Default().GetSymbol(frame.type)()
    message.ParseFromString(frame.body)
    if way in _CHANGES:
        for field, value in message.ListFields():
            _CHANGES[way](message, field, value)
        return [_with(frame, message, last=frame.last)]
    data = next((field.name for field, value in message.ListFields() if isinstance(value, bytes)), None)
    if data is None or not frame.last:
        return [frame]
    octets = getattr(message, data)
    if way == "by the byte":
        few = range(min(len(octets), _MOST_PIECES))
        pieces = [*(octets[place : place + 1] for place in few), octets[len(few) :]]
    else:
        pieces = [octets if way == "endless" else b""] * 1_000 + [octets]
    found = []
    for piece in pieces[:-1]:
        found.append(_with(frame, type(message)(**{data: piece}), last=False))
    setattr(message, data, pieces[-1])
    return [*found, _with(frame, message, last=True)]


def _with(frame: Frame, message: Message, *, last: bool) -> Frame:
    changed = Frame()
    changed.CopyFrom(frame)
    changed.body, changed.last = message.SerializeToString(deterministic=True), last
    return changed


class Swelling:
    """Alters the first message of a type that deviating parties send to another one, if that swells so.

    Attributes:
        altered: Whether it did.
    """

    def __init__(self, way: str, kind: str, deviating: Collection[str]) -> None:
        self._way, self._kind, self._deviating, self.altered = way, kind, deviating, False

    def __call__(self, frame: Frame) -> list[Frame]:
        if self.altered or frame.type != self._kind or frame.receiver in self._deviating:
            return [frame]
        found = swollen(self._way, frame)
        self.altered = found != [frame]
        return found


@contextmanager
def peak_bytes() -> Iterator[list[int]]:
    """Yields a list that has, at the end, the most memory that Python and numpy have held at once."""
    gc.collect()
    tracemalloc.start()
    found: list[int] = []
    try:
        yield found
        found.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
