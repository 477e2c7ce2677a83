"""The end of a job that succeeded: what this party signs about it, and what it hands to whom."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from jobs.audit.events import Ended, Event
from jobs.audit.events import Released as ReleasedEvent
from jobs.kinds.packed_itemsets import digest
from jobs.kinds.registry import kind_of
from jobs.results.folder import write_result_folder
from jobs.results.record import Receipt, ResultRecord
from jobs.results.release import release_of, sign
from jobs.run import PartyRun
from link.errors import ComineError, ResourceError, UnexpectedMessage, shareable
from party.jobs.context import JobContext
from party.jobs.job import Job
from protos.v1.control_pb2 import Release, ResultHeader

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Released:
    """What the coordinator may fetch of a job that succeeded.

    Attributes:
        header: The signed release.
        table: The result, packed; empty where the coordinator gets none from this party.
    """

    header: ResultHeader
    table: bytes


async def release(context: JobContext, job: Job, run: PartyRun) -> ResultHeader:
    """Writes the result where this party is a recipient, keeps what the coordinator may fetch, and records both.

    An alignment of this party's rows is its own, no matter who the recipients are.

    A coordinator that is no recipient gets no digest of the result either: it could try results until one fits.

    Returns:
        What this party signs for the coordinator.

    Raises:
        ResourceError: Something cannot be written; the node's log has the reason.
    """
    me, spec, found = context.identity.name, job.spec, run.outcome.finding
    table = b"" if found is None else await _aside(context, found.pack)
    signed = digest(table) if table else b""
    header = _signed(context, job, run, signed)
    events: list[Event] = []
    alignment = run.outcome.alignment
    if alignment is not None:
        with _reason_stays_here(context, job):
            await _aside(context, lambda: context.alignments.write(job.id, alignment))
        context.log.info("alignment written", caller=job.coordinator, job=job.id.hex())
    learns = found is not None or kind_of(spec).finds is None
    if learns and (me in spec.job.recipients or "all" in spec.job.recipients):
        receipt = Receipt(header.release, header.signature, header.certificate, run.receipts_from)
        result = ResultRecord(
            spec,
            job.id,
            run.session_id,
            run.outcome.n_rows,
            run.outcome.strategy,
            {me: run.costs},
            {me: receipt},
            None if found is None else await _aside(context, found.canonical),
            positions=run.outcome.positions,
            signer=context.identity,
        )
        with _reason_stays_here(context, job):
            await _aside(context, lambda: write_result_folder(context.results / job.id.hex(), result))
        context.log.info("result written", caller=job.coordinator, job=job.id.hex())
        events.append(ReleasedEvent.of(header, to=me, key=context.audit_key))
    if not spec.to_coordinator and signed:
        header = _signed(context, job, run, b"")
    elif table:
        with _reason_stays_here(context, job):
            await _aside(context, lambda: context.tables.write(job.id, table))
        context.tables.forget_later(job.id)
    events.append(ReleasedEvent.of(header, to="coordinator", key=context.audit_key))
    # Once the log says that the job has succeeded, a node that dies must find what it signed.
    with contextlib.suppress(ResourceError):  # what cannot be kept now is written with the job's end
        await asyncio.to_thread(context.store.keep_release, job.id, header.SerializeToString())
    await context.audit.record(*events, Ended(job=job.id, state="succeeded"))
    return header


async def fetched(context: JobContext, job: Job, signed: bytes) -> Released:
    """What the coordinator may fetch of a job that succeeded.

    Args:
        context: What the node's jobs share.
        job: The job.
        signed: The serialised `ResultHeader`.

    Raises:
        UnexpectedMessage: It is there no more.
    """
    me = context.identity.name
    if not signed:
        raise UnexpectedMessage(
            f"{me} has lost what it signed about this job, with its job database; run the job again", party=me
        )
    header = ResultHeader.FromString(signed)
    if not (job.spec.to_coordinator and Release.FromString(header.release).result_digest):
        return Released(header, b"")
    table = await asyncio.to_thread(context.tables.read, job.id)
    if table is None:
        raise UnexpectedMessage(
            f"{me} kept the result of this job for an hour, which has passed; run the job again", party=me
        )
    return Released(header, table)


def _signed(context: JobContext, job: Job, run: PartyRun, result_digest: bytes) -> ResultHeader:
    return sign(
        release_of(run, job_id=job.id, party=context.identity.name, result_digest=result_digest), context.identity
    )


@contextlib.contextmanager
def _reason_stays_here(context: JobContext, job: Job) -> Iterator[None]:
    """Why a result cannot be written stays in this node's log."""
    try:
        yield
    except ComineError as error:
        me = context.identity.name
        context.log.error("result not written", caller=job.coordinator, job=job.id.hex(), error=error)
        unwritten = ResourceError(f"{me} cannot write its result; the log of {me} has the reason", party=me)
        raise shareable(unwritten) from error


async def _aside(context: JobContext, function: Callable[[], T]) -> T:
    """Runs heavy local work off the event loop."""
    (result,) = await context.executor.map(lambda _: function(), [None])
    return result
