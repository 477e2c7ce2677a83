"""Drives a job: performs what its state machine asks for, and reports to the machine what came of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

from coordinator.jobs.client import PartyClient
from coordinator.jobs.dealing import JobDealer
from coordinator.jobs.lifecycle import (
    Act,
    Attend,
    Away,
    CancelAll,
    CancelAsked,
    Decided,
    Effect,
    Ended,
    Event,
    Job,
    Problem,
    Propose,
    Reported,
    Signal,
    Stand,
    Start,
    State,
    step,
)
from coordinator.jobs.party_calls import (
    AWAITS,
    AWAY,
    agrees_still,
    ask,
    begin,
    decision,
    each,
    follow,
    lost_dealer,
    reaching,
)
from coordinator.jobs.preflight import preflight
from coordinator.jobs.progress import Watcher, unwatched
from coordinator.jobs.records.last_events import last_events
from coordinator.jobs.records.store import JobFolder, Record
from coordinator.jobs.released import result_of
from coordinator.jobs.retrying import goes_on, pause_s
from coordinator.jobs.turns import turns
from crypto.primitives.randomness import Randomness
from jobs.kinds.registry import coordinator_learns, kind_of
from jobs.report import page
from jobs.results import folder
from jobs.results.result import Result
from link.errors import ComineError, InternalError
from link.pki.identity import Identity
from link.transports.grpc_errors import NotTheParty
from protos.v1.control_pb2 import DealRequest, ResultHeader, SignedApproval

GRACE_S: Final = 1.0  # for the other parties' reports once one has failed
LOOK_S: Final = 0.2  # between two looks for a wish to cancel
PREFLIGHT_S: Final = 60.0  # after which clocks and certificates are looked at once more before the job is started
_SLEEP_S: Final = 30.0  # after which the clock is looked at: machines sleep, and clocks are set
_LATE_S: Final = 5.0  # after its time this process looks at the clock only where it was stopped itself

OnMove = Callable[[Job], None]


def ignored(job: Job) -> None:
    """Notifies nobody."""


class Driver:
    """Drives one job over the control services of its parties.

    Args:
        record: The job.
        identity: The coordinator.
        addresses: HOST:PORT of each party of the job.
        folder: Where the job is kept, locked by this process; None keeps it nowhere.
        watcher: Called with how far each party is.
        on_move: Called with the job after each of its moves.

    Attributes:
        result: What the job gave, once it has succeeded.
        error: Why it ended early, as it was raised.
        untold: Parties that could not be told that the job is over.
        goes_on: Whether the job is over but for another attempt, which it is to begin by itself; what is kept of it is
            that it runs.
    """

    def __init__(
        self,
        record: Record,
        identity: Identity,
        addresses: Mapping[str, str],
        *,
        folder: JobFolder | None = None,
        watcher: Watcher = unwatched,
        on_move: OnMove = ignored,
    ) -> None:
        self._record, self._identity, self._addresses, self._folder = record, identity, addresses, folder
        self._watcher, self._on_move = watcher, on_move
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._clients: dict[str, PartyClient] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._cancel_watch: asyncio.Task[None] | None = None
        self._dealer: JobDealer | None = None
        self._preflight_at = -math.inf
        self._began = time.time(), time.monotonic()
        self.result: Result | None = None
        self.error: Exception | None = None
        self.untold: tuple[str, ...] = ()
        self.goes_on = False

    async def drive(self, until: Callable[[Job], bool] = lambda job: job.over, *, ends_with_me: bool = False) -> Job:
        """Drives the job on until it is over.

        Args:
            until: Stops earlier; what is to be done then is left to the next driver.
            ends_with_me: Whether the job is cancelled when this task is; otherwise the parties go on without a driver.
        """
        async with AsyncExitStack() as stack:
            await self._connect(stack)
            try:
                await self._apply(Signal.TAKEN_UP, until)
                self._watch_for_cancel()
                while not until(self._record.job) and not self._record.job.over:
                    await self._apply(await self._next(), until)
            except asyncio.CancelledError:
                if ends_with_me:
                    await self._apply(CancelAsked(), until)
                raise
            except ComineError as error:  # the job cannot be kept any more
                await self._end_tasks()
                await self._cancel(error.message)
                raise
            return self._record.job

    async def cancel(self, reason: str) -> Job:
        """Ends the job, wherever it stands; where it was cancelled before, its parties are told once more."""
        async with AsyncExitStack() as stack:
            await self._connect(stack)
            if not self._record.job.over:
                await self._apply(CancelAsked(reason))
            elif self._record.job.state is State.CANCELLED:
                self.untold = await self._cancel(reason)
            return self._record.job

    # -- the loop -----------------------------------------------------------------------------------------------------
    async def _connect(self, stack: AsyncExitStack) -> None:
        for party in self._record.spec.job.parties:
            client = self._clients[party] = PartyClient(self._identity, party, self._addresses[party])
            stack.push_async_callback(client.close)
        stack.push_async_callback(self._end_tasks)

    async def _next(self) -> Event:
        now = self._now()
        due = min(self._record.job.until, now + _SLEEP_S)
        try:
            async with asyncio.timeout(max(0.0, due - now)):
                return await self._events.get()
        except TimeoutError:
            return Signal.CLOCK if self._now() < due + _LATE_S else Signal.WOKEN

    def _now(self) -> float:
        """Unix seconds, of which at least as many pass as there are: a clock that is set back lengthens no wait."""
        began, then = self._began
        return max(time.time(), began + time.monotonic() - then)

    async def _apply(self, event: Event, until: Callable[[Job], bool] = lambda job: job.over) -> None:
        self._record.job, effects = step(self._record.job, event, self._now())
        self.goes_on = self._record.job.over and goes_on(self._record, self._now())
        stopping = until(self._record.job)
        for effect in effects:
            if not stopping or effect is Act.SAVE or isinstance(effect, CancelAll):
                await self._perform(effect)
        self._on_move(self._record.job)

    async def _perform(self, effect: Effect) -> None:
        match effect:
            case Act.SAVE:
                if self._folder is not None and not self.goes_on:
                    self._folder.save(self._record)
            case Propose(parties, again):
                self._begin(self._propose(parties, again=again))
            case Attend(parties):
                for party in parties:
                    self._begin(self._attend(self._clients[party]))
            case Start(again):
                self._begin(self._start(again=again))
            case Act.FOLLOW:
                self._begin(self._follow())
            case Act.FETCH:
                self._begin(self._fetch())
            case CancelAll(reason):
                await self._end_tasks()
                self.untold = await self._cancel(reason)
                self._record.last = await last_events(self._record.id, self._clients.values(), self.untold)

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Runs an effect beside the loop; what ends it early ends the job."""

        async def guarded() -> None:
            try:
                await coroutine
            except ComineError as error:
                self.error = _detached(error)
                self._events.put_nowait(Ended(Problem(error.code, error.message, error.party)))
            except Exception as error:
                self.error = error
                what = f"the coordinator met a fault of its own ({type(error).__name__})"
                self._events.put_nowait(Ended(Problem(InternalError.code, what)))

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        if self._cancel_watch is not None:
            tasks.append(self._cancel_watch)
            self._cancel_watch = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _watch_for_cancel(self) -> None:
        """Looks now and then whether somebody wants the job to end."""
        folder = self._folder
        if folder is None:
            return

        async def look() -> None:
            while (reason := folder.cancel_asked()) is None:  # noqa: ASYNC110 - another process asks
                await asyncio.sleep(LOOK_S)
            self._events.put_nowait(CancelAsked(reason))

        self._cancel_watch = asyncio.ensure_future(look())

    # -- effects ------------------------------------------------------------------------------------------------------
    def away(self, party: str, error: ComineError | None) -> None:
        """Notes that a party is not to be reached, or is again."""
        if error is not None:
            self._watcher(party, AWAY, 0, 0, 0, 0)
        why = error.message if isinstance(error, NotTheParty) else ""  # which somebody has to mend
        self._events.put_nowait(Away(party, error is not None, why))

    async def _propose(self, parties: Collection[str], *, again: bool) -> None:
        record, trust, me = self._record, self._identity.trust, self._identity.name
        asked = {party: self._clients[party] for party in parties}
        await self._preflight(asked, patient=again)

        async def one(client: PartyClient) -> None:
            approval = await reaching(client, self.away, lambda: put(client))
            if approval is not None:
                record.approvals[client.party] = approval
            else:
                self._watcher(client.party, AWAITS, 0, 0, 0, 0)
            self._events.put_nowait(Decided(client.party, approval is not None))

        maybe_asked = set(parties) if again else set[str]()

        async def put(client: PartyClient) -> SignedApproval | None:
            before = client.party in maybe_asked
            maybe_asked.add(client.party)
            return await ask(client, record.id, record.proposal, trust, me, again=before)

        await each(asked, one)

    async def _preflight(self, clients: Mapping[str, PartyClient], *, patient: bool) -> None:
        await preflight(clients, self._identity, self._record.spec.job.deadline_s, self.away if patient else None)
        self._preflight_at = time.monotonic()

    async def _attend(self, client: PartyClient) -> None:
        record, identity = self._record, self._identity
        approval = await decision(client, record.id, identity.trust, identity.name, self.away, self._watcher)
        record.approvals[client.party] = approval
        self._watcher(client.party, "approved", 0, 0, 0, 0)
        self._events.put_nowait(Decided(client.party, True))

    async def _start(self, *, again: bool) -> None:
        record, attempt = self._record, self._record.job.attempt
        approvals = [record.approvals[party] for party in record.spec.job.parties]
        seeds = self._draw_seeds()
        waiting = dict.fromkeys(self._clients, True)
        await asyncio.sleep(pause_s(self._record.job))
        if again:
            waiting = await each(self._clients, lambda client: agrees_still(client, record.id, attempt, self.away))
        if any(waiting.values()) and time.monotonic() > self._preflight_at + PREFLIGHT_S:
            await self._preflight(self._clients, patient=True)
        ready = {party: client for party, client in self._clients.items() if waiting[party]}
        if self._dealer is not None and len(ready) < len(waiting):
            raise lost_dealer()
        async with turns(ready, record.id, self.away, self._watcher):
            await each(
                ready,
                lambda client: begin(client, record.id, attempt, approvals, seeds.get(client.party, b""), self.away),
            )
        self._events.put_nowait(Signal.STARTED)

    def _draw_seeds(self) -> Mapping[str, bytes]:
        """By party its seed, in a job in which the coordinator deals randomness."""
        spec = self._record.spec
        if not kind_of(spec).is_dealt(spec):
            return {}
        self._dealer = JobDealer(spec.job.parties, Randomness.from_os())
        return self._dealer.seeds

    async def _deal(self, client: PartyClient, request: DealRequest) -> None:
        if self._dealer is None:
            raise lost_dealer()
        await self._dealer.answer(client, self._record.id, request)

    async def _follow(self) -> None:
        record = self._record
        warm = asyncio.get_running_loop().run_in_executor(None, _warm_up)

        async def one(client: PartyClient) -> None:
            await follow(client, record.id, self.away, self._watcher, self._deal)
            self._events.put_nowait(Reported(client.party, Stand.DONE))

        await each(self._clients, one, grace_s=GRACE_S)
        await warm

    async def _fetch(self) -> None:
        record, spec = self._record, self._record.spec
        source = spec.learners[0] if coordinator_learns(spec) else None

        async def one(client: PartyClient) -> tuple[ResultHeader, bytes]:
            fetched = await reaching(client, self.away, lambda: client.result(record.id, table=client.party == source))
            self._events.put_nowait(Reported(client.party, Stand.RELEASED))
            return fetched

        fetched = await each(self._clients, one)
        headers = {party: header for party, (header, _) in fetched.items()}
        table = None if source is None else fetched[source][1]
        result = result_of(record, headers, table, self._identity.trust, signer=self._identity)
        if self._folder is not None and table is not None:
            self._folder.keep_table(table)
        record.released = headers
        self.result = result
        if self._cancel_watch is not None:
            self._cancel_watch.cancel()  # from here on it is too late to cancel: all parties have released
        if record.out is not None:
            try:
                await asyncio.get_running_loop().run_in_executor(None, result.save, record.out)
            except ComineError as error:
                record.out_problem = error.message
        self._events.put_nowait(Signal.RELEASED)

    async def _cancel(self, reason: str) -> tuple[str, ...]:
        """Tells every party that the job is over, waiting for nobody longer than a moment; who could not be told."""
        told = await asyncio.gather(*(client.cancel(self._record.id, reason) for client in self._clients.values()))
        return tuple(party for party, heard in zip(self._clients, told, strict=True) if not heard)


def _detached(error: ComineError) -> ComineError:
    """An error without the calls that its traceback and its context hold: their sockets would stay open with it."""
    error.__context__ = None
    return error.with_traceback(None)


def _warm_up() -> None:
    """Loads what only the result needs, while the parties work."""
    folder.prepare()
    page.prepare()
