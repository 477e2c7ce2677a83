"""Who may run at a node: so many jobs at a time, and the others wait for their turn in a fair order.

The next turn is of the coordinator whose jobs hold the fewest, of several the one that had its last turn longest ago;
and of its jobs the one that came first. A job that has its turn at all its parties is started; until then it may hold
turns and do nothing with them, so a coordinator asks its parties one after the other, in the order of their names:
no two jobs ever wait for each other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from link.errors import ComineError, ResourceError, UnexpectedMessage
from party.jobs.limits import JobLimits

MAX_WAITING: Final = 1024


@dataclass(eq=False)
class Turn:
    """One job's turn, or its place among those that wait.

    Attributes:
        job_id: The job.
        coordinator: Who proposed it.
        since: When it came.
        memory: Bytes that it is expected to take.
        place: 0 once it has its turn, otherwise how many turns away that is.
        running: Whether the job has begun, which keeps the turn until it ends.
    """

    job_id: bytes
    coordinator: str
    since: float
    memory: int = 0
    place: int = -1
    running: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _error: ComineError | None = None

    async def places(self) -> AsyncIterator[int]:
        """Its place whenever that changes, up to 0; then nothing more until the job has begun.

        Raises:
            ComineError: What has ended the job, or its wait.
        """
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._error is not None:
                raise self._error
            if self.running:
                return
            yield self.place

    def move(self, place: int) -> None:
        """Notifies those who wait of a new place."""
        if place != self.place:
            self.place = place
            self._changed.set()

    def begin(self) -> None:
        """Notifies those who wait that the job has begun."""
        self.running = True
        self._changed.set()

    def end(self, error: ComineError) -> None:
        """Notifies those who wait that there is nothing to wait for any more."""
        self._error = error
        self._changed.set()


class Shown(NamedTuple):
    """A turn, or a place, as people are shown it.

    Attributes:
        job_id: In hex.
        coordinator: Who proposed the job.
        place: 0 of a turn.
        memory: Bytes that the job is expected to take; 0 where nothing limits them.
    """

    job_id: str
    coordinator: str
    place: int
    memory: int


class Turns:
    """The turns of one node. To be used on the event loop only.

    Args:
        limits: How many jobs at a time, of all and of one coordinator, and with how much memory.
        me: This party.

    Attributes:
        changed: Called when a turn or a place has changed.
    """

    def __init__(self, limits: JobLimits, me: str) -> None:
        self.changed: Callable[[], None] = lambda: None
        self._limits, self._me, self._closed = limits, me, False
        self._held: dict[bytes, Turn] = {}
        self._waiting: dict[bytes, Turn] = {}
        self._served: Counter[str] = Counter()  # by coordinator, the number of its last turn
        self._number = 0

    @property
    def waiting(self) -> int:
        """Jobs without a turn."""
        return len(self._waiting)

    def ask(self, job_id: bytes, coordinator: str, since: float, memory: int = 0) -> Turn:
        """A job's turn, or its place; who asks again takes over from who asked before.

        Raises:
            ResourceError: Too many jobs wait.
        """
        before = self._held.get(job_id) or self._waiting.get(job_id)
        if before is None and len(self._waiting) >= MAX_WAITING:
            raise ResourceError(
                f"{MAX_WAITING} jobs wait for their turn at {self._me}, and no more may; start the job later",
                party=self._me,
            )
        turn = Turn(job_id, coordinator, since, memory)
        if before is None:
            self._waiting[job_id] = turn
        else:
            before.end(UnexpectedMessage(f"the job waits at {self._me} on another connection", party=self._me))
            turn.running = before.running
            home = self._held if job_id in self._held else self._waiting
            home[job_id] = turn
            if home is self._held:
                turn.move(0)
        self._serve()
        return turn

    def claim(self, job_id: bytes, coordinator: str, memory: int = 0) -> bool:
        """Whether a job may begin: it has its turn, or nobody waits for one that is free. It then keeps the turn."""
        turn = self._held.get(job_id)
        if turn is None:
            turn = Turn(job_id, coordinator, 0.0, memory)
            if self._waiting or not (self._is_free(turn) and self._has_memory(turn)):
                return False
            self._hold(turn)
        turn.begin()
        return True

    def shown(self) -> list[Shown]:
        """Those who have turns, then those who wait, by their places."""
        turns = [*self._held.values(), *sorted(self._waiting.values(), key=lambda turn: turn.place)]
        return [Shown(each.job_id.hex(), each.coordinator, max(0, each.place), each.memory) for each in turns]

    def runs(self, job_id: bytes) -> bool:
        """Whether a job has begun and keeps its turn."""
        return job_id in self._held and self._held[job_id].running

    def drop(self, turn: Turn) -> None:
        """Gives back a turn, or a place, that nobody wants any more; a job that has begun keeps its own."""
        if not turn.running and turn in (self._held.get(turn.job_id), self._waiting.get(turn.job_id)):
            self.end(turn.job_id)

    def end(self, job_id: bytes, error: ComineError | None = None) -> None:
        """Takes the turn, or the place, of a job that is over.

        Args:
            job_id: The job.
            error: Raised for those who wait for it.
        """
        turn = self._held.pop(job_id, None) or self._waiting.pop(job_id, None)
        if turn is not None:
            if error is not None:
                turn.end(error)
            self._serve()

    def allow(self, limits: JobLimits) -> None:
        """Goes on within other limits; jobs that run go on."""
        self._limits = limits
        self._serve()

    def close(self) -> None:
        """Gives no more turns away."""
        self._closed = True

    def _hold(self, turn: Turn) -> None:
        self.changed()
        self._number += 1
        self._served[turn.coordinator] = self._number
        self._held[turn.job_id] = turn
        turn.move(0)

    def _serve(self) -> None:
        """Gives free turns away, and notifies the others of their places."""
        self.changed()
        place, lacks_memory = 0, False
        for turn in self._order():
            free = self._is_free(turn)
            lacks_memory = lacks_memory or (free and not self._has_memory(turn))  # later ones do not take it away
            if free and not lacks_memory:
                self._hold(self._waiting.pop(turn.job_id))
            else:
                place += 1
                turn.move(place)

    def _is_free(self, turn: Turn) -> bool:
        """Whether one more job may run, and one more of its coordinator."""
        held = sum(each.coordinator == turn.coordinator for each in self._held.values())
        return not self._closed and len(self._held) < self._limits.running and held < self._limits.running_of_one

    def _has_memory(self, turn: Turn) -> bool:
        """Whether a job fits beside those that hold turns; alone it fits always."""
        memory = sum(each.memory for each in self._held.values()) + turn.memory
        return not self._held or self._limits.memory is None or memory <= self._limits.memory

    def _order(self) -> list[Turn]:
        """Those that wait, in the order in which they would be served if no job ended before the last one began."""
        queues: dict[str, list[Turn]] = {}
        for turn in sorted(self._waiting.values(), key=lambda turn: (turn.since, turn.job_id), reverse=True):
            queues.setdefault(turn.coordinator, []).append(turn)
        holds, served, number = Counter(turn.coordinator for turn in self._held.values()), self._served.copy(), 0
        order: list[Turn] = []
        while queues:
            name = min(queues, key=lambda name: (holds[name], served[name], name))
            order.append(queues[name].pop())
            if not queues[name]:
                del queues[name]
            number += 1
            holds[name] += 1
            served[name] = self._number + number
        return order
