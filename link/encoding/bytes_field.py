"""A message's field of bytes as protobuf encodes it, without the copies that its library makes of a megabyte.

Source: Protocol Buffers, "Encoding": a field of bytes is its tag, its length and its content, both numbers as varints.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import Message

_DATA: Final = "data"
_LENGTH_DELIMITED: Final = 2
_MOST_VARINT_BYTES: Final = 5  # of the length of what memory holds


def field(number: int, content: bytes | memoryview) -> bytes:
    """The field of this number."""
    return b"".join((_varint(number << 3 | _LENGTH_DELIMITED), _varint(len(content)), content))


def message_of(kind: type[Message], data: bytes | memoryview) -> bytes:
    """`kind(data=data).SerializeToString()`."""
    return field(_number(kind), data) if len(data) else b""


def data_of(kind: type[Message], message: bytes) -> bytes | memoryview:
    """`kind.FromString(message).data`, for any encoding.

    Raises:
        DecodeError: It is no such message.
    """
    tag = _varint(_number(kind) << 3 | _LENGTH_DELIMITED)
    if message.startswith(tag):
        length, shift = 0, 0
        for place in range(len(tag), min(len(tag) + _MOST_VARINT_BYTES, len(message))):
            length |= (message[place] & 0x7F) << shift
            shift += 7
            if message[place] < 0x80:
                if place + 1 + length == len(message):
                    return memoryview(message)[place + 1 :]
                break
    found: bytes = getattr(kind.FromString(message), _DATA)
    return found


def _number(kind: type[Message]) -> int:
    return int(kind.DESCRIPTOR.fields_by_name[_DATA].number)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
