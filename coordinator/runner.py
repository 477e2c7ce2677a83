"""Runs a job at its parties: describe, propose, start, watch, and fetch what each of them signed."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final, TypeVar

from coordinator.client import ConnectionBroken, PartyClient, check_versions
from coordinator.failures import Failure, one_line, root_cause
from coordinator.progress import Watcher, unwatched
from jobs.findings import Result
from jobs.spec import JobSpec
from link.errors import (
    ComineError,
    DeadlineExceeded,
    PeerError,
    ProtocolViolation,
    UnexpectedMessage,
    from_code,
)
from link.identity import Identity
from protos.v1.control_pb2 import CANCELLED, FAILED, SUCCEEDED, Proposal, ResultHeader

T = TypeVar("T")

START_WITHIN_S: Final = 600  # a proposal that was not started by then is void; leaves room for clocks that differ
MARGIN_S: Final = 15.0  # beyond the deadline, for the parties' own words about it
GRACE_S: Final = 1.0  # for the other parties' reports once one has failed
RETURN_S: Final = 5.0  # for which a party may be away while it is watched
RETRY_S: Final = 0.25
CANCEL_S: Final = 2.0
_ATTEMPT: Final = 1


async def run_job(
    spec: JobSpec, identity: Identity, addresses: Mapping[str, str], watcher: Watcher = unwatched
) -> Result:
    """Runs a job against the nodes of its parties.

    Args:
        spec: The job.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.
        watcher: Told of the progress.

    Raises:
        ComineError: The job failed; the error is the one that began it, and all parties have been told.
    """
    async with AsyncExitStack() as stack:
        clients = {}
        for party in spec.job.parties:
            clients[party] = PartyClient(identity, party, addresses[party])
            stack.push_async_callback(clients[party].close)
        for party, description in (await _each(clients, lambda client: client.describe())).items():
            check_versions(party, description)
        proposal = Proposal(
            spec=spec.canonical(), nonce=secrets.token_bytes(16), expiry=int(time.time()) + START_WITHIN_S
        )
        job_id = spec.job_id(proposal.nonce, proposal.expiry)
        try:
            async with asyncio.timeout(spec.job.deadline_s + MARGIN_S):
                return await _run(spec, identity, clients, proposal, job_id, watcher)
        except TimeoutError:
            error = DeadlineExceeded(f"the job did not end within its deadline of {spec.job.deadline}")
            await _cancel(clients, job_id, error.message)
            raise error from None
        except asyncio.CancelledError:
            await _cancel(clients, job_id, "cancelled at the coordinator")
            raise
        except ComineError as error:
            await _cancel(clients, job_id, error.message)
            raise


async def _run(
    spec: JobSpec,
    identity: Identity,
    clients: Mapping[str, PartyClient],
    proposal: Proposal,
    job_id: bytes,
    watcher: Watcher,
) -> Result:
    for party, agreed in (await _each(clients, lambda client: client.propose(proposal))).items():
        if agreed != job_id:
            raise ProtocolViolation(f"{party} agreed to another job than the one proposed", party=party)
    await _each(clients, lambda client: client.start(job_id, _ATTEMPT))
    warm = asyncio.get_running_loop().run_in_executor(None, _warm_up)
    await _each(clients, lambda client: _follow(client, job_id, watcher), grace_s=GRACE_S)
    source = spec.learners[0] if spec.to_coordinator else None

    async def fetch(client: PartyClient) -> tuple[ResultHeader, bytes]:
        return await client.result(job_id, table=client.party == source)

    released = await _each(clients, fetch)
    await warm
    from coordinator.released import assemble

    return assemble(spec, job_id, identity.ca_pem, released, source)


def _warm_up() -> None:
    """Loads what only the result needs, while the parties work."""
    import coordinator.released  # noqa: F401
    import jobs.folder  # noqa: F401


async def _follow(client: PartyClient, job_id: bytes, watcher: Watcher) -> None:
    """Watches the job at one party to its good end; a connection that breaks may come back for a while."""
    loop = asyncio.get_running_loop()
    lost_at: float | None = None
    while True:
        try:
            async for event in client.watch(job_id):
                lost_at = None
                watcher(
                    client.party, one_line(event.step), event.done, event.total, event.bytes_sent, event.bytes_received
                )
                if event.state == SUCCEEDED:
                    return
                if event.state in (FAILED, CANCELLED):
                    raise from_code(
                        event.error_code, one_line(event.error_message), party=event.error_party or client.party
                    )
        except ConnectionBroken:
            pass
        except UnexpectedMessage:
            if lost_at is None:
                raise
            raise PeerError(
                f"{client.party} at {client.address} was restarted while the job ran; start the job again",
                party=client.party,
            ) from None
        lost_at = loop.time() if lost_at is None else lost_at
        if loop.time() - lost_at > RETURN_S:
            raise PeerError(
                f"{client.party} at {client.address} was lost while the job ran; look at its node's log and start the "
                "job again",
                party=client.party,
            )
        await asyncio.sleep(RETRY_S)


async def _each(
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


async def _cancel(clients: Mapping[str, PartyClient], job_id: bytes, reason: str) -> None:
    """Tells every party that the job is over; nobody is waited for longer than a moment."""
    told = asyncio.gather(*(client.cancel(job_id, reason) for client in clients.values()), return_exceptions=True)
    try:
        await asyncio.wait_for(asyncio.shield(told), CANCEL_S)
    except TimeoutError:
        return
