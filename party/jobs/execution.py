"""This party's part of a job, from its data to what it signs, as its node runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from crypto.primitives.randomness import Randomness
from jobs.audit.events import RulesHidden, Started
from jobs.audit.evidence import EvidenceFolder
from jobs.data import Data, close
from jobs.kinds.kind import Resources
from jobs.kinds.registry import kind_of
from jobs.run import PartyRun, run_party
from party.jobs.charging import charged, release_begun
from party.jobs.context import JobContext
from party.jobs.endings.holding import hold
from party.jobs.job import Job
from party.jobs.job_transport import JobTransport
from party.jobs.node_recorder import NodeRecorder
from party.jobs.progress import check_same_rows, journal_of
from party.policy.policy_input import Version
from party.services.metrics.steps import StepTimes
from protos.v1.control_pb2 import SignedApproval


async def take_part(
    context: JobContext, job: Job, attempt: int, approvals: Sequence[SignedApproval], transport: JobTransport
) -> PartyRun:
    """Reads the data, checks what only they show, and runs the session.

    Args:
        context: What the node's jobs share.
        job: The job, which is charged.
        attempt: Counts its starts.
        approvals: Of all parties.
        transport: Carries the frames.

    Raises:
        ComineError: The job failed here or at a peer.
    """
    job.began_after = await asyncio.to_thread(context.audit.mark)
    events = (
        Started.of(job.id, attempt, approvals),
        *await asyncio.to_thread(charged, context.ledger, job.id, attempt),
        *await asyncio.to_thread(release_begun, context.releases, job),
        *_hidden(context, job),
    )
    started = asyncio.create_task(context.audit.record(*events))
    with ExitStack() as lent:  # whatever ends the job, be it between the reading and its use: blocks stay while in use

        async def load() -> Data:
            name, in_blocks = job.spec.job.dataset, kind_of(job.spec).takes_blocks(job.spec)
            data = await context.sources.load(name, job=job.id.hex(), in_blocks=in_blocks)
            lent.callback(close, data)
            return data

        try:
            data = await transport.before_session(load())
        finally:
            await started
        return await _with_data(context, job, attempt, data, transport)


async def _with_data(context: JobContext, job: Job, attempt: int, data: Data, transport: JobTransport) -> PartyRun:
    rows = await transport.before_session(_check_data(context, job, data, attempt))
    policy = context.consent.judge.policy_of(job.spec)
    kept = EvidenceFolder(context.results.parent / "evidence", context.identity.trust)
    recorder = NodeRecorder(context, job, attempt, kept)
    job.in_session, job.opened = lambda: recorder.has_begun, lambda: recorder.opened
    resources = Resources(
        least_count=policy.min_count or 1,
        dealings=job.dealings,
        journal=await asyncio.to_thread(journal_of, context.journals, job.id, job.spec, rows),
        spool_limits=context.spool_limits,
        list_limits=context.list_limits,
    )
    with StepTimes(context.metrics, job.spec.job.task, job.progress) as progress:
        return await run_party(
            job.spec,
            data,
            transport,
            job_id=job.id,
            attempt=attempt,
            identity=context.identity,
            random=Randomness.from_os(),
            executor=context.executor.share(),
            progress=progress,
            resources=resources,
            recorder=recorder,
            hold=partial(hold, context, job) if policy.release == "manual" else None,
        )


async def _check_data(context: JobContext, job: Job, data: Data, attempt: int) -> bytes:
    """Applies the rules that need the rows, and notes them for the next job on the dataset.

    A job that bounded noise protects is not noted: two jobs without noise would be held against it, and not each other.

    Returns:
        The digest of the rows.
    """
    me, judge, sources = context.identity.name, context.consent.judge, context.sources
    rows = await sources.rows(job.spec.job.dataset, data)
    if attempt > 1 and (record := await asyncio.to_thread(context.store.get, job.id)) is not None:
        check_same_rows(record, rows.digest, me)
    async with context.noting:
        await judge.check_data(job.spec, rows, sources.rows, job.id)
        if await asyncio.to_thread(judge.looks_at_rows, job.spec):
            named, forgive = job.spec.job.dataset, judge.policy_of(job.spec).min_group is None
            await asyncio.to_thread(context.ledger.note_version, named, Version(*rows), forgive=forgive)
            await asyncio.to_thread(context.store.note_data, job.id, *rows)
    return rows.digest


def _hidden(context: JobContext, job: Job) -> tuple[RulesHidden, ...]:
    """What the audit log records where the job gets rows in which rules are hidden."""
    name = job.spec.job.dataset
    rules = context.sources.hidden_rules(name)
    return (RulesHidden(job=job.id, dataset=name, rules=rules),) if rules else ()
