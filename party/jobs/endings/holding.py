"""Holds what a job has found at this party until its people release it, or the job's deadline comes.

This is before the party signs its receipts, without which no party hands over anything of a result: so what has left by
then is what the job's statement says of its session, at all parties, and nothing else. A node that is stopped meanwhile
loses the session. Where the job can go on, what was found stays in its journal, sealed: after a restart people see it
and decide on it as before. Another attempt comes to the same place, and hands over what they have released of the very
same result at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jobs.audit.events import HoldWithheld, ResultHeld
from jobs.kinds.finding import Finding
from jobs.kinds.registry import kind_of
from jobs.results.folder import write_whole
from jobs.results.outcome import Outcome
from jobs.results.tables import write_csv
from jobs.spec.job import JobSpec
from link.disclosure import Opened
from link.errors import ComineError
from party.jobs.context import JobContext
from party.jobs.job import Job
from party.jobs.progress import found_before, keep_found
from party.policy.consent import spec_of
from party.policy.inbox import clock, held_of
from party.state.owner_ends import DEADLINE, withheld
from party.state.store import Record, Store
from protos.v1.control_pb2 import RUNNING

FOLDER: Final = "held"
BEFORE_S: Final = 2.0  # the end of the session: the peers are to learn why from this party, not from their own clocks
STEP: Final = "held for release by its party"
_DIGITS: Final = 64  # of a job's id


async def hold(context: JobContext, job: Job, outcome: Outcome, opened: Sequence[Opened]) -> None:
    """Returns once people have released what was found.

    Args:
        context: What the node's jobs share.
        job: The job, whose session is at its end.
        outcome: What this party has of the result.
        opened: What it has opened.

    Raises:
        ResultWithheld: Nobody has, by the job's deadline. What people withhold ends the job from outside.
        ResourceError: What people are to be shown cannot be written.
    """
    until = job.began + job.spec.job.deadline_s - BEFORE_S
    folder = _folder(context.results.parent, job.id)
    digest = await asyncio.to_thread(_digest, outcome)
    job.released = asyncio.Event()
    try:
        if outcome.finding is not None:
            await asyncio.to_thread(_write, folder, outcome.finding, job.spec)
            with contextlib.suppress(ComineError):  # it is held nevertheless, and after a restart known by its numbers
                packed = await asyncio.to_thread(outcome.finding.pack)
                await asyncio.to_thread(keep_found, context.journals, job.id, job.spec, packed)
        shown = _shown(outcome, opened, folder, until, job)
        await context.audit.record(ResultHeld(job=job.id, attempt=job.attempt))
        held = await asyncio.to_thread(context.store.hold, job.id, digest, shown)
        job.progress(STEP, 0, 0)
        if not held.released_by:
            await _until_released(context, job, job.released, until)
    finally:
        job.released = None
    # What ends the job instead may leave it to another attempt, for which people decide on what they are shown now.
    await asyncio.to_thread(forget_shown, context.results.parent, job.id)


async def _until_released(context: JobContext, job: Job, released: asyncio.Event, until: float) -> None:
    context.notices.held(job.id, job.coordinator, RUNNING)
    context.log.info("result held", caller=job.coordinator, job=job.id.hex())
    try:
        async with asyncio.timeout(max(0.0, until - time.time())):
            await released.wait()
    except TimeoutError:
        event = HoldWithheld(job=job.id, by=DEADLINE, reason="")
        await context.audit.record(event)
        await asyncio.to_thread(context.store.follow_owner_ends, [event])
        raise withheld(context.identity.name) from None
    context.log.info("result released", caller=job.coordinator, job=job.id.hex())


async def show_again(context: JobContext, now: float) -> None:
    """Shows what jobs have found whose sessions were lost with an earlier process of the node, and that can go on."""
    for job_id in await asyncio.to_thread(context.store.unreleased, now):
        record = await asyncio.to_thread(context.store.get, job_id)
        try:
            if record is not None and held_of(record, context.store, now) is not None:
                await asyncio.to_thread(_write_again, context, record)
        except (ComineError, ValueError) as error:
            context.log.error("held result not shown", job=job_id.hex(), error=error)


def _write_again(context: JobContext, record: Record) -> None:
    if (packed := found_before(context.journals, record.job_id)) is not None:
        spec = spec_of(record)
        _write(_folder(context.results.parent, record.job_id), kind_of(spec).unpack(packed), spec)


def forget_unheld(state: Path, store: Store, now: float) -> None:
    """Removes what is shown of jobs of which nothing is held any more.

    Args:
        state: The node's state folder.
        store: Its jobs.
        now: Unix seconds.
    """
    for folder in (state / FOLDER).glob("*"):
        record = store.get(bytes.fromhex(folder.name)) if len(folder.name) == _DIGITS else None  # no draft of another
        is_over = record is not None and record.state != RUNNING  # one that runs may be about to hold it
        if record is not None and is_over and held_of(record, store, now) is None:
            shutil.rmtree(folder, ignore_errors=True)


def forget_shown(state: Path, job_id: bytes) -> None:
    """Removes what is shown of a job."""
    shutil.rmtree(_folder(state, job_id), ignore_errors=True)


def forget_held(state: Path) -> None:
    """Removes all that an earlier process of the node was showing."""
    shutil.rmtree(state / FOLDER, ignore_errors=True)


def _folder(state: Path, job_id: bytes) -> Path:
    return state / FOLDER / job_id.hex()


def _digest(outcome: Outcome) -> bytes:
    """Of what was found, as far as this party learns it."""
    packed = b"" if outcome.finding is None else outcome.finding.pack()
    return hashlib.sha256(f"{outcome.n_rows} {outcome.positions} ".encode() + packed).digest()


def _write(folder: Path, finding: Finding, spec: JobSpec) -> None:
    def fill(draft: Path) -> None:
        draft.mkdir(parents=True, mode=0o700)
        found = finding.canonical()
        for name, table in found.tables(spec).items():
            write_csv(draft / f"{name}.csv", table)
        found.write(draft, spec)

    write_whole(folder, fill, lambda _: True)


def _shown(outcome: Outcome, opened: Sequence[Opened], folder: Path, until: float, job: Job) -> dict[str, Any]:
    """What people are shown, as JSON values."""
    finding = outcome.finding
    openings = [
        {"label": each.label, "recipients": list(each.recipients), "number": each.number, "size_bytes": each.size_bytes}
        for each in opened
    ]
    return {
        "since": clock(time.time()),
        "until": clock(until),
        "attempt": job.attempt,
        "n_rows": outcome.n_rows,
        "found": None if finding is None else finding.summary(job.spec),
        "files": [] if finding is None else sorted(str(path) for path in folder.iterdir()),
        "opened": openings,
    }
