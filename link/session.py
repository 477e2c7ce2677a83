"""A party's view of one joint computation: typed messages in, typed messages out.

Protocol code sees only `Session`. It never sees sockets, gRPC, threads or retries, which is why the same function runs
in a unit test, in a simulation and between organisations.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import DTypeLike, NDArray

from link.disclosure import Declared, Ledger, opens
from link.errors import (
    ComineError,
    DeadlineExceeded,
    IdentityError,
    LimitExceeded,
    MalformedMessage,
    UndeclaredDisclosure,
    UnexpectedMessage,
    VersionMismatch,
    from_code,
)
from link.executor import Executor
from link.randomness import RandomStream
from link.transcript import Transcript
from protos.v1.link_pb2 import Abort, Frame, Hello, Opening

M = TypeVar("M", bound=Message)
T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

WIRE_VERSION = "1"
CHUNK_BYTES = 1 << 20  # a chunk of a bulk stream: the sweet spot of gRPC
MAX_BODY_BYTES = 3 << 20  # under gRPC's usual limit of 4 MiB, with room for the header
MAX_BUFFERED_BYTES = 2 << 30  # what a peer may send ahead of what the protocol has read
MAX_AHEAD = 4096  # frames out of order per lane
MAX_LANES = 4096  # lanes that a peer may write to

MAX_ROUND = 1 << 30
MAX_REASON = 1000  # characters of a peer's reason to end the job
ABORT_S = 2.0  # for telling a peer that the job has ended

_FRAME_OVERHEAD_BYTES = 24  # tags, lengths and numbers of a frame
_HELLO_LANE = "hello"
_ABORT_LANE = "abort"


class Receiver(Protocol):
    """What a transport hands frames to."""

    def deliver(self, peer: str, frame: Frame) -> None:
        """Takes a frame that came from the authenticated `peer`."""

    def fail(self, error: ComineError) -> None:
        """Ends the session: a peer is lost or the stream broke the rules."""


class Transport(Protocol):
    """Carries the frames of one job between this party and its peers."""

    def attach(self, receiver: Receiver) -> None:
        """Names who takes inbound frames; frames that came earlier are handed over now."""

    async def send(self, to: str, frame: Frame) -> None:
        """Accepts a frame for delivery; waits only while too much is under way."""

    async def close(self) -> None:
        """Flushes what peers have not got yet, for a moment, and ends."""


class Progress(Protocol):
    """Told how far a step of the job has come."""

    def __call__(self, step: str, done: int, total: int) -> None:
        """`done` of `total` parts of `step` are finished."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What all parties of a session must agree on before anything else is said.

    Attributes:
        job_id: 32 bytes, fixed in the proposal.
        attempt: Counts the starts of one job.
        spec_digest: SHA-256 of the job specification.
        parties: All parties, in the order of the job.
        suite: Name of the cryptographic parameter set.
    """

    job_id: bytes
    attempt: int
    spec_digest: bytes
    parties: tuple[str, ...]
    suite: str


class Costs(NamedTuple):
    """What a session has cost this party so far."""

    bytes_sent: int
    bytes_received: int
    rounds: int
    seconds: float


class _Arrived(NamedTuple):
    """A frame and its body, which protobuf copies each time it is asked for."""

    frame: Frame
    body: bytes


@dataclass(slots=True)
class _Inbound:
    """Frames of one peer and lane, put back into order."""

    next_seq: int = 0
    ahead: dict[int, _Arrived] = field(default_factory=dict)
    ready: deque[_Arrived] = field(default_factory=deque)
    waiter: asyncio.Future[None] | None = None


class _Core:
    """What all lanes of a session share; takes frames from the transport."""

    def __init__(
        self,
        terms: Terms,
        me: str,
        transport: Transport,
        random: RandomStream,
        executor: Executor,
        declared: Iterable[Declared],
        deadline_s: float,
        progress: Progress,
    ) -> None:
        self.terms, self.me = terms, me
        self.transport, self.random, self.executor, self.progress = transport, random, executor, progress
        self.ledger = Ledger.of(declared, random.derive("opening-macs").bytes(32))
        self.transcript = Transcript()
        self.session_id = b""
        self.started = time.monotonic()
        self.deadline = asyncio.get_running_loop().time() + deadline_s
        self.deadline_s = deadline_s
        self.bytes_sent = self.bytes_received = self.buffered = 0
        self.failure: ComineError | None = None
        self.inbound: dict[tuple[str, str], _Inbound] = {}
        self.next_out: dict[tuple[str, str], int] = {}
        self.streams: dict[str, int] = {}
        self._early: list[tuple[str, Frame]] = []
        self._early_bytes = 0

    # -- Receiver ----------------------------------------------------------------------------------------------------
    def deliver(self, peer: str, frame: Frame) -> None:
        if self.failure is not None:
            return
        try:
            self._accept(peer, frame)
        except ComineError as error:
            self.fail(error)

    def fail(self, error: ComineError) -> None:
        if self.failure is None:
            self.failure = error
        for inbound in self.inbound.values():
            _wake(inbound)

    def _accept(self, peer: str, frame: Frame) -> None:
        if frame.sender != peer:
            raise IdentityError(f"{peer} sent a frame in another party's name; its node must be checked", party=peer)
        if frame.receiver != self.me or peer not in self.terms.parties:
            raise UnexpectedMessage(f"{peer} sent a frame that is not for this party in this job", party=peer)
        body = frame.body
        if len(body) > MAX_BODY_BYTES:
            raise LimitExceeded(f"{peer} sent a frame of more than {MAX_BODY_BYTES} bytes", party=peer)
        if frame.round > MAX_ROUND:
            raise LimitExceeded(f"{peer} claims to be in round {frame.round}", party=peer)
        if frame.type == Abort.DESCRIPTOR.full_name:
            raise _told(peer, body)
        if frame.lane != _HELLO_LANE:
            if not self.session_id:
                self.early(peer, frame, len(body))
                return
            if frame.session != self.session_id:
                raise UnexpectedMessage(f"{peer} sent a frame of another session", party=peer)
        elif frame.session != self.terms.job_id:
            raise UnexpectedMessage(f"{peer} greeted for another job", party=peer)
        self._order(peer, frame, body)

    def early(self, peer: str, frame: Frame, size: int) -> None:
        """Keeps a frame of a peer that knows the session's id before this party does."""
        self._early_bytes += size
        if len(self._early) >= MAX_AHEAD * len(self.terms.parties) or self._early_bytes > MAX_BUFFERED_BYTES:
            raise LimitExceeded(f"{peer} sent too much before the session began", party=peer)
        self._early.append((peer, frame))

    def begin(self, session_id: bytes) -> None:
        """Fixes the session's id and takes the frames that came before it was known."""
        self.session_id = session_id
        early, self._early = self._early, []
        for peer, frame in early:
            self.deliver(peer, frame)

    def _order(self, peer: str, frame: Frame, body: bytes) -> None:
        inbound = self.lane_from(peer, frame.lane)
        if frame.seq < inbound.next_seq or frame.seq in inbound.ahead:
            return  # a transport may deliver twice; the first copy counts
        if frame.seq - inbound.next_seq > MAX_AHEAD:
            raise LimitExceeded(f"{peer} skipped {frame.seq - inbound.next_seq} frames", party=peer)
        self.buffered += len(body)
        if self.buffered > MAX_BUFFERED_BYTES:
            raise LimitExceeded(f"{peer} sent more than {MAX_BUFFERED_BYTES} bytes ahead of the protocol", party=peer)
        inbound.ahead[frame.seq] = _Arrived(frame, body)
        while (following := inbound.ahead.pop(inbound.next_seq, None)) is not None:
            inbound.next_seq += 1
            self.bytes_received += _size(following)
            self.transcript.add(peer, "received", *following)
            inbound.ready.append(following)
        if inbound.ready:
            _wake(inbound)

    def lane_from(self, peer: str, lane: str) -> _Inbound:
        inbound = self.inbound.get((peer, lane))
        if inbound is None:
            if sum(p == peer for p, _ in self.inbound) >= MAX_LANES:
                raise LimitExceeded(f"{peer} opened more than {MAX_LANES} lanes", party=peer)
            inbound = self.inbound[peer, lane] = _Inbound()
        return inbound

    # -- for the lanes -----------------------------------------------------------------------------------------------
    async def post(self, to: str, lane: str, kind: type[Message], body: bytes, *, last: bool, round_: int) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            async with asyncio.timeout_at(self.deadline):
                await self.transmit(to, lane, kind, body, last=last, round_=round_)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.me} could not send {kind.DESCRIPTOR.name} to {to} before the job's deadline of "
                f"{self.deadline_s:g} s had passed; check {to} or allow more time",
                party=to,
            ) from None

    async def transmit(self, to: str, lane: str, kind: type[Message], body: bytes, *, last: bool, round_: int) -> None:
        """Sends a frame whatever the state of the session."""
        seq = self.next_out.get((to, lane), 0)
        self.next_out[to, lane] = seq + 1
        frame = Frame(
            session=self.session_id or self.terms.job_id,
            sender=self.me,
            receiver=to,
            lane=lane,
            seq=seq,
            type=kind.DESCRIPTOR.full_name,
            body=body,
            last=last,
            round=round_,
        )
        self.bytes_sent += _size(_Arrived(frame, body))
        self.transcript.add(to, "sent", frame, body)
        await self.transport.send(to, frame)

    async def take(self, frm: str, lane: str, kind: type[Message]) -> _Arrived:
        inbound = self.lane_from(frm, lane)
        while not inbound.ready:
            if self.failure is not None:
                raise self.failure
            inbound.waiter = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout_at(self.deadline):
                    await inbound.waiter
            except TimeoutError:
                raise DeadlineExceeded(
                    f"{self.me} waited for {kind.DESCRIPTOR.name} of {frm} until the job's deadline of "
                    f"{self.deadline_s:g} s had passed; check {frm} or allow more time",
                    party=frm,
                ) from None
            finally:
                inbound.waiter = None
        frame, body = inbound.ready.popleft()
        self.buffered -= len(body)
        if frame.type != kind.DESCRIPTOR.full_name:
            raise UnexpectedMessage(
                f"{frm} sent {frame.type.rpartition('.')[2]} where {kind.DESCRIPTOR.name} was expected",
                party=frm,
            )
        return _Arrived(frame, body)


