"""Runs the jobs of a node: from a proposal to a signed release, several at a time, and over restarts."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from crypto.primitives.randomness import Randomness
from jobs.audit.events import Ended, RulesHidden, Started
from jobs.audit.recorder import SessionRecorder
from jobs.audit.tail import Mark
from jobs.data import Data
from jobs.hybrid_parameters import is_estimated
from jobs.parameters import coordinator_deals
from jobs.run import run_party
from jobs.spec import JobSpec
from link.errors import (
    ComineError,
    DeadlineExceeded,
    InputDataError,
    JobCancelled,
    PeerError,
    ResourceError,
    UnexpectedMessage,
    from_code,
)
from party.charging import charge_start, charged
from party.consent import spec_of
from party.dealing import CoordinatorDealings
from party.ending import WORDS, end_record, ended, present, public
from party.job import Job
from party.job_transport import JobTransport
from party.progress import check_goes_on, check_same_rows, forget, forget_stale, keeper_of
from party.release import Released, release
from party.restocking import Restocking
from party.room import Room
from party.store import Record
from protos.v1.control_pb2 import (
    APPROVED,
    AWAITING_APPROVAL,
    CANCELLED,
    DENIED,
    EXPIRED,
    FAILED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    JobState,
    Release,
    ResultHeader,
    SignedApproval,
    SignedProposal,
)

MAX_OPEN: Final = 256  # jobs of one coordinator that have not ended
MAX_REASON: Final = 200  # characters of a coordinator's reason for cancelling
POLL_S: Final = 0.25  # between two looks for decisions of people, while one is awaited
BACKSTOP_S: Final = 5.0  # after the deadline: the session's own waits have ended by then
ABORT_S: Final = 2.0  # for which a peer may keep this party from telling that it ends the job
CANCEL_S: Final = 5.0  # for which a cancelled job may tell its peers and flush


class SessionHost:
    """The jobs that were proposed to this node. Those that have not ended are in memory, all of them in the store.

    Args:
        room: What they share.
        now: Unix seconds.
    """

    def __init__(self, room: Room, *, now: Callable[[], float] = time.time) -> None:
        self._room, self._now = room, now
        self._me = room.identity.name
        self._jobs: dict[bytes, Job] = {}
        self._hosting: dict[bytes, asyncio.Task[None]] = {}  # with those that only take leave of their peers
        self._transports: dict[bytes, JobTransport] = {}  # of those
        self._attending: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._restocking = Restocking(room.lists, lambda: not (self.running or self._closing), room.log)
        self._closing = False

    @property
    def running(self) -> int:
        """Jobs whose part here has begun and not ended; one that only tells its peers of its end has ended."""
        return sum(job.task is not None and not job.task.done() and not job.over for job in self._jobs.values())

    def unsettled(self) -> Mark | None:
        """The entry of the audit log after which the jobs that run here began; None where none does."""
        marks = [job.began_after for job in self._jobs.values() if job.began_after is not None]
        return min(marks, key=lambda mark: mark.seq, default=None)

    async def recover(self) -> None:
        """Takes up the jobs that an earlier process of this node has left; those that ran have failed."""
        store = self._room.store
        for record in store.within((RUNNING, RELEASING)):
            error = PeerError(
                f"the node of {self._me} was restarted while the job ran; run the job again", party=self._me
            )
            await end_record(
                self._room,
                self._now(),
                record,
                FAILED,
                error,
                *charged(self._room.ledger, record.job_id, record.attempt),
            )
        self._forget_stale()
        if (stale := store.next_stale()) is not None:
            self._call_at(stale, self._forget_stale)
        for record in store.within((AWAITING_APPROVAL, APPROVED)):
            try:
                spec = spec_of(record)
            except ComineError as error:
                await end_record(self._room, self._now(), record, CANCELLED, error)
                continue
            if record.expiry <= self._now():
                await end_record(self._room, self._now(), record, EXPIRED, self._expired())
            else:
                self._admit(record, spec)
        self._room.tables.recover()

    async def propose(self, signed: SignedProposal, coordinator: str) -> tuple[Job, SignedApproval | None]:
        """The job of a proposal, and this party's approval where it needs no person.

        Raises:
            PolicyDenied: The policy refuses it.
            ComineError: The proposal is not good, has expired or was received before.
            ResourceError: The coordinator has too many open jobs here.
        """
        if sum(job.coordinator == coordinator for job in self._jobs.values()) >= MAX_OPEN:
            raise ResourceError(
                f"{self._me} has {MAX_OPEN} open jobs of {coordinator}; propose the job later", party=self._me
            )
        record, spec = await self._room.consent.receive(signed, coordinator)
        job = self._admit(record, spec)
        event = "proposal accepted" if record.approval else "proposal awaits approval"
        self._room.log.info(event, job=job.id.hex(), caller=coordinator, task=spec.job.task, dataset=spec.job.dataset)
        return job, SignedApproval.FromString(record.approval) if record.approval else None

    def find(self, job_id: bytes, coordinator: str) -> Job:
        """The job, for the coordinator that proposed it.

        Raises:
            UnexpectedMessage: There is none; whose else it may be is not told.
        """
        if (job := self._jobs.get(job_id)) is None and (record := self._room.store.get(job_id)) is not None:
            job = Job(record.job_id, spec_of(record), record.coordinator, present(record))
        if job is None or job.coordinator != coordinator:
            raise UnexpectedMessage(f"{self._me} has no such job of {coordinator}; propose it first", party=self._me)
        return job

    def start(self, job: Job, attempt: int, approvals: Sequence[SignedApproval], seed: bytes = b"") -> None:
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
        job = self._jobs.get(job.id, job)  # of a job that is over, `find` makes one for each caller
        self._notice(job)
        if job.state == AWAITING_APPROVAL:
            raise UnexpectedMessage(f"nobody at {self._me} has approved this job yet", party=self._me)
        if attempt < 1:
            raise UnexpectedMessage("a job's first attempt has the number 1", party=self._me)
        again = job.state in (FAILED, CANCELLED) and attempt > max(job.attempt, 1)
        if (job.state != APPROVED and not again) or job.ending:
            state = JobState.Name(job.state).lower()
            raise UnexpectedMessage(
                f"this job was started at {self._me} before, or has ended ({state}); propose it anew", party=self._me
            )
        if (record := self._room.store.get(job.id)) is None or record.expiry <= self._now():
            self._expire(job)
            raise self._expired()
        if attempt > 1:
            check_goes_on(record, job.spec, attempt, self._me)
        if self._closing or self.running >= self._room.max_running:
            why = "is stopping" if self._closing else f"runs {self.running} jobs, the most that its max_running allows"
            raise ResourceError(f"{self._me} {why}; start the job later", party=self._me)
        self._room.consent.judge.decide(job.spec, job.coordinator, job_id=job.id, attempt=attempt)
        charge_start(self._room.ledger, job, attempt, self._now())
        if coordinator_deals(job.spec):
            job.dealings = CoordinatorDealings(seed, self._me, job.ask, lambda: job.watched)
        job.attempt = attempt
        if again:  # counted by the policy when it was started first
            cleared = {"ended": None, "error_code": "", "error_message": "", "error_party": ""}
            self._move(job, RUNNING, started=record.started or self._now(), attempt=attempt, **cleared)
            self._keep_open(job, record.expiry)
        else:
            self._move(job, RUNNING, started=self._now(), attempt=attempt)
        self._room.log.info(
            "job started", job=job.id.hex(), task=job.spec.job.task, caller=job.coordinator, attempt=attempt
        )
        before = self._hosting.get(job.id)
        job.task = self._hosting[job.id] = asyncio.create_task(self._host(job, attempt, approvals, before))
        job.task.add_done_callback(lambda task: self._hosted(job.id, task))

    async def result(self, job: Job) -> Released:
        """What the coordinator may fetch of a job that succeeded.

        Raises:
            UnexpectedMessage: The job has not succeeded, or its hour has passed.
        """
        record = self._room.store.get(job.id)
        if record is None or record.state != SUCCEEDED:
            raise UnexpectedMessage(f"the job has no result at {self._me}; watch it until it succeeds", party=self._me)
        if not record.release:
            raise UnexpectedMessage(
                f"{self._me} has lost what it signed about this job, with its job database; run the job again",
                party=self._me,
            )
        header = ResultHeader.FromString(record.release)
        if not (job.spec.to_coordinator and Release.FromString(header.release).result_digest):
            return Released(header, b"")
        table = await asyncio.to_thread(self._room.tables.read, job.id)
        if table is None:
            raise UnexpectedMessage(
                f"{self._me} kept the result of this job for an hour, which has passed; run the job again",
                party=self._me,
            )
        return Released(header, table)

    async def cancel(self, job: Job, reason: str) -> None:
        """Ends a job and tells its peers; does nothing where it has ended."""
        if job.over:
            return
        told = f": {reason[:MAX_REASON]}" if reason else ""
        job.cancelled_by = f"the job was cancelled at {self._me}{told}"
        cancelled = JobCancelled(job.cancelled_by, party=self._me)
        if job.task is None:
            await self._end(job, CANCELLED, cancelled)
            return
        if (transport := self._transports.get(job.id)) is not None:
            self._keep(self._tell_peers(job, cancelled, transport))  # before the session does, which knows no reason
        job.task.cancel()
        _, unfinished = await asyncio.wait({job.task}, timeout=CANCEL_S)
        if unfinished:
            job.task.cancel()
        elif not job.over:  # the task was cancelled before its first step
            await self._end(job, CANCELLED, cancelled)

    async def close(self) -> None:
        """Cancels what runs at all parties, and returns once the peers have been told; what waits goes on waiting."""
        self._closing = True
        if self._attending is not None:
            self._attending.cancel()
            await asyncio.gather(self._attending, return_exceptions=True)
        running = [job for job in self._jobs.values() if job.task is not None]
        await asyncio.gather(*(self.cancel(job, "its node is stopping") for job in running))
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._restocking.close()

    # -- waiting for people and for time -----------------------------------------------------------------------------
    def _admit(self, record: Record, spec: JobSpec) -> Job:
        """Keeps an open job in memory until it ends."""
        job = Job(record.job_id, spec, record.coordinator, present(record))
        self._keep_open(job, record.expiry)
        if job.state == AWAITING_APPROVAL and (self._attending is None or self._attending.done()):
            self._attending = asyncio.create_task(self._attend())
        return job

    def _keep_open(self, job: Job, expiry: float) -> None:
        self._jobs[job.id] = job
        self._call_at(expiry, self._expire, job)

    def _call_at(self, when: float, callback: Callable[..., None], *arguments: Any) -> None:
        asyncio.get_running_loop().call_later(max(0.0, when - self._now()), callback, *arguments)

    async def _attend(self) -> None:
        """Looks for what people decide by the command line, as long as a job awaits it."""
        while awaiting := [job for job in self._jobs.values() if job.state == AWAITING_APPROVAL]:
            await asyncio.sleep(POLL_S)
            try:
                if self._room.store.changed():
                    for job in awaiting:
                        self._notice(job)
            except ComineError as error:
                self._room.log.error("jobs unreadable", error=error)

    def _notice(self, job: Job) -> None:
        """Takes note of a decision that was made elsewhere."""
        if job.state != AWAITING_APPROVAL or (record := self._room.store.get(job.id)) is None:
            return
        if record.state == APPROVED:
            job.move(APPROVED, SignedApproval.FromString(record.approval))
            self._room.log.info("job approved", job=job.id.hex())
        elif record.state == DENIED:
            job.end(DENIED, from_code(record.error_code, record.error_message, party=self._me), self._me)
            self._jobs.pop(job.id, None)
            self._room.log.info("job denied", job=job.id.hex())

    def _expire(self, job: Job) -> None:
        self._forget_stale()
        self._notice(job)
        if job.task is None and not job.over and not self._closing:
            self._keep(self._end(job, EXPIRED, self._expired()))

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
        self._restocking.resume()

    def _forget_stale(self) -> None:
        """Forgets the levels of jobs that cannot go on any more."""
        if self._closing:
            return
        try:
            forget_stale(self._room.store, self._now())
        except ComineError as error:
            self._room.log.error("jobs unwritable", error=error)

    # -- one job -----------------------------------------------------------------------------------------------------
    async def _host(
        self, job: Job, attempt: int, approvals: Sequence[SignedApproval], before: asyncio.Task[None] | None
    ) -> None:
        if before is not None:  # has ended, and takes leave of its peers
            await asyncio.wait({before})
        try:
            parties = job.spec.job.parties
            # A peer may still try to renew the streams of an earlier attempt: they must not end up at this one's.
            streams = job.id if attempt == 1 else job.id + attempt.to_bytes(4, "big")
            transport = JobTransport(self._room.link.open(streams, parties), job.id, self._me, parties)
        except ComineError as error:
            await self._end(job, FAILED, error)
            return
        job.costs, self._transports[job.id] = transport.costs, transport
        try:
            await self._take_part(job, attempt, approvals, transport)
        except (Exception, asyncio.CancelledError) as error:
            told = public(job, error, self._me)
            try:
                await self._tell_peers(job, told, transport)
            finally:
                await self._end(job, CANCELLED if isinstance(told, JobCancelled) else FAILED, told, error)
        finally:
            del self._transports[job.id]
            await transport.close()

    async def _take_part(
        self, job: Job, attempt: int, approvals: Sequence[SignedApproval], transport: JobTransport
    ) -> None:
        room = self._room
        policy = room.consent.judge.policy_of(job.spec)
        async with asyncio.timeout(job.spec.job.deadline_s + BACKSTOP_S):
            job.began_after = await asyncio.to_thread(room.audit.mark)
            events = (
                Started.of(job.id, attempt, approvals),
                *charged(room.ledger, job.id, attempt),
                *self._hidden(job),
            )
            started = asyncio.create_task(room.audit.record(*events))
            try:
                data = await transport.before_session(self._load(job))
            finally:
                await started
            await self._check_data(job, data, attempt)
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
                least_count=policy.min_count or 1,
                recorder=SessionRecorder(room.audit, room.audit_key, job.id, attempt, job.spec.job.parties),
                stock=room.stock,
                lists=room.lists,
                dealings=job.dealings,
                keeper=keeper_of(room.store, job.id, job.spec, attempt),
            )
        job.costs = lambda: run.costs
        self._move(job, RELEASING)
        header = await release(room, job, run)
        self._move(job, SUCCEEDED, ended=self._now(), release=header.SerializeToString())
        forget(room.store, job.id)
        self._jobs.pop(job.id, None)
        room.log.info(
            "job succeeded",
            job=job.id.hex(),
            session=run.session_id.hex(),
            opened=len(run.opened),
            **run.costs._asdict(),
        )

    async def _check_data(self, job: Job, data: Data, attempt: int) -> None:
        """Applies the rules that need the rows, and notes them for the next job on the dataset.

        A job under a privacy model is not noted: two jobs without noise would be held against it, and not each other.
        """
        room = self._room
        data_digest = await room.sources.digest(job.spec.job.dataset, data)
        if attempt > 1 and (record := room.store.get(job.id)) is not None:
            check_same_rows(record, data_digest, self._me)
        room.consent.judge.check_data(job.spec, data.n_rows, data_digest, job_id=job.id)
        if not is_estimated(job.spec):
            room.store.note_data(job.id, data.n_rows, data_digest)

    async def _tell_peers(self, job: Job, told: ComineError, transport: JobTransport) -> None:
        """Makes sure that peers hear of the end, also where there was no session to tell them."""
        if not transport.aborted:
            with contextlib.suppress(TimeoutError, ComineError):
                async with asyncio.timeout(ABORT_S):
                    await transport.abort(told, tuple(p for p in job.spec.job.parties if p != self._me))

    def _hidden(self, job: Job) -> tuple[RulesHidden, ...]:
        """What the audit log is told, where the job gets rows in which rules are hidden."""
        name = job.spec.job.dataset
        rules = self._room.sources.hidden_rules(name)
        return (RulesHidden(job=job.id, dataset=name, rules=rules),) if rules else ()

    async def _load(self, job: Job) -> Data:
        """The job's data; why it cannot be read stays in this node's log."""
        name = job.spec.job.dataset
        try:
            return await self._room.sources.load(name)
        except ComineError as error:
            self._room.log.error("source unreadable", job=job.id.hex(), dataset=name, error=error)
            raise InputDataError(
                f"{self._me} cannot read its dataset '{name}'; the log of {self._me} has the reason", party=self._me
            ) from error

    # -- states ------------------------------------------------------------------------------------------------------
    def _move(self, job: Job, state: JobState.ValueType, **changes: Any) -> None:
        """Goes on to the next state: on disk first, then in memory and to watchers."""
        if not self._room.store.move(job.id, job.state, state, changes):
            raise UnexpectedMessage(f"this job has been moved on at {self._me} by another process", party=self._me)
        job.move(state)

    async def _end(
        self, job: Job, state: JobState.ValueType, told: ComineError, error: BaseException | None = None
    ) -> None:
        """Ends a job early, once; where its end cannot be written, it has ended all the same."""
        if job.ending:
            return
        job.ending, before = True, job.state
        writing = asyncio.ensure_future(self._room.audit.record(Ended.by(job.id, WORDS[state], told)))
        try:
            await asyncio.shield(writing)
        except ComineError:  # the node's log has the reason
            pass
        except (
            asyncio.CancelledError
        ):  # cancelled while it ends: the log must tell of the end before an attempt follows
            await asyncio.wait({writing})
            raise
        finally:
            if job.state == before:
                self._end_now(job, state, told, error)
            job.ending = False

    def _end_now(self, job: Job, state: JobState.ValueType, told: ComineError, error: BaseException | None) -> None:
        changes = ended(self._now(), told, self._me)
        try:
            if not self._room.store.move(job.id, job.state, state, changes):
                self._notice(job)  # a person has just decided
                if job.over:
                    return
                self._room.store.move(job.id, job.state, state, changes)
            forget(self._room.store, job.id, told.code)
            forget_stale(self._room.store, self._now())
        except ComineError as unwritten:
            self._room.log.error("jobs unwritable", error=unwritten)
        job.end(state, told, self._me)
        self._jobs.pop(job.id, None)
        cause = told if error is None or isinstance(error, asyncio.CancelledError) else error
        self._room.log.warning(f"job {WORDS[state]}", job=job.id.hex(), error=cause)
