"""The relay's server: it asks who dials, pairs callers with parties by name, and passes on what it cannot read."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from crypto.primitives.randomness import Randomness
from link.errors import ComineError, ConfigurationError, MalformedMessage, ResourceError
from link.logs.lines import LogLines
from link.logs.structured import LibraryLines, Log
from link.pki.tls_files import load_pair
from link.relay.handshake import HANDSHAKE_S, MOST_BYTES, NONCE_BYTES, VERSION, read
from link.runtime.exposition import Exposition
from link.runtime.service_manager import ServiceManager
from link.version import software_version
from protos.v1.relay_pb2 import (
    RELAY_REASON_ABSENT,
    RELAY_REASON_DISPLACED,
    RELAY_REASON_STOPPING,
    RELAY_REASON_UNANSWERED,
    RelayAnswer,
    RelayChallenge,
    RelayHello,
    RelayIncoming,
    RelayReady,
    RelayReason,
    RelayRefusal,
)
from relay.config import RelayConfig
from relay.limits import Door, Refused, Use
from relay.log import open_relay_log
from relay.members import TOKEN_S, Caller, Members
from relay.metrics import RelayMetrics
from relay.passing import Flow, both_ways

CLOSE_S: Final = 1.0  # for the last words on a connection
QUEUE: Final = 4  # messages of a connection that wait to be passed on
WRITE_BYTES: Final = 256 << 10  # that wait for who reads slowly
BACKLOG: Final = 256
_READY: Final = RelayAnswer(ready=RelayReady()).SerializeToString()


class Relay:
    """A relay; `start` it, and `stop` it in the same event loop.

    Args:
        config: Its file.
        log: Where it says what it does.

    Raises:
        ConfigurationError: A federation's files cannot be read.
        IdentityError: They do not fit each other.
    """

    def __init__(self, config: RelayConfig, log: Log) -> None:
        self._config, self._log = config, log
        self._members = Members(config)
        self._tls = _tls(config)
        self._server: Server | None = None
        self._door: Door | None = None
        self._over = False
        self._metrics = RelayMetrics()
        self._exposition: Exposition | None = None
        self._streams, self._still = 0, asyncio.Event()  # whether there are none
        self._still.set()

    async def start(self) -> str:
        """Begins to answer, and returns the address.

        Raises:
            ResourceError: The port is taken, or that of `[metrics]`.
        """
        host, _, port = self._config.relay.listen.rpartition(":")
        try:
            self._door = _door(host.strip("[]"), int(port))
        except OSError as error:
            raise ResourceError(
                f"the relay cannot listen at {self._config.relay.listen} ({error.strerror}); stop what holds the port, "
                "or change [relay] listen"
            ) from None
        self._door.most = self._config.limits.strangers
        if self._config.metrics is not None:
            self._metrics.show(lambda: self._config.relay.certificate)
            try:
                self._exposition = Exposition(self._config.metrics.listen, self._metrics.registry)
            except ResourceError:
                self._door.close()
                raise
        self._server = await serve(
            self._serve,
            sock=self._door,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_S,
            compression=None,
            server_header=None,
            open_timeout=HANDSHAKE_S,
            close_timeout=CLOSE_S,
            max_size=MOST_BYTES,
            max_queue=QUEUE,
            write_limit=WRITE_BYTES,
        )
        address = f"{host}:{self._door.getsockname()[1]}"
        self._log.info("ready", address=address, software=software_version())
        return address

    async def reload(self, path: Path) -> None:
        """Reads its file anew: federations, limits and the certificate for TLS; what is open goes on.

        Args:
            path: The relay's file.

        Raises:
            ComineError: The files are wrong, or say what only a restart can bring about; nothing has changed then.
        """
        config = RelayConfig.load(path)
        before, own = self._config.relay, config.relay
        for key, same in (
            ("listen", own.listen == before.listen),
            ("name", own.name == before.name),
            ("certificate", (own.certificate is None) == (before.certificate is None)),
        ):
            if not same:
                raise ConfigurationError(f"[relay] {key} cannot change while the relay runs; start it again for that")
        if config.metrics != self._config.metrics:
            raise ConfigurationError("[metrics] cannot change while the relay runs; start it again for that")
        _tls(config)  # before anything has changed: a certificate and a key that do not fit each other
        gone = self._members.renew(config)
        if self._tls is not None and own.certificate is not None and own.key is not None:
            load_pair(self._tls, own.certificate, own.key, "[relay]")
        if self._door is not None:
            self._door.most = config.limits.strangers
        self._config = config
        self._log.info("settings reloaded")
        for connection in gone:
            await self._tell(connection, RELAY_REASON_STOPPING)

    async def stop(self) -> None:
        """Takes nobody in any more, lets connections go on for a moment, and closes them."""
        if self._server is None or self._door is None:
            return
        self._log.info("stopping", streams=self._streams)
        self._over = True
        self._server.close(close_connections=False)
        for each in list(self._members.listening.values()):
            await self._tell(each.connection, RELAY_REASON_STOPPING)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._config.relay.drain):
                await self._still.wait()
        for connection in list(self._server.connections):
            connection.transport.abort()
        await self._door.turn_away()
        await self._server.wait_closed()
        if self._exposition is not None:
            await asyncio.to_thread(self._exposition.close)
        self._log.info("stopped")

    async def _serve(self, connection: ServerConnection) -> None:
        """A connection from its first message to its end."""
        caller: Caller | None = None
        try:
            hello, caller = await self._greeted(connection)
            match hello.WhichOneof("action"):
                case "listen":
                    await self._listen(connection, caller, hello.certificate)
                case "accept":
                    self._members.arrive(caller, hello.accept.token, connection)
                    await connection.wait_closed()
                case _:
                    await self._connect(connection, caller, hello.dial.to)
        except Refused as refused:
            await self._refuse(connection, caller, refused)
        except (ConnectionClosed, MalformedMessage, TimeoutError, OSError):
            pass  # it left, or speaks something else
        except Exception as error:
            self._log.error("failed", error=error)

    async def _greeted(self, connection: ServerConnection) -> tuple[RelayHello, Caller]:
        """What a caller wants, once it has proved who it is.

        Raises:
            Refused: It has not.
            MalformedMessage: It sent something else.
            TimeoutError: It was silent for too long.
        """
        nonce = Randomness.from_os().bytes(NONCE_BYTES)
        challenge = RelayChallenge(version=VERSION, relay=self._config.relay.name, nonce=nonce)
        async with asyncio.timeout(HANDSHAKE_S):
            await connection.send(challenge.SerializeToString())
            hello = read(RelayHello, await connection.recv())
        caller = self._members.caller(hello, nonce)
        if self._door is not None:
            self._door.known(connection.remote_address)
        if self._over:
            raise Refused(RELAY_REASON_STOPPING)
        return hello, caller

    @property
    def metrics_address(self) -> str | None:
        """Where metrics are shown; None where they are not."""
        return None if self._exposition is None else self._exposition.address

    async def _refuse(self, connection: ServerConnection, caller: Caller | None, refused: Refused) -> None:
        self._metrics.refused(caller, refused.why)
        if caller is None:
            self._log.warning("stranger refused", address=str(connection.remote_address[0]), why=refused.why)
        else:
            self._log.warning("refused", caller=caller.shown, federation=caller.federation, why=refused.why)
        await self._tell(connection, refused.reason)

    async def _tell(self, connection: ServerConnection, reason: RelayReason.ValueType) -> None:
        """The last words on a connection, which may be dead."""
        with contextlib.suppress(ConnectionClosed, TimeoutError, OSError):
            async with asyncio.timeout(CLOSE_S):
                await connection.send(RelayAnswer(refusal=RelayRefusal(reason=reason)).SerializeToString())
            await connection.close()

    async def _listen(self, connection: ServerConnection, caller: Caller, certificate: bytes) -> None:
        """A party waits for callers. Of two connections the newer one counts: the older may be dead, unnoticed."""
        await connection.send(_READY)
        before = self._members.listen(caller, connection, certificate)
        self._metrics.listens(caller, connected=True)
        try:
            if before is None:
                self._log.info("party connected", party=caller.name, federation=caller.federation)
            else:
                self._log.warning("party displaced", party=caller.name, federation=caller.federation)
                await self._tell(before.connection, RELAY_REASON_DISPLACED)
            await connection.recv()  # it has nothing to say: what comes is the end
        finally:
            if self._members.leave(caller, connection):
                self._metrics.listens(caller, connected=False)
                self._log.info("party left", party=caller.name, federation=caller.federation)

    async def _connect(self, connection: ServerConnection, caller: Caller, name: str) -> None:
        """Connects a caller with a party of its federation, until one of them ends."""
        use = self._members.use(caller)
        with use.stream():
            party = self._members.party(caller, name)
            answering = self._members.listening[party].connection
            with self._members.meeting(party) as (token, arrived):
                incoming = RelayIncoming(role=caller.role, name=caller.name, token=token)
                try:
                    async with asyncio.timeout(TOKEN_S):
                        await answering.send(RelayAnswer(incoming=incoming).SerializeToString())
                        other = await arrived
                except ConnectionClosed:
                    raise Refused(RELAY_REASON_ABSENT) from None
                except TimeoutError:
                    if arrived.cancelled() or not arrived.done():
                        raise Refused(RELAY_REASON_UNANSWERED) from None
                    other = arrived.result()  # it came at the last moment
            await self._pass_on(connection, caller, use, other, party)

    async def _pass_on(
        self, connection: ServerConnection, caller: Caller, use: Use, other: ServerConnection, party: Caller
    ) -> None:
        began, count = time.monotonic(), self._metrics.sent
        sent, received = Flow(use, partial(count, caller)), Flow(self._members.use(party), partial(count, party))
        self._metrics.began(caller)
        self._streams += 1
        self._still.clear()
        self._log.info("stream began", caller=caller.shown, party=party.name, federation=caller.federation)
        why = "ended"
        try:
            await other.send(_READY)
            await connection.send(_READY)
            why = await both_ways(connection, sent, other, received, self._config.limits.idle)
        except ConnectionClosed:
            pass
        finally:
            self._streams -= 1
            if not self._streams:
                self._still.set()
            seconds = time.monotonic() - began
            self._metrics.ended(caller, why, seconds)
            self._log.info(
                "stream ended",
                caller=caller.shown,
                party=party.name,
                federation=caller.federation,
                why=why,
                seconds=round(seconds, 3),
                bytes_sent=sent.size,
                bytes_received=received.size,
            )
            for end in (connection, other):
                with contextlib.suppress(OSError):
                    await end.close()


async def serve_relay(path: Path) -> None:
    """Runs the relay of a `relay.toml` until SIGTERM or SIGINT.

    At SIGHUP, where that is not ignored, it reads its file anew. A service manager is told how it is.

    Raises:
        ComineError: It cannot start; the sentence says why.
    """
    manager = ServiceManager.of_environment()
    config = RelayConfig.load(path)
    lines = LogLines(sys.stderr.fileno())
    log = open_relay_log(config.relay.name, lines)
    logging.basicConfig(handlers=[LibraryLines(log)], level=logging.WARNING, force=True)
    logging.getLogger("websockets").setLevel(logging.CRITICAL)  # it reports each stranger who speaks something else
    stop, hung_up = asyncio.Event(), asyncio.Event()
    for number, event in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, hung_up)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, event.set)
    with contextlib.redirect_stderr(lines):
        try:
            relay = Relay(config, log)
            lines.write(f"{config.relay.name} is ready at {await relay.start()}\n")
            manager.ready()
            reloading = asyncio.create_task(_reload_at(hung_up, relay, path, manager, log))
            await stop.wait()
            manager.stopping()
            reloading.cancel()
            await asyncio.gather(reloading, return_exceptions=True)
            await relay.stop()
        finally:
            lines.finish()


async def _reload_at(hung_up: asyncio.Event, relay: Relay, path: Path, manager: ServiceManager, log: Log) -> None:
    while await hung_up.wait():
        hung_up.clear()
        with manager.reloading():
            try:
                await relay.reload(path)
            except ComineError as error:
                log.error("settings kept", error=error)


def _door(host: str, port: int) -> Door:
    """A socket that listens.

    Raises:
        OSError: The port is taken, or the address is not this machine's.
    """
    family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    door = Door(family, kind, number)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.setblocking(False)
        door.listen(BACKLOG)
    except OSError:
        door.close()
        raise
    return door


def _tls(config: RelayConfig) -> ssl.SSLContext | None:
    own = config.relay
    if own.certificate is None or own.key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    load_pair(context, own.certificate, own.key, "[relay]")
    return context
