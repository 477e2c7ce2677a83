"""Begins, resumes and cancels jobs: `run_job` stays with a job to its end, `submit_job` leaves it to the background."""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from coordinator.jobs.driver import Driver, OnMove, ignored
from coordinator.jobs.lifecycle import Job, Signal, State, ended, step
from coordinator.jobs.progress import Watcher, unwatched
from coordinator.jobs.records.store import JobFolder, Record, Store
from jobs.consent import NONCE_BYTES, propose
from jobs.results.result import Result
from jobs.resumption import hindrance
from jobs.spec.job import JobSpec
from link.errors import DeadlineExceeded, UsageError
from link.pki.identity import Identity

RUN_EXPIRES_S: Final = 600  # somebody waits; leaves room for clocks that differ
SUBMIT_EXPIRES_S: Final = 7 * 24 * 3600
_CANCEL_S: Final = 30.0  # for the process that drives a job to end it
_LOOK_S: Final = 0.05


def draft(
    spec: JobSpec,
    identity: Identity,
    expires_s: float,
    *,
    out: Path | None = None,
    plan: dict[str, Any] | None = None,
    retries: int = 0,
) -> Record:
    """A job that nobody has been asked for, with its signed proposal.

    Args:
        spec: What is to be done.
        identity: The coordinator.
        expires_s: Seconds from now, within which it must be started.
        out: Where a driver in the background writes the result.
        plan: What was predicted for it.
        retries: In how many attempts more it may go on by itself.
    """
    now = time.time()
    nonce, expiry = secrets.token_bytes(NONCE_BYTES), math.ceil(now + expires_s)  # a proposal has whole seconds
    return Record(
        spec=spec,
        id=spec.job_id(nonce, expiry),
        proposal=propose(spec, identity, nonce=nonce, expiry=expiry),
        created=now,
        job=Job.draft(spec.job.parties, expires=expiry, deadline_s=spec.job.deadline_s),
        out=out,
        plan=plan,
        retries=retries,
    )


async def run_job(
    spec: JobSpec,
    identity: Identity,
    addresses: Mapping[str, str],
    watcher: Watcher = unwatched,
    *,
    store: Store | None = None,
    expires_s: float = RUN_EXPIRES_S,
    on_move: OnMove = ignored,
    retries: int = 0,
) -> Result:
    """Runs a job against the nodes of its parties; cancelled with this task.

    Args:
        spec: The job.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.
        watcher: Called with the progress.
        store: Where the job is kept; nowhere by default.
        expires_s: Seconds for which people at the parties may think.
        on_move: Called with the job after each of its moves.
        retries: In how many attempts more it may go on by itself after it has lost a party.

    Raises:
        ComineError: The job failed; the error is the one that began it, and all parties have been told.
    """
    plan = None if store is None else store.load_plan(spec.digest)
    record = draft(spec, identity, expires_s, plan=plan, retries=retries)
    folder = None if store is None else store.create(record)
    try:
        return await _result(record, identity, addresses, folder, watcher, on_move)
    finally:
        if folder is not None:
            folder.unlock()


async def submit_job(
    spec: JobSpec,
    identity: Identity,
    addresses: Mapping[str, str],
    store: Store,
    *,
    expires_s: float = SUBMIT_EXPIRES_S,
    out: Path | None = None,
    retries: int = 0,
    by: str = "",
) -> JobFolder:
    """Proposes a job and returns its folder, still locked, once every party has answered.

    What follows is left to a driver in the background; see `coordinator.jobs.background`.

    Args:
        spec: The job.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.
        store: Where the job is kept.
        expires_s: Seconds for which people at the parties may think.
        out: Where the driver in the background writes the result.
        retries: In how many attempts more it may go on by itself after it has lost a party.
        by: Who wants it at the coordinator's console.

    Raises:
        ComineError: A party cannot be reached or refuses; all parties have been told.
    """
    record = draft(spec, identity, expires_s, out=out, plan=store.load_plan(spec.digest), retries=retries)
    folder = store.create(record)
    try:
        if by:
            folder.note("submitted", by)
        driver = Driver(record, identity, addresses, folder=folder)
        job = await driver.drive(until=_answered, ends_with_me=True)
        if job.over:
            raise ended(job) from driver.error
    except BaseException:
        folder.unlock()
        raise
    return folder


