"""What one node does for one route: reports wait in a pool until there are enough, and then leave in a new order.

The first shuffler takes reports from their senders. Each of the others takes whole batches from the one before it, and
a batch keeps its number all the way. What is acknowledged is on disk; a batch is closed in one transaction, and from
then on is sent, as often as it takes, as the very same bytes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import Rows, public_key_of
from jobs.audit.events import Event
from jobs.audit.service_events import BatchClosed
from ldp.shuffling.batch import Tags, digest, first_seen, shuffled, tags_of
from ldp.shuffling.route import route_of
from ldp.shuffling.statement import DROPPED, check_chain, sign_key, sign_statement
from link.errors import ConfigurationError, LimitExceeded, PolicyDenied, ProtocolViolation, ResourceError
from link.executor import Executor
from link.pki.identity import Identity
from party.services.frequency.storage.tags import TAG_MEMORY, TagSet
from party.services.shuffler.opening import opened
from party.services.shuffler.store import Segment, ShufflerStore, StoredRoute, Waiting
from protos.v1 import shuffle_pb2 as pb

P = ParamSpec("P")
T = TypeVar("T")

_FATES: Final[Mapping[str, pb.ReportFate.ValueType]] = {
    "replayed": pb.REPLAYED,
    "wrong_size": pb.WRONG_SIZE,
    "unreadable": pb.UNREADABLE,
    "over_share": pb.OVER_SHARE,
}

Fates = NDArray[np.uint8]
"""Shape (n,), each a `ReportFate`."""


class Disk(Protocol):
    """Runs what waits for the disk, one thing after another."""

    async def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What `work` returns."""


class Recorder(Protocol):
    """Takes events for the audit log, on disk when it returns."""

    async def record(self, *events: Event) -> None:
        """Writes them."""


@dataclass(eq=False)
class _Submission:
    """Readable reports of one message, which wait for their commit."""

    sender: str
    tags: Tags
    reports: Rows
    answer: asyncio.Future[Fates]


