"""Reads bodies of frames: as messages, or for the bytes that a message carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import Message

from protos.v1.link_pb2 import Opening

M = TypeVar("M", bound=Message)
Reading = Callable[[bytes], bytes | memoryview]
"""Gives the bytes that a message carries. It raises DecodeError or ValueError where the body is not what it must be."""


def reading(kind: type[M], check: Callable[[M], None] | None) -> Callable[[bytes], M]:
    """Reads a message that `check` does not refuse by a ValueError."""

    def read(body: bytes) -> M:
        message = kind()
        message.ParseFromString(body)
        if check is not None:
            check(message)
        return message

    return read


def reading_values(label: str, number: int) -> Reading:
    """Reads the values of an opening that has this label and says that they are so many."""

    def read(body: bytes) -> bytes:
        opening = Opening.FromString(body)
        if opening.label != label or opening.number != number:
            raise ValueError(f"{number} values of '{label}' were expected")
        return opening.values

    return read