async def resume_job(
    folder: JobFolder,
    identity: Identity,
    addresses: Mapping[str, str],
    watcher: Watcher = unwatched,
    *,
    on_move: OnMove = ignored,
) -> Result:
    """Goes on with a job that was lost, in another attempt; cancelled with this task.

    The parties skip the levels of which all have kept the result.

    Args:
        folder: The job.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.
        watcher: Called with the progress.
        on_move: Called with the job after each of its moves.

    Raises:
        UsageError: The job cannot go on, or another process drives it.
        ComineError: The attempt failed; the error is the one that began it, and all parties have been told.
    """
    record = reopen_job(folder)
    try:
        return await _result(record, identity, addresses, folder, watcher, on_move)
    finally:
        folder.unlock()


def reopen_job(folder: JobFolder) -> Record:
    """Lets a job that was lost have another attempt, which its driver then makes; leaves it locked by this process.

    Raises:
        UsageError: The job cannot go on, or another process drives it.
        ResourceError: The folder cannot be written.
    """
    if not folder.lock():
        raise UsageError(f"another process drives the job; watch it with: comine job watch {folder.id[:12]}")
    try:
        record, now = folder.record(), time.time()
        if why := resumption_hindrance(record, now):
            raise UsageError(f"the job {folder.id[:12]} cannot be resumed: {why}")
        folder.forget_cancel()
        record.job, _ = step(record.job, Signal.RESUMED, now)
        record.last = {}
        folder.save(record)
    except BaseException:
        folder.unlock()
        raise
    return record


def resumption_hindrance(record: Record, now: float) -> str:
    """Why a job cannot have another attempt, as the end of a sentence; empty where it can."""
    code = "" if record.job.problem is None else record.job.problem.code
    return record.job.hindrance(now) or hindrance(record.spec, code, record.job.attempt)


async def drive_job(
    record: Record,
    identity: Identity,
    addresses: Mapping[str, str],
    folder: JobFolder | None,
    watcher: Watcher = unwatched,
    on_move: OnMove = ignored,
    *,
    ends_with_me: bool = False,
) -> Driver:
    """Drives a job to its end, in as many attempts as it may have by itself; the driver of the last one.

    Args:
        record: The job.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.
        folder: Where the job is kept, locked by this process; None keeps it nowhere.
        watcher: Called with the progress.
        on_move: Called with the job after each of its moves.
        ends_with_me: Whether the job is cancelled when this task is.

    Raises:
        ComineError: The job cannot be kept any more.
    """
    while True:
        driver = Driver(record, identity, addresses, folder=folder, watcher=watcher, on_move=on_move)
        await driver.drive(ends_with_me=ends_with_me)
        if not driver.goes_on:
            return driver
        record.job, _ = step(record.job, Signal.RETRIED, time.time())
        record.last = {}
        if folder is not None:
            folder.save(record)
        on_move(record.job)


async def _result(
    record: Record,
    identity: Identity,
    addresses: Mapping[str, str],
    folder: JobFolder | None,
    watcher: Watcher,
    on_move: OnMove,
) -> Result:
    """The result of a job that is driven to its end, and cancelled with this task."""
    driver = await drive_job(record, identity, addresses, folder, watcher, on_move, ends_with_me=True)
    if driver.result is None:
        raise ended(record.job) from driver.error
    return driver.result


async def cancel_job(
    folder: JobFolder, identity: Identity, addresses: Mapping[str, str], reason: str
) -> tuple[Job, tuple[str, ...]]:
    """Ends a job at all its parties, no matter who drives it; does nothing where it has ended.

    Returns:
        The job, and the parties that could not be told.

    Raises:
        DeadlineExceeded: The process that drives the job does not listen.
    """
    if (job := folder.record().job).over:
        return job, ()
    folder.ask_cancel(reason)
    give_up = time.monotonic() + _CANCEL_S
    while not folder.lock():
        if time.monotonic() > give_up:
            raise DeadlineExceeded(
                f"the process that drives the job does not heed that it is cancelled; end that process, which holds "
                f"{folder.path / 'lock'}, and cancel again"
            )
        await asyncio.sleep(_LOOK_S)
    try:
        driver = Driver(folder.record(), identity, addresses, folder=folder)
        return await driver.cancel(reason), driver.untold
    finally:
        folder.unlock()


def _answered(job: Job) -> bool:
    return job.state not in (State.DRAFT, State.PROPOSED)
