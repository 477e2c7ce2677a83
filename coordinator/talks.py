"""What a coordinator says to one party about one job, and what it makes of the answers.

A connection that breaks is made anew: while people decide, until the job expires; while the job runs, for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final, TypeVar

from coordinator.client import PartyClient, check_versions
from coordinator.failures import Failure, root_cause
from coordinator.progress import Watcher
from jobs.consent import read_approval
from link.errors import ComineError, PeerError, ProtocolViolation, UnexpectedMessage, from_code
from link.grpc_errors import ConnectionBroken
from link.identity import check_span
from link.printable import one_line
from link.trust import Trust
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

RETURN_S: Final = 5.0  # for which a party may be away while the job runs
RETRY_S: Final = 0.25
MAX_RETRY_S: Final = 5.0
AWAITS: Final = "awaits approval"
_BAD_ENDS: Final = (FAILED, CANCELLED, DENIED, EXPIRED)


async def each(
    clients: Mapping[str, PartyClient], call: Callable[[PartyClient], Awaitable[T]], grace_s: float = 0.0
) -> dict[str, T]:
    """One call to every party at once, and their answers by name.

    Raises:
        ComineError: The root cause, of all failures that come within `grace_s` of the first.
    """
    failures: list[Failure] = []

    async def one(client: PartyClient) -> T:
        try:
            return await call(client)
        except ComineError as error:
            failures.append(Failure(client.party, error))
            raise

    tasks = {party: asyncio.ensure_future(one(client)) for party, client in clients.items()}
    if not tasks:
        return {}
    try:
        _, pending = await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
        if failures and pending and grace_s:
            await asyncio.wait(pending, timeout=grace_s)
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    if failures:
        raise root_cause(failures)
    return {party: task.result() for party, task in tasks.items()}


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
    away: Callable[[str, bool], None],
    watcher: Watcher,
) -> SignedApproval:
    """Waits until the people at a party have approved a job; a node that is away is waited for.

    Raises:
        ComineError: They denied it, or it ended otherwise.
    """
    async with aclosing(_events(client, job_id, away, patience_s=None)) as events:
        async for event in events:
            watcher(client.party, AWAITS, 0, 0, 0, 0)
            approval = _decision(event, client.party, job_id, trust, coordinator)
            if approval is not None:
                return approval
    raise AssertionError("events end by an error only")


async def agrees_still(client: PartyClient, job_id: bytes, attempt: int, away: Callable[[str, bool], None]) -> bool:
    """Waits until a party that approved a job can be reached; whether the attempt has yet to be started there.

    An earlier attempt that still runs there, since the party could not be told of its end, is ended first.

    Raises:
        ComineError: The job has ended at the party.
    """
    async with aclosing(_events(client, job_id, away, patience_s=None, greet=True)) as events:
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


async def follow(
    client: PartyClient,
    job_id: bytes,
    away: Callable[[str, bool], None],
    watcher: Watcher,
    deal: Callable[[PartyClient, DealRequest], Awaitable[None]],
) -> None:
    """Watches the job at one party to its good end, and answers what the party asks its dealer for.

    Raises:
        PeerError: The party was lost for longer than `RETURN_S`, or restarted.
        ComineError: What ended the job there.
    """
    async with aclosing(_events(client, job_id, away, patience_s=RETURN_S)) as events:
        async for event in events:
            watcher(client.party, one_line(event.step), event.done, event.total, event.bytes_sent, event.bytes_received)
            _check_end(event, client.party)
            if event.state == SUCCEEDED:
                return
            if event.HasField("deal"):
                with contextlib.suppress(ConnectionBroken):  # the request is among the events of the next connection
                    await deal(client, event.deal)


def lost_dealer() -> PeerError:
    """Why a job cannot go on whose dealer was restarted."""
    return PeerError(
        "the coordinator was restarted while it dealt randomness in this job, and keeps none of it; run the job again"
    )


async def _events(
    client: PartyClient,
    job_id: bytes,
    away: Callable[[str, bool], None],
    *,
    patience_s: float | None,
    greet: bool = False,
) -> AsyncGenerator[JobEvent]:
    """The events of a job at a party over as many connections as it takes.

    Args:
        client: The party.
        job_id: The job.
        away: Told when the party is lost, and when it is back.
        patience_s: Seconds for which it may be lost; None for ever, since somebody else watches the clock.
        greet: Whether to check identity and version on each connection.
    """
    lost_at: float | None = None
    wait = RETRY_S
    while True:
        try:
            if greet:
                await introduce(client)
            async with aclosing(client.watch(job_id)) as events:
                async for event in events:
                    if lost_at is not None:
                        lost_at, wait = None, RETRY_S
                        away(client.party, False)
                    yield event
        except ConnectionBroken:
            pass
        except UnexpectedMessage:
            if lost_at is None or patience_s is None:
                raise
            raise PeerError(
                f"{client.party} at {client.address} was restarted while the job ran; start the job again",
                party=client.party,
            ) from None
        if lost_at is None:
            lost_at = time.monotonic()
            away(client.party, True)
        if patience_s is not None and time.monotonic() - lost_at > patience_s:
            raise PeerError(
                f"{client.party} at {client.address} was lost while the job ran; look at its node's log and start the "
                "job again",
                party=client.party,
            )
        await asyncio.sleep(wait)
        wait = RETRY_S if patience_s is not None else min(2 * wait, MAX_RETRY_S)


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
        raise from_code(event.error_code, one_line(event.error_message), party=event.error_party or party)
