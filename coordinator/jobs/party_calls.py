"""What a coordinator says to one party about one job, and what it makes of the answers.

A connection that breaks is made anew, for as long as the job may stay in its state: the parties need no coordinator to
go on, so a gap between the two must not end what all of them have begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, TypeVar

from coordinator.jobs.client import PartyClient, check_versions
from coordinator.jobs.failures import gathered
from coordinator.jobs.progress import Absence, Watcher
from jobs.consent import read_approval
from link.errors import ComineError, PeerError, ProtocolViolation, ResourceError, UnexpectedMessage, from_reporter
from link.files.printable import one_line
from link.pki.identity import check_span
from link.pki.trust import Trust
from link.relay.address import shown
from link.transports.grpc_errors import UNREACHED, silent
from protos.v1.control_pb2 import (
    APPROVED,
    AWAITING_APPROVAL,
    CANCELLED,
    DENIED,
    EXPIRED,
    FAILED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    DealRequest,
    JobEvent,
    SignedApproval,
    SignedProposal,
)

T = TypeVar("T")

RETRY_S: Final = 0.25
MAX_RETRY_S: Final = 5.0
LACKING_S: Final = 60.0  # for which a start is tried again that a party has no room for
AWAITS: Final = "awaits approval"
AWAY: Final = "cannot be reached"
_BAD_ENDS: Final = (FAILED, CANCELLED, DENIED, EXPIRED)


async def each(
    clients: Mapping[str, PartyClient], call: Callable[[PartyClient], Awaitable[T]], grace_s: float = 0.0
) -> dict[str, T]:
    """One call to every party at once, and their answers by name.

    Raises:
        ComineError: The root cause, of all failures that come within `grace_s` of the first.
    """
    return await gathered({party: call(client) for party, client in clients.items()}, grace_s)


async def reaching(client: PartyClient, away: Absence, call: Callable[[], Awaitable[T]]) -> T:
    """What a call comes to that may be made twice: it is made until the party is reached, and others watch the clock.

    Args:
        client: The party.
        away: Called when it is lost, and when it is back.
        call: Makes the call.
    """
    wait = RETRY_S
    while True:
        try:
            answer = await call()
        except UNREACHED as error:
            away(client.party, error)
            await asyncio.sleep(wait)
            wait = min(2 * wait, MAX_RETRY_S)
        else:
            if wait > RETRY_S:
                away(client.party, None)
            return answer


async def introduce(client: PartyClient) -> None:
    """Makes sure that the party can be reached, is who it should be and speaks this version.

    Raises:
        ComineError: It is not so.
    """
    introduction = await client.describe()
    check_versions(client.party, introduction.description)
    check_span(introduction.certificate, client.party, 0)


async def ask(
    client: PartyClient, job_id: bytes, proposal: SignedProposal, trust: Trust, coordinator: str, *, again: bool
) -> SignedApproval | None:
    """The party's answer to a proposal: its consent, or None while a person has to decide.

    Args:
        client: The party.
        job_id: The job.
        proposal: What it is asked.
        trust: Whom the coordinator believes.
        coordinator: Who asks.
        again: Whether the party may know the proposal, which it would then refuse to be asked again.

    Raises:
        ComineError: The party refuses, or its consent is not to this job.
    """
    if again:
        try:
            async with aclosing(client.watch(job_id)) as events:
                async for event in events:
                    return _decision(event, client.party, job_id, trust, coordinator)
        except UnexpectedMessage:
            pass  # it has not been asked
    decision = await client.propose(proposal)
    if decision.job_id != job_id:
        raise ProtocolViolation(f"{client.party} agreed to another job than the one proposed", party=client.party)
    if not decision.HasField("approval"):
        return None
    return _checked(decision.approval, client.party, job_id, trust, coordinator)


async def decision(
    client: PartyClient,
    job_id: bytes,
    trust: Trust,
    coordinator: str,
    away: Absence,
    watcher: Watcher,
) -> SignedApproval:
    """Waits until the people at a party have approved a job; a node that is away is waited for.

    Raises:
        ComineError: They denied it, or it ended otherwise.
    """
    async with aclosing(_events(client, job_id, away)) as events:
        async for event in events:
            watcher(client.party, AWAITS, 0, 0, 0, 0)
            approval = _decision(event, client.party, job_id, trust, coordinator)
            if approval is not None:
                return approval
    raise AssertionError("events end by an error only")


async def agrees_still(client: PartyClient, job_id: bytes, attempt: int, away: Absence) -> bool:
    """Waits until a party that approved a job can be reached; whether the attempt has yet to be started there.

    An earlier attempt that still runs there, since the party could not be told of its end, is ended first.

    Raises:
        ComineError: The job has ended at the party.
    """
    async with aclosing(_events(client, job_id, away, greet=True)) as events:
        async for event in events:
            if event.attempt < attempt and attempt > 1:
                if event.state in (RUNNING, RELEASING):
                    await client.cancel(job_id, "it goes on in another attempt")
                    continue
                if event.state in (FAILED, CANCELLED, SUCCEEDED):
                    return True  # a party that cannot go on says so at the start
            _check_end(event, client.party)
            return event.state == APPROVED
    raise AssertionError("events end by an error only")


async def begin(
    client: PartyClient,
    job_id: bytes,
    attempt: int,
    approvals: Sequence[SignedApproval],
    seed: bytes,
    away: Absence,
) -> None:
    """Starts the job at a party once; where the connection breaks, nobody knows whether it has, so the party is asked.

    Raises:
        ResourceError: The party lacks something still, a minute after it has said so.
        ComineError: The party refuses, or the job has ended there.
    """
    again, lacks = False, 0.0
    now = asyncio.get_running_loop().time
    while not again or await agrees_still(client, job_id, attempt, away):
        try:
            await client.start(job_id, attempt, approvals, seed)
        except UNREACHED as error:
            away(client.party, error)
        except UnexpectedMessage:  # the call before has arrived after all, later than it was asked for
            if not again or await agrees_still(client, job_id, attempt, away):
                raise
        except ResourceError:  # with the connection the job has lost its turn; or the party's disk is full
            lacks = lacks or now()
            if not again or now() - lacks > LACKING_S:
                raise
        else:
            return
        again = True
        await asyncio.sleep(RETRY_S)


async def follow(
    client: PartyClient,
    job_id: bytes,
    away: Absence,
    watcher: Watcher,
    deal: Callable[[PartyClient, DealRequest], Awaitable[None]],
) -> None:
    """Watches the job at one party to its good end, and answers what the party asks its dealer for.

    Raises:
        PeerError: The party was restarted, and does not know the job any more.
        ComineError: What ended the job there.
    """
    dealt: set[bytes] = set()  # the labels of what was dealt, or is about to be

    async def answer(request: DealRequest) -> None:
        again = request.label in dealt
        dealt.add(request.label)
        try:
            await deal(client, request)
        except UnexpectedMessage:  # it has come by the call that broke; or the events say why nobody wants it
            if not again:
                raise

    async with aclosing(_events(client, job_id, away, running=True)) as events:
        async for event in events:
            watcher(client.party, one_line(event.step), event.done, event.total, event.bytes_sent, event.bytes_received)
            _check_end(event, client.party)
            if event.state == SUCCEEDED:
                return
            if event.HasField("deal"):
                await reaching(client, away, partial(answer, event.deal))


def lost_dealer() -> PeerError:
    """Why a job cannot go on whose dealer was restarted."""
    return PeerError(
        "the coordinator was restarted while it dealt randomness in this job, and keeps none of it; run the job again"
    )


async def _events(
    client: PartyClient,
    job_id: bytes,
    away: Absence,
    *,
    running: bool = False,
    greet: bool = False,
) -> AsyncGenerator[JobEvent]:
    """The events of a job at a party over as many connections as it takes; others watch the clock.

    Args:
        client: The party.
        job_id: The job.
        away: Called when the party is lost, and when it is back.
        running: Whether the party has begun the job, so that it must know it.
        greet: Whether to check identity and version on each connection.
    """
    lost, wait = False, RETRY_S
    while True:
        try:
            if greet:
                await introduce(client)
            async with aclosing(client.watch(job_id)) as events:
                async for event in events:
                    if lost:
                        lost, wait = False, RETRY_S
                        away(client.party, None)
                    yield event
            why: ComineError = silent(client.party, client.address)
        except UNREACHED as error:
            why = error
        except UnexpectedMessage:
            if not lost or not running:
                raise
            raise PeerError(
                f"{client.party} at {shown(client.address)} was restarted while the job ran; start the job again",
                party=client.party,
            ) from None
        lost = True
        away(client.party, why)
        await asyncio.sleep(wait)
        wait = min(2 * wait, MAX_RETRY_S)


def _decision(event: JobEvent, party: str, job_id: bytes, trust: Trust, coordinator: str) -> SignedApproval | None:
    _check_end(event, party)
    if event.state == AWAITING_APPROVAL:
        return None
    if not event.HasField("approval"):
        raise ProtocolViolation(f"{party} says that it approved the job and shows no approval", party=party)
    return _checked(event.approval, party, job_id, trust, coordinator)


def _checked(signed: SignedApproval, party: str, job_id: bytes, trust: Trust, coordinator: str) -> SignedApproval:
    approval = read_approval(signed, trust, party)
    if approval.job_id != job_id or approval.coordinator != coordinator:
        raise ProtocolViolation(f"{party} approved another job than the one proposed", party=party)
    return signed


def _check_end(event: JobEvent, party: str) -> None:
    if event.state in _BAD_ENDS:
        raise from_reporter(event.error_code, one_line(event.error_message), event.error_party, party)