def _size(arrived: _Arrived) -> int:
    """Bytes of a frame, as protobuf writes it but for the lengths of its numbers; its own count would copy the body."""
    frame = arrived.frame
    names = len(frame.sender) + len(frame.receiver) + len(frame.lane) + len(frame.type)
    return len(arrived.body) + len(frame.session) + names + _FRAME_OVERHEAD_BYTES


def _told(peer: str, body: bytes) -> ComineError:
    """The error with which a peer ends the job."""
    abort = Abort()
    try:
        abort.ParseFromString(body)
    except DecodeError:
        return MalformedMessage(f"{peer} ended the job without a reason that can be read", party=peer)
    message = "".join(c if c.isprintable() else " " for c in abort.message[:MAX_REASON])
    return from_code(abort.code, message, party=peer)


def _wake(inbound: _Inbound) -> None:
    if inbound.waiter is not None and not inbound.waiter.done():
        inbound.waiter.set_result(None)


class Session:
    """Sends and receives typed messages within one lane of one job.

    Attributes:
        me: This party.
        parties: All parties, in the order of the job.
        others: All parties but this one, in that order.
        path: The lane's name as a readable path.
    """

    def __init__(self, core: _Core, path: str, parent: Session | None) -> None:
        self._core, self.path, self._parent = core, path, parent
        self._round: int = parent._round if parent is not None else 0
        self.me = core.me
        self.parties = core.terms.parties
        self.others = tuple(p for p in self.parties if p != self.me)

    @classmethod
    async def establish(
        cls,
        terms: Terms,
        me: str,
        transport: Transport,
        *,
        random: RandomStream,
        executor: Executor,
        declared: Iterable[Declared] = (),
        deadline_s: float = 1800.0,
        progress: Progress = lambda step, done, total: None,
    ) -> Session:
        """Greets all peers, checks that all mean the same job, and derives the session's id.

        Args:
            terms: What all parties must agree on.
            me: This party's name.
            transport: Carries the frames.
            random: This party's source of randomness for this session.
            executor: Where heavy local work runs.
            declared: The labels that may be opened.
            deadline_s: Seconds until every wait of this session ends.
            progress: Told how far steps have come.

        Raises:
            VersionMismatch: A peer runs another version or suite, or means another job.
            DeadlineExceeded: A peer did not greet in time.
        """
        core = _Core(terms, me, transport, random, executor, declared, deadline_s, progress)
        session = cls(core, "", None)
        transport.attach(core)
        try:
            await session._greet()
        except ComineError as error:
            await session.abort(error)
            raise
        return session

    async def _greet(self) -> None:
        terms, core = self._core.terms, self._core
        nonce = core.random.derive("session-nonce").bytes(16)
        mine = Hello(
            job_id=terms.job_id,
            attempt=terms.attempt,
            nonce=nonce,
            spec_digest=terms.spec_digest,
            parties=terms.parties,
            version=WIRE_VERSION,
            suite=terms.suite,
        )
        greetings = Session(core, _HELLO_LANE, None)
        await greetings.broadcast(mine)
        nonces = {self.me: nonce}
        for peer, hello in (await greetings.gather(Hello)).items():
            _compare(peer, mine, hello)
            nonces[peer] = hello.nonce
        digest = hashlib.sha256(terms.job_id + terms.attempt.to_bytes(4, "big"))
        for party in terms.parties:
            digest.update(nonces[party])
        core.begin(digest.digest())

    # -- what a protocol uses ----------------------------------------------------------------------------------------
    @property
    def id(self) -> bytes:
        """SHA-256(job id ‖ attempt ‖ every party's nonce): no two runs share it."""
        return self._core.session_id

    def lane(self, name: str) -> Session:
        """A namespace for a sub-protocol, which may run concurrently with its siblings. Names are used once."""
        return Session(self._core, f"{self.path}/{name}", self)

    async def send(self, to: str, message: Message) -> None:
        """Sends one message to one peer.

        Raises:
            UndeclaredDisclosure: The message has a field that only `open` may fill.
        """
        await self._post(to, message, last=True)

    async def broadcast(self, message: Message) -> None:
        """Sends one message to every other party."""
        for party in self.others:
            await self.send(party, message)

    async def recv(self, frm: str, kind: type[M], check: Callable[[M], None] | None = None) -> M:
        """The next message of `frm` on this lane.

        Args:
            frm: The peer.
            kind: The message type that the protocol expects now.
            check: Raises ValueError, with words for a person, where the message is not what the protocol allows.

        Raises:
            UnexpectedMessage: Another type came.
            MalformedMessage: It does not parse, or `check` refused it.
            DeadlineExceeded: Nothing came before the job's deadline.
        """
        message, last, _ = await self._take(frm, kind, check)
        if not last:
            raise UnexpectedMessage(f"{frm} sent a stream where one {kind.DESCRIPTOR.name} was expected", party=frm)
        return message

    async def gather(self, kind: type[M], check: Callable[[M], None] | None = None) -> dict[str, M]:
        """One message of every other party, by name."""
        return {party: await self.recv(party, kind, check) for party in self.others}

    async def send_stream(self, to: str, messages: Iterable[Message]) -> None:
        """Sends many messages as one bulk stream; each must stay under `MAX_BODY_BYTES`.

        An iterator that is costly to advance should be computed beforehand with `compute`.
        """
        pending: Message | None = None
        for message in messages:
            if pending is not None:
                await self._post(to, pending, last=False)
            pending = message
        if pending is None:
            raise ValueError("a stream has at least one message")
        await self._post(to, pending, last=True)

    async def recv_stream(
        self, frm: str, kind: type[M], *, limit: int, check: Callable[[M], None] | None = None
    ) -> AsyncIterator[M]:
        """The messages of one bulk stream, as they come.

        Args:
            frm: The peer.
            kind: Type of every message of the stream.
            limit: The most bytes that the stream may hold.
            check: As in `recv`, per message.

        Raises:
            LimitExceeded: The stream holds more than `limit` bytes.
        """
        size, last = 0, False
        while not last:
            message, last, received = await self._take(frm, kind, check)
            size += received
            if size > limit:
                raise LimitExceeded(f"{frm} sent more than {limit} bytes of {kind.DESCRIPTOR.name}", party=frm)
            yield message

    async def send_array(self, to: str, kind: type[Message], values: NDArray[Any]) -> None:
        """Sends an array as a stream of chunks; `kind` is a message with one bytes field named `data`."""
        await self.send_stream(to, (kind(data=chunk) for chunk in _chunks(values)))

    async def recv_array(self, frm: str, kind: type[Message], dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """Receives an array of exactly this type and shape.

        Raises:
            MalformedMessage: The stream holds fewer or more bytes.
        """
        return await self._assemble(frm, kind, "data", dtype, shape)

    async def open(self, label: str, values: NDArray[Any], to: Iterable[str] | None = None) -> None:
        """Makes values public to `to` (all others by default): the only way by which anything is opened.

        Args:
            label: A label that the job's statement declares.
            values: Shape (number, …): its first axis counts values against the statement's maximum.
            to: The receivers.

        Raises:
            UndeclaredDisclosure: The statement does not allow it; nothing has left.
        """
        receivers = [p for p in (self.others if to is None else to) if p != self.me]
        contiguous = np.ascontiguousarray(values)
        self._core.ledger.issue(label, _view(contiguous), len(contiguous), receivers)
        for receiver in receivers:
            pending: bytes | memoryview | None = None
            for chunk in _chunks(contiguous):
                if pending is not None:
                    await self._open_chunk(receiver, label, len(contiguous), pending, last=False)
                pending = chunk
            await self._open_chunk(receiver, label, len(contiguous), pending or b"", last=True)

    async def receive_opened(self, frm: str, label: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """The values that `frm` opens under `label`, of exactly this type and shape."""
        self._core.ledger.expect(label, frm)

        def check(opening: Opening) -> None:
            if opening.label != label or opening.number != shape[0]:
                raise ValueError(f"{shape[0]} values of '{label}' were expected")

        return await self._assemble(frm, Opening, "values", dtype, shape, check)

    async def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs heavy local work off the event loop."""
        (result,) = await self._core.executor.map(lambda _: function(*args, **kwargs), [None])
        return result

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """Runs a kernel over chunks of local work, several at a time, off the event loop; results in order."""
        return await self._core.executor.map(kernel, chunks)

    @property
    def workers(self) -> int:
        """How many chunks `map` runs at once."""
        return self._core.executor.workers

    def randomness(self, purpose: str) -> RandomStream:
        """A fresh stream for one purpose on this lane: (session, lane, purpose, how often asked) names it.

        It never depends on what other tasks draw.
        """
        where = f"{self.path}|{purpose}"
        self._core.streams[where] = asked = self._core.streams.get(where, 0) + 1
        return self._core.random.derive("stream", self.id, where, asked)

    def progress(self, step: str, done: int, total: int) -> None:
        """Tells how far a step has come."""
        self._core.progress(step, done, total)

    # -- what the host of a session uses -----------------------------------------------------------------------------
    @property
    def costs(self) -> Costs:
        """Bytes, rounds and seconds of this party so far."""
        core = self._core
        return Costs(core.bytes_sent, core.bytes_received, self._round, time.monotonic() - core.started)

    @property
    def transcript(self) -> Transcript:
        """Hash chains over all frames so far."""
        return self._core.transcript

    @property
    def ledger(self) -> Ledger:
        """What this party has opened so far."""
        return self._core.ledger

    def fail(self, error: ComineError) -> None:
        """Ends every wait of this session with `error`."""
        self._core.fail(error)

    async def abort(self, error: ComineError) -> None:
        """Tells all peers that this party ends the job, and why; ends every wait here."""
        body = Abort(code=error.code, message=error.message).SerializeToString()

        async def tell(party: str) -> None:
            with contextlib.suppress(ComineError, TimeoutError):
                async with asyncio.timeout(ABORT_S):
                    await self._core.transmit(party, _ABORT_LANE, Abort, body, last=True, round_=0)

        self.fail(error)
        await asyncio.gather(*(tell(party) for party in self.others))

    # -- plumbing ----------------------------------------------------------------------------------------------------
    async def _post(self, to: str, message: Message, *, last: bool) -> None:
        kind = type(message)
        if opens(kind):
            raise UndeclaredDisclosure(f"{kind.DESCRIPTOR.name} opens values, so only Session.open may send it")
        await self._post_body(to, kind, message.SerializeToString(), last=last)

    async def _post_body(self, to: str, kind: type[Message], body: bytes, *, last: bool) -> None:
        if len(body) > MAX_BODY_BYTES:
            raise ValueError(f"{kind.DESCRIPTOR.name} of {len(body)} bytes must be sent as a stream")
        await self._core.post(to, self.path, kind, body, last=last, round_=self._round + 1)

    async def _open_chunk(self, to: str, label: str, number: int, chunk: bytes | memoryview, *, last: bool) -> None:
        opening = Opening(label=label, number=number, values=bytes(chunk))
        await self._post_body(to, Opening, opening.SerializeToString(), last=last)

    async def _take(self, frm: str, kind: type[M], check: Callable[[M], None] | None) -> tuple[M, bool, int]:
        """The next message, whether it ends its stream, and its size in bytes."""
        frame, body = await self._core.take(frm, self.path, kind)
        lane: Session | None = self
        while lane is not None:
            lane._round = max(lane._round, frame.round)
            lane = lane._parent
        message = kind()
        try:
            message.ParseFromString(body)
            if check is not None:
                check(message)
        except DecodeError:
            raise MalformedMessage(f"{frm} sent a {kind.DESCRIPTOR.name} that cannot be read", party=frm) from None
        except ValueError as error:
            raise MalformedMessage(f"{frm} sent a wrong {kind.DESCRIPTOR.name}: {error}", party=frm) from None
        return message, frame.last, len(body)

    async def _assemble(
        self,
        frm: str,
        kind: type[M],
        bytes_field: str,
        dtype: DTypeLike,
        shape: tuple[int, ...],
        check: Callable[[M], None] | None = None,
    ) -> NDArray[Any]:
        values = np.empty(shape, dtype)
        buffer, filled, last = _view(values), 0, False
        while not last:
            message, last, _ = await self._take(frm, kind, check)
            chunk = getattr(message, bytes_field)
            if filled + len(chunk) > len(buffer):
                raise MalformedMessage(f"{frm} sent more {kind.DESCRIPTOR.name} data than expected", party=frm)
            buffer[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
        if filled != len(buffer):
            raise MalformedMessage(f"{frm} sent less {kind.DESCRIPTOR.name} data than expected", party=frm)
        return values


def _compare(peer: str, mine: Hello, theirs: Hello) -> None:
    for name, what in (
        ("version", "version of the wire protocol"),
        ("suite", "cryptographic suite"),
        ("job_id", "job"),
        ("attempt", "attempt"),
        ("spec_digest", "job specification"),
        ("parties", "list of parties"),
    ):
        if getattr(mine, name) != getattr(theirs, name):
            raise VersionMismatch(f"{peer} runs with another {what}; bring both nodes to the same", party=peer)
    if len(theirs.nonce) != 16:
        raise MalformedMessage(f"{peer} greeted without a nonce of 16 bytes", party=peer)


def _view(values: NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    return values.reshape(-1).view(np.uint8).data


def _chunks(values: NDArray[Any]) -> Iterable[bytes]:
    """The bytes of an array in pieces of `CHUNK_BYTES`; at least one, perhaps empty."""
    view = _view(np.ascontiguousarray(values))
    for start in range(0, max(len(view), 1), CHUNK_BYTES):
        yield bytes(view[start : start + CHUNK_BYTES])
