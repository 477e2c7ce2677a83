"""What nodes send each other while a job runs, held against what its statement declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from google.protobuf import symbol_database

from link.core import Receiver, Transport
from link.disclosure import Declared, kinds
from protos.v1 import common_pb2
from protos.v1.link_pb2 import Frame, Opening
from tests.chaos.demands import require

_OPENING: Final = Opening.DESCRIPTOR.full_name


@dataclass
class Transcripts:
    """The frames of all sessions, as far as they may disclose something.

    Attributes:
        opened: By session, sender, receiver and label, how many values were opened.
        types: The types of all messages that open nothing.
    """

    opened: Counter[tuple[bytes, str, str, str]] = field(default_factory=Counter)
    types: set[str] = field(default_factory=set)

    def of(self, inner: Transport) -> Transport:
        """A transport whose outbound frames are noted."""
        return _Noted(inner, self)

    def note(self, frame: Frame) -> None:
        """Takes note of a frame that a session sends."""
        if frame.type != _OPENING:
            self.types.add(frame.type)
        elif frame.last:
            opening = Opening.FromString(frame.body)
            self.opened[frame.session, frame.sender, frame.receiver, opening.label] += opening.number

    def check(self, declared: Iterable[Declared]) -> None:
        """No session has opened more than is declared, to anybody else, or otherwise than by an opening."""
        lines = {line.label: line for line in declared}
        for (_, sender, receiver, label), number in self.opened.items():
            require(label in lines, f"{sender} has opened {label!r} to {receiver}, which the statement does not have")
            line = lines[label]
            require(receiver in line.recipients, f"{sender} has opened {label!r} to {receiver}, who may not learn it")
            require(number <= line.maximum, f"{sender} has opened {number} values of {label!r} to {receiver}")
        database = symbol_database.Default()
        for name in sorted(self.types):
            shown = common_pb2.OPENED in kinds(database.GetSymbol(name))
            require(not shown, f"{name} shows a value that was not opened")


class _Noted:
    """A transport whose outbound frames are noted."""

    def __init__(self, inner: Transport, transcripts: Transcripts) -> None:
        self._inner, self._transcripts = inner, transcripts

    def attach(self, receiver: Receiver) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        self._transcripts.note(frame)
        await self._inner.send(to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)
