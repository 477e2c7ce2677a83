"""How many calls one certificate may have open, and how much of the node's memory it and all together may take."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from link.errors import LimitExceeded, PeerError


class Streams:
    """Streams that are open, by the name in the certificate.

    Args:
        most: Of one name.
        me: This party.

    Attributes:
        open: How many there are of each name.
    """

    def __init__(self, most: int, me: str) -> None:
        self._most, self._me = most, me
        self.open: Counter[str] = Counter()

    @contextmanager
    def one(self, name: str) -> Iterator[None]:
        """A stream, for as long as it lasts.

        Raises:
            LimitExceeded: The name has as many as it may.
        """
        if self.open[name] >= self._most:
            raise LimitExceeded(
                f"'{name}' has {self._most} streams open at {self._me}, as many as it may; use those", party=self._me
            )
        self.open[name] += 1
        try:
            yield
        finally:
            self.open[name] -= 1
            if not self.open[name]:
                del self.open[name]


class Queue:
    """Batches that were read and wait for room, by the name in the certificate: senders can only fill their own.

    Args:
        most: Bytes of one name.
        me: This party.

    Attributes:
        waiting: Bytes of each name.
    """

    def __init__(self, most: int, me: str) -> None:
        self._most, self._me = most, me
        self.waiting: Counter[str] = Counter()

    @contextmanager
    def one(self, name: str, size: int) -> Iterator[None]:
        """A batch of so many bytes, for as long as it waits.

        Raises:
            PeerError: The name has as many bytes waiting as it may; its other streams go on.
        """
        if self.waiting[name] + size > self._most:
            raise PeerError(
                f"'{name}' has {self._most >> 20} MiB of reports waiting at {self._me}, as many as it may; send the "
                "others again later, on fewer streams",
                party=self._me,
            )
        self.waiting[name] += size
        try:
            yield
        finally:
            self.waiting[name] -= size
            if not self.waiting[name]:
                del self.waiting[name]


class MemoryLimit:
    """Bytes of memory that batches may take until they are on disk; callers wait in turn where there are too few.

    Args:
        size: Bytes of all.
    """

    def __init__(self, size: int) -> None:
        self._size = self._left = size
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> int:
        """Takes so many bytes, at most all that there are; returns how many are to be given back."""
        size = min(size, self._size)
        if not self.waiting and self._left >= size:
            self._left -= size
            return size
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = size, turn
        self.waiting.append(waiting)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(size)
            else:  # there may be enough for the next in the queue
                with suppress(ValueError):
                    self.waiting.remove(waiting)
                self.give(0)
            raise
        return size

    def give(self, size: int) -> None:
        """Gives bytes back."""
        self._left += size
        while self.waiting:
            wanted, turn = self.waiting[0]
            if turn.cancelled():
                self.waiting.popleft()
                continue
            if wanted > self._left:
                return
            self.waiting.popleft()
            self._left -= wanted
            turn.set_result(None)

    @property
    def idle(self) -> bool:
        """Whether nobody has taken anything, or waits to."""
        return self._left == self._size and not self.waiting


class Held:
    """What has been taken of a limit.

    Args:
        limit: Of which.
        size: Bytes.
    """

    def __init__(self, limit: MemoryLimit, size: int) -> None:
        self._limit, self._size = limit, size

    def keep(self, size: int) -> None:
        """Gives back all but so many bytes."""
        kept = min(size, self._size)
        self._limit.give(self._size - kept)
        self._size = kept


class MemoryLimits:
    """A limit for each name in a certificate: a caller who uses up its own makes nobody else wait.

    Args:
        size: Bytes of one name.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._limits: dict[str, MemoryLimit] = {}

    @asynccontextmanager
    async def some(self, name: str, size: int) -> AsyncIterator[Held]:
        """So many bytes of the name's limit, once they are free; given back at the end."""
        limit = self._limits.setdefault(name, MemoryLimit(self._size))
        held = Held(limit, await limit.take(size))
        try:
            yield held
        finally:
            held.keep(0)
            if limit.idle:
                self._limits.pop(name, None)
