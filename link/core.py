"""What all lanes of a session share: frames in order, limits, waits, the transcript and the ledger.

`SessionCore` takes frames from the transport and hands them to the lanes; protocols see only `link.session.Session`.

A session may use as many lanes as it likes, one after another: a lane takes up a place only while frames wait in it to
be read. What is left of it then is its two chains in the transcript, about 0.5 kB per peer. Their numbers of frames
know for ever which number comes next, so that a copy of an old frame is known as one, and no number is given twice.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from google.protobuf.message import DecodeError, Message

from link.disclosure import Declared, Ledger, session_key
from link.errors import (
    ComineError,
    DeadlineExceeded,
    IdentityError,
    LimitExceeded,
    MalformedMessage,
    ProtocolViolation,
    UnexpectedMessage,
    from_reporter,
    mentions_others,
    told_by,
)
from link.executor import Executor
from link.journal import Resumption
from link.pki.identity import Identity, Member
from link.randomness import RandomStream
from link.transcripts.transcript import MARK_BYTES, Direction, Passed, Transcript, header_of, mark_of
from link.transcripts.words import Evidence, Shown
from link.version import WINDOW, Window
from protos.v1.link_pb2 import Abort, Frame

T = TypeVar("T")

MAX_BODY_BYTES = 3 << 20  # under gRPC's usual limit of 4 MiB, with space for the header
# What one peer may send ahead of what the protocol has read. Where a party computes before it reads, an honest peer is
# a whole list or vector ahead: 33 bytes for each row of an alignment, up to 8 for each candidate of a sum.
MAX_BUFFERED_BYTES = 640 << 20
HELD_FRAME_BYTES = 512  # of memory that a frame takes which waits, besides what it holds
MAX_AHEAD = 4096  # frames out of order per lane
MAX_LANES = 4096  # lanes in which frames of one peer wait to be read

MAX_ROUND = 1 << 30
MAX_REASON = 1000  # characters of a peer's reason to end the job
ABORT_S = 2.0  # for reporting to a peer that the job has ended

FRAME_OVERHEAD_BYTES = 26 + MARK_BYTES  # tags, lengths, numbers and mark of a frame
HELLO_LANE = "hello"
ABORT_LANE = "abort"


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

    async def close(self, *, hurried: bool = False) -> None:
        """Lets peers that are there get what they have not got yet, for a moment only where `hurried`, and ends."""


class Progress(Protocol):
    """Called with how far a step of the job has come."""

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
        window: The versions of the wire protocol that this party speaks, of which all speak the latest that they share.
    """

    job_id: bytes
    attempt: int
    spec_digest: bytes
    parties: tuple[str, ...]
    suite: str
    window: Window = WINDOW


class _Arrived(NamedTuple):
    """What is kept of a frame until it is read: protobuf's own object would hold the body a second time."""

    type: str
    round: int
    last: bool
    body: bytes
    header: bytes  # its hash
    size: int  # of the frame
    head: bytes = b""  # of its chain, from its turn on


@dataclass(slots=True)
class _Unread:
    """Frames of one peer and lane that wait to be read: those in order, and those that came before their turn."""

    ready: deque[_Arrived] = field(default_factory=deque)
    ahead: dict[int, _Arrived] = field(default_factory=dict)


