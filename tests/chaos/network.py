"""A network in memory under gRPC's own interface, so that nodes and coordinators run as they are.

`grpc.aio.server` and `grpc.aio.secure_channel` are replaced; stubs, servicers, interceptors, serialised messages,
deadlines, statuses and metadata are real ones, as are the streams that are resumed above. What TCP and TLS do is the
model's: bytes of one connection come in order and once, or the connection breaks, at each end in its own time. A bit
that is flipped on the way breaks the connection, as TLS would. There is no flow control.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
from cryptography import x509

from link.pki.identity import Identity, peer_of
from tests.chaos import clock
from tests.chaos.loop import Loop
from tests.chaos.machines import HERE, Process

DELAY_S: Final = (0.0005, 0.01)  # of a message
CONNECT_S: Final = 10.0  # for which connecting is tried
SILENT_S: Final = 10.0  # after which an end gives a connection up over which nothing comes, by gRPC's pings
RELAY: Final = "relay"
_Status = tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]]
_OK: Final[_Status] = (grpc.StatusCode.OK, "", ())
_CLOSED: Final[_Status] = (grpc.StatusCode.UNAVAILABLE, "Socket closed", ())


class _End:
    """What has come at one end of a call, and has not been read."""

    def __init__(self) -> None:
        self.messages: deque[Any] = deque()
        self.more = asyncio.Event()

    def put(self, message: Any) -> None:
        self.messages.append(message)
        self.more.set()


@dataclass(eq=False)
class Connection:
    """A TLS connection of a channel to a server.

    Attributes:
        network: Which carries it.
        client: Who has dialled.
        server: Who answers.
        ends: The machines on its way: both ends, and the relay where one is between.
        calls: Over it, that are open.
        broken: Whether it carries nothing any more.
        held: What stands on its way, as nothing gets through.
    """

    network: Network
    client: Process
    server: Server
    ends: frozenset[str]
    calls: dict[Call, _Served | None] = field(default_factory=dict)
    broken: bool = False
    held: list[tuple[bool, Callable[[], None]]] = field(default_factory=list)
    last: dict[bool, float] = field(default_factory=lambda: {False: 0.0, True: 0.0})

    def carry(self, forth: bool, deliver: Callable[[], None]) -> None:
        """Brings something to the other end, behind all that was sent before: `forth` to the server, or back."""
        if self.broken:
            return
        if self.network.blocked(self.ends):
            self.held.append((forth, deliver))
            return
        loop = self.network.loop
        when = max(self.last[forth], loop.now + self.network.delay(self.ends))
        self.last[forth] = when
        process = self.server.process if forth else self.client

        def arrive() -> None:
            if not self.broken:
                deliver()

        loop.call_at(when, arrive, context=process.context())

    def freed(self) -> None:
        """The way is free again: what was held goes on, in order."""
        held, self.held = self.held, []
        for forth, deliver in held:
            self.carry(forth, deliver)

    def broke(self) -> None:
        """Breaks; each end finds out in its own time."""
        if self.broken:
            return
        self.broken = True
        self.network.log(f"the connection of {self.client.machine.name} to {self.server.process.machine.name} breaks")
        self.network.connections.pop(self, None)
        calls = list(self.calls.items())
        self.calls.clear()
        loop, delay = self.network.loop, self.network.delay

        def client_finds() -> None:
            for call, _ in calls:
                call.finish(_CLOSED)

        def server_finds() -> None:
            for _, served in calls:
                if served is not None:
                    served.lost()

        loop.call_later(delay(self.ends), client_finds, context=self.client.context())
        loop.call_later(delay(self.ends), server_finds, context=self.server.process.context())


class Network:
    """All connections of a federation.

    Args:
        loop: Whose time passes.
        seed: Decides how long messages take.
        relayed: Who is reached through the relay only.

    Attributes:
        loop: As above.
        servers: By address.
        connections: Those that are open, in the order in which they were made.
        cut: Pairs of machines between which nothing gets through.
        slow_s: Seconds by which messages take longer, by machine.
        relay_up: Whether the relay carries anything.
        log: What happens, for people.
    """

    def __init__(self, loop: Loop, seed: int, relayed: frozenset[str]) -> None:
        self.loop, self.relayed, self.random = loop, relayed, random.Random(f"network {seed}")
        self.servers: dict[str, Server] = {}
        self.connections: dict[Connection, None] = {}
        self.cut: set[frozenset[str]] = set()
        self.slow_s: dict[str, float] = {}
        self.relay_up = True
        self.log: Callable[[str], None] = lambda line: None

    def way(self, one: str, other: str) -> frozenset[str]:
        """The machines between two, with both."""
        return frozenset({one, other, *((RELAY,) if {one, other} & self.relayed else ())})

    def blocked(self, ends: frozenset[str]) -> bool:
        """Whether nothing gets through."""
        return any(pair <= ends for pair in self.cut)

    def delay(self, ends: frozenset[str]) -> float:
        """Seconds that the next message takes."""
        return self.random.uniform(*DELAY_S) + max((self.slow_s.get(end, 0.0) for end in sorted(ends)), default=0.0)

    def block(self, one: str, other: str) -> None:
        """Nothing gets through between two from now on; who waits for long gives its connection up."""
        self.cut.add(frozenset({one, other}))
        for connection in list(self.connections):
            if self.blocked(connection.ends):
                self.loop.call_later(SILENT_S, self._gave_up, connection)

    def _gave_up(self, connection: Connection) -> None:
        stands = connection.client.stopped or connection.server.process.stopped
        if stands or self.blocked(connection.ends):
            connection.broke()

    def unblock(self, one: str, other: str) -> None:
        """Everything gets through between two again."""
        self.cut.discard(frozenset({one, other}))
        for connection in list(self.connections):
            if not self.blocked(connection.ends):
                connection.freed()

    def free(self) -> None:
        """Everything gets through again."""
        self.cut.clear()
        self.slow_s.clear()
        self.relay_up = True
        for connection in list(self.connections):
            connection.freed()

    def stopped(self, process: Process) -> None:
        """A process stands still: who waits for it for long gives its connections up."""
        for connection in self._of(process):
            self.loop.call_later(SILENT_S, self._gave_up, connection)

    def died(self, process: Process, *, silently: bool) -> None:
        """A process is gone, and its kernel says so at once, or its machine is gone with it."""
        for address, server in list(self.servers.items()):
            if server.process is process:
                del self.servers[address]
        for connection in self._of(process):
            self.loop.call_later(SILENT_S if silently else 0.0, connection.broke, context=Context())  # not of the dead

    def break_all(self, machine: str) -> None:
        """Breaks all connections over a machine."""
        for connection in list(self.connections):
            if machine in connection.ends:
                connection.broke()

    def _of(self, process: Process) -> list[Connection]:
        return [each for each in self.connections if process in (each.client, each.server.process)]

    async def connect(self, client: Process, identity: Identity, peer: str, address: str) -> Connection:
        """A new connection.

        Raises:
            _Failed: There is none.
        """
        try:
            async with asyncio.timeout(CONNECT_S):
                while self.blocked(self.way(client.machine.name, peer)):  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
                await asyncio.sleep(2 * self.delay(self.way(client.machine.name, peer)))
                server = self.servers.get(address)
                while server is not None and server.process.stopped:
                    await asyncio.sleep(0.2)
                    server = self.servers.get(address)
        except TimeoutError:
            raise _Failed("connection attempt timed out before receiving SETTINGS frame") from None
        ends = self.way(client.machine.name, peer)
        if self.blocked(ends):
            raise _Failed("Connection timed out")
        if RELAY in ends and not self.relay_up:
            raise _Failed("Socket closed")
        if server is None or server.process.dead:
            raise _Failed("connect: Connection refused (111)")
        shown = server.identity()
        if (shown.name, _role(shown)) != (peer, "party"):
            raise _Failed("Hostname Verification Check failed.")
        if not _in_time(shown):
            raise _Failed("SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED: certificate has expired: x509.cc")
        if not server.process.run(_in_time, identity):
            raise _Failed("Socket closed")
        connection = Connection(self, client, server, ends)
        self.connections[connection] = None
        return connection


class _Failed(Exception):
    """There is no connection; the argument says why, as gRPC does."""


@functools.lru_cache(maxsize=64)
def _span(pem: bytes) -> tuple[float, float]:
    certificate = x509.load_pem_x509_certificate(pem)
    return certificate.not_valid_before_utc.timestamp(), certificate.not_valid_after_utc.timestamp()


def _in_time(identity: Identity) -> bool:
    first, last = _span(identity.certificate_pem)
    return first <= clock.unix() <= last


@functools.lru_cache(maxsize=64)
def _role_of(pem: bytes) -> str:
    return peer_of({"x509_pem_cert": (pem,)})[0]


def _role(identity: Identity) -> str:
    return _role_of(identity.certificate_pem)


# -- the calling end ---------------------------------------------------------------------------------------------------
class Call:
    """A call, as who makes it sees it."""

    def __init__(self, channel: Channel, method: str, serialize: Any, read: Any, timeout: float | None) -> None:
        self._channel, self.method, self._serialize, self._read = channel, method, serialize, read
        self._inbox, self._outbox = _End(), deque[Any]()
        self._status: _Status | None = None
        self._cancelled_here = False
        self._connection: Connection | None = None
        loop = channel.network.loop
        self._ended = asyncio.Event()
        self._opening = loop.create_task(self._open())
        self._timer = None if timeout is None else loop.call_later(timeout, self._late)

    async def _open(self) -> None:
        try:
            connection = await self._channel.connected()
        except _Failed as error:
            self.finish((grpc.StatusCode.UNAVAILABLE, str(error), ()))
            return
        if self._status is not None:
            return
        self._connection = connection
        if connection.broken:
            self.finish(_CLOSED)
            return
        connection.calls[self] = None
        connection.carry(True, lambda: connection.server.take(connection, self))
        while self._outbox:
            self._send(self._outbox.popleft())

    def _send(self, message: Any) -> None:
        connection = self._connection
        assert connection is not None

        def deliver() -> None:
            served = connection.calls.get(self)
            if served is not None:
                served.inbox.put(message)

        connection.carry(True, deliver)

    def _say(self, message: Any) -> None:
        if self._connection is None:
            self._outbox.append(message)
        else:
            self._send(message)

    def _late(self) -> None:
        self._give_up((grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", ()))

    def _give_up(self, status: _Status) -> None:
        if self._status is None:
            connection = self._connection
            self.finish(status)
            if connection is not None and not connection.broken:
                served = connection.calls.pop(self, None)
                connection.carry(True, lambda: None if served is None else served.lost())

    def finish(self, status: _Status) -> None:
        """Ends the call with a status."""
        if self._status is None:
            self._status = status
            self._opening.cancel()
            if self._timer is not None:
                self._timer.cancel()
            if self._connection is not None and status[0] is grpc.StatusCode.OK:
                self._connection.calls.pop(self, None)
            self._inbox.more.set()
            self._ended.set()

    def come(self, message: bytes) -> None:
        """A message has come."""
        if self._status is None:
            self._inbox.put(message)

    def _raise(self) -> None:
        assert self._status is not None
        code, details, metadata = self._status
        if self._cancelled_here:
            raise asyncio.CancelledError
        if code is not grpc.StatusCode.OK:
            raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), details)

    async def write(self, message: Any) -> None:
        if self._status is not None:
            self._raise()
            raise asyncio.InvalidStateError("RPC already finished.")
        self._say(message if self._serialize is None else self._serialize(message))
        await asyncio.sleep(0)

    async def done_writing(self) -> None:
        if self._status is None:
            self._say(grpc.aio.EOF)

    async def read(self) -> Any:
        while not self._inbox.messages:
            if self._status is not None:
                self._raise()
                return grpc.aio.EOF
            self._inbox.more.clear()
            await self._inbox.more.wait()
        message = self._inbox.messages.popleft()
        return message if self._read is None else self._read(message)

    def cancel(self) -> bool:
        if self._status is not None:
            return False
        self._cancelled_here = True
        self._give_up((grpc.StatusCode.CANCELLED, "Locally cancelled by application!", ()))
        return True

    async def code(self) -> grpc.StatusCode:
        await self._ended.wait()
        assert self._status is not None
        return self._status[0]

    async def details(self) -> str:
        await self._ended.wait()
        assert self._status is not None
        return self._status[1]

    def __await__(self) -> Any:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        try:
            answer = await self.read()
            await self._ended.wait()
        except asyncio.CancelledError:
            self.cancel()
            raise
        self._raise()
        return answer

    def __aiter__(self) -> Any:
        return self._all()

    async def _all(self) -> Any:
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message


class Channel:
    """Connections to one server, each made when it is needed."""

    def __init__(self, network: Network, address: str, identity: Identity, peer: str) -> None:
        process = HERE.get()
        assert process is not None, "only processes call"
        self.network, self._address, self._identity, self._peer, self._process = (
            network,
            address,
            identity,
            peer,
            process,
        )
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[Connection] | None = None
        self._calls: list[Call] = []

    async def connected(self) -> Connection:
        """The connection, which is open."""
        if self._connection is not None and not self._connection.broken:
            return self._connection
        if self._connecting is None or self._connecting.done():
            work = self.network.connect(self._process, self._identity, self._peer, self._address)
            self._connecting = self.network.loop.create_task(work)
        self._connection = await asyncio.shield(self._connecting)
        return self._connection

    async def channel_ready(self) -> None:
        while True:
            with contextlib.suppress(_Failed):
                await self.connected()
                return
            await asyncio.sleep(0.5)

    def _call(self, method: str, serialize: Any, read: Any, timeout: float | None) -> Call:
        call = Call(self, method, serialize, read, timeout)
        self._calls = [each for each in self._calls if each._status is None]
        self._calls.append(call)
        return call

    def _one(self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **_: Any) -> Any:
        def begin(request: Any, timeout: float | None = None) -> Call:
            call = self._call(method, request_serializer, response_deserializer, timeout)
            call._say(request_serializer(request))
            call._say(grpc.aio.EOF)
            return call

        return begin

    unary_unary = unary_stream = _one

    def stream_stream(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **_: Any
    ) -> Any:
        return lambda timeout=None: self._call(method, request_serializer, response_deserializer, timeout)

    stream_unary = stream_stream

    async def close(self, grace: float | None = None) -> None:
        for call in self._calls:
            call.cancel()
        if self._connection is not None:
            self._connection.broke()


# -- the answering end -------------------------------------------------------------------------------------------------
class _Served:
    """A call, as who answers it sees it; the context of the method."""

    def __init__(self, connection: Connection, call: Call, handler: Any) -> None:
        self._connection, self._call, self._handler = connection, call, handler
        self.inbox = _End()
        self._status: _Status | None = None
        self._lost = False
        self.task: asyncio.Task[None] | None = None

    # what handlers use
    def auth_context(self) -> Mapping[str, Any]:
        return {"x509_pem_cert": [self._call._channel._identity.certificate_pem]}

    def peer(self) -> str:
        return f"ipv4:127.0.0.1:{20_000 + sum(map(ord, self._connection.client.machine.name))}"

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def send_initial_metadata(self, _: object) -> None:
        await asyncio.sleep(0)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> Any:
        self._status = (code, details, tuple(trailing_metadata))
        raise grpc.aio.AbortError("Locally aborted.")

    async def read(self) -> Any:
        while not self.inbox.messages:
            if self._lost:
                return grpc.aio.EOF
            self.inbox.more.clear()
            await self.inbox.more.wait()
        message = self.inbox.messages[0]
        if message is grpc.aio.EOF:
            return message
        self.inbox.messages.popleft()
        read = self._handler.request_deserializer
        return message if read is None else read(message)

    async def write(self, message: Any) -> None:
        if self._lost:
            raise asyncio.InvalidStateError("the call is over")
        serialize = self._handler.response_serializer
        data = message if serialize is None else serialize(message)
        self._connection.carry(False, lambda: self._call.come(data))
        await asyncio.sleep(0)

    async def requests(self) -> Any:
        """What comes, as methods with streams of requests get it."""
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message

    # what the server does
    async def serve(self) -> None:
        method = self._handler.stream_stream
        try:
            if inspect.isasyncgenfunction(method):
                async with contextlib.aclosing(method(self.requests(), self)) as answers:
                    async for answer in answers:
                        await self.write(answer)
            else:
                await method(self.requests(), self)
            status = self._status or _OK
        except grpc.aio.AbortError:
            assert self._status is not None
            status = self._status
        except asyncio.CancelledError:
            status = (grpc.StatusCode.CANCELLED, "CANCELLED", ())
        except Exception as error:
            status = (grpc.StatusCode.UNKNOWN, f"Unexpected {type(error)}: {error}", ())
        if not self._lost:
            self._connection.carry(False, functools.partial(self._call.finish, status))
        self._connection.server.served.pop(self, None)

    def lost(self) -> None:
        """The caller is gone. Whether a reader sees the end first or the call is given up first is chance."""
        if not self._lost:
            self._lost = True
            self.inbox.more.set()
            if self.task is not None:
                if self._connection.network.random.random() < 0.5:
                    self._connection.network.loop.call_soon(self.task.cancel)
                else:
                    self.task.cancel()


class Server:
    """In the place of `grpc.aio.Server`."""

    def __init__(self, network: Network, interceptors: Any) -> None:
        process = HERE.get()
        assert process is not None, "only processes serve"
        self._network, self._interceptors, self.process = network, tuple(interceptors or ()), process
        self._handlers: list[Any] = []
        self._methods: dict[str, Any] = {}
        self._address = ""
        self.identity: Callable[[], Identity]
        self.served: dict[_Served, None] = {}
        self._stopping = False

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        pass

    def add_secure_port(self, address: str, credentials: Any) -> int:
        self._address, self.identity = address, credentials
        return int(address.rpartition(":")[2])

    async def start(self) -> None:
        self._network.servers[self._address] = self

    async def stop(self, grace: float | None) -> None:
        self._stopping = True
        if self._network.servers.get(self._address) is self:
            del self._network.servers[self._address]
        tasks = [each.task for each in self.served if each.task is not None]
        if grace and tasks:
            await asyncio.wait(tasks, timeout=grace)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self._network.connections):
            if connection.server is self:
                connection.broke()

    async def _handler(self, method: str) -> Any:
        if method not in self._methods:
            details = _Details(method, ())

            async def found(details: _Details) -> Any:
                return next((h for each in self._handlers if (h := each.service(details)) is not None), None)

            inner: Callable[[Any], Awaitable[Any]] = found
            for interceptor in reversed(self._interceptors):
                inner = functools.partial(interceptor.intercept_service, inner)
            self._methods[method] = await inner(details)
        return self._methods[method]

    def take(self, connection: Connection, call: Call) -> None:
        """A call has come; to be called in this process."""
        name = call.method.rpartition("/")[2]
        self._network.log(f"{connection.client.machine.name} calls {name} of {self.process.machine.name}")
        if self._stopping or call not in connection.calls:
            connection.carry(False, lambda: call.finish(_CLOSED))
            return
        served = _Served(connection, call, None)
        connection.calls[call] = served
        self.served[served] = None

        async def serve() -> None:
            served._handler = await self._handler(call.method)
            if served._handler is None:
                connection.carry(False, lambda: call.finish((grpc.StatusCode.UNIMPLEMENTED, "", ())))
                return
            await served.serve()

        served.task = self._network.loop.create_task(serve())


@dataclass
class _Details:
    method: str
    invocation_metadata: tuple[()]
