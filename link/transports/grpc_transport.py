"""The transport between organisations: gRPC streams under mutual TLS.

A node has one `NodeLink` for its whole life. It answers `comine.v1.Link/Exchange` on the node's server, keeps one TLS
connection to each peer that it dials, and hands out one `GrpcTransport` per job. For each pair of parties and job there
is one bidirectional stream, dialled by the party whose name sorts first; see `link.transports.grpc_stream` for what
goes over it.

Who the other end is comes from its certificate alone. The accepting end reads the certificate's name; the dialling end
makes TLS check that the server's certificate has the peer's name as a DNS name, which only a party's has.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, cast

import grpc

from link.core import Receiver, printable
from link.errors import ComineError, IdentityError, PeerError, placeless
from link.pki.identity import Identity, Role, check_peer
from link.relay.address import shown
from link.transports.grpc_channel import dial
from link.transports.grpc_errors import through_relay
from link.transports.grpc_stream import Conversation, Duplex, parse, too_long
from protos.v1.link_pb2 import Envelope, Frame, Resume

SERVICE: Final = "comine.v1.Link"
PATIENCE_S: Final = 20.0
FIRST_BACKOFF_S: Final = 0.05
MAX_BACKOFF_S: Final = 1.0
GRACE_S: Final = 5.0  # how long a stream may be earlier than the job it belongs to
MAX_STREAMS: Final = 256  # per peer, over all connections and jobs; an honest one has one for each job
MAX_EARLY_STREAMS: Final = 64  # of these, that are earlier than their jobs
MAX_FIRST: Final = 1  # first messages per peer that are read at once; each may be as long as gRPC takes in
MAX_FIRST_BYTES: Final = 1024  # it names a job and a number
MAX_FINISHED: Final = 4096  # peers of ended jobs that are remembered


class _Calls:
    """The connections to peers under one certificate, each made when it is first needed.

    Args:
        identity: This party.
        addresses: "host:port" by name of each peer.

    Attributes:
        addresses: As above.
        jobs: That use them.
    """

    def __init__(self, identity: Identity, addresses: Mapping[str, str]) -> None:
        self._identity, self.addresses = identity, addresses
        self._channels: dict[str, grpc.aio.Channel] = {}
        self.jobs: set[bytes] = set()

    def channel(self, peer: str) -> grpc.aio.Channel:
        """The one connection to `peer`."""
        if peer not in self._channels:
            self._channels[peer] = dial(self._identity, peer, self.addresses[peer])
        return self._channels[peer]

    async def close(self) -> None:
        """Ends them."""
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))
        self._channels.clear()


class NodeLink:
    """A node's end of all its jobs.

    Args:
        identity: This party.
        addresses: "host:port" by name of each peer.
        patience_s: Seconds for which a peer may be away before it counts as lost.

    Attributes:
        jobs: Transports of the jobs that are open, by job.
        awaited: Streams that were earlier than their jobs, by job.
        early: How many of these there are, by peer.
        streams: How many are open, by peer.
        met: Called for each good caller: what gRPC calls its end of the connection, its role and its name.
        read: Called for each message that is read: what gRPC calls its sender's end, and its bytes.
    """

    def __init__(self, identity: Identity, addresses: Mapping[str, str], *, patience_s: float = PATIENCE_S) -> None:
        self.identity, self.patience_s = identity, patience_s
        self.addresses = dict(addresses)
        self._calls = _Calls(identity, self.addresses)
        self._earlier: list[_Calls] = []  # of jobs that began before the last renewal
        self.jobs: dict[bytes, GrpcTransport] = {}
        self.awaited: dict[bytes, list[asyncio.Future[GrpcTransport]]] = {}
        self.streams: Counter[str] = Counter()
        self.early: dict[str, int] = {}
        self._firsts: dict[str, asyncio.Semaphore] = {}
        self._finished: OrderedDict[tuple[bytes, str], int] = OrderedDict()
        self.met: Callable[[str, Role, str], None] = lambda peer, role, name: None
        self.read: Callable[[str, int], None] = lambda peer, size: None

    def register(self, server: grpc.aio.Server) -> None:
        """Lets `server` answer this link's streams."""
        method: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._exchange)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Exchange": method}),))

    def open(self, job_id: bytes, parties: Iterable[str]) -> GrpcTransport:
        """The transport of one job; its streams begin when a session is attached.

        Raises:
            PeerError: A party of the job has no address here, or the job is open already.
        """
        others = tuple(party for party in parties if party != self.identity.name)
        for party in others:
            if party not in self.addresses:
                raise PeerError(f"{party} has no address here; add it to the federation file", party=party)
        if job_id in self.jobs:
            raise PeerError(f"job {job_id.hex()[:12]} runs here already; wait for its end")
        self.jobs[job_id] = GrpcTransport(self, job_id, others, self._calls)
        self._calls.jobs.add(job_id)
        return self.jobs[job_id]

    async def renew(self, identity: Identity, addresses: Mapping[str, str]) -> None:
        """Jobs from now on call under another certificate, or elsewhere; open ones end as they began."""
        self.identity, self.addresses = identity, dict(addresses)
        self._earlier.append(self._calls)
        self._calls = _Calls(identity, self.addresses)
        over = [calls for calls in self._earlier if not calls.jobs]
        self._earlier = [calls for calls in self._earlier if calls.jobs]
        await asyncio.gather(*(calls.close() for calls in over))

    async def close(self) -> None:
        """Ends all jobs and connections."""
        await asyncio.gather(*(transport.close(hurried=True) for transport in list(self.jobs.values())))
        await asyncio.gather(*(calls.close() for calls in (self._calls, *self._earlier)))
        self._earlier.clear()

    # -- for the transports ------------------------------------------------------------------------------------------
    def began(self, job_id: bytes, transport: GrpcTransport) -> None:
        """Lets the streams in that were earlier than the job."""
        for arrival in self.awaited.pop(job_id, []):
            if not arrival.done():
                arrival.set_result(transport)

    def ended(self, job_id: bytes, conversations: Mapping[str, Conversation]) -> None:
        """Forgets a job, but for how many frames each peer has got that was left in peace."""
        self.jobs.pop(job_id, None)
        for calls in (self._calls, *self._earlier):
            calls.jobs.discard(job_id)
        for peer, conversation in conversations.items():
            if conversation.at_peace:
                self._finished[job_id, peer] = conversation.acknowledged
                self._finished.move_to_end((job_id, peer))
        while len(self._finished) > MAX_FINISHED:
            self._finished.popitem(last=False)

    # -- the service -------------------------------------------------------------------------------------------------
    async def _exchange(self, _: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        try:
            role, peer = check_peer(self.identity.trust, context.auth_context())
        except IdentityError as error:
            self._note(error)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, placeless(error, self.identity.name).message)
        if role != "party":
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "only parties exchange frames")
        if not peer < self.identity.name:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{peer} is dialled and does not dial here")
        self.met(context.peer(), role, peer)
        if self.streams[peer] >= MAX_STREAMS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{peer} has {MAX_STREAMS} streams open here")
        self.streams[peer] += 1
        try:
            await self._converse(context, peer)
        finally:
            self.streams[peer] -= 1

    async def _converse(self, context: grpc.aio.ServicerContext[Any, Any], peer: str) -> None:
        resume = await self._first(context, peer)
        if self._has_finished(resume.resume, peer):
            return  # the farewell was lost; the end of this stream repeats it
        transport = await self._opened(resume.resume.job_id, peer)
        if transport is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "the job is not open here")
        conversation = transport.conversations.get(peer)
        if conversation is None:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{peer} is not a party of the job")
        # By itself, so that a stream can be given up at any moment: where a first write is given up that carries the
        # initial metadata, gRPC sends them a second time with the stream's status and fails.
        await context.send_initial_metadata(())
        with contextlib.suppress(grpc.aio.BaseError):  # the stream broke: its end is the dialling party's concern
            if await conversation.serve(_Accepted(context, self.read), None, resume):
                return
        await context.abort(grpc.StatusCode.ABORTED, "the stream was given up")

    def _note(self, error: IdentityError) -> None:
        """Keeps why a party was refused, for those who wait for it: it may dial with a good certificate yet."""
        for transport in self.jobs.values():
            if error.party in transport.conversations:
                transport.conversations[error.party].trouble = error.message

    def _has_finished(self, resume: Resume, peer: str) -> bool:
        """Whether the peer resumes a job that it has got all frames of. A new attempt has got none yet."""
        done = self._finished.get((resume.job_id, peer))
        return resume.job_id not in self.jobs and resume.received > 0 and resume.received == done

    async def _first(self, context: grpc.aio.ServicerContext[Any, Any], peer: str) -> Envelope:
        # Read in a frame of its own, which is over before the error of an abort can keep the message alive.
        if (first := await self._read_first(context, peer)) is not None:
            return first
        return await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "a stream begins with its job")

    async def _read_first(self, context: grpc.aio.ServicerContext[Any, Any], peer: str) -> Envelope | None:
        turn = self._firsts.setdefault(peer, asyncio.Semaphore(MAX_FIRST))
        with contextlib.suppress(TimeoutError):
            async with turn, asyncio.timeout(GRACE_S):
                message = await context.read()
            if message is not grpc.aio.EOF and len(message) <= MAX_FIRST_BYTES:
                with contextlib.suppress(ComineError):
                    first = parse(message, peer)
                    return first if first.HasField("resume") else None
        return None

    async def _opened(self, job_id: bytes, peer: str) -> GrpcTransport | None:
        """The job's transport, or None if it is not opened soon."""
        transport = self.jobs.get(job_id)
        if transport is not None and transport.conversations:
            return transport
        if self.early.get(peer, 0) >= MAX_EARLY_STREAMS:
            return None
        arrival: asyncio.Future[GrpcTransport] = asyncio.get_running_loop().create_future()
        waiting = self.awaited.setdefault(job_id, [])
        waiting.append(arrival)
        self.early[peer] = self.early.get(peer, 0) + 1
        try:
            async with asyncio.timeout(min(GRACE_S, self.patience_s)):
                return await arrival
        except TimeoutError:
            return None
        finally:
            self.early[peer] -= 1
            waiting.remove(arrival)
            if not waiting and self.awaited.get(job_id) is waiting:
                del self.awaited[job_id]


