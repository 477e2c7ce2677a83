"""How much has come over each connection that the node has not read: gRPC holds much of it, whatever it is.

A stream's window bounds what is sent of a message that nobody reads, but nothing bounds headers without end, frames
that mean nothing, and messages of which the last byte never comes; and while such bytes come without a pause, gRPC
makes the room into which it reads them larger and larger. The kernel counts all that comes. What is left when the
messages that the node has read are taken off is in memory, or has been there.

That something is in memory no more, such as calls that were given up, is taken for granted of so much a second, once
a message has come after it: no message comes over a connection on which headers have begun and do not end, however
slowly they come.
"""

from __future__ import annotations

import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

MOST_UNREAD: Final = 64 << 20  # bytes, of one member
MOST_OF_STRANGERS: Final = 16 << 20  # at one address; as much as the windows of all streams of a connection
AROUND: Final = 1024  # bytes around a message: its call's headers, frames, encryption
WASTED_A_S: Final = 1 << 20  # bytes a second before a message that never become one, as of calls given up

_TCP_INFO_BYTES: Final = 192
_BYTES_RECEIVED: Final = slice(128, 136)  # in Linux's `struct tcp_info`

End = tuple[str, int]
_H = TypeVar("_H", bound=Hashable)  # who holds a connection


def received(connection: socket.socket) -> int:
    """How many bytes have come over a connection, as far as the kernel knows."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    return int.from_bytes(info[_BYTES_RECEIVED], "little")


class _Reckoned(NamedTuple):
    """What was found of a connection when it was looked at.

    Attributes:
        read: The bytes of all messages.
        spent: Of what had come, what is neither a message nor in memory any more.
        unread: The rest.
    """

    read: int
    spent: float
    unread: float


class Unread:
    """What is unread of each connection, by its other end.

    Args:
        now: Seconds of a clock that only goes forward.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._looked = now, now()
        self._read: Counter[End] = Counter()
        self._reckoned: dict[End, _Reckoned] = {}

    def read(self, end: End, size: int) -> None:
        """The node has read a message of so many bytes. May be called from any thread."""
        self._read[end] += size + size // 32 + AROUND

    def look(self, come: Mapping[End, int]) -> dict[End, int]:
        """The bytes that are unread, by the bytes that have come over all connections that are open."""
        now = self._now()
        wasted, self._looked = WASTED_A_S * min(now - self._looked, 1.0), now
        for end in set(self._read) - come.keys():
            self._read.pop(end, None)
        for end in self._reckoned.keys() - come.keys():
            del self._reckoned[end]
        unread: dict[End, int] = {}
        for end, size in come.items():
            read, last = self._read[end], self._reckoned.get(end, _Reckoned(0, 0.0, 0.0))
            left, spent = size - read - last.spent, 0.0
            if left < 0:  # a message was longer than its bytes: nobody saves up for later
                spent = left
            elif read > last.read:  # of what had come before the message
                spent = min(left, max(last.unread, 0.0), wasted)
            self._reckoned[end] = _Reckoned(read, last.spent + spent, left - spent)
            unread[end] = int(left - spent)
        return unread


def too_much(held: Iterable[tuple[End, _H]], unread: Mapping[End, int], most: Callable[[_H], int]) -> set[End]:
    """The connections to end so that nobody has too much unread: of each holder those that have most.

    Args:
        held: The other ends of all connections, and who holds them.
        unread: Bytes that are unread of each.
        most: How many of them a holder may have.
    """
    by_holder: dict[_H, list[tuple[int, End]]] = defaultdict(list)
    for end, holder in held:
        by_holder[holder].append((unread.get(end, 0), end))
    found: set[End] = set()
    for holder, sizes in by_holder.items():
        total = sum(size for size, _ in sizes)
        for size, end in sorted(sizes, reverse=True):
            if total <= most(holder):
                break
            total -= size
            found.add(end)
    return found
