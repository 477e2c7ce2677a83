"""Runs the jobs of a node: from a proposal to a signed release, several at a time, and over restarts."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

from jobs.audit.events import Started
from jobs.audit.tail import Mark
from jobs.kinds.registry import kind_of
from jobs.run import PartyRun
from jobs.spec.job import JobSpec
from link.errors import (
    ComineError,
    DeadlineExceeded,
    JobCancelled,
    PeerError,
    ResourceError,
    UnexpectedMessage,
)
from party.jobs.charging import charge_start, charged
from party.jobs.context import JobContext
from party.jobs.dealing import CoordinatorDealings
from party.jobs.endings.failure import end_record, present, public
from party.jobs.endings.holding import forget_unheld, show_again
from party.jobs.endings.release import Released, fetched, release
from party.jobs.execution import take_part
from party.jobs.forgetting import Forgetting
from party.jobs.job import Job
from party.jobs.job_transport import JobTransport
from party.jobs.open_jobs import OpenJobs
from party.jobs.progress import check_goes_on
from party.jobs.queue_note import FILE, QueueNote, Running
from party.jobs.transitions import Transitions
from party.jobs.turns import Turns
from party.node.uninterrupted import uninterrupted
from party.policy.consent import spec_of
from party.state.store import Record
from protos.v1.control_pb2 import (
    APPROVED,
    AWAITING_APPROVAL,
    CANCELLED,
    EXPIRED,
    FAILED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    JobState,
    SignedApproval,
    SignedProposal,
)

MAX_REASON: Final = 200  # characters of a coordinator's reason for cancelling
POLL_S: Final = 0.25  # between two looks for decisions of people, while a job is open
BACKSTOP_S: Final = 5.0  # after the deadline: the session's own waits have ended by then
ABORT_S: Final = 2.0  # for which a peer may keep this party from telling that it ends the job
CANCEL_S: Final = 5.0  # for which a cancelled job may tell its peers and flush


class SessionHost:
    """The jobs that were proposed to this node. Those that have not ended are in memory, all of them in the store.

    A job that has ended stays until its end is on the disk. The store is used off the event loop.

    Args:
        context: What they share.
        now: Unix seconds.

    Attributes:
        context: As above.
        jobs: Those that have not ended.
        transitions: How they change.
    """

    def __init__(self, context: JobContext, *, now: Callable[[], float] = time.time) -> None:
        self.context, self.now = context, now
        self._me = context.identity.name
        self.jobs = OpenJobs(self._me, now, context.limits)
        self._hosting: dict[bytes, asyncio.Task[None]] = {}  # with those that only notify their peers of their end
        self._transports: dict[bytes, JobTransport] = {}  # of those
        self._attending: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = Turns(context.limits, self._me)
        unheld = partial(forget_unheld, context.results.parent, context.store)
        self._forgetting = Forgetting(context.journals, context.log, now, unheld)
        self.transitions = Transitions(context, self.jobs, self._turns, self._forgetting, now)
        self._note = QueueNote(context.results.parent / FILE, self._turns, self._progress)
        self._closing = False

    @property
    def running(self) -> int:
        """Jobs whose part here has begun and not ended; one that only tells its peers of its end has ended."""
        return sum(job.task is not None and not job.task.done() and not job.over for job in self.jobs)

    @property
    def waiting(self) -> int:
        """Jobs that wait for their turn."""
        return self._turns.waiting

    @property
    def undecided(self) -> int:
        """Proposals that await a decision."""
        return sum(job.state == AWAITING_APPROVAL for job in self.jobs)

    @property
    def held(self) -> int:
        """Jobs whose results await their release."""
        return sum(job.released is not None for job in self.jobs)

    def renew(self, context: JobContext) -> None:
        """Takes what comes from now on under other settings; jobs that run go on under theirs."""
        self.context = context
        self._turns.allow(context.limits)
        self.jobs.limits = context.limits
        self.transitions.renew(context)

    def unsettled(self) -> Mark | None:
        """The entry of the audit log after which the jobs that run here began; None where none does."""
        marks = [job.began_after for job in self.jobs if job.began_after is not None]
        return min(marks, key=lambda mark: mark.seq, default=None)

    async def recover(self) -> None:
        """Takes up the jobs that an earlier process of this node has left; those that ran have failed."""
        store = self.context.store
        for record in store.within((RUNNING, RELEASING)):
            cancelled = store.owner_end(record.job_id, self._me)
            lost = f"the node of {self._me} was restarted while the job ran; run the job again"
            await end_record(
                self.context,
                self.now(),
                record,
                CANCELLED if isinstance(cancelled, JobCancelled) else FAILED,
                cancelled or PeerError(lost, party=self._me),
                *charged(self.context.ledger, record.job_id, record.attempt),
            )
        await self._forgetting.look()
        await show_again(self.context, self.now())
        for record in store.within((AWAITING_APPROVAL, APPROVED)):
            try:
                spec = spec_of(record)
            except ComineError as error:
                await end_record(self.context, self.now(), record, CANCELLED, error)
                continue
            if record.expiry <= self.now():
                await end_record(self.context, self.now(), record, EXPIRED, self._expired())
            else:
                self._admit(record, spec)
        self.context.tables.recover()

    async def propose(self, signed: SignedProposal, coordinator: str) -> tuple[Job, SignedApproval | None]:
        """The job of a proposal, and this party's approval where it needs no person.

        Raises:
            PolicyDenied: The policy refuses it.
            ComineError: The proposal is not good, has expired or was received before.
            ResourceError: The coordinator has too many open jobs here, or too large ones.
        """
        job, spec, record = await uninterrupted(self._receive(signed, coordinator))
        if not record.approval:
            self.context.notices.awaits(record)
        event = "proposal accepted" if record.approval else "proposal awaits approval"
        self.context.log.info(event, job=job.id.hex(), caller=coordinator, task=spec.job.task, dataset=spec.job.dataset)
        return job, SignedApproval.FromString(record.approval) if record.approval else None

    async def _receive(self, signed: SignedProposal, coordinator: str) -> tuple[Job, JobSpec, Record]:
        async with self.jobs.place_for(coordinator, signed.ByteSize()):
            record, spec = await self.context.consent.receive(signed, coordinator)
            return self._admit(record, spec), spec, record

    async def find(self, job_id: bytes, coordinator: str, *, judged: bool = False) -> Job:
        """The job, for the coordinator that proposed it.

        Args:
            job_id: The job.
            coordinator: Who asks.
            judged: Whether to wait for proposals that have come and are not judged yet.

        Raises:
            UnexpectedMessage: There is none; whose else it may be is not revealed.
        """
        if judged:
            await self.jobs.judged(coordinator)
        job = self.jobs.get(job_id) or await asyncio.to_thread(self._known, job_id, coordinator)
        if job is None or job.coordinator != coordinator:
            raise UnexpectedMessage(f"{self._me} has no such job of {coordinator}; propose it first", party=self._me)
        return self.jobs.of(job)  # it may have been admitted meanwhile

    def _known(self, job_id: bytes, coordinator: str) -> Job | None:
        record = self.context.store.get(job_id)
        if record is None or record.coordinator != coordinator:
            return None
        return Job(record.job_id, spec_of(record), record.coordinator, present(record))

    async def queue(self, job: Job, *, wait: bool) -> AsyncGenerator[int]:
        """How many turns a job is away from its own: 0 is its turn, which it keeps while the answers are awaited.

        Args:
            job: The job, which all its parties have approved.
            wait: Whether to wait where it is not the job's turn at once.

        Raises:
            ComineError: The job has ended, or ends meanwhile; or too many wait.
        """
        record = await asyncio.to_thread(self.context.store.get, job.id)
        if record is None or record.expiry <= self.now():
            raise self._expired()
        if record.state not in (APPROVED, FAILED, CANCELLED):
            raise UnexpectedMessage(f"nothing of this job can begin at {self._me} now", party=self._me)
        memory = await asyncio.to_thread(self.context.consent.judge.memory_of, job.spec)
        turn = self._turns.ask(job.id, job.coordinator, record.received, memory)
        try:
            async for place in turn.places():
                job.progress(f"waits for its turn at {self._me}: place {place}" if place else "", 0, 0)
                yield place
                if place and not wait:
                    return
        finally:
            self._turns.drop(turn)

    async def start(self, job: Job, attempt: int, approvals: Sequence[SignedApproval], seed: bytes = b"") -> None:
        """Begins this party's part; each attempt once in the life of a job, and only where the policy still allows it.

        Args:
            job: The job.
            attempt: Counts its starts.
            approvals: Of all parties, which have been checked.
            seed: Of this party and the coordinator, where the coordinator deals randomness.

        Raises:
            UnexpectedMessage: The job runs, has ended so that it cannot go on, has had this attempt, or nobody has
                approved it here.
            MalformedMessage: The coordinator has to deal and has sent no seed.
            PolicyDenied: A rule refuses the job by now.
            ResourceError: As many jobs as may run at once are running.
        """
        job = self.jobs.of(job)  # of a job that is over, `find` makes one for each caller
        await uninterrupted(self._start(job, attempt, approvals, seed))

    async def _start(self, job: Job, attempt: int, approvals: Sequence[SignedApproval], seed: bytes) -> None:
        async with job.moving, self.context.starting:
            record, again = await self._startable(job, attempt)
            memory = await asyncio.to_thread(self.context.consent.judge.memory_of, job.spec)
            if self._closing or not self._turns.claim(job.id, job.coordinator, memory):
                why = "is stopping" if self._closing else "runs as many jobs as its settings allow"
                raise ResourceError(f"{self._me} {why}; start the job later", party=self._me)
            try:
                await self._begin(job, record, attempt, seed, again=again)
            except BaseException:
                self._turns.end(job.id)
                raise
            before = self._hosting.get(job.id)
            hosting = self._host(self.context, job, attempt, approvals, before)
            job.task = self._hosting[job.id] = asyncio.create_task(hosting)
            job.task.add_done_callback(lambda task: self._hosted(job.id, task))

    async def _startable(self, job: Job, attempt: int) -> tuple[Record, bool]:
        """The record of a job that may begin, and whether it has begun before."""
        await self.transitions.notice(job)
        if (cancelled := await asyncio.to_thread(self.context.store.owner_end, job.id, self._me)) is not None:
            raise cancelled
        if job.state == AWAITING_APPROVAL:
            raise UnexpectedMessage(f"nobody at {self._me} has approved this job yet", party=self._me)
        if attempt < 1:
            raise UnexpectedMessage("a job's first attempt has the number 1", party=self._me)
        again = job.state in (FAILED, CANCELLED) and attempt > max(job.attempt, 1)
        unsettled = job.is_ending or self.transitions.unwritten(job.id) is not None or self._turns.runs(job.id)
        if (job.state != APPROVED and not again) or unsettled:
            state = JobState.Name(job.state).lower()
            raise UnexpectedMessage(
                f"this job was started at {self._me} before, or has ended ({state}); propose it anew", party=self._me
            )
        if (record := await asyncio.to_thread(self.context.store.get, job.id)) is None or record.expiry <= self.now():
            self._keep(self._expire(job))
            raise self._expired()
        if attempt > 1:
            check_goes_on(record, job.spec, attempt, self._me)
        return record, again

    async def _begin(self, job: Job, record: Record, attempt: int, seed: bytes, *, again: bool) -> None:
        """Charges a start and writes it down."""
        context, now = self.context, self.now()
        judge = context.consent.judge
        context.audit.check(Started, job.coordinator)
        await asyncio.to_thread(judge.decide, job.spec, job.coordinator, job_id=job.id, attempt=attempt)
        await asyncio.to_thread(context.consent.check_people, job.id, job.spec.job.dataset)
        if kind_of(job.spec).is_dealt(job.spec):
            job.dealings = CoordinatorDealings(seed, self._me, job.ask, job.spec.job.deadline_s)
        await asyncio.to_thread(charge_start, context, job, attempt, now)
        before, job.attempt, job.began = job.attempt, attempt, now
        changes: dict[str, Any] = {"started": now, "attempt": attempt}
        if again:  # counted by the policy when it was started first
            changes = {"started": record.started or now, "attempt": attempt, "ended": None}
            changes |= {"error_code": "", "error_message": "", "error_party": ""}
        try:
            await self.transitions.move(job, RUNNING, **changes)
        except BaseException:
            job.attempt = before
            raise
        context.notices.charged(job.spec)
        if again:
            self.keep_open(job, record.expiry)
        context.log.info(
            "job started", job=job.id.hex(), task=job.spec.job.task, caller=job.coordinator, attempt=attempt
        )

    async def result(self, job: Job) -> Released:
        """What the coordinator may fetch of a job that succeeded.

        Raises:
            UnexpectedMessage: The job has not succeeded, or its hour has passed.
        """
        end = self.transitions.unwritten(job.id)
        record = await asyncio.to_thread(self.context.store.get, job.id)
        succeeded = end.state == SUCCEEDED if end is not None else record is not None and record.state == SUCCEEDED
        if not succeeded or record is None:
            raise UnexpectedMessage(f"the job has no result at {self._me}; watch it until it succeeds", party=self._me)
        signed: bytes = record.release if end is None else end.changes["release"]
        return await fetched(self.context, job, signed)

    async def cancel(self, job: Job, reason: str) -> None:
        """Ends a job and tells its peers; does nothing where it has ended."""
        why = f": {reason[:MAX_REASON]}" if reason else ""
        await self._cancel(job, JobCancelled(f"the job was cancelled at {self._me}{why}", party=self._me))

    async def _cancel(self, job: Job, cancelled: ComineError) -> None:
        async with job.moving:  # a start that is under way is done then
            pass
        if job.over:
            return
        job.cancelled = job.cancelled or cancelled
        if job.task is None:
            await self.transitions.end(job, CANCELLED, cancelled)
            return
        if (transport := self._transports.get(job.id)) is not None:
            self._keep(self._notify_peers(job, cancelled, transport))  # before the session does, which knows no reason
        job.task.cancel()
        _, unfinished = await asyncio.wait({job.task}, timeout=CANCEL_S)
        if unfinished:
            job.task.cancel()
        elif not job.over:  # the task was cancelled before its first step
            await self.transitions.end(job, CANCELLED, cancelled)

    async def close(self) -> None:
        """Cancels what runs at all parties, and returns once the peers have been told; what waits goes on waiting."""
        self._closing = True
        if self._attending is not None:
            self._attending.cancel()
            await asyncio.gather(self._attending, return_exceptions=True)
        self.jobs.close()
        self._turns.close()
        await self._note.close()
        running = [job for job in self.jobs if job.task is not None]
        await asyncio.gather(*(self.cancel(job, "its node is stopping") for job in running))
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.transitions.close()

    def _progress(self, job_id: bytes) -> Running | None:
        job = self.jobs.get(job_id)
        if job is None or job.state not in (RUNNING, RELEASING):
            return None
        return Running(*job.shown_progress, job.began, job.began + job.spec.job.deadline_s, job.traffic())

    # -- waiting for people and for time -----------------------------------------------------------------------------
    def _admit(self, record: Record, spec: JobSpec) -> Job:
        """Keeps an open job in memory until it ends."""
        job = Job(record.job_id, spec, record.coordinator, present(record), size=len(record.proposal))
        self.keep_open(job, record.expiry)
        return job

    def keep_open(self, job: Job, expiry: float) -> None:
        """Keeps a job in memory until it ends, or nobody has started it by the end of its proposal."""
        self.jobs.keep(job, expiry, lambda job: self._keep(self._expire(job)))
        if self._attending is None or self._attending.done():
            self._attending = asyncio.create_task(self._attend())

    async def _attend(self) -> None:
        """Looks for what people decide by the command line, as long as a job is open."""
        while len(self.jobs):
            await asyncio.sleep(POLL_S)
            try:
                if await asyncio.to_thread(self.context.store.changed):
                    for job in self.jobs:
                        await self._notice(job)
            except ComineError as error:
                self.context.log.error("jobs unreadable", error=error)

    async def _notice(self, job: Job) -> None:
        await self.transitions.notice(job)
        if job.over or job.cancelled is not None:
            return
        if (cancelled := await asyncio.to_thread(self.context.store.owner_end, job.id, self._me)) is not None:
            self._keep(self._cancel(job, cancelled))
        elif (released := job.released) is not None:
            held = await asyncio.to_thread(self.context.store.held, job.id)
            if held is not None and held.released_by:
                released.set()

    async def _expire(self, job: Job) -> None:
        await self._forgetting.look()
        with contextlib.suppress(ComineError):  # as where nobody has decided
            await self.transitions.notice(job)
        async with job.moving:
            pass
        if job.task is None and not job.over and not self._closing:
            await self.transitions.end(job, EXPIRED, self._expired())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Does something beside what is done now."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _expired(self) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"the proposal expired before the job was started at {self._me}; propose it anew", party=self._me
        )

    def _hosted(self, job_id: bytes, task: asyncio.Task[None]) -> None:
        if self._hosting.get(job_id) is task:
            del self._hosting[job_id]
            self._turns.end(job_id)

    # -- one job -----------------------------------------------------------------------------------------------------
    async def _host(
        self,
        context: JobContext,
        job: Job,
        attempt: int,
        approvals: Sequence[SignedApproval],
        before: asyncio.Task[None] | None,
    ) -> None:
        if before is not None:  # has ended, and still notifies its peers
            await asyncio.wait({before})
        try:
            parties = job.spec.job.parties
            # A peer may still try to renew the streams of an earlier attempt: they must not end up at this one's.
            streams = job.id if attempt == 1 else job.id + attempt.to_bytes(4, "big")
            transport = JobTransport(context.link.open(streams, parties), job.id, self._me, parties)
        except ComineError as error:
            await self.transitions.end(job, FAILED, public(job, error, self._me), error)
            return
        job.costs, job.traffic, self._transports[job.id] = transport.costs, transport.traffic, transport
        try:
            await self._take_part(context, job, attempt, approvals, transport)
        except (Exception, asyncio.CancelledError) as error:
            cause = public(job, error, self._me)
            try:
                await self._notify_peers(job, cause, transport)
            finally:
                await self.transitions.end(job, CANCELLED if isinstance(cause, JobCancelled) else FAILED, cause, error)
        finally:
            del self._transports[job.id]
            # Peers need the last frames of a party that has done its part, and of one that has not no more than why.
            await transport.close(hurried=job.state != SUCCEEDED)

    async def _take_part(
        self,
        context: JobContext,
        job: Job,
        attempt: int,
        approvals: Sequence[SignedApproval],
        transport: JobTransport,
    ) -> None:
        async with asyncio.timeout(job.spec.job.deadline_s + BACKSTOP_S):
            run = await take_part(context, job, attempt, approvals, transport)
        job.costs = lambda: run.costs
        await self.transitions.move(job, RELEASING)
        try:
            await uninterrupted(self._finish(context, job, run))
        except asyncio.CancelledError:  # often too late: the audit log says already that the job succeeded
            if not job.over:
                raise

    async def _finish(self, context: JobContext, job: Job, run: PartyRun) -> None:
        """Hands over what the job gave."""
        header = await release(context, job, run)
        await self.transitions.succeed(job, header)
        self.context.log.info(
            "job succeeded",
            caller=job.coordinator,
            job=job.id.hex(),
            session=run.session_id.hex(),
            opened=len(run.opened),
            **run.costs._asdict(),
        )

    async def _notify_peers(self, job: Job, cause: ComineError, transport: JobTransport) -> None:
        """Makes sure that peers hear of the end, also where there was no session to tell them."""
        if not transport.aborted:
            with contextlib.suppress(TimeoutError, ComineError):
                async with asyncio.timeout(ABORT_S):
                    await transport.abort(cause, tuple(p for p in job.spec.job.parties if p != self._me))