class _Accepted:
    """A stream that a peer has dialled: what bounds traffic over its connection counts all that is read."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any], read: Callable[[str, int], None]) -> None:
        self._context, self._on_read, self._peer = context, read, context.peer()

    async def write(self, message: bytes) -> None:
        """Sends one message."""
        await self._context.write(message)

    async def read(self) -> Any:
        """The next message."""
        message = await self._context.read()
        if message is not grpc.aio.EOF:
            self._on_read(self._peer, len(message))
        return message


class GrpcTransport:
    """One job's frames; implements `link.session.Transport`.

    Attributes:
        conversations: By peer, from the moment a session is attached.
    """

    def __init__(self, link: NodeLink, job_id: bytes, others: tuple[str, ...], calls: _Calls) -> None:
        self.conversations: dict[str, Conversation] = {}
        self._link, self._job_id, self._others, self._calls = link, job_id, others, calls
        self._dialling: list[asyncio.Task[None]] = []

    def attach(self, receiver: Receiver) -> None:
        """Begins to dial and to accept; `receiver` takes what comes."""
        for peer in self._others:
            me, patience_s = self._link.identity.name, self._link.patience_s
            self.conversations[peer] = Conversation(self._job_id, me, peer, patience_s, receiver)
        self._link.began(self._job_id, self)
        for peer, conversation in self.conversations.items():
            if self._link.identity.name < peer:
                self._dialling.append(asyncio.create_task(self._dial(peer, conversation)))
            else:
                self._dialling.append(asyncio.create_task(self._look_for(peer, conversation)))

    async def send(self, to: str, frame: Frame) -> None:
        """Accepts a frame; waits only while too much is under way to `to`."""
        await self.conversations[to].send(frame)

    async def close(self, *, hurried: bool = False) -> None:
        """Lets peers that are not lost get what they have not got yet, and ends the streams.

        Args:
            hurried: Waits no longer than a moment for a peer that stands still, also where another call waits.
        """
        await asyncio.gather(*(conversation.leave(hurried=hurried) for conversation in self.conversations.values()))
        await self._stop()

    def cut(self, peer: str) -> None:
        """Breaks the live stream with `peer`, as a network fault would; it is renewed."""
        self.conversations[peer].cut()

    async def crash(self) -> None:
        """Ends everything without a word, as the death of the process would."""
        for conversation in self.conversations.values():
            conversation.end()
        await self._stop()

    async def _stop(self) -> None:
        self._link.ended(self._job_id, self.conversations)
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)

    async def _dial(self, peer: str, conversation: Conversation) -> None:
        exchange: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = self._calls.channel(peer).stream_stream(
            f"/{SERVICE}/Exchange"
        )
        backoff_s = FIRST_BACKOFF_S
        while not conversation.over:
            call = exchange()
            began = asyncio.get_running_loop().time()
            try:
                await conversation.serve(cast(Duplex, call), call.done_writing)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
                await self._explain(conversation, call, error)
            finally:
                call.cancel()
            if asyncio.get_running_loop().time() - began > MAX_BACKOFF_S:
                backoff_s = FIRST_BACKOFF_S
            await conversation.wait_until_over(backoff_s)
            backoff_s = min(2 * backoff_s, MAX_BACKOFF_S)

    async def _look_for(self, peer: str, conversation: Conversation) -> None:
        """Looks whether the node of a peer that does not dial is there; who has to start the job there may be late."""
        while True:
            await conversation.wait_until_over(self._link.patience_s / 2)
            if conversation.over or conversation.reached or conversation.trouble:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._link.patience_s / 2):
                    await self._calls.channel(peer).channel_ready()
                    conversation.there()

    async def _explain(self, conversation: Conversation, call: grpc.aio.Call, error: Exception) -> None:
        """Notes why a stream broke, and ends the session where dialling again cannot help."""
        me, peer = self._link.identity.name, conversation.peer
        dialled = self._calls.addresses[peer]
        address = shown(dialled)
        code, details = await cast(Awaitable[grpc.StatusCode], call.code()), str(await call.details() or "")
        if code is grpc.StatusCode.INTERNAL and isinstance(error, grpc.aio.AioRpcError):
            # A write that fails because the stream has ended takes the place of the status by which it ended.
            code, details = error.code(), error.details() or ""
        if code is grpc.StatusCode.PERMISSION_DENIED:
            conversation.fail(
                IdentityError(
                    f"{peer} refused {me} ({printable(details)}); check the certificate of {me}, and that both have "
                    "the same job and parties"
                )
            )
        elif "CERTIFICATE_VERIFY_FAILED" in details or "Hostname Verification" in details:
            why = details.rpartition("CERTIFICATE_VERIFY_FAILED: ")[2].partition(":")[0]
            why = "its certificate does not name it" if "Hostname" in details else why
            conversation.fail(
                IdentityError(
                    f"what answers at {address} cannot prove to be {peer} ({why}); check the address, and that its "
                    "certificate was issued to that name by this federation's authority and is still valid",
                    party=peer,
                )
            )
        elif code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in details:
            conversation.fail(too_long(me if "SERVER: Received" in details else peer))  # else it is this end's limit
        elif code is grpc.StatusCode.NOT_FOUND:
            conversation.trouble = f"its node at {address} does not have the job"
            conversation.there()
        elif code is grpc.StatusCode.UNAVAILABLE and (fault := through_relay(peer, dialled)):
            conversation.trouble = fault.message.partition(";")[0]  # what to do follows when the peer is lost
        elif "Connection refused" in details:
            conversation.trouble = f"nothing answers at {address}"
        elif "ping timeout" in details or "eadline" in details:
            conversation.trouble = f"{address} does not answer"
        elif "Socket closed" in details:
            conversation.trouble = f"{address} closed the connection; perhaps it refuses this party's certificate"
        else:
            conversation.trouble = f"{address} gave {code.name}"