class SessionCore:
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
        mac_secret: bytes | None = None,
        ahead_bytes: int = MAX_BUFFERED_BYTES,
    ) -> None:
        self.terms, self.me, self.ahead_bytes = terms, me, ahead_bytes
        self.transport, self.random, self.executor, self.progress = transport, random, executor, progress
        self.mac_secret = random.derive("opening-macs").bytes(32) if mac_secret is None else mac_secret
        self.ledger = Ledger.of(declared, session_key(self.mac_secret, b""))
        self.transcript = Transcript()
        self.session_id, self.wire = b"", terms.window.latest
        self.started = time.monotonic()
        self.deadline = asyncio.get_running_loop().time() + deadline_s
        self.deadline_s = deadline_s
        self.bytes_sent = self.bytes_received = 0
        self.buffered: Counter[str] = Counter()  # bytes of memory that the unread frames of each peer take
        self.failure: ComineError | None = None
        self.unread: dict[str, dict[str, _Unread]] = defaultdict(dict)  # by peer and lane
        self.waiters: dict[tuple[str, str], asyncio.Future[None]] = {}
        self.streams: dict[str, int] = {}
        self.steps, self.passed = Resumption(), Passed()
        self.members: dict[str, Member] = {}  # by name, once they have greeted
        self.identity: Identity | None = None  # what this party signs with, and whom it believes
        self.overheard: dict[tuple[str, str], list[Shown]] = {}  # by peer and lane, what was read
        self.evidence: list[Evidence] = []  # against peers
        self._early: list[tuple[str, Frame, int]] = []

    # -- Receiver ----------------------------------------------------------------------------------------------------
    def deliver(self, peer: str, frame: Frame) -> None:
        """Takes a frame that came from the authenticated `peer`; one that breaks the rules ends the session."""
        if self.failure is not None:
            return
        try:
            self._accept(peer, frame)
        except ComineError as error:
            self.fail(error)

    def fail(self, error: ComineError) -> None:
        """Ends every wait; the first error counts."""
        if self.failure is None:
            self.failure = error
        for waiter in self.waiters.values():
            _wake(waiter)

    async def unless_ended(self, work: Coroutine[Any, Any, T]) -> T:
        """What work comes to that needs no frame; given up as soon as the session has ended.

        Raises:
            ComineError: What has ended the session.
        """
        task, ended = asyncio.ensure_future(work), asyncio.get_running_loop().create_future()
        self.waiters["", ""] = ended  # which no peer and no lane are called
        try:
            if self.failure is None:
                await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
            if self.failure is not None:
                raise self.failure
            return task.result()
        finally:
            del self.waiters["", ""]
            task.cancel()

    def _accept(self, peer: str, frame: Frame) -> None:
        if frame.sender != peer:
            raise IdentityError(f"{peer} sent a frame in another party's name; its node must be checked", party=peer)
        self._check_member(peer)
        if frame.receiver != self.me or peer not in self.terms.parties:
            raise UnexpectedMessage(f"{peer} sent a frame that is not for this party in this job", party=peer)
        body = frame.body
        if len(body) > MAX_BODY_BYTES:
            raise LimitExceeded(f"{peer} sent a frame of more than {MAX_BODY_BYTES} bytes", party=peer)
        if frame.round > MAX_ROUND:
            raise LimitExceeded(f"{peer} claims to be in round {frame.round}", party=peer)
        if frame.type == Abort.DESCRIPTOR.full_name:
            raise self._own_wait(peer, ended_by(peer, self.me, self.terms.parties, body))
        if frame.lane != HELLO_LANE:
            if not self.session_id:
                _check_mark(peer, frame)
                self.early(peer, frame, _size(frame, body))
                return
            if frame.session != self.session_id:
                raise UnexpectedMessage(f"{peer} sent a frame of another session", party=peer)
        elif frame.session != self.terms.job_id:
            raise UnexpectedMessage(f"{peer} greeted for another job", party=peer)
        self._order(peer, frame, body)

    def _own_wait(self, peer: str, error: ComineError) -> ComineError:
        """The error with which a peer ends the job; or if its wait was too long, that of this party, if it waits, too.

        Who has to wait lets others wait, and those end the job before it can say so.
        """
        awaited = next((frm for frm, _ in self.waiters if frm), None)
        if awaited is None or not isinstance(error, DeadlineExceeded):
            return error
        own = DeadlineExceeded(
            f"{self.me} still waited for {awaited} when the job's deadline had passed at {peer}; "
            f"{_kept_waiting(awaited)}",
            party=awaited,
        )
        own.reporter = peer
        return own

    def _check_member(self, peer: str) -> None:
        """Looks at a peer's certificate once more: it may have been revoked since the greeting.

        The greeting has seen to it that it lasts until the job's deadline. So only a clock that was set since, here,
        makes it look expired, and that is no fault of the peer.
        """
        if (member := self.members.get(peer)) is not None:
            member.check(timed=False)

    def early(self, peer: str, frame: Frame, size: int) -> None:
        """Keeps a frame of a peer that knows the session's id before this party does."""
        self._hold(peer, size)
        self._early.append((peer, frame, size))

    def begin(self, session_id: bytes, wire: int) -> None:
        """Fixes the session's id and its version, and takes the frames that came before they were known."""
        self.session_id, self.wire = session_id, wire
        self.ledger.key = session_key(self.mac_secret, session_id)
        early, self._early = self._early, []
        for peer, frame, size in early:
            self.buffered[peer] -= size + HELD_FRAME_BYTES
            self.deliver(peer, frame)

    def _hold(self, peer: str, size: int) -> None:
        """Counts a frame that waits to be read; each peer has a limit of its own, so none pays for another."""
        self.buffered[peer] += size + HELD_FRAME_BYTES
        if self.buffered[peer] > self.ahead_bytes:
            raise LimitExceeded(f"{peer} sent more than {self.ahead_bytes} bytes ahead of the protocol", party=peer)

    def _order(self, peer: str, frame: Frame, body: bytes) -> None:
        lanes, lane = self.unread[peer], frame.lane
        unread, due = lanes.get(lane), self.transcript.frames(peer, "received", lane)
        if frame.seq - due > MAX_AHEAD:
            raise LimitExceeded(f"{peer} skipped {frame.seq - due} frames", party=peer)
        header = _check_mark(peer, frame)
        if frame.seq < due or (unread is not None and frame.seq in unread.ahead):
            return  # a transport may deliver twice; the first copy counts
        size = _size(frame, body)
        self._hold(peer, size)
        if unread is None:
            if len(lanes) >= MAX_LANES:
                raise LimitExceeded(f"{peer} opened more than {MAX_LANES} lanes", party=peer)
            unread = lanes[lane] = _Unread()
        unread.ahead[frame.seq] = _Arrived(frame.type, frame.round, frame.last, body, header, size)
        while (following := unread.ahead.pop(due, None)) is not None:
            due += 1
            self.bytes_received += following.size
            head = self.transcript.add(peer, "received", lane, following.header, following.body)
            unread.ready.append(following._replace(head=head))
        if unread.ready and (waiter := self.waiters.get((peer, lane))) is not None:
            _wake(waiter)

    def _read(self, peer: str, lane: str) -> _Arrived | None:
        """The next frame of a lane, if it is there; a lane that has been read to its end gives up its place."""
        unread = self.unread[peer].get(lane)
        if unread is None or not unread.ready:
            return None
        arrived = unread.ready.popleft()
        self._pass(peer, "received", lane, arrived.head)
        self.buffered[peer] -= arrived.size + HELD_FRAME_BYTES
        if not unread.ready and not unread.ahead:
            del self.unread[peer][lane]
        return arrived

    # -- for the lanes -----------------------------------------------------------------------------------------------
    async def post(self, to: str, lane: str, kind: type[Message], body: bytes, *, last: bool, round_: int) -> None:
        """Sends a frame, unless the session has ended or the peer's certificate is no longer good."""
        if self.failure is not None:
            raise self.failure
        self._check_member(to)
        try:
            async with asyncio.timeout_at(self.deadline):
                await self.transmit(to, lane, kind, body, last=last, round_=round_)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{self.me} could not send {kind.DESCRIPTOR.name} to {to} before the job's deadline of "
                f"{self.deadline_s:g} s had passed; {_kept_waiting(to)}",
                party=to,
            ) from None

    async def transmit(self, to: str, lane: str, kind: type[Message], body: bytes, *, last: bool, round_: int) -> None:
        """Sends a frame whatever the state of the session."""
        frame = Frame(
            session=self.session_id or self.terms.job_id,
            sender=self.me,
            receiver=to,
            lane=lane,
            seq=self.transcript.frames(to, "sent", lane),
            type=kind.DESCRIPTOR.full_name,
            body=body,
            last=last,
            round=round_,
        )
        header = header_of(frame)
        frame.mark = mark_of(header)
        self.bytes_sent += _size(frame, body)
        self._pass(to, "sent", lane, self.transcript.add(to, "sent", lane, header, body))
        await self.transport.send(to, frame)

    def _pass(self, peer: str, direction: Direction, lane: str, head: bytes) -> None:
        if self.steps.journal is not None:  # which nobody else asks for
            self.passed.heads[peer, direction][lane] = head

    def overhear(self, peer: str, lane: str) -> list[Shown]:
        """Where all frames of a peer on a lane are kept from now on as they are read."""
        return self.overheard.setdefault((peer, lane), [])

    async def take(self, frm: str, lane: str, kind: type[Message]) -> _Arrived:
        """Waits for the next frame of a peer on a lane, which must hold a message of this type."""
        while (arrived := self._read(frm, lane)) is None:
            if self.failure is not None:
                raise self.failure
            waiter = self.waiters[frm, lane] = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout_at(self.deadline):
                    await waiter
            except TimeoutError:
                raise DeadlineExceeded(
                    f"{self.me} waited for {kind.DESCRIPTOR.name} of {frm} until the job's deadline of "
                    f"{self.deadline_s:g} s had passed; {_kept_waiting(frm)}",
                    party=frm,
                ) from None
            finally:
                if self.waiters.get((frm, lane)) is waiter:
                    del self.waiters[frm, lane]
        if (overheard := self.overheard.get((frm, lane))) is not None:
            overheard.append(Shown(arrived.type, arrived.last, arrived.round, arrived.body))
        if arrived.type != kind.DESCRIPTOR.full_name:
            raise UnexpectedMessage(
                f"{frm} sent {printable(arrived.type.rpartition('.')[2])} where {kind.DESCRIPTOR.name} was expected",
                party=frm,
            )
        return arrived


