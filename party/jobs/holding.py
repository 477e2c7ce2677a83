"""Holds what a job has found at this party until its people release it, or the job's deadline comes.

This is before the party signs its receipts, without which no party hands over anything of a result: so what has left by
then is what the job's statement says of its session, at all parties, and nothing else. A node that is stopped meanwhile
loses the session, and the job with it; where that can go on, another attempt comes to the same place, and what people
have released of the very same result they need not release again.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jobs.audit.events import HoldWithheld, ResultHeld
from jobs.kinds.finding import Finding
from jobs.results.folder import write_whole
from jobs.results.outcome import Outcome
from jobs.results.tables import write_csv
from jobs.spec.job import JobSpec
from link.disclosure import Opened
from party.jobs.context import JobContext
from party.jobs.job import Job
from party.policy.inbox import clock
from party.state.owner_ends import DEADLINE, withheld
from protos.v1.control_pb2 import RUNNING

FOLDER: Final = "held"
BEFORE_S: Final = 2.0  # the end of the session: the peers are to learn why from this party, not from their own clocks
STEP: Final = "held for release by its party"


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
    folder = context.results.parent / FOLDER / job.id.hex()
    digest = await asyncio.to_thread(_digest, outcome)
    job.released = asyncio.Event()
    try:
        if outcome.finding is not None:
            await asyncio.to_thread(_write, folder, outcome.finding, job.spec)
        shown = _shown(outcome, opened, folder, until, job)
        await context.audit.record(ResultHeld(job=job.id, attempt=job.attempt))
        held = await asyncio.to_thread(context.store.hold, job.id, digest, shown)
        job.progress(STEP, 0, 0)
        if held.released_by:
            return
        context.notices.held(job.id, job.coordinator, RUNNING)
        context.log.info("result held", caller=job.coordinator, job=job.id.hex())
        try:
            async with asyncio.timeout(max(0.0, until - time.time())):
                await job.released.wait()
        except TimeoutError:
            event = HoldWithheld(job=job.id, by=DEADLINE, reason="")
            await context.audit.record(event)
            await asyncio.to_thread(context.store.follow_owner_ends, [event])
            raise withheld(context.identity.name) from None
        context.log.info("result released", caller=job.coordinator, job=job.id.hex())
    finally:
        job.released = None
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def forget_held(state: Path) -> None:
    """Removes what an earlier process of the node was showing."""
    shutil.rmtree(state / FOLDER, ignore_errors=True)


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
