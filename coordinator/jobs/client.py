"""The coordinator's end of the control service of one party."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple, cast

import grpc

from coordinator.node_client import ANSWER_S, REACH_S, NodeClient
from crypto.params import STANDARD_128
from jobs.description import CHALLENGE_BYTES, read
from link.encoding.chunks import CHUNK_BYTES
from link.errors import LimitExceeded, MalformedMessage, ProtocolViolation, UnexpectedMessage, VersionMismatch
from link.files.printable import one_line
from link.pki.identity import Identity
from link.transports.grpc_errors import silent
from link.version import WINDOW, Window, latest_common
from protos.v1.control_pb2 import (
    CancelRequest,
    DealtPart,
    Decision,
    DescribeRequest,
    Description,
    JobEvent,
    QueueRequest,
    ResultHeader,
    ResultRequest,
    SignedApproval,
    SignedDescription,
    SignedProposal,
    StartRequest,
    WatchRequest,
)
from protos.v1.control_pb2_grpc import ControlStub

CANCEL_S: Final = 2.0
HERE: Final = "the coordinator"
MAX_TABLE_BYTES: Final = 4 << 30


class Introduction(NamedTuple):
    """How a party introduces itself.

    Attributes:
        description: What it says.
        ahead_s: Seconds by which its clock is ahead of the one here.
        certificate: With which it has signed that.
    """

    description: Description
    ahead_s: float
    certificate: bytes


class PartyClient(NodeClient):
    """Calls the control service of one party.

    Args:
        identity: The coordinator.
        party: Whom the other end must prove to be.
        address: HOST:PORT.

    Attributes:
        last: The last event of a job that the party sent on this connection.
    """

    def __init__(self, identity: Identity, party: str, address: str) -> None:
        super().__init__(identity, party, address)
        self._trust, self._control = identity.trust, cast(Any, ControlStub(self.channel))
        self.last: JobEvent | None = None

    async def describe(self) -> Introduction:
        """What the party says of itself; whether its certificate is valid today is not looked at.

        Raises:
            PeerError: It cannot be reached.
            IdentityError: What answers is not this party, or it does not trust the coordinator.
            ProtocolViolation: It answers in another name.
        """
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        request = DescribeRequest(challenge=challenge)
        signed: SignedDescription = await self.call(self._control.Describe(request, timeout=REACH_S))
        description = read(signed, challenge, self._trust, self.party)
        return Introduction(description, description.now - time.time() if description.now else 0.0, signed.certificate)

    async def propose(self, proposal: SignedProposal) -> Decision:
        """What the party decides.

        Raises:
            PolicyDenied: Its policy refuses the job.
        """
        decision: Decision = await self.call(self._control.Propose(proposal, timeout=ANSWER_S))
        return decision

    async def start(self, job_id: bytes, attempt: int, approvals: Sequence[SignedApproval], seed: bytes = b"") -> None:
        """Begins the party's part; `seed` is for a job in which the coordinator deals randomness."""
        request = StartRequest(job_id=job_id, attempt=attempt, approvals=approvals, seed=seed)
        await self.call(self._control.Start(request, timeout=ANSWER_S))

    async def queue(self, job_id: bytes, *, wait: bool) -> AsyncGenerator[int]:
        """The job's places at the party, up to 0, its turn, which it keeps while this is open or once it is started.

        A party whose version knows no queue takes the job at once, or refuses it at the start.
        """
        call = self._control.Queue(QueueRequest(job_id=job_id, wait=wait))
        try:
            while (answer := self.readable(await call.read())) is not grpc.aio.EOF:
                yield answer.place
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise self.explain(error) from None
            yield 0
            await asyncio.Event().wait()
        finally:
            call.cancel()

    async def watch(self, job_id: bytes) -> AsyncGenerator[JobEvent]:
        """The job at this party, as it stands and as it goes on."""
        async with aclosing(self.parts(self._control.Watch(WatchRequest(job_id=job_id)))) as events:
            async for event in events:
                self.last = event
                yield event

    async def look(self, job_id: bytes, patience_s: float = REACH_S) -> JobEvent:
        """The job at this party as it stands.

        Raises:
            ConnectionBroken: The party does not answer within `patience_s`.
            ComineError: It cannot be reached, or knows no such job.
        """
        try:
            async with asyncio.timeout(patience_s), aclosing(self.watch(job_id)) as events:
                return await anext(events)
        except (TimeoutError, StopAsyncIteration):
            raise silent(self.party, self.address) from None

    async def deal(self, job_id: bytes, label: bytes, data: bytes) -> None:
        """Answers the party's request of this label."""
        for offset in range(0, max(1, len(data)), CHUNK_BYTES):
            part = DealtPart(job_id=job_id, label=label, offset=offset, data=data[offset : offset + CHUNK_BYTES])
            await self.call(self._control.Deal(part, timeout=ANSWER_S))

    async def result(self, job_id: bytes, *, table: bool) -> tuple[ResultHeader, bytes]:
        """The signed release and, where asked for, the packed itemsets.

        Raises:
            LimitExceeded: The party sends more than a result can hold.
            ProtocolViolation: It does not begin with its release.
        """
        call = self._control.Result(ResultRequest(job_id=job_id))
        try:
            async with asyncio.timeout(ANSWER_S):
                first = await self.call(call.read())
            if first is grpc.aio.EOF or first.WhichOneof("content") != "header":
                raise ProtocolViolation(f"{self.party} sent a result without its release", party=self.party)
            pieces: list[bytes] = []
            size = 0
            while table and (part := await self.call(call.read())) is not grpc.aio.EOF:
                pieces.append(part.table)
                size += len(part.table)
                if size > MAX_TABLE_BYTES:
                    raise LimitExceeded(f"{self.party} sent a result of more than 4 GiB", party=self.party)
            return first.header, b"".join(pieces)
        except TimeoutError:
            raise silent(self.party, self.address) from None
        finally:
            call.cancel()

    async def cancel(self, job_id: bytes, reason: str) -> bool:
        """Asks the party to end the job; whether it has heard. What hinders it is no fault: the job is over anyhow."""
        try:
            await self._control.Cancel(CancelRequest(job_id=job_id, reason=reason), timeout=CANCEL_S)
        except grpc.aio.AioRpcError as error:
            return isinstance(self.explain(error), UnexpectedMessage)  # it knows no such job, so nothing runs there
        return True