def _check_mark(peer: str, frame: Frame) -> bytes:
    """The hash of a frame's header, if it is as its sender made it."""
    header = header_of(frame)
    unmarked = frame.lane == HELLO_LANE and not frame.mark  # a greeting of an earlier version, which then learns so
    if not unmarked and frame.mark != mark_of(header):
        raise MalformedMessage(f"{peer} sent a frame that is not as it was made; its node must be checked", party=peer)
    return header


def _size(frame: Frame, body: bytes) -> int:
    """Bytes of a frame, as protobuf writes it but for the lengths of its numbers; its own count would copy the body."""
    names = len(frame.sender) + len(frame.receiver) + len(frame.lane) + len(frame.type)
    return len(body) + len(frame.session) + names + FRAME_OVERHEAD_BYTES


def abort_of(error: ComineError, me: str) -> Abort:
    """How `me` reports to its peers that an error ends the job."""
    relayed = error.reporter is not None
    return Abort(code=error.code, message=error.message, party=error.blamed(me), relayed=relayed)


def ended_by(peer: str, me: str, parties: tuple[str, ...], body: bytes) -> ComineError:
    """The error with which a peer ends the job.

    It is that peer's word, and says so where it is about another: who lies can accuse anybody, and honest peers pass on
    what they were told. So a broken rule has no party here; only who saw it names the accused. Of what arose at a
    party in its own data no peer can know before that party has said so: a peer that says so first is at fault. One
    that was told so by another is not, and who made it up is not known at the accused: such an error is nobody's.

    Args:
        peer: Who sent it.
        me: This party.
        parties: All parties of the job; an error that names somebody else is laid at the peer's door.
        body: The `Abort`; its words are made printable and cut.
    """
    abort = Abort()
    try:
        abort.ParseFromString(body)
    except DecodeError:
        unread = MalformedMessage(f"{peer} ended the job without a reason that can be read", party=peer)
        unread.reporter = peer
        return unread
    named = abort.party if not abort.party or abort.party in parties else peer
    error = from_reporter(abort.code, printable(abort.message), named, peer)
    if error.party not in (None, peer) or mentions_others(error, peer, parties):
        error = told_by(peer, error, _named(error, peer, me, relayed=abort.relayed))
    error.reporter = peer
    return error


def _named(error: ComineError, peer: str, me: str, *, relayed: bool) -> str | None:
    """Whom an error names here of which a peer's sentence names others."""
    if error.party in (None, peer):
        return error.party
    if isinstance(error, ProtocolViolation) or (isinstance(error, DeadlineExceeded) and error.party == me):
        return None
    if error.about_peers or (relayed and error.party != me):
        return error.party
    return None if relayed else peer


def printable(words: str) -> str:
    """A peer's words, fit for a terminal and not too long."""
    return "".join(c if c.isprintable() else " " for c in words[:MAX_REASON])


def _kept_waiting(peer: str) -> str:
    """What to do where a peer was late: who waits for another sends nothing meanwhile, so it need not be at fault."""
    return f"{peer} may have been kept waiting itself, so check all nodes of the job, or allow more time"


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
