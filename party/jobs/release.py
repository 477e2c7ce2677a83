"""The end of a job that fared well: what this party signs about it, and what it hands to whom."""

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
from jobs.results.release import release_of, sign
from jobs.results.result import Receipt, Result
from jobs.run import PartyRun
from link.errors import ComineError, ResourceError, UnexpectedMessage, tellable
from party.jobs.job import Job
from party.jobs.room import Room
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


async def release(room: Room, job: Job, run: PartyRun) -> ResultHeader:
    """Writes the result where this party is a recipient, keeps what the coordinator may fetch, and records both.

    An alignment of this party's rows is its own, whoever the recipients are.

    A coordinator that is no recipient gets no digest of the result either: it could try results until one fits.

    Returns:
        What this party signs for the coordinator.

    Raises:
        ResourceError: Something cannot be written; the node's log has the reason.
    """
    me, spec, found = room.identity.name, job.spec, run.outcome.finding
    table = b"" if found is None else await _aside(room, found.pack)
    signed = digest(table) if table else b""
    header = _signed(room, job, run, signed)
    events: list[Event] = []
    alignment = run.outcome.alignment
    if alignment is not None:
        with _hushed(room, job):
            await _aside(room, lambda: room.alignments.write(job.id, alignment))
        room.log.info("alignment written", caller=job.coordinator, job=job.id.hex())
    learns = found is not None or kind_of(spec).finds is None
    if learns and (me in spec.job.recipients or "all" in spec.job.recipients):
        receipt = Receipt(header.release, header.signature, header.certificate, run.receipts_from)
        result = Result(
            spec,
            job.id,
            run.session_id,
            run.outcome.n_rows,
            run.outcome.strategy,
            {me: run.costs},
            {me: receipt},
            None if found is None else await _aside(room, found.canonical),
            positions=run.outcome.positions,
            signer=room.identity,
        )
        with _hushed(room, job):
            await _aside(room, lambda: write_result_folder(room.results / job.id.hex(), result))
        room.log.info("result written", caller=job.coordinator, job=job.id.hex())
        events.append(ReleasedEvent.of(header, to=me, key=room.audit_key))
    if not spec.to_coordinator and signed:
        header = _signed(room, job, run, b"")
    elif table:
        with _hushed(room, job):
            await _aside(room, lambda: room.tables.write(job.id, table))
        room.tables.forget_later(job.id)
    events.append(ReleasedEvent.of(header, to="coordinator", key=room.audit_key))
    await room.audit.record(*events, Ended(job=job.id, state="succeeded"))
    return header


async def fetched(room: Room, job: Job, signed: bytes) -> Released:
    """What the coordinator may fetch of a job that succeeded.

    Args:
        room: What the node's jobs share.
        job: The job.
        signed: The serialised `ResultHeader`.

    Raises:
        UnexpectedMessage: It is there no more.
    """
    me = room.identity.name
    if not signed:
        raise UnexpectedMessage(
            f"{me} has lost what it signed about this job, with its job database; run the job again", party=me
        )
    header = ResultHeader.FromString(signed)
    if not (job.spec.to_coordinator and Release.FromString(header.release).result_digest):
        return Released(header, b"")
    table = await asyncio.to_thread(room.tables.read, job.id)
    if table is None:
        raise UnexpectedMessage(
            f"{me} kept the result of this job for an hour, which has passed; run the job again", party=me
        )
    return Released(header, table)


def _signed(room: Room, job: Job, run: PartyRun, result_digest: bytes) -> ResultHeader:
    return sign(release_of(run, job_id=job.id, party=room.identity.name, result_digest=result_digest), room.identity)


@contextlib.contextmanager
def _hushed(room: Room, job: Job) -> Iterator[None]:
    """Why a result cannot be written stays in this node's log."""
    try:
        yield
    except ComineError as error:
        me = room.identity.name
        room.log.error("result not written", caller=job.coordinator, job=job.id.hex(), error=error)
        unwritten = ResourceError(f"{me} cannot write its result; the log of {me} has the reason", party=me)
        raise tellable(unwritten) from error


async def _aside(room: Room, function: Callable[[], T]) -> T:
    """Runs heavy local work off the event loop."""
    (result,) = await room.executor.map(lambda _: function(), [None])
    return result
