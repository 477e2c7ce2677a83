"""One job as its node knows it: legal moves between states, and events for those who watch."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from jobs.audit.tail import Mark
from jobs.spec.job import JobSpec
from link.costs import Costs
from link.errors import ComineError
from party.jobs.dealing import CoordinatorDealings
from party.services.anonymization.releases import Earlier
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
    DealRequest,
    JobEvent,
    JobState,
    SignedApproval,
)

MOVES: Final[Mapping[JobState.ValueType, frozenset[JobState.ValueType]]] = {
    AWAITING_APPROVAL: frozenset({APPROVED, DENIED, EXPIRED, CANCELLED}),
    APPROVED: frozenset({RUNNING, EXPIRED, CANCELLED}),
    RUNNING: frozenset({RELEASING, FAILED, CANCELLED}),
    RELEASING: frozenset({SUCCEEDED, FAILED, CANCELLED}),
    SUCCEEDED: frozenset(),
    FAILED: frozenset({RUNNING}),  # in another attempt
    CANCELLED: frozenset({RUNNING}),
    DENIED: frozenset(),
    EXPIRED: frozenset(),
}
ENDS: Final = frozenset({SUCCEEDED, FAILED, CANCELLED, DENIED, EXPIRED})
PROGRESS_S: Final = 0.05  # between two events of progress: they must cost a job nothing


@dataclass(slots=True, eq=False)
class _Watcher:
    """Events that one watcher has not seen; of one step's progress it keeps only the latest."""

    unseen: deque[JobEvent]
    more: asyncio.Event = field(default_factory=asyncio.Event)

    def notify(self, event: JobEvent) -> None:
        if self.unseen and (self.unseen[-1].state, self.unseen[-1].step) == (event.state, event.step):
            self.unseen.pop()
        self.unseen.append(event)
        self.more.set()


