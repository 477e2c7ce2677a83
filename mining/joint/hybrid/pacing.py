"""Reports go no faster than their receiver takes them.

Both sides count in windows of some reports. The sender sends two; before each further one it waits until the receiver
says that it has taken another. So at most two windows of a sender wait at a receiver, whatever its pace. How many
messages this takes follows from the number of reports, which both know; reports that fit two windows take none.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Final

from crypto.primitives.sealed import Rows
from link.session import Session
from protos.v1.hybrid_pb2 import WindowTaken

CHUNK: Final = 4096  # reports in one message, and in one piece of work: half a second of one core
WINDOW: Final = 32 << 20  # bytes; far more than a message has, since the last one of a window may wait for the next


def window_of(size: int) -> int:
    """How many reports of so many bytes are a window."""
    return CHUNK * max(1, WINDOW // (CHUNK * size))


def windows_told(number: int, size: int) -> int:
    """How often the receiver of so many reports says that it has taken a window."""
    return max(0, -(-number // window_of(size)) - 2)


async def paced(session: Session, to: str, pieces: AsyncIterable[Rows], size: int) -> AsyncIterator[Rows]:
    """The same reports, cut at the ends of windows, and each only when it may be sent.

    Args:
        session: The lane that they are sent on.
        to: The receiver, which uses `Pace`.
        pieces: Reports.
        size: Bytes of each, as they are sent.
    """
    window, sent = window_of(size), 0
    async for piece in pieces:
        start = 0
        while start < len(piece):
            if not sent % window and sent >= 2 * window:
                await session.recv(to, WindowTaken)
            end = min(len(piece), start + window - sent % window)
            yield piece[start:end]
            sent += end - start
            start = end


class Pace:
    """Tells a sender how far its reports have been taken.

    Args:
        session: The lane that they come on.
        frm: The sender, which sends `paced` reports.
        number: How many it sends.
        size: Bytes of each, as they come.
    """

    def __init__(self, session: Session, frm: str, number: int, size: int) -> None:
        self._session, self._frm = session, frm
        self._window, self._left = window_of(size), windows_told(number, size)
        self._taken = 0  # of the window that is being read

    async def took(self, number: int) -> None:
        """So many more reports were taken."""
        self._taken += number
        while self._left and self._taken >= self._window:
            self._taken -= self._window
            self._left -= 1
            await self._session.send(self._frm, WindowTaken())

    async def each(self, pieces: AsyncIterable[Rows]) -> AsyncIterator[Rows]:
        """The same pieces; each was taken when the next one is asked for."""
        async for piece in pieces:
            yield piece
            await self.took(len(piece))