class Pool:
    """One route at one of its shufflers. Its methods are called in one event loop.

    Args:
        stored: The route.
        store: Where it is kept.
        identity: This node's.
        executor: Workers that open reports.
        disk: Through which the store is used.
        audit: The node's audit log, which records batches.
        check_memory: Raises where the tags of all routes take as much memory as they may.
    """

    def __init__(
        self,
        stored: StoredRoute,
        store: ShufflerStore,
        identity: Identity,
        executor: Executor,
        disk: Disk,
        audit: Recorder,
        check_memory: Callable[[], None] = lambda: None,
    ) -> None:
        self.stored, self.route = stored, route_of(stored.document)
        self.hop = self.route.shufflers.index(identity.name)
        self._store, self._identity, self._executor, self._disk = store, identity, executor, disk
        self._audit, self._check_memory = audit, check_memory
        self.batch, self.retired = stored.batch, stored.retired is not None
        self._tags, self._now = TagSet(), Waiting(Counter(), Counter())
        self._submissions: list[_Submission] = []
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.departed = asyncio.Event()  # a batch waits to be sent
        self.receiving = asyncio.Lock()  # a batch is held in memory while it comes

    async def recover(self) -> None:
        """Takes up what is on disk."""
        self._tags = TagSet(np.unique(await self._disk(self._store.tags, self.stored.row)))
        self._now = await self._disk(self._store.waiting, self.stored.row)
        if await self.unsent():
            self.departed.set()

    @property
    def waiting(self) -> int:
        """Reports in the batch that is being filled."""
        return self._now.senders.total()

    @property
    def width(self) -> int:
        """Bytes of a report as it comes here."""
        return self.route.sealed_size(self.hop)

    @property
    def memory(self) -> int:
        """Bytes that the tags of all reports that came may take."""
        return TAG_MEMORY * len(self._tags)

    async def unsent(self) -> list[int]:
        """Batches that the next hop has not got."""
        return await self._disk(self._store.unsent, self.stored.row)

    async def is_over(self) -> bool:
        """Whether it is retired, and all its batches have left."""
        return self.retired and not await self.unsent()

    def signed_key(self) -> pb.SignedLayerKey:
        """The public key by which reports are sealed for this node, with its signature."""
        public = public_key_of(self.stored.key)
        key = pb.LayerKey(route=self.route.digest, shuffler=self._identity.name, public_key=public)
        return sign_key(key, self._identity)

    # -- the first shuffler ------------------------------------------------------------------------------------------
    async def take(self, sender: str, reports: Sequence[bytes]) -> Fates:
        """Takes reports; when it returns, those that were taken are on disk.

        Of those that are new, as many are looked at as the sender may still put into the batch: anyone who floods the
        node costs it no more than honest senders do.

        Args:
            sender: Their member, as in a route's document.
            reports: n sealed ones, whatever they are.

        Returns:
            What became of each, shape (n,).

        Raises:
            ConfigurationError: Another node takes reports for this route, or the route is retired.
            PolicyDenied: The sender may not report to this route.
            ResourceError: The batch is full, or the disk, or what the routes may take of it or of the memory; nothing
                was taken.
        """
        share = self._check_sender(sender)
        if self.waiting >= self.route.maximum:
            raise self._full()
        self._check_space()
        fates = np.full(len(reports), pb.WRONG_SIZE, np.uint8)
        size = self.width
        right = np.array([i for i, report in enumerate(reports) if len(report) == size], np.int64)
        sized = [report for report in reports if len(report) == size]
        tags = tags_of(sized, self.stored.tag_key)
        new = first_seen(tags, self._tags.holds)
        within = new & (np.cumsum(new) <= share - self._now.senders[sender])
        fates[right] = np.where(within, pb.UNREADABLE, np.where(new, pb.OVER_SHARE, pb.REPLAYED))
        rows = np.frombuffer(b"".join(sized), np.uint8).reshape(-1, size)[within]
        inner, readable = await opened(rows, self.route, self.hop, self.stored.key, self._executor)
        answer: asyncio.Future[Fates] = asyncio.get_running_loop().create_future()
        self._submissions.append(_Submission(sender, tags[within][readable], inner[readable], answer))
        dropped = Counter({reason: int(np.count_nonzero(fates == fate)) for reason, fate in _FATES.items()})
        dropped["unreadable"] = int(np.count_nonzero(~readable))
        await self._whole(partial(self._commit, dropped))
        fates[right[within][readable]] = await answer
        return fates

    def _check_sender(self, sender: str) -> int:
        """How many reports the sender may put into a batch."""
        me, name = self._identity.name, self.route.name
        if self.hop:
            raise ConfigurationError(
                f"reports for the route '{name}' go to {self.route.shufflers[0]}, not to {me}", party=me
            )
        if self.retired:
            raise self._is_retired("no report")
        share = self.route.share(sender)
        if not share:
            raise PolicyDenied(f"'{sender}' may not report to the route '{name}'", party=me)
        return share

    def _check_space(self) -> None:
        if self._store.is_full:
            raise out_of_space(self._identity.name)
        self._check_memory()

    def _is_retired(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"the route '{self.route.name}' is retired; {what} of it is taken any more", party=self._identity.name
        )

    def _full(self) -> ResourceError:
        return ResourceError(
            f"as many reports of the route '{self.route.name}' wait at {self._identity.name} as a batch may have "
            f"({self.route.maximum:,}); send these after it has left",
            party=self._identity.name,
        )

    async def _commit(self, dropped: Counter[str]) -> None:
        """Commits all that waits, in one transaction; the first one does it for the others."""
        group, self._submissions = self._submissions, []
        sizes = np.cumsum([len(each.tags) for each in group])
        fitting = int(np.count_nonzero(sizes <= self.route.maximum - self.waiting))
        _fail(group[fitting:], self._full())
        group = group[:fitting]
        try:
            rulings = await self._ruled(group, dropped)
        except Exception as error:  # the caller raises it
            _fail(group, error)
        else:
            for each, fates in zip(group, rulings, strict=True):
                if not each.answer.done():
                    each.answer.set_result(fates)

    async def _ruled(self, group: Sequence[_Submission], dropped: Counter[str]) -> list[Fates]:
        """What becomes of each report of a group; those that are taken are on disk."""
        if self.retired:
            raise self._is_retired("no report")
        seen: set[int] = set()
        senders: Counter[str] = Counter()
        rulings = [self._rule(each, seen, senders) for each in group]
        for reason, fate in _FATES.items():
            dropped[reason] += sum(int(np.count_nonzero(fates == fate)) for fates in rulings)
        dropped = +dropped
        taken = [(each.sender, each.reports[fates == pb.TAKEN]) for each, fates in zip(group, rulings, strict=True)]
        segments = [Segment(sender, len(reports), reports.tobytes()) for sender, reports in taken if len(reports)]
        tags = np.fromiter(seen, np.uint64, len(seen))
        if segments or dropped:
            await self._disk(self._store.commit, self.stored.row, segments, tags, dropped)
        self._tags.add(tags)
        self._now.senders.update(senders)
        self._now.drops.update(dropped)
        return rulings

    def _rule(self, submission: _Submission, seen: set[int], senders: Counter[str]) -> Fates:
        """What becomes of each report, given those before it in the transaction; `seen` and `senders` grow."""
        sender = submission.sender
        new = first_seen(submission.tags, self._tags.holds)
        new &= np.fromiter((tag not in seen for tag in submission.tags.tolist()), np.bool_, len(new))
        left = self.route.share(sender) - self._now.senders[sender] - senders[sender]
        taken = new & (np.cumsum(new) <= left)
        seen.update(submission.tags[taken].tolist())
        senders[sender] += int(np.count_nonzero(taken))
        return np.where(taken, pb.TAKEN, np.where(new, pb.OVER_SHARE, pb.REPLAYED)).astype(np.uint8)

    async def depart(self) -> bool:
        """Closes the batch, if enough reports wait; returns whether it did."""
        if self.hop or self.retired:
            return False
        return await self._whole(self._depart)

    async def _depart(self) -> bool:
        if self.waiting < self.route.minimum:
            return False
        senders, drops = self._now
        statement = pb.BatchStatement(
            received=senders.total() + drops.total(),
            senders=len(+senders),
            largest=max(senders.values()),
        )
        for reason in DROPPED:
            setattr(statement, reason, drops[reason])
        await self._record_batch(statement, senders.total())
        await self._disk(self._close_batch, statement)
        self._has_departed()
        return True

    def _close_batch(self, statement: pb.BatchStatement) -> None:
        data = np.frombuffer(self._store.reports(self.stored.row), np.uint8)
        self._send_off(statement, (), data.reshape(-1, self.route.sealed_size(self.hop + 1)), np.empty(0, np.uint64))

    # -- the other shufflers -----------------------------------------------------------------------------------------
    def check_head(self, head: pb.BatchHead, sender: str) -> None:
        """Refuses a batch before its reports are read.

        Raises:
            ProtocolViolation: It does not come from the shuffler before, or is larger than batches may be.
        """
        name = self.route.name
        if not self.hop or sender != self.route.shufflers[self.hop - 1]:
            raise ProtocolViolation(f"{sender} is not before {self._identity.name} in the route '{name}'", party=sender)
        if head.reports > self.route.maximum:
            raise LimitExceeded(
                f"{sender} sent a batch of {head.reports:,} reports of the route '{name}', whose batches have at most "
                f"{self.route.maximum:,}",
                party=sender,
            )

    async def relay(self, head: pb.BatchHead, reports: Rows, sender: str) -> None:
        """Takes a batch of the shuffler before; when it returns, the batch is on disk and will leave from here.

        Args:
            head: Of the batch, which `check_head` has let pass.
            reports: Shape (n, `width`).
            sender: The party that sends it.

        Raises:
            ConfigurationError: The route is retired.
            ProtocolViolation: The batch is not the next one, not that which came before under this number, or
                statements, counts and reports do not agree.
            ResourceError: The routes take as much of the disk or of the memory as they may; the sender tries again.
        """
        await self._whole(partial(self._relay, head, reports, sender))

    async def _relay(self, head: pb.BatchHead, reports: Rows, sender: str) -> None:
        came = await asyncio.to_thread(digest, reports)
        if head.batch < self.batch:
            await self._check_again(head.batch, came, sender)
            return
        if self.retired:
            raise self._is_retired("no batch")
        if head.batch > self.batch:
            raise ProtocolViolation(
                f"{sender} sent batch {head.batch} of the route '{self.route.name}', and batch {self.batch} is next",
                party=sender,
            )
        self._check_space()
        if len(head.statements) != self.hop:
            raise ProtocolViolation(
                f"{sender} sent a batch of the route '{self.route.name}' without all statements", party=sender
            )
        said = check_chain(head.statements, self.route, head.batch, len(reports), came, self._identity.trust)
        tags = await asyncio.to_thread(tags_of, map(memoryview, reports), self.stored.tag_key)
        new = first_seen(tags, self._tags.holds)
        inner, readable = await opened(reports[new], self.route, self.hop, self.stored.key, self._executor)
        statement = pb.BatchStatement(
            received=len(reports),
            replayed=int(np.count_nonzero(~new)),
            unreadable=int(np.count_nonzero(~readable)),
            senders=said[0].senders,
            largest=said[0].largest,
            input=came,
        )
        inner, tags = inner[readable], tags[new][readable]
        if len(inner) < self.route.minimum:
            statement.withheld, inner = len(inner), inner[:0]
        await self._record_batch(statement, len(inner))
        await self._disk(self._send_off, statement, head.statements, inner, tags)
        self._tags.add(tags)
        self._has_departed()

    async def _check_again(self, batch: int, came: bytes, sender: str) -> None:
        """A batch that comes again must be the very same."""
        had = await self._disk(self._store.head, self.stored.row, batch)
        statements = [] if had is None else had.statements
        if not statements or pb.BatchStatement.FromString(statements[self.hop].statement).input != came:
            raise ProtocolViolation(
                f"{sender} sent batch {batch} of the route '{self.route.name}' again with other reports in it",
                party=sender,
            )

    # -- all shufflers -----------------------------------------------------------------------------------------------
    async def retire(self, at: float) -> int:
        """Takes no more reports, sends what is enough for a batch, and forgets keys; returns how many were too few."""
        if self.retired:
            return 0
        await self.depart()
        return await self._whole(partial(self._retire, at))

    async def _retire(self, at: float) -> int:
        await self._disk(self._store.retire, self.stored.row, at)
        left, self.retired = self.waiting, True
        self.stored = replace(self.stored, key=b"", tag_key=b"")
        self._tags, self._now = TagSet(), Waiting(Counter(), Counter())
        self.departed.set()  # there may be nothing left to send
        return left

    def _send_off(
        self, statement: pb.BatchStatement, before: Sequence[pb.SignedStatement], reports: Rows, tags: Tags
    ) -> None:
        """Shuffles, states and closes a batch."""
        leaving = shuffled(reports, Randomness.from_os())
        statement.route, statement.batch, statement.shuffler = self.route.digest, self.batch, self._identity.name
        statement.forwarded, statement.output = len(leaving), digest(leaving)
        signed = [*before, sign_statement(statement, self._identity)]
        head = pb.BatchHead(route=self.route.digest, batch=self.batch, reports=len(leaving), statements=signed)
        self._store.depart(self.stored.row, head, leaving, tags)

    async def _record_batch(self, statement: pb.BatchStatement, forwarded: int) -> None:
        """Records a batch in the audit log before it is closed."""
        dropped = sum(getattr(statement, reason) for reason in DROPPED)
        await self._audit.record(
            BatchClosed(
                route=self.route.name,
                batch=self.batch,
                received=statement.received,
                dropped=dropped,
                withheld=statement.withheld,
                forwarded=forwarded,
            )
        )

    def _has_departed(self) -> None:
        self.batch += 1
        self._now = Waiting(Counter(), Counter())
        self.departed.set()

    async def _whole(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Does one thing at a time, to its end, even if who asked for it has gone: disk and memory must agree."""

        async def alone() -> T:
            async with self._turn:
                return await work()

        task = asyncio.create_task(alone())
        self._tasks.add(task)
        task.add_done_callback(partial(_end, self._tasks))
        return await asyncio.shield(task)

    async def settle(self) -> None:
        """Returns when nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)


def out_of_space(me: str) -> ResourceError:
    """What is said where the routes of a node take as much of its disk as they may."""
    return ResourceError(
        f"the routes of {me} take as much of the disk as its policy allows (rule max_disk); retire some that are done, "
        "or have their batches collected",
        party=me,
    )


def _fail(group: Sequence[_Submission], error: Exception) -> None:
    for each in group:
        if not each.answer.done():
            each.answer.set_exception(error)


def _end(tasks: set[asyncio.Task[Any]], task: asyncio.Task[Any]) -> None:
    tasks.discard(task)
    if not task.cancelled():
        task.exception()  # the caller has raised it, or has gone
