"""Where gRPC dials a party that only a relay connects: a socket of this process, whose connections the relay carries.

gRPC knows no WebSockets. So it dials a Unix socket in a folder that is open to this user alone, and a thread with an
event loop of its own carries what comes; callers with an event loop and callers without one use the same. gRPC's mutual
TLS goes through unchanged: whoever opens the socket must still prove to the party who it is.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import datetime as dt
import hashlib
import itertools
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Final, NamedTuple

from link.errors import ComineError, InternalError, ResourceError
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from link.relay.address import RelayAddress
from link.relay.calling import NotConnected, Unreached, call
from link.relay.handshake import CHUNK_BYTES
from link.relay.splice import carry, close
from protos.v1.relay_pb2 import RelayDial

START_S: Final = 10.0
SOCKET: Final = "unix:"  # begins the address of a socket, as gRPC writes it


class _Way(NamedTuple):
    """Who is connected to whom, through which relay."""

    holder: bytes
    peer: str
    address: str


class _Socket(NamedTuple):
    """Where gRPC dials a way.

    Attributes:
        path: Of the socket.
        server: Takes its connections.
        ends: The holder's certificate; nobody can be called with it afterwards.
    """

    path: str
    server: asyncio.Server
    ends: dt.datetime


class Gateway:
    """The sockets of a process; use `local_address`.

    Attributes:
        troubles: Why the last connection failed, by party and address; nothing where it did not.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.troubles: dict[tuple[str, str], ComineError] = {}
        self._sockets: dict[_Way, _Socket] = {}
        self._numbers = itertools.count()
        self._carried: set[asyncio.Task[None]] = set()
        self._folder = Path(tempfile.mkdtemp(prefix="comine-"))  # 0700
        atexit.register(self._remove)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _, __: None)  # `websockets` raises where a proxy ends a connection
        threading.Thread(target=self._loop.run_forever, name="comine-relay", daemon=True).start()

    def socket(self, identity: Identity, peer: str, address: str, relay: RelayAddress) -> str:
        """The path of the socket whose connections lead to a party."""
        holder = hashlib.sha256(identity.certificate_pem + identity.trust.ca_pem).digest()
        way = _Way(holder, peer, address)
        if way not in self._sockets:
            self._close_ended()
            path = str(self._folder / f"{next(self._numbers)}")
            listening = asyncio.run_coroutine_threadsafe(self._listen(path, identity, way, relay), self._loop)
            try:
                server = listening.result(START_S)
            except OSError as error:
                raise ResourceError(
                    f"no socket can be made in {self._folder} ({error.strerror}); set TMPDIR to a folder with a short "
                    "name and room"
                ) from None
            except TimeoutError:
                raise InternalError("the thread that connects to relays does not answer") from None
            ends = read_certificate(identity.certificate_pem).not_valid_after_utc
            self._sockets[way] = _Socket(path, server, ends)
        return self._sockets[way].path

    def _close_ended(self) -> None:
        """Closes the sockets of certificates that have ended: a node renews its own as long as it runs."""
        now = dt.datetime.now(dt.UTC)
        for way, each in tuple(self._sockets.items()):
            if each.ends < now:
                del self._sockets[way]
                self._loop.call_soon_threadsafe(each.server.close)
                Path(each.path).unlink(missing_ok=True)

    async def _listen(self, path: str, identity: Identity, way: _Way, relay: RelayAddress) -> asyncio.Server:
        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._carried.add(task)  # the loop alone would not keep it
            try:
                await self._carry(reader, writer, identity, way, relay)
            finally:
                self._carried.discard(task)

        return await asyncio.start_unix_server(come, path, limit=CHUNK_BYTES)

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        identity: Identity,
        way: _Way,
        relay: RelayAddress,
    ) -> None:
        key = way.peer, way.address
        self.troubles.setdefault(key, Unreached(f"{relay} has not answered yet; check the network between"))

        def heard() -> None:  # so what is missing now is the party's answer
            if isinstance(self.troubles.get(key), Unreached):
                self.troubles[key] = NotConnected(
                    f"{relay} answers, but {way.peer} has not yet; check its node and the network", party=way.peer
                )

        try:
            connection = await call(identity, relay, RelayDial(to=way.peer), heard)
        except ComineError as error:
            self.troubles[key] = error  # before the end of the connection, which makes the caller look for it
            await close(writer)
            return
        self.troubles.pop(key, None)
        await carry(reader, writer, connection)

    def _remove(self) -> None:
        if os.getpid() == self.process:
            with contextlib.suppress(OSError):
                shutil.rmtree(self._folder)


_gateways: Final[list[Gateway]] = []
_lock: Final = threading.Lock()


def local_address(identity: Identity, peer: str, address: str) -> str:
    """What gRPC dials to reach a party: its address, or a socket of this process where a relay connects it.

    Args:
        identity: Who dials.
        peer: The party.
        address: HOST:PORT, or of a `RelayAddress`.

    Raises:
        ResourceError: No socket can be made.
    """
    relay = RelayAddress.parse(address)
    if relay is None:
        return address
    with _lock:
        if not _gateways or _gateways[-1].process != os.getpid():  # a fork has no thread of its parent's
            _gateways.append(Gateway())
        return f"{SOCKET}{_gateways[-1].socket(identity, peer, address, relay)}"


def trouble(peer: str, address: str) -> ComineError | None:
    """Why a party cannot be reached through its relay, as far as is known; None where it was, or has an address."""
    return _gateways[-1].troubles.get((peer, address)) if _gateways else None
