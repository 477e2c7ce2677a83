"""One party's part in one job, from greeting to receipts: the same code in a node and in a simulation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from crypto.params import STANDARD_128
from jobs.spec import JobSpec
from jobs.statement import statement
from jobs.tasks import Outcome, run_task
from link.core import Progress, Terms, Transport
from link.costs import Costs
from link.disclosure import Opened
from link.errors import ComineError, InternalError, JobCancelled
from link.executor import Executor
from link.identity import Identity
from link.randomness import RandomStream
from link.receipts import exchange_receipts
from link.session import Session
from mining.transactions import Transactions


@dataclass(frozen=True, slots=True)
class PartyRun:
    """What a party holds after a job.

    Attributes:
        session_id: Names the run for ever.
        outcome: The result, where this party learns it.
        costs: Bytes, rounds and seconds of this party.
        receipts_from: Peers whose signed transcript of the session equals this party's.
        opened: What this party opened, for its audit log.
    """

    session_id: bytes
    outcome: Outcome
    costs: Costs
    receipts_from: tuple[str, ...]
    opened: tuple[Opened, ...]


async def run_party(
    spec: JobSpec,
    data: Transactions,
    transport: Transport,
    *,
    job_id: bytes,
    attempt: int,
    identity: Identity,
    random: RandomStream,
    executor: Executor,
    progress: Progress,
    least_count: int = 1,
) -> PartyRun:
    """Runs this party's part of a job; whatever ends it early is told to all peers.

    Args:
        spec: The job.
        data: This party's transactions.
        transport: Carries the frames.
        job_id: The job's id.
        attempt: Counts the starts of the job.
        identity: This party.
        random: Its randomness for this run.
        executor: Where heavy work runs.
        progress: Told how far steps have come.
        least_count: This party's own floor: it takes no part where fewer transactions make an itemset frequent.

    Raises:
        ComineError: The job failed here or at a peer; `party` names where.
        asyncio.CancelledError: The task was cancelled; the peers have been told.
    """
    terms = Terms(job_id, attempt, spec.digest, spec.job.parties, STANDARD_128.suite)
    session = await Session.establish(
        terms,
        identity.name,
        transport,
        random=random,
        executor=executor,
        declared=statement(spec).declared,
        deadline_s=spec.job.deadline_s,
        progress=progress,
    )
    try:
        outcome = await run_task(session.lane("task"), spec, data, least_count)
        receipts = await exchange_receipts(session, identity)
    except asyncio.CancelledError:
        await session.abort(JobCancelled(f"the job was cancelled at {identity.name}", party=identity.name))
        raise
    except ComineError as error:
        await session.abort(error)
        raise
    except Exception:
        await session.abort(InternalError(f"{identity.name} met a fault of its own; its log has the details"))
        raise
    return PartyRun(session.id, outcome, session.costs, tuple(receipts), tuple(session.ledger.record))
