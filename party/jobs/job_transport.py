"""A job's transport as its node sees it: open before the session begins, and metered while it runs."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from link.core import HELD_FRAME_BYTES, Receiver, Transport, abort_of, ended_by
from link.costs import Costs
from link.errors import ComineError, IdentityError, LimitExceeded
from protos.v1.link_pb2 import Abort, Frame

T = TypeVar("T")

MAX_EARLY_BYTES: Final = 256 << 10  # of what a peer may send before this party's session begins: it greets, and waits


class JobTransport:
    """Keeps the streams of a job alive while its data is read, and counts what passes.

    A session attaches only once the data is in memory, which may take longer than peers are patient. So this attaches
    to the transport at once, and hands over to the session what came before it.

    Args:
        transport: Carries the frames.
        job_id: The job.
        me: This party.
        parties: All parties of the job.

    Attributes:
        aborted: Whether the peers have been told that this party ends the job.
    """

    def __init__(self, transport: Transport, job_id: bytes, me: str, parties: tuple[str, ...]) -> None:
        self._transport, self._job_id, self._me, self._parties = transport, job_id, me, parties
        self._receiver: Receiver | None = None
        self._early: list[tuple[str, Frame]] = []
        self._early_bytes: Counter[str] = Counter()
        self._failure: asyncio.Future[ComineError] = asyncio.get_running_loop().create_future()
        self._started = time.monotonic()
        self._sent, self._received = Counter[str](), Counter[str]()  # bytes, by peer
        self._rounds = 0
        self.aborted = False
        transport.attach(self)

    def costs(self) -> Costs:
        """What has passed so far."""
        return Costs(self._sent.total(), self._received.total(), self._rounds, time.monotonic() - self._started)

    def traffic(self) -> dict[str, tuple[int, int]]:
        """Bytes that have been sent to each peer so far, and received from it."""
        return {peer: (self._sent[peer], self._received[peer]) for peer in self._parties if peer != self._me}

    def attach(self, receiver: Receiver) -> None:
        """Names the session, and hands over what came before it."""
        self._receiver = receiver
        early, self._early = self._early, []
        for peer, frame in early:
            receiver.deliver(peer, frame)
        if self._failure.done():
            receiver.fail(self._failure.result())

    async def before_session(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` comes to, done while there is no session yet; given up as soon as a peer ends the job.

        Raises:
            ComineError: A peer ended the job or was lost.
        """
        task = asyncio.create_task(work)
        try:
            either: set[asyncio.Future[Any]] = {task, self._failure}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise self._failure.result()
            return task.result()
        finally:
            task.cancel()

    def deliver(self, peer: str, frame: Frame) -> None:
        """Takes a frame from the transport."""
        size = frame.ByteSize()
        self._received[peer] += size
        self._rounds = max(self._rounds, frame.round)
        if self._receiver is not None:
            self._receiver.deliver(peer, frame)
            return
        self._early_bytes[peer] += size + HELD_FRAME_BYTES
        if frame.sender != peer:
            self.fail(
                IdentityError(f"{peer} sent a frame in another party's name; its node must be checked", party=peer)
            )
        elif frame.type == Abort.DESCRIPTOR.full_name:
            self.fail(ended_by(peer, self._me, self._parties, frame.body))
        elif self._early_bytes[peer] > MAX_EARLY_BYTES:
            self.fail(LimitExceeded(f"{peer} sent too much before {self._me} was ready", party=peer))
        else:
            self._early.append((peer, frame))

    def fail(self, error: ComineError) -> None:
        """Takes the transport's word that the session is at its end."""
        if not self._failure.done():
            self._failure.set_result(error)
        if self._receiver is not None:
            self._receiver.fail(error)

    async def send(self, to: str, frame: Frame) -> None:
        """Hands a frame to the transport."""
        self._sent[to] += frame.ByteSize()
        self.aborted |= frame.type == Abort.DESCRIPTOR.full_name
        await self._transport.send(to, frame)

    async def abort(self, error: ComineError, peers: tuple[str, ...]) -> None:
        """Tells the peers that this party ends the job, for the time in which there is no session that could."""
        body = abort_of(error, self._me).SerializeToString()
        for peer in peers:
            frame = Frame(session=self._job_id, sender=self._me, receiver=peer, lane="abort", last=True, body=body)
            frame.type = Abort.DESCRIPTOR.full_name
            await self.send(peer, frame)

    async def close(self, *, hurried: bool = False) -> None:
        """Closes the transport."""
        await self._transport.close(hurried=hurried)
