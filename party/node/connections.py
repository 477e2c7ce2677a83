"""Who holds the node's connections: strangers and any one kind of caller can take their part of them, and no more.

gRPC accepts connections by itself and reports a caller only at its first call. So the node looks at its own sockets:
one from which no good call has come is a stranger's. A quarter of all connections is there for each kind of caller and
for strangers; where a kind has more, anyone who holds most of them loses its oldest. Where strangers have had too many,
who connects and says nothing takes no descriptor for a while: the kernel keeps a connection until the first bytes come.
And anyone who sends much that is no message, and so fills memory unseen, loses the connection over which most has come.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import resource
import socket
import stat
import struct
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote

from link.logs.structured import Log
from link.pki.identity import Role
from link.transports.hosts import network, plain
from party.node.memory import return_freed_heaps
from party.node.unread import MOST_OF_STRANGERS, MOST_UNREAD, End, Unread, received, too_much

OWN_DESCRIPTORS: Final = 256  # that are not for connections: files, databases, processes
MOST: Final = 16_384  # connections, however many descriptors there are
MOST_OF_ADDRESS: Final = 64  # strangers
DEFER_S: Final = 600  # after strangers had too many, for which the kernel keeps connections over which nothing comes
LOOK_S: Final = 0.1  # and nine times what a look takes of a core, where that is more
SOON_S: Final = 0.02  # where some were closed
REPORT_S: Final = 30.0  # between two lines about them
TOO_MANY: Final = "number"  # why they were closed, for the log
TOO_MUCH: Final = "unread"
TRIM_S: Final = 1.0  # between two times at which memory is given back
_SOCKETS: Final = "/proc/self/fd"
_NO_LINGERING: Final = struct.pack("ii", 1, 0)


def most_connections() -> int:
    """How many connections a node takes in at once, by the descriptors that it may have."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MOST
    return min(MOST, max(limit - OWN_DESCRIPTORS, limit // 2))


class Holder(NamedTuple):
    """Who holds a connection: a member, or a stranger by its address."""

    kind: Role | None
    name: str


class Connection(NamedTuple):
    """An open connection: the inode of its socket, which is never another's while it is open, and a descriptor."""

    inode: int
    descriptor: int
    end: End


def surplus(held: Iterable[tuple[Connection, Holder]], most: int) -> dict[Holder, list[Connection]]:
    """The connections that are too many, by holder.

    Args:
        held: All of them, oldest first, and who holds them.
        most: How many the node takes in.
    """
    by_kind: dict[Role | None, dict[Holder, list[Connection]]] = defaultdict(lambda: defaultdict(list))
    for connection, holder in held:
        by_kind[holder.kind][holder].append(connection)
    found: dict[Holder, list[Connection]] = {}
    for kind, holders in by_kind.items():
        each = _share([len(connections) for connections in holders.values()], most // 4)
        if kind is None:
            each = min(each, MOST_OF_ADDRESS)
        for holder, connections in holders.items():
            if len(connections) > each:
                found[holder] = connections[: len(connections) - each]
    return found


def _share(numbers: list[int], most: int) -> int:
    """The most that one may have so that all have `most` at the most; those who have less keep what they have."""
    left = most
    for place, number in enumerate(sorted(numbers)):
        fair = left // (len(numbers) - place)
        if number > fair:
            return fair
        left -= number
    return most


class Connections:
    """The connections of a node, looked at again and again.

    Args:
        log: The node's log.
        most: How many the node takes in.
    """

    def __init__(self, log: Log, most: int) -> None:
        self._log, self._most = log, most
        self._unread = Unread()
        self.members: dict[End, Holder] = {}
        self._callers: dict[End, str] = {}  # of the relay, by the ends at the loopback that carry them
        self._unseen: set[End] = set()  # of the members' ends, those that were not open at the last look
        self._known: dict[int, End | None] = {}  # by inode: the other end; None for other sockets
        self._closed: Counter[tuple[Holder, str]] = Counter()
        self._looking: threading.Thread | None = None
        self._over = threading.Event()
        self._ended: set[int] = set()  # by inode: those which gRPC may not have closed yet
        self._freeing, self._freed = False, -math.inf  # whether memory is to be given back, and when it was
        self._crowded, self._deferred_s = -math.inf, 0  # when strangers had too many; what the kernel was told

    def met(self, peer: str, role: Role, name: str) -> None:
        """A member has made a good call over a connection.

        Args:
            peer: What gRPC calls the other end.
            role: The member's role.
            name: Its name.
        """
        end = _end(peer)
        if self._looking is not None and end is not None:
            self.members[end] = Holder(role, name)

    def read(self, peer: str, size: int) -> None:
        """The node has read a message.

        Args:
            peer: What gRPC calls the other end.
            size: Bytes of the message.
        """
        end = _end(peer)
        if self._looking is not None and end is not None:
            self._unread.read(end, size)

    @contextlib.contextmanager
    def relayed(self, end: End, caller: str) -> Iterator[None]:
        """While a connection from the loopback carries what a caller of the relay sends.

        Until the caller has made a good call it is a stranger, by the name that the relay gives it: all callers of a
        relay come from one address.
        """
        self._callers[end] = caller
        try:
            yield
        finally:
            del self._callers[end]

    def start(self, port: int) -> None:
        """Begins to look at the connections to a port, where the system shows them.

        From a thread of its own: the event loop, and threads that work for members, may be busy for long.
        """
        if sys.platform == "linux":
            self._looking = threading.Thread(target=self._look, args=(port,), name="connections", daemon=True)
            self._looking.start()

    async def stop(self) -> None:
        """Looks no more."""
        self._over.set()
        if self._looking is not None:
            await asyncio.to_thread(self._looking.join)

    def _look(self, port: int) -> None:
        reported, failing, closed, took = -math.inf, False, Counter[tuple[Holder, str]](), 0.0
        while not self._over.wait(SOON_S if closed else max(LOOK_S, 9 * took)):
            began, now = time.thread_time(), time.monotonic()
            try:
                closed = self.close_surplus(port)
                failing = False
            except Exception as error:  # such as no descriptor that is free: it may go on at another time
                if not failing:
                    self._log.error("upkeep failed", error=error)
                closed, failing = Counter(), True
            self._closed.update(closed)
            if self._closed.total() and now - reported >= REPORT_S:
                reported = now
                for (holder, why), number in (+self._closed).most_common(10):
                    who = {"address": holder.name} if holder.kind is None else {"caller": holder.name}
                    self._log.warning("connections closed", connections=number, why=why, **who)
                self._closed.clear()
            took = time.thread_time() - began

    def close_surplus(self, port: int) -> Counter[tuple[Holder, str]]:
        """Closes what is too much on a port, and says by holder how much that was."""
        held = [(each, self._holder(each.end)) for each in self.open_now(port)]
        found = surplus(held, self._most)
        self.let_wait(port, crowded=any(holder.kind is None for holder in found))
        closed = {(holder, TOO_MANY): connections for holder, connections in found.items()}
        unread = self._unread.look({each.end: _come(each) for each, _ in held})
        ends = ((each.end, holder) for each, holder in held)
        full = too_much(ends, unread, lambda holder: MOST_OF_STRANGERS if holder.kind is None else MOST_UNREAD)
        for connection, holder in held:
            if connection.end in full:
                closed.setdefault((holder, TOO_MUCH), []).append(connection)
        numbers: Counter[tuple[Holder, str]] = Counter()
        for what, connections in closed.items():
            numbers[what] = sum(connection.inode not in self._ended for connection in connections)
            for connection in connections:
                shut(connection)
        self._ended = {connection.inode for connections in closed.values() for connection in connections}
        self._freeing |= bool(full)
        if self._freeing and time.monotonic() >= self._freed + TRIM_S:
            self._freeing, self._freed = bool(full), time.monotonic()
            return_freed_heaps()
        return numbers

    def let_wait(self, port: int, *, crowded: bool) -> None:
        """Tells the kernel for how long to keep connections over which nothing comes, where that has changed."""
        now = time.monotonic()
        if crowded:
            self._crowded = now
        deferred_s = DEFER_S if now < self._crowded + DEFER_S else 0
        if deferred_s != self._deferred_s:
            self._deferred_s = deferred_s
            for descriptor in own_sockets().values():
                with contextlib.suppress(OSError):  # it has been closed meanwhile
                    defer_accept(descriptor, port, deferred_s)

    def _holder(self, end: End) -> Holder:
        return self.members.get(end) or Holder(None, self._callers.get(end) or network(end[0]))

    def open_now(self, port: int) -> list[Connection]:
        """The open connections to a port, in the order in which they were seen first."""
        sockets = own_sockets()
        for inode in self._known.keys() - sockets.keys():
            end = self._known.pop(inode)
            if end is not None:
                self.members.pop(end, None)
        for inode in sorted(sockets.keys() - self._known.keys()):
            with contextlib.suppress(OSError):
                self._known[inode] = other_end(sockets[inode], inode, port)
        self._forget()
        return [Connection(inode, sockets[inode], end) for inode, end in self._known.items() if end is not None]

    def _forget(self) -> None:
        """Forgets members whose connections came and went between two looks: nobody saw them end."""
        seen = set(self._known.values())
        for end in self._unseen - seen:
            self.members.pop(end, None)
        self._unseen = set(self.members) - seen


def own_sockets() -> dict[int, int]:
    """The descriptors of this process's sockets by their inodes."""
    try:
        descriptors: Iterable[int] = map(int, os.listdir(_SOCKETS))
    except OSError:  # no descriptor is free to look with, so there are few
        descriptors = range(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    sockets: dict[int, int] = {}
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            found = os.fstat(descriptor)
            if stat.S_ISSOCK(found.st_mode):
                sockets[found.st_ino] = descriptor
    return sockets


def defer_accept(descriptor: int, port: int, seconds: int) -> None:
    """Where a socket listens at the port: lets it accept a connection only once something comes, or after so long."""
    same = socket.socket(fileno=descriptor)
    try:
        internet = same.family in (socket.AF_INET, socket.AF_INET6)
        listens = internet and same.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if listens and same.getsockname()[1] == port:
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, seconds)
    finally:
        same.detach()


def _come(connection: Connection) -> int:
    """How many bytes have come over a connection; none where it has been closed."""
    with contextlib.suppress(OSError):
        same = socket.socket(fileno=connection.descriptor)
        try:
            size = received(same)
        finally:
            same.detach()
        if _is_socket(connection.descriptor, connection.inode):
            return size
    return 0


def other_end(descriptor: int, inode: int, port: int) -> End | None:
    """The other end of a socket; None where it is no connection to the port.

    Raises:
        OSError: The descriptor is another's by now.
    """
    same = socket.socket(fileno=descriptor)
    try:
        end = None
        if same.family in (socket.AF_INET, socket.AF_INET6) and same.getsockname()[1] == port:
            with contextlib.suppress(OSError):  # it listens, or has been closed
                address, number, *_ = same.getpeername()
                end = plain(address), number
    finally:
        same.detach()
    if not _is_socket(descriptor, inode):
        raise OSError("the descriptor is another's")
    return end


def shut(connection: Connection) -> None:
    """Ends a connection, for gRPC to find it ended; by a copy of its descriptor, which may be another's by now.

    A file is not copied: the end of the copy would take the locks from a database. Where one comes between the look and
    the copy, the copy stays open. Where no descriptor is free for a copy it goes without: at worst another connection,
    made this moment, is lost and made anew.
    """
    with contextlib.suppress(OSError):
        if _is_socket(connection.descriptor, connection.inode):
            try:
                copy = os.dup(connection.descriptor)
            except OSError:
                same = socket.socket(fileno=connection.descriptor)
                try:
                    _break(same)
                finally:
                    same.detach()
                return
            with socket.socket(fileno=copy) as same:
                if _is_socket(same.fileno(), connection.inode):
                    _break(same)


def _break(connection: socket.socket) -> None:
    """Ends a connection; when it is closed the other end is told at once, however much it has yet to send."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
    connection.shutdown(socket.SHUT_RDWR)


def _is_socket(descriptor: int, inode: int) -> bool:
    found = os.fstat(descriptor)
    return stat.S_ISSOCK(found.st_mode) and found.st_ino == inode


@functools.lru_cache(maxsize=4096)
def _end(peer: str) -> End | None:
    """The address and port of what gRPC calls the other end; None where it is no connection of the internet."""
    _, _, end = unquote(peer).partition(":")
    address, _, port = end.rpartition(":")
    return (plain(address.strip("[]")), int(port)) if port.isdecimal() else None