class Job:
    """A job that was proposed to this party. To be used on the event loop only.

    Args:
        job_id: 32 bytes.
        spec: What is to be done.
        coordinator: Who proposed it; nobody else may ask for it.
        present: Where it stands, as watchers see it.
        size: Bytes of its proposal.

    Attributes:
        moving: Held while somebody begins the job, or asks whether it has begun.
        settled: Called once its end is on the disk, where that took more than one try.
        costs: Returns what the job has cost so far.
        traffic: Returns the bytes sent to each peer and received from it, in the attempt that runs.
        began: When that attempt began, Unix seconds; 0 where none runs.
        in_session: Returns whether its session has begun, in which something about rows is sent.
        opened: Returns the labels of what its session has opened, once that is over.
        task: The running part; None until the start.
        cancelled: By what the job was ended here on purpose; None where it was not.
        released: Set once people have released what is held of it; None where nothing is.
        is_ending: Whether its early end is being recorded, before which nothing may begin.
        attempt: The last that has begun; 0 before the first.
        earlier_release: As what attempts before the one that runs count, of a joint release; a release where unknown.
        began_after: The last entry of the audit log before those about its run; None where it does not run.
        dealings: What the coordinator deals to this party; None in a job in which it does not.
    """

    def __init__(self, job_id: bytes, spec: JobSpec, coordinator: str, present: JobEvent, *, size: int = 0) -> None:
        self.id, self.spec, self.coordinator, self.size = job_id, spec, coordinator, size
        self.moving = asyncio.Lock()
        self.settled: Callable[[], None] = lambda: None
        self.task: asyncio.Task[None] | None = None
        self.cancelled: ComineError | None = None
        self.released: asyncio.Event | None = None
        self.is_ending = False
        self.earlier_release = Earlier.RELEASE
        self.began_after: Mark | None = None
        self.dealings: CoordinatorDealings | None = None
        self.attempt = present.attempt
        self.costs: Callable[[], Costs] = lambda: Costs(
            present.bytes_sent, present.bytes_received, present.rounds, present.seconds
        )
        self.traffic: Callable[[], Mapping[str, tuple[int, int]]] = dict
        self.began = 0.0
        self.in_session: Callable[[], bool] = lambda: False
        self.opened: Callable[[], frozenset[str]] = frozenset
        self._event = present
        self._wanted: DealRequest | None = None
        self._watchers: set[_Watcher] = set()
        self._notified = 0.0
        self._delayed: asyncio.TimerHandle | None = None

    @property
    def state(self) -> JobState.ValueType:
        """Where the job stands."""
        return self._event.state

    @property
    def shown_progress(self) -> tuple[str, int, int]:
        """The step that watchers see, how far it has come, and of how much."""
        return self._event.step, self._event.done, self._event.total

    @property
    def over(self) -> bool:
        """Whether the job has ended, one way or another; another attempt may follow."""
        return self.state in ENDS

    def move(self, state: JobState.ValueType, approval: SignedApproval | None = None) -> None:
        """Goes on to the next state of a job that goes well.

        Args:
            state: The state.
            approval: This party's, with `APPROVED`.

        Raises:
            RuntimeError: The move is not legal.
        """
        self._move(
            JobEvent(
                state=state, step=self._event.step, done=self._event.done, total=self._event.total, approval=approval
            )
        )

    def end(self, state: JobState.ValueType, error: ComineError, me: str) -> None:
        """Ends the job early.

        Args:
            state: How.
            error: Why.
            me: Where it arose, unless the error names another party.

        Raises:
            RuntimeError: The move is not legal.
        """
        event = JobEvent(state=state, step=self._event.step, done=self._event.done, total=self._event.total)
        event.error_code, event.error_message, event.error_party = error.code, error.message, error.blamed(me)
        self._move(event)

    def progress(self, step: str, done: int, total: int) -> None:
        """Shows watchers how far a step has come: at once where the last event is `PROGRESS_S` old, otherwise soon."""
        if self.over:
            return
        approval = self._event.approval if self._event.HasField("approval") else None
        self._event = JobEvent(state=self.state, step=step, done=done, total=total, approval=approval)
        if self._delayed is not None:
            return
        wait = self._notified + PROGRESS_S - time.monotonic()
        if wait <= 0:
            self._notify()
        else:
            self._delayed = asyncio.get_running_loop().call_later(wait, self._notify)

    def ask(self, request: DealRequest | None) -> None:
        """Puts a request to the coordinator into all events from now on; None takes it out again."""
        self._wanted = request
        if request is not None and not self.over:
            self._notify()

    async def watch(self) -> AsyncIterator[JobEvent]:
        """The job as it stands and everything that follows, up to its end."""
        watcher = _Watcher(deque([self._priced()]))
        watcher.more.set()
        self._watchers.add(watcher)
        try:
            while True:
                await watcher.more.wait()
                while watcher.unseen:
                    event = watcher.unseen.popleft()
                    yield event
                    if event.state in ENDS:
                        return
                watcher.more.clear()
        finally:
            self._watchers.discard(watcher)

    def _move(self, event: JobEvent) -> None:
        if event.state not in MOVES[self.state]:
            raise RuntimeError(f"a job cannot go from {JobState.Name(self.state)} to {JobState.Name(event.state)}")
        if self._delayed is not None:
            self._notify()
        self._event = event
        self._notify()

    def _notify(self) -> None:
        if self._delayed is not None:
            self._delayed.cancel()
            self._delayed = None
        self._notified = time.monotonic()
        self._event = self._priced()
        for watcher in self._watchers:
            watcher.notify(self._event)

    def _priced(self) -> JobEvent:
        event, costs = JobEvent(), self.costs()
        event.CopyFrom(self._event)
        event.ClearField("deal")
        event.attempt = self.attempt
        if self._wanted is not None:
            event.deal.CopyFrom(self._wanted)
        event.bytes_sent, event.bytes_received = costs.bytes_sent, costs.bytes_received
        event.rounds, event.seconds = costs.rounds, costs.seconds
        return event
