"""How much of a relay each member may use, and how many strangers of one address it hears."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ipaddress
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

from link.transports.hosts import network, plain
from protos.v1.relay_pb2 import RELAY_REASON_BYTES, RELAY_REASON_DIALS, RELAY_REASON_STREAMS, RelayReason
from relay.config import LimitsSection

MOST_STRANGERS: Final = 1024  # of all addresses
_MINUTE_S: Final = 60.0


class Refused(Exception):
    """The relay does not do what a member wants.

    Args:
        reason: As the member is told.

    Attributes:
        reason: As above.
        why: The same, for the log.
    """

    def __init__(self, reason: RelayReason.ValueType) -> None:
        self.reason, self.why = reason, RelayReason.Name(reason).removeprefix("RELAY_REASON_").lower()
        super().__init__(self.why)


class Use:
    """What one member uses.

    Args:
        limits: How much it may.
        now: Seconds of a clock that only goes forward.
        today: The date in UTC.

    Attributes:
        limits: As above; they may be replaced, and nothing is counted anew.
        streams: The connections that it has dialled and that are open.
    """

    def __init__(
        self,
        limits: LimitsSection,
        now: Callable[[], float] = time.monotonic,
        today: Callable[[], dt.date] = lambda: dt.datetime.now(dt.UTC).date(),
    ) -> None:
        self.limits, self._now, self._today = limits, now, today
        self.streams = 0
        self._dials, self._dialled = float(limits.dials), now()
        self._free = now()  # from when on more may be sent
        self._sent, self._day = 0, today()

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """A connection that the member dials, for as long as it lasts.

        Raises:
            Refused: It has too many, dials too often, or has sent too much.
        """
        limits, now = self.limits, self._now()
        self._dials = min(limits.dials, self._dials + (now - self._dialled) * limits.dials / _MINUTE_S)
        self._dialled = now
        if self._dials < 1:
            raise Refused(RELAY_REASON_DIALS)
        self._dials -= 1
        if self.streams >= limits.streams:
            raise Refused(RELAY_REASON_STREAMS)
        self._count(0)
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    async def send(self, size: int) -> None:
        """Counts bytes that the member sends, and waits until they may be passed on.

        Raises:
            Refused: It has sent too much today.
        """
        self._count(size)
        if rate := self.limits.bytes_per_second:
            now = self._now()
            self._free = max(self._free, now - 1.0) + size / rate  # what it saved up for a second, it may send at once
            if self._free > now:
                await asyncio.sleep(self._free - now)

    def _count(self, size: int) -> None:
        if (today := self._today()) != self._day:
            self._sent, self._day = 0, today
        most = self.limits.bytes_per_day
        if most and self._sent + size > most:
            raise Refused(RELAY_REASON_BYTES)
        self._sent += size

    @property
    def idle(self) -> bool:
        """Whether nothing would be lost if it were forgotten."""
        rested = self._now() >= max(self._dialled + _MINUTE_S, self._free)
        return not self.streams and rested and not (self._sent and self._day == self._today())


class Door(socket.socket):
    """A socket that listens, and at once closes what strangers of one address open beyond their number.

    A connection is a stranger's until the relay knows who dialled; before TLS, where that costs least.

    Attributes:
        most: Of one address. The addresses of this machine have no limit of their own: a server that adds TLS stands
            there for all.
    """

    most = MOST_STRANGERS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._strangers: defaultdict[str, dict[Any, socket.socket]] = defaultdict(dict)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection.

        Raises:
            ConnectionAbortedError: It was one too many; asyncio goes on to the next.
        """
        connection, end = super().accept()
        self._forget()
        near = network(plain(end[0]))
        own, all_of_them = self._strangers[near], sum(map(len, self._strangers.values()))
        most = MOST_STRANGERS if ipaddress.ip_address(near).is_loopback else self.most
        if len(own) >= most or all_of_them >= MOST_STRANGERS:
            connection.close()
            raise ConnectionAbortedError
        own[end] = connection
        return connection, end

    async def turn_away(self) -> None:
        """Ends the connections of all strangers, also of those with whom TLS has not begun."""
        for own in self._strangers.values():
            for connection in own.values():
                with contextlib.suppress(OSError):  # it has ended
                    connection.shutdown(socket.SHUT_RDWR)
        while self._strangers:
            await asyncio.sleep(0.01)  # asyncio closes what has ended
            self._forget()

    def known(self, end: Any) -> None:
        """Who holds a connection has proved who it is."""
        self._strangers[network(plain(end[0]))].pop(end, None)

    def _forget(self) -> None:
        for near, own in list(self._strangers.items()):
            for end, connection in list(own.items()):
                if connection.fileno() < 0:
                    del own[end]
            if not own:
                del self._strangers[near]
