"""A party's view of one joint computation: typed messages in, typed messages out.

Protocol code sees only `Session`. It never sees sockets, gRPC, threads or retries, which is why the same function runs
in a unit test, in a simulation and between organisations.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message
from numpy.typing import DTypeLike, NDArray

from link.core import (
    ABORT_LANE,
    ABORT_S,
    HELLO_LANE,
    MAX_BODY_BYTES,
    MAX_BUFFERED_BYTES,
    Progress,
    SessionCore,
    Terms,
    Transport,
    abort_of,
)
from link.costs import Costs
from link.disclosure import Declared, Ledger, opens
from link.encoding.bytes_field import data_of, message_of
from link.encoding.chunks import chunks, chunks_of_pieces, is_whole, rows_of_chunks, view
from link.encoding.reading import Reading, reading, reading_values
from link.errors import (
    ComineError,
    JobCancelled,
    LimitExceeded,
    MalformedMessage,
    UndeclaredDisclosure,
    UnexpectedMessage,
)
from link.executor import Executor
from link.greeting import NONCE_BYTES, compare, window_of
from link.pki.identity import Identity, Member
from link.proof import check, prove
from link.randomness import RandomStream
from link.transcripts.transcript import Transcript
from link.version import latest_common
from protos.v1.link_pb2 import Abort, Hello, Opening

M = TypeVar("M", bound=Message)
T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


class Session:
    """Sends and receives typed messages within one lane of one job.

    Attributes:
        me: This party.
        parties: All parties, in the order of the job; on a lane among some of them these.
        others: All parties but this one, in that order.
        path: The lane's name as a readable path.
        core: What all lanes of the job share.
    """

    def __init__(self, core: SessionCore, path: str, parent: Session | None, parties: tuple[str, ...]) -> None:
        self.core, self.path, self._parent = core, path, parent
        self._round: int = parent._round if parent is not None else 0
        self._heads: dict[str, bytes] = {}
        self.me = core.me
        self.parties = parties
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
        identity: Identity | None = None,
        declared: Iterable[Declared] = (),
        deadline_s: float = 1800.0,
        progress: Progress = lambda step, done, total: None,
        mac_secret: bytes | None = None,
        ahead_bytes: int = MAX_BUFFERED_BYTES,
    ) -> Session:
        """Greets all peers, checks who they are and that all mean the same job, and derives the session's id.

        Args:
            terms: What all parties must agree on.
            me: This party's name.
            transport: Carries the frames.
            random: This party's source of randomness for this session.
            executor: Where heavy local work runs.
            identity: What this party proves itself with, and whom it believes. Without one nobody proves anything:
                for protocols whose parties are all in one process.
            declared: The labels that may be opened.
            deadline_s: Seconds until every wait of this session ends.
            progress: Called with how far steps have come.
            mac_secret: Keys, together with the session's id, the MACs of what is opened; without one, a fresh secret
                that nobody keeps.
            ahead_bytes: The most memory that what one peer has sent, and the protocol has not read yet, may take.

        Raises:
            VersionMismatch: A peer runs another version or suite, or means another job.
            IdentityError: A peer cannot prove who it is, or its certificate is not to be believed.
            DeadlineExceeded: A peer did not greet in time.
        """
        core = SessionCore(
            terms, me, transport, random, executor, declared, deadline_s, progress, mac_secret, ahead_bytes
        )
        core.identity = identity
        session = cls(core, "", None, terms.parties)
        transport.attach(core)
        try:
            await session._greet(identity)
        except asyncio.CancelledError:
            await session.abort(JobCancelled(f"the job was cancelled at {me}", party=me))
            raise
        except ComineError as error:
            await session.abort(error)
            raise
        return session

    async def _greet(self, identity: Identity | None) -> None:
        terms, core = self.core.terms, self.core
        nonce = core.random.derive("session-nonce").bytes(NONCE_BYTES)
        mine = Hello(
            job_id=terms.job_id,
            attempt=terms.attempt,
            nonce=nonce,
            spec_digest=terms.spec_digest,
            parties=terms.parties,
            version=str(terms.window.latest),
            oldest_version=str(terms.window.oldest),
            suite=terms.suite,
        )
        greetings = Session(core, HELLO_LANE, None, terms.parties)
        for peer in self.others:
            if identity is not None:
                mine.proof.CopyFrom(prove(identity, terms, nonce, peer))
            await greetings.send(peer, mine)
        nonces, windows = {self.me: nonce}, {self.me: terms.window}
        for peer, hello in (await greetings.gather(Hello)).items():
            windows[peer] = window_of(peer, hello)
            latest_common({self.me: terms.window, peer: windows[peer]})  # else its greeting may mean something else
            compare(peer, mine, hello)
            if identity is not None:
                theirs = replace(terms, window=windows[peer])
                check(hello.proof, identity.trust, peer, theirs, hello.nonce, self.me, lasts_s=core.deadline_s)
                core.members[peer] = Member.of(identity.trust, hello.proof.certificate, "party", peer)
            nonces[peer] = hello.nonce
        digest = hashlib.sha256(terms.job_id + terms.attempt.to_bytes(4, "big"))
        for party in terms.parties:
            digest.update(nonces[party] + b"".join(each.to_bytes(4, "big") for each in windows[party]))
        core.begin(digest.digest(), latest_common(windows))

    # -- what a protocol uses ----------------------------------------------------------------------------------------
    @property
    def id(self) -> bytes:
        """SHA-256(job id ‖ attempt ‖ every party's nonce and window): no two runs share it.

        With the windows in it, no party can let others speak an older version than they would.
        """
        return self.core.session_id

    @property
    def wire(self) -> int:
        """The version of the wire protocol that all parties speak in this session."""
        return self.core.wire

    @property
    def suite(self) -> str:
        """Name of the cryptographic parameter set that all parties have agreed on."""
        return self.core.terms.suite

    def lane(self, name: str) -> Session:
        """A namespace for a sub-protocol, which may run concurrently with its siblings. Names are used once."""
        return Session(self.core, f"{self.path}/{name}", self, self.parties)

    def among(self, name: str, parties: Iterable[str]) -> Session:
        """A lane on which two or more of the parties, this one among them, run a protocol; each of them calls this."""
        chosen = frozenset(parties)
        if self.me not in chosen or len(chosen) < 2 or not chosen <= set(self.parties):
            raise ValueError(f"a protocol among some takes two of {self.parties} or more, {self.me} one of them")
        return Session(self.core, f"{self.path}/{name}", self, tuple(p for p in self.parties if p in chosen))

    def aside(self) -> None:
        """From now on no step counts what passes on this lane, and beneath it, since it does so at no known place."""
        self.core.passed.aside.add(self.path)

    def counts(self) -> None:
        """The next step counts all of it, as other lanes: all that passes here is over, and this place needs it."""
        self.core.passed.aside.discard(self.path)

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
        message, last, _ = await self._take(frm, kind, reading(kind, check))
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
            limit: The most bytes that the stream may hold; an empty message counts as one.
            check: As in `recv`, per message.

        Raises:
            LimitExceeded: The stream holds more than `limit` bytes.
        """
        size, last = 0, False
        while not last:
            message, last, received = await self._take(frm, kind, reading(kind, check))
            size += max(received, 1)
            if size > limit:
                raise LimitExceeded(f"{frm} sent more than {limit} bytes of {kind.DESCRIPTOR.name}", party=frm)
            yield message

    async def send_array(self, to: str, kind: type[Message], values: NDArray[Any]) -> None:
        """Sends an array as a stream of chunks; `kind` is a message with one bytes field named `data`."""
        pieces = list(chunks(values))
        for chunk in pieces:
            await self._post_data(to, kind, chunk, last=chunk is pieces[-1])

    async def recv_array(self, frm: str, kind: type[Message], dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
        """Receives an array of exactly this type and shape.

        Raises:
            MalformedMessage: The stream holds fewer or more bytes.
        """
        return await self._assemble(frm, kind, partial(data_of, kind), dtype, shape)

    async def send_pieces(self, to: str, kind: type[Message], pieces: AsyncIterable[NDArray[Any]], number: int) -> None:
        """As `send_array`, of `number` rows that are never all in memory; the frames are the same."""
        async for chunk, last in chunks_of_pieces(pieces, number, kind.DESCRIPTOR.name):
            await self._post_data(to, kind, chunk, last=last)

    async def recv_pieces(
        self, frm: str, kind: type[Message], number: int, width: int
    ) -> AsyncIterator[NDArray[np.uint8]]:
        """As `recv_array`, of `number` rows of `width` bytes: some of them at a time, as they come."""
        async for rows in rows_of_chunks(self._pieces(frm, kind, partial(data_of, kind), number * width), width):
            yield rows

    def head_sent(self, to: str) -> bytes:
        """SHA-256 over all that went to a peer on this lane: the `head_read` of the peer, once it has read it."""
        return self.core.transcript.head(to, "sent", self.path)

    def head_read(self, frm: str) -> bytes:
        """SHA-256 over all of a peer's that has been read on this lane."""
        return self._heads[frm]

    async def open(
        self, label: str, values: NDArray[Any], to: Iterable[str] | None = None, *, number: int | None = None
    ) -> None:
        """Makes values public to `to` (all others by default): the only way by which anything is opened.

        Args:
            label: A label that the job's statement declares.
            values: Shape (number, …): its first axis counts values against the statement's maximum.
            to: The receivers.
            number: How many values these are, where they are packed and no axis counts them.

        Raises:
            UndeclaredDisclosure: The statement does not allow it; nothing has left.
        """
        receivers = [p for p in (self.others if to is None else to) if p != self.me]
        if not receivers:
            return  # nothing leaves
        contiguous = np.ascontiguousarray(values)
        counted = len(contiguous) if number is None else number
        self.core.ledger.issue(label, view(contiguous), counted, receivers)
        for receiver in receivers:
            pending: bytes | memoryview | None = None
            for chunk in chunks(contiguous):
                if pending is not None:
                    await self._open_chunk(receiver, label, counted, pending, last=False)
                pending = chunk
            await self._open_chunk(receiver, label, counted, pending or b"", last=True)

    async def receive_opened(
        self, frm: str, label: str, dtype: DTypeLike, shape: tuple[int, ...], *, number: int | None = None
    ) -> NDArray[Any]:
        """The values that `frm` opens under `label`, of exactly this type and shape; `number` as for `open`."""
        self.core.ledger.expect(label, frm)
        counted = shape[0] if number is None else number
        return await self._assemble(frm, Opening, reading_values(label, counted), dtype, shape)

    async def open_pieces(self, label: str, pieces: AsyncIterable[NDArray[Any]], number: int, *to: str) -> None:
        """As `open` to some others, of values that are never all in memory; the frames are the same.

        Args:
            label: As of `open`.
            pieces: Arrays of values, whose first axes count `number` values together.
            number: How many values these are.
            to: The receivers.

        Raises:
            UndeclaredDisclosure: The statement does not allow it; nothing has left.
        """
        leaving = self.core.ledger.begin(label, number, to)
        async for chunk, last in chunks_of_pieces(pieces, number, label):
            leaving.add(chunk)
            for receiver in to:
                await self._open_chunk(receiver, label, number, chunk, last=last)

    async def receive_opened_pieces(
        self, frm: str, label: str, number: int, width: int
    ) -> AsyncIterator[NDArray[np.uint8]]:
        """As `receive_opened`, of `number` rows of `width` bytes: some of them at a time, as they come."""
        self.core.ledger.expect(label, frm)
        async for rows in rows_of_chunks(
            self._pieces(frm, Opening, reading_values(label, number), number * width), width
        ):
            yield rows

    async def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs heavy local work off the event loop."""
        (result,) = await self.core.executor.map(lambda _: function(*args, **kwargs), [None])
        return result

    async def map(self, kernel: Callable[[T], R], chunks: Iterable[T]) -> Sequence[R]:
        """Runs a kernel over chunks of local work, several at a time, off the event loop; results in order."""
        return await self.core.executor.map(kernel, chunks)

    @property
    def workers(self) -> int:
        """How many chunks `map` runs at once."""
        return self.core.executor.workers

    def randomness(self, purpose: str) -> RandomStream:
        """A fresh stream for one purpose on this lane: (session, lane, purpose, how often asked) names it.

        It never depends on what other tasks draw.
        """
        where = f"{self.path}|{purpose}"
        self.core.streams[where] = asked = self.core.streams.get(where, 0) + 1
        return self.core.random.derive("stream", self.id, where, asked)

    def progress(self, step: str, done: int, total: int) -> None:
        """Reports how far a step has come."""
        self.core.progress(step, done, total)

    # -- what the host of a session uses -----------------------------------------------------------------------------
    @property
    def costs(self) -> Costs:
        """Bytes, rounds and seconds of this party so far."""
        core = self.core
        return Costs(core.bytes_sent, core.bytes_received, self._round, time.monotonic() - core.started)

    @property
    def transcript(self) -> Transcript:
        """Hash chains over all frames so far."""
        return self.core.transcript

    @property
    def ledger(self) -> Ledger:
        """What this party has opened so far."""
        return self.core.ledger

    def fail(self, error: ComineError) -> None:
        """Ends every wait of this session with `error`."""
        self.core.fail(error)

    async def abort(self, error: ComineError) -> None:
        """Reports to all peers that this party ends the job, and why; ends every wait here."""
        body = abort_of(error, self.me).SerializeToString()

        async def report(party: str) -> None:
            with contextlib.suppress(ComineError, TimeoutError):
                async with asyncio.timeout(ABORT_S):
                    await self.core.transmit(party, ABORT_LANE, Abort, body, last=True, round_=0)

        self.fail(error)
        await asyncio.gather(*(report(party) for party in self.others))

    # -- plumbing ----------------------------------------------------------------------------------------------------
    async def _post(self, to: str, message: Message, *, last: bool) -> None:
        kind = type(message)
        _refuse_opening(kind)
        await self._post_body(to, kind, message.SerializeToString(), last=last)

    async def _post_data(self, to: str, kind: type[Message], data: bytes | memoryview, *, last: bool) -> None:
        _refuse_opening(kind)
        await self._post_body(to, kind, message_of(kind, data), last=last)

    async def _post_body(self, to: str, kind: type[Message], body: bytes, *, last: bool) -> None:
        if len(body) > MAX_BODY_BYTES:
            raise ValueError(f"{kind.DESCRIPTOR.name} of {len(body)} bytes must be sent as a stream")
        await self.core.post(to, self.path, kind, body, last=last, round_=self._round + 1)

    async def _open_chunk(self, to: str, label: str, number: int, chunk: bytes | memoryview, *, last: bool) -> None:
        opening = Opening(label=label, number=number, values=bytes(chunk))
        await self._post_body(to, Opening, opening.SerializeToString(), last=last)

    async def _take(self, frm: str, kind: type[M], read: Callable[[bytes], R]) -> tuple[R, bool, int]:
        """What is read of the next message, whether it ends its stream, and its size in bytes."""
        arrived = await self.core.take(frm, self.path, kind)
        self._heads[frm] = arrived.head
        lane: Session | None = self
        while lane is not None:
            lane._round = max(lane._round, arrived.round)
            lane = lane._parent
        try:
            return read(arrived.body), arrived.last, len(arrived.body)
        except DecodeError:
            raise MalformedMessage(f"{frm} sent a {kind.DESCRIPTOR.name} that cannot be read", party=frm) from None
        except ValueError as error:
            raise MalformedMessage(f"{frm} sent a wrong {kind.DESCRIPTOR.name}: {error}", party=frm) from None

    async def _assemble(
        self, frm: str, kind: type[Message], read: Reading, dtype: DTypeLike, shape: tuple[int, ...]
    ) -> NDArray[Any]:
        values = np.empty(shape, dtype)
        buffer, filled = view(values), 0
        async for chunk in self._pieces(frm, kind, read, len(buffer)):
            buffer[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
        return values

    async def _pieces(
        self, frm: str, kind: type[Message], read: Reading, size: int
    ) -> AsyncIterator[bytes | memoryview]:
        """The chunks of a stream of exactly so many bytes, whole but the last: small ones cost more than bytes."""
        taken, last = 0, False
        while not last:
            chunk, last, _ = await self._take(frm, kind, read)
            taken += len(chunk)
            if not (last or is_whole(chunk)):
                raise MalformedMessage(f"{frm} sent {kind.DESCRIPTOR.name} data in pieces of another size", party=frm)
            if taken > size:
                raise MalformedMessage(f"{frm} sent more {kind.DESCRIPTOR.name} data than expected", party=frm)
            yield chunk
        if taken != size:
            raise MalformedMessage(f"{frm} sent less {kind.DESCRIPTOR.name} data than expected", party=frm)


def _refuse_opening(kind: type[Message]) -> None:
    if opens(kind):
        raise UndeclaredDisclosure(f"{kind.DESCRIPTOR.name} opens values, so only Session.open may send it")