def check_versions(party: str, description: Description) -> None:
    """Refuses a party with which this coordinator and its peers cannot work.

    Raises:
        VersionMismatch: It speaks no version of the wire protocol that is spoken here, or has another suite.
    """
    suite = STANDARD_128.suite
    if description.suite != suite:
        raise VersionMismatch(
            f"{party} speaks version '{one_line(description.suite[:64])}' of the cryptographic suite, the coordinator "
            f"'{suite}'; bring both to the same",
            party=party,
        )
    latest_common({party: window_of(party, description), HERE: WINDOW})


def window_of(party: str, description: Description) -> Window:
    """The versions of the wire protocol that a party says to speak.

    Raises:
        MalformedMessage: It says nothing of the kind.
    """
    try:
        return Window.read(description.wire, description.oldest_wire)
    except ValueError as error:
        raise MalformedMessage(f"{party} says no versions of the wire protocol ({error})", party=party) from None


def check_common_version(descriptions: Mapping[str, Description]) -> None:
    """Makes sure that the parties of a job will agree on a version of the wire protocol, and on one known here.

    The parties agree among themselves, in the greeting of each attempt, so that no coordinator can choose for them.

    Raises:
        VersionMismatch: They share none, or will speak a later one than this coordinator.
    """
    windows = {party: window_of(party, description) for party, description in descriptions.items()}
    if (spoken := latest_common(windows)) > WINDOW.latest:
        raise VersionMismatch(
            f"the parties will speak version {spoken} of the wire protocol, the coordinator version {WINDOW}; upgrade "
            "comine at the coordinator"
        )
