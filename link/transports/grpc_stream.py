"""The frames between two parties of one job, across streams that may break.

Every frame of a direction has an implicit number, counted from 0. A stream begins with both ends saying how many frames
have reached them (`Resume`); each then goes on from there, so that a renewed stream loses nothing and repeats nothing.
What was acknowledged is forgotten by its sender.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import grpc
from google.protobuf.message import DecodeError

from link.core import Receiver
from link.encoding.bytes_field import field
from link.errors import ComineError, LimitExceeded, MalformedMessage, PeerError, ProtocolViolation
from protos.v1.link_pb2 import Acknowledge, Envelope, Farewell, Frame, Resume

MAX_ENVELOPE_BYTES: Final = 4 << 20
WINDOW_BYTES: Final = 64 << 20  # sent to a peer and not acknowledged: senders wait above it
ACKNOWLEDGE_FRAMES: Final = 256
ACKNOWLEDGE_BYTES: Final = 4 << 20
ACKNOWLEDGE_S: Final = 0.05  # of silence on this side, after which the rest is acknowledged
HEARTBEAT_S: Final = 3.0  # of silence on this side, after which what the peer has is acknowledged again
HURRY_S: Final = 2.0  # without progress, after which a party that leaves in a hurry waits no longer
LEAVE_S: Final = 300.0  # after which it waits no longer in any case: a peer can take what it gets drop by drop


class Duplex(Protocol):
    """What a call at the dialling end and a context at the accepting end have in common."""

    async def read(self) -> Any:
        """The next message, or `grpc.aio.EOF` when the other end has said all."""

    async def write(self, message: bytes) -> None:
        """Sends one message; waits while the stream is full."""


class Conversation:
    """Both directions between this party and one peer for one job; outlives its streams.

    At any moment it is served by one stream or none. The peer counts as lost when it has not been heard for
    `patience_s`, and there has been no stream for half of that at least: a peer so busy that it says nothing keeps its
    stream all the same, as gRPC answers for it, and that of a peer that makes no progress breaks within the other half.

    Args:
        job_id: The job.
        me: This party.
        peer: The other party, as its certificate names it.
        patience_s: Seconds without a stream that are put up with.
        receiver: Takes inbound frames, and the error that ends the session.

    Attributes:
        peer: As above.
        trouble: Why the last stream broke, in words for a person.
        acknowledged: How many frames have reached the peer.
        pending_bytes: Of frames that have not.
        received: How many frames have come from the peer.
        generation: How many streams there have been.
        at_peace: Whether one of the two has left after the other got all its frames.
        heard: When the last message came, by the clock of the event loop.
    """

    def __init__(self, job_id: bytes, me: str, peer: str, patience_s: float, receiver: Receiver) -> None:
        self.peer, self.trouble = peer, ""
        self._job_id, self._me, self._patience_s, self._receiver = job_id, me, patience_s, receiver
        self._unsent: deque[bytes] = deque()
        self._unacknowledged: deque[bytes] = deque()
        self.acknowledged = self.pending_bytes = 0
        self.heard = 0.0
        self.received = self._quiet_frames = self._quiet_bytes = 0
        self._acknowledge = self._dialled = self._leaving = self._left = self._reached = self.at_peace = False
        self._closing = False
        self.generation = 0
        self._over = asyncio.Event()
        self._more, self._moved = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._acknowledge_timer: asyncio.TimerHandle | None = None
        self._patience_timer: asyncio.TimerHandle | None = None
        self._stream: asyncio.Task[None] | None = None
        self._wait_for_stream()

    @property
    def reached(self) -> bool:
        """Whether there has been a stream."""
        return self._reached

    @property
    def over(self) -> bool:
        """Whether nothing more will be said: the peer left or was lost, or this party has ended."""
        return self._over.is_set()

    @property
    def lost_at(self) -> float | None:
        """When the peer counts as lost, by the clock of the event loop; None while it does not."""
        timer = self._patience_timer
        return None if timer is None or timer.cancelled() else timer.when()

    # -- outbound ----------------------------------------------------------------------------------------------------
    async def send(self, frame: Frame) -> None:
        """Accepts a frame; waits while more than `WINDOW_BYTES` are not acknowledged.

        Frames to a peer that has left or was lost are dropped: the session knows.

        Raises:
            LimitExceeded: The peer would refuse the frame, which is this party's fault and not the peer's.
        """
        if self.over:
            return
        envelope = enclose(frame)
        if len(envelope) > MAX_ENVELOPE_BYTES:
            raise too_long(self._me)
        self._unsent.append(envelope)
        self.pending_bytes += len(envelope)
        self._more.set()
        while self.pending_bytes > WINDOW_BYTES and not self.over:
            self._moved.clear()
            await self._moved.wait()

    async def leave(self, *, hurried: bool = False) -> None:
        """Lets the peer get what is under way, within `LEAVE_S` and while it is not lost, and ends the stream.

        A stream that ends in peace shows the peer that it has got everything; otherwise the stream breaks, and the peer
        takes this party for lost. So one that stands still is waited for. One that has never begun the job is lost once
        this party's patience ends, also if its node answers: nobody is there to go on with.

        Args:
            hurried: Waits for `HURRY_S` only while nothing reaches the peer.
        """
        self._closing = True
        finish_s = HURRY_S if hurried else LEAVE_S
        self._owe(now=True)
        until = self._loop.time() + LEAVE_S
        while (self._unsent or self._unacknowledged) and not self.over:
            before = self.acknowledged
            self._moved.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(finish_s):
                    await self._moved.wait()
            if self.acknowledged == before or self._loop.time() > until:
                self.end()
        self._leaving = True
        self._more.set()
        if self._dialled:  # whose stream is renewed where it breaks, so that the farewell is not lost
            await self.wait_until_over(finish_s)
        elif self._stream is not None and not self.over:
            await asyncio.wait({self._stream}, timeout=finish_s)
        self.end(peace=self._reached)

    # -- streams -----------------------------------------------------------------------------------------------------
    async def serve(
        self, duplex: Duplex, half_close: Callable[[], Awaitable[None]] | None, resume: Envelope | None = None
    ) -> bool:
        """Exchanges frames over one stream until it ends; a stream that was there before is given up.

        Args:
            duplex: The stream.
            half_close: Says on a dialled stream that this end has said all; None at the accepting end.
            resume: The peer's first message, where it has been read already.

        Returns:
            Whether an end has left in peace, so that no other stream is needed.

        Raises:
            Exception: Whatever gRPC raises when the stream breaks.
        """
        self.cut()
        if self.over:
            return self.at_peace
        self._dialled = half_close is not None
        self.generation += 1
        stream = self._stream = asyncio.create_task(self._talk(duplex, half_close, resume, self.generation))
        try:
            await asyncio.wait({stream})
            if not stream.cancelled():
                stream.result()
                # A stream that its dialling party cancels, or loses as it dies, may look at the accepting end as if it
                # had come to its end; so peace takes a farewell there. At the dialling end gRPC has a status for it.
                if half_close is not None or self._leaving or self._left:
                    self.end(peace=True)
        except ComineError as error:
            self.fail(error)
        finally:
            stream.cancel()
            if self._stream is stream:
                self._stream = None
                self._wait_for_stream()
        return self.at_peace

    def cut(self) -> None:
        """Breaks the stream, if there is one."""
        if self._stream is not None:
            self._stream.cancel()

    def fail(self, error: ComineError) -> None:
        """Ends the conversation and the session."""
        if not self.over:
            self.end()
            self._receiver.fail(error)

    def end(self, *, peace: bool = False) -> None:
        """Ends the conversation; what is under way is dropped."""
        self.at_peace |= peace and not self.over
        self._over.set()
        self._unsent.clear()
        self._unacknowledged.clear()
        for timer in (self._patience_timer, self._acknowledge_timer):
            if timer is not None:
                timer.cancel()
        self._acknowledge = False
        self._moved.set()
        self._more.set()
        self.cut()

    def there(self) -> None:
        """Of a peer that has not begun the job: its node answers, so it is waited for until somebody starts it.

        Not by a party that leaves, which could only tell it so.
        """
        if not self._reached and not self._closing:
            self._wait_anew()

    def be_patient(self, patience_s: float) -> None:
        """Changes for how many seconds the peer may be away, also if it is away now."""
        self._patience_s = patience_s
        self._wait_anew()

    async def wait_until_over(self, timeout_s: float) -> None:
        """Waits until the conversation is over, for a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._over.wait()

    # -- one stream; one that is no longer the current one touches nothing ---------------------------------------------
    async def _talk(
        self, duplex: Duplex, half_close: Callable[[], Awaitable[None]] | None, resume: Envelope | None, generation: int
    ) -> None:
        await duplex.write(Envelope(resume=Resume(job_id=self._job_id, received=self.received)).SerializeToString())
        if resume is None:
            message = await duplex.read()
            if message is grpc.aio.EOF or generation != self.generation:
                return
            resume = parse(message, self.peer)
        self._resume(resume)
        reader = asyncio.create_task(self._read(duplex, generation))
        writer = asyncio.create_task(self._write(duplex, generation))
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            if half_close is not None and not reader.done() and writer.exception() is None:
                with contextlib.suppress(asyncio.InvalidStateError):  # the peer has left at this moment
                    await duplex.write(Envelope(farewell=Farewell()).SerializeToString())
                await half_close()
                await asyncio.wait({reader})
            for task in (reader, writer):
                if task.done():
                    task.result()
        finally:
            reader.cancel()
            writer.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)

    def _resume(self, envelope: Envelope) -> None:
        if envelope.WhichOneof("content") != "resume" or envelope.resume.job_id != self._job_id:
            raise ProtocolViolation(f"{self.peer} began a stream without naming this job", party=self.peer)
        self._settle(envelope.resume.received)
        self._unsent.extendleft(reversed(self._unacknowledged))
        self._unacknowledged.clear()
        self._reached, self._acknowledge = True, False
        self.heard = self._loop.time()
        if self._patience_timer is not None:
            self._patience_timer.cancel()
            self._patience_timer = None

    async def _read(self, duplex: Duplex, generation: int) -> None:
        while (message := await duplex.read()) is not grpc.aio.EOF and generation == self.generation:
            self.heard = self._loop.time()
            envelope = parse(message, self.peer)
            match envelope.WhichOneof("content"):
                case "frame":
                    self.received += 1
                    self._quiet_frames += 1
                    self._quiet_bytes += len(message)
                    self._receiver.deliver(self.peer, envelope.frame)
                    self._owe(now=self._quiet_frames >= ACKNOWLEDGE_FRAMES or self._quiet_bytes >= ACKNOWLEDGE_BYTES)
                case "acknowledge":
                    self._settle(envelope.acknowledge.received)
                case "farewell":
                    self._left = True
                case _:
                    raise ProtocolViolation(f"{self.peer} sent an envelope out of place", party=self.peer)

    async def _write(self, duplex: Duplex, generation: int) -> None:
        while generation == self.generation:
            if self._acknowledge:
                self._acknowledge = False
                await duplex.write(Envelope(acknowledge=Acknowledge(received=self.received)).SerializeToString())
            elif self._unsent:
                envelope = self._unsent.popleft()
                self._unacknowledged.append(envelope)
                await duplex.write(envelope)
            elif self._leaving:
                return
            else:
                self._more.clear()
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        await self._more.wait()
                except TimeoutError:
                    self._acknowledge = True

    # -- cursors -----------------------------------------------------------------------------------------------------
    def _settle(self, received: int) -> None:
        """Forgets what has reached the peer."""
        fresh = received - self.acknowledged
        if not 0 <= fresh <= len(self._unacknowledged):
            what = "more frames than were sent" if fresh > 0 else "fewer frames than before; was its node restarted?"
            raise ProtocolViolation(f"{self.peer} says that it has received {what}", party=self.peer)
        for _ in range(fresh):
            self.pending_bytes -= len(self._unacknowledged.popleft())
        self.acknowledged = received
        if fresh:
            self._moved.set()

    def _owe(self, *, now: bool) -> None:
        """Acknowledges at once, or after a moment in which nothing else makes it due."""
        if now:
            if self._acknowledge_timer is not None:
                self._acknowledge_timer.cancel()
                self._acknowledge_timer = None
            if self._quiet_frames:
                self._quiet_frames = self._quiet_bytes = 0
                self._acknowledge = True
                self._more.set()
        elif self._acknowledge_timer is None:
            self._acknowledge_timer = self._loop.call_later(ACKNOWLEDGE_S, lambda: self._owe(now=True))

    def _wait_anew(self) -> None:
        if self._patience_timer is not None:
            self._patience_timer.cancel()
            self._patience_timer = None
            self._wait_for_stream()

    def _wait_for_stream(self) -> None:
        if self._patience_timer is None and not self.over:
            heard = self.heard if self._reached else self._loop.time()
            until = max(heard + self._patience_s, self._loop.time() + self._patience_s / 2)
            self._patience_timer = self._loop.call_at(until, self._give_up)

    def _give_up(self) -> None:
        if self._reached:
            what = f"{self.peer} was lost: the connection broke, and nothing came from it for {self._patience_s:g} s"
        else:
            what = f"{self.peer} was not there within {self._patience_s:g} s"
        why = f" ({self.trouble})" if self.trouble else ""
        self.fail(PeerError(f"{what}{why}; check its node and the network between", party=self.peer))


def parse(message: bytes, peer: str) -> Envelope:
    """Reads an envelope that came from `peer`.

    Raises:
        ProtocolViolation: It is not one, or too long.
    """
    if len(message) > MAX_ENVELOPE_BYTES:
        raise too_long(peer)
    try:
        return Envelope.FromString(message)
    except DecodeError:
        raise MalformedMessage(f"{peer} sent an envelope that cannot be read", party=peer) from None


def too_long(sender: str) -> LimitExceeded:
    """The error of an envelope that is too long: its sender's fault, at whichever end it is found."""
    return LimitExceeded(f"{sender} sent more than {MAX_ENVELOPE_BYTES} bytes at once", party=sender)


def enclose(frame: Frame) -> bytes:
    """`Envelope(frame=frame).SerializeToString()`, at a thirtieth of its cost for a frame of 1 MiB."""
    return field(Envelope.FRAME_FIELD_NUMBER, frame.SerializeToString())
