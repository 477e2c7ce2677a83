"""Runs the jobs of a node: from an accepted proposal to a signed release, several at a time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from crypto.primitives.randomness import Randomness
from jobs.findings import Receipt, Result
from jobs.folder import write_result_folder
from jobs.release import release_of, sign
from jobs.result import digest, pack
from jobs.run import PartyRun, run_party
from jobs.spec import JobSpec
from link.errors import (
    ComineError,
    DeadlineExceeded,
    InputDataError,
    InternalError,
    JobCancelled,
    ResourceError,
    UnexpectedMessage,
)
from link.executor import Executor
from link.grpc_transport import NodeLink
from link.identity import Identity
from mining.transactions import Transactions
from party.config import PolicySection
from party.job import Job, Released
from party.job_transport import JobTransport
from party.logs import Log
from party.policy import check_rows
from party.sources import Sources
from protos.v1.control_pb2 import RELEASING, RUNNING, SUCCEEDED, ResultHeader

T = TypeVar("T")

KEEP_S: Final = 3600.0  # for which a job that has ended can be asked about
MAX_KEPT: Final = 256  # jobs in memory; beyond them, those that have ended go first
MAX_REASON: Final = 200  # characters of a coordinator's reason for cancelling
BACKSTOP_S: Final = 5.0  # after the deadline: the session's own waits have ended by then
ABORT_S: Final = 2.0  # for which a peer may keep this party from telling that it ends the job
CANCEL_S: Final = 5.0  # for which a cancelled job may tell its peers and flush


@dataclass(frozen=True, slots=True)
class Room:
    """What all jobs of a node share.

    Attributes:
        identity: This party.
        policy: Its rules.
        sources: Its data.
        link: Its streams to peers.
        executor: Where heavy work runs.
        results: Folder for the results that this party receives.
        max_running: Jobs at once.
        log: The node's log.
    """

    identity: Identity
    policy: PolicySection
    sources: Sources
    link: NodeLink
    executor: Executor
    results: Path
    max_running: int
    log: Log


class SessionHost:
    """The jobs that this node has agreed to.

    Args:
        room: What they share.
        now: Unix seconds.
    """

    def __init__(self, room: Room, *, now: Callable[[], float] = time.time) -> None:
        self._room, self._now = room, now
        self._me = room.identity.name
        self._jobs: dict[bytes, Job] = {}
        self._accepted: dict[bytes, int] = {}
        self._closing = False

    @property
    def running(self) -> int:
        """Jobs whose part here has begun and not ended; one that only tells its peers of its end has ended."""
        return sum(job.task is not None and not job.task.done() and not job.over for job in self._jobs.values())

    def propose(self, spec: JobSpec, nonce: bytes, expiry: int, coordinator: str) -> Job:
        """Agrees to a job that the policy allows. Its id is accepted once, also after the job is forgotten.

        Raises:
            UnexpectedMessage: The very same proposal was accepted before.
            ResourceError: Too many jobs are kept.
        """
        now = self._now()
        self._accepted = {job_id: until for job_id, until in self._accepted.items() if until >= now}
        job_id = spec.job_id(nonce, expiry)
        if job_id in self._accepted:
            raise UnexpectedMessage(
                f"{self._me} has accepted this very proposal before; make a new one", party=self._me
            )
        if len(self._jobs) >= MAX_KEPT and not self._drop_oldest():
            raise ResourceError(f"{self._me} has {MAX_KEPT} open jobs; propose the job later", party=self._me)
        self._accepted[job_id] = expiry
        job = self._jobs[job_id] = Job(job_id, spec, coordinator)
        asyncio.get_running_loop().call_later(max(0.0, expiry - now), self._expire, job)
        return job

    def find(self, job_id: bytes, coordinator: str) -> Job:
        """The job, for the coordinator that proposed it.

        Raises:
            UnexpectedMessage: There is none; whose else it may be is not told.
        """
        job = self._jobs.get(job_id)
        if job is None or job.coordinator != coordinator:
            raise UnexpectedMessage(
                f"{self._me} has no such job of {coordinator}; jobs are forgotten within an hour after their end",
                party=self._me,
            )
        return job

    def start(self, job: Job, attempt: int) -> None:
        """Begins this party's part; once in the life of a job.

        Raises:
            UnexpectedMessage: The job has begun or ended.
            ResourceError: As many jobs as may run at once are running.
        """
        if job.task is not None or job.over:
            raise UnexpectedMessage(f"this job was started at {self._me} before; propose it anew", party=self._me)
        if attempt < 1:
            raise UnexpectedMessage("a job's first attempt has the number 1", party=self._me)
        if self._closing or self.running >= self._room.max_running:
            why = "is stopping" if self._closing else f"runs {self.running} jobs, the most that its max_running allows"
            raise ResourceError(f"{self._me} {why}; start the job later", party=self._me)
        job.move(RUNNING)
        self._room.log.info("job started", job=job.id.hex(), task=job.spec.job.task, caller=job.coordinator)
        job.task = asyncio.create_task(self._host(job, attempt))

    async def cancel(self, job: Job, reason: str) -> None:
        """Ends a job and tells its peers; does nothing where it has ended."""
        if job.over:
            return
        told = f": {reason[:MAX_REASON]}" if reason else ""
        job.cancelled_by = f"the job was cancelled at {self._me}{told}"
        if job.task is None:
            self._end(job, JobCancelled(job.cancelled_by, party=self._me))
            return
        job.task.cancel()
        _, unfinished = await asyncio.wait({job.task}, timeout=CANCEL_S)
        if unfinished:
            job.task.cancel()
        elif not job.over:  # the task was cancelled before its first step
            self._end(job, JobCancelled(job.cancelled_by, party=self._me))

    async def close(self) -> None:
        """Cancels all jobs at all parties; returns once the peers have been told."""
        self._closing = True
        await asyncio.gather(*(self.cancel(job, "its node is stopping") for job in list(self._jobs.values())))

    # -- one job -----------------------------------------------------------------------------------------------------
    async def _host(self, job: Job, attempt: int) -> None:
        try:
            parties = job.spec.job.parties
            transport = JobTransport(self._room.link.open(job.id, parties), job.id, self._me, parties)
        except ComineError as error:
            self._end(job, error)
            return
        job.costs = transport.costs
        try:
            await self._take_part(job, attempt, transport)
        except (Exception, asyncio.CancelledError) as error:
            told = self._public(job, error)
            try:
                await self._tell_peers(job, told, transport)
            finally:
                self._end(job, told, error)
        finally:
            await transport.close()

    async def _take_part(self, job: Job, attempt: int, transport: JobTransport) -> None:
        room = self._room
        async with asyncio.timeout(job.spec.job.deadline_s + BACKSTOP_S):
            data = await transport.before_session(self._load(job))
            check_rows(room.policy, job.spec, me=self._me, n_rows=data.n_rows)
            run = await run_party(
                job.spec,
                data,
                transport,
                job_id=job.id,
                attempt=attempt,
                identity=room.identity,
                random=Randomness.from_os(),
                executor=room.executor,
                progress=job.progress,
                least_count=room.policy.min_count or 1,
            )
        job.costs = lambda: run.costs
        job.move(RELEASING)
        job.released = await self._release(job, run)
        job.move(SUCCEEDED)
        room.log.info(
            "job succeeded",
            job=job.id.hex(),
            session=run.session_id.hex(),
            opened=len(run.opened),
            **run.costs._asdict(),
        )
        self._forget_later(job)

    async def _tell_peers(self, job: Job, told: ComineError, transport: JobTransport) -> None:
        """Makes sure that peers hear of the end, also where there was no session to tell them."""
        if not transport.aborted:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ABORT_S):
                    await transport.abort(told, tuple(p for p in job.spec.job.parties if p != self._me))

    async def _load(self, job: Job) -> Transactions:
        """The job's data; why it cannot be read stays in this node's log."""
        name = job.spec.job.dataset
        try:
            return await self._room.sources.load(name)
        except ComineError as error:
            self._room.log.error("source unreadable", job=job.id.hex(), dataset=name, error=error)
            raise InputDataError(
                f"{self._me} cannot read its dataset '{name}'; the log of {self._me} has the reason", party=self._me
            ) from error

    async def _release(self, job: Job, run: PartyRun) -> Released:
        """Signs what this party says about the run, and writes the result where this party is a recipient.

        A coordinator that is no recipient gets no digest of the result either: it could try results until one fits.
        """
        spec, found = job.spec, run.outcome.itemsets
        table = b""
        if found is not None:
            found = await self._aside(found.canonical)
            table = await self._aside(lambda: pack(found))
        signed = digest(table) if table else b""
        header = self._signed(job, run, signed)
        if found is not None and (self._me in spec.job.recipients or "all" in spec.job.recipients):
            receipt = Receipt(header.release, header.signature, header.certificate, run.receipts_from)
            result = Result(
                spec,
                job.id,
                run.session_id,
                run.outcome.n_rows,
                run.outcome.strategy,
                {self._me: run.costs},
                {self._me: receipt},
                found,
            )
            await self._write(job, result)
        if spec.to_coordinator:
            return Released(header, table)
        return Released(self._signed(job, run, b"") if signed else header, b"")

    def _signed(self, job: Job, run: PartyRun, result_digest: bytes) -> ResultHeader:
        release = release_of(run, job_id=job.id, party=self._me, result_digest=result_digest)
        return sign(release, self._room.identity)

    async def _write(self, job: Job, result: Result) -> None:
        """Writes the result folder; why it cannot be written stays in this node's log."""
        try:
            await self._aside(lambda: write_result_folder(self._room.results / job.id.hex(), result))
        except ComineError as error:
            self._room.log.error("result not written", job=job.id.hex(), error=error)
            raise ResourceError(
                f"{self._me} cannot write its result; the log of {self._me} has the reason", party=self._me
            ) from error
        self._room.log.info("result written", job=job.id.hex())

    async def _aside(self, function: Callable[[], T]) -> T:
        """Runs heavy local work off the event loop."""
        (result,) = await self._room.executor.map(lambda _: function(), [None])
        return result

    def _public(self, job: Job, error: BaseException) -> ComineError:
        """What coordinator and peers are told of an error: a fault of comine itself is not described to them."""
        match error:
            case ComineError():
                return error
            case asyncio.CancelledError():
                return JobCancelled(job.cancelled_by or f"the job was cancelled at {self._me}", party=self._me)
            case TimeoutError():
                return DeadlineExceeded(
                    f"{self._me} was not done when the job's deadline of {job.spec.job.deadline_s} s had passed; "
                    "allow more time",
                    party=self._me,
                )
            case _:
                return InternalError(
                    f"{self._me} met a fault of its own; the log of {self._me} has the details", party=self._me
                )

    def _end(self, job: Job, told: ComineError, error: BaseException | None = None) -> None:
        job.end(told, self._me)
        event = "job cancelled" if isinstance(told, JobCancelled) else "job failed"
        cause = told if error is None or isinstance(error, asyncio.CancelledError) else error
        self._room.log.warning(event, job=job.id.hex(), error=cause)
        self._forget_later(job)

    def _expire(self, job: Job) -> None:
        if job.task is None and not job.over:
            self._end(job, DeadlineExceeded("the proposal expired before the job was started", party=self._me))

    def _drop_oldest(self) -> bool:
        """Forgets the job that was proposed first among those that have ended; whether there was one."""
        ended = next((job_id for job_id, job in self._jobs.items() if job.over), None)
        return ended is not None and self._jobs.pop(ended) is not None

    def _forget_later(self, job: Job) -> None:
        asyncio.get_running_loop().call_later(KEEP_S, self._jobs.pop, job.id, None)
