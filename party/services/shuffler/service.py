"""The shuffler service of a node, as `protos/v1/shuffle.proto` has it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import grpc
import numpy as np

from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import new_private_key
from jobs.audit.events import Event
from jobs.audit.service_events import RouteCreated, RouteLost, RouteRetired
from ldp.shuffling.batch import TAG_KEY_BYTES
from ldp.shuffling.route import Route, route_of
from link.errors import (
    ConfigurationError,
    LimitExceeded,
    MalformedMessage,
    PeerError,
    PolicyDenied,
    ResourceError,
)
from link.logs.structured import Log
from link.pki.identity import Identity, peer_of
from link.runtime.process_executor import ProcessExecutor
from party.node.interceptors import coordinator_of
from party.node.limits import MemoryLimit, Streams
from party.services.shuffler.forwarding import Forwarder, arrived, parts
from party.services.shuffler.policy import ShufflerSection, check_route
from party.services.shuffler.pool import Pool, Recorder, out_of_space
from party.services.shuffler.store import FILE, ShufflerStore, StoredRoute
from party.services.shuffler.streaming import answered
from party.state.recovery.heads import Heads, lost, older
from protos.v1 import shuffle_pb2 as pb
from protos.v1.shuffle_pb2_grpc import ShufflerServicer

Context = grpc.aio.ServicerContext[Any, Any]
P = ParamSpec("P")
T = TypeVar("T")

SERVICE: Final = "comine.v1.Shuffler"
MAX_STREAMS: Final = 16  # of one certificate
IN_FLIGHT: Final = 8  # messages of one stream
MAX_MESSAGE_BYTES: Final = 4 << 20  # of reports in one message, with their cost
MEMORY_BYTES: Final = 128 << 20  # of messages of all streams
REPORT_COST: Final = 64  # bytes that a report takes in memory beside its own
MOST_OVER: Final = 8  # routes that are over, in memory
_NOT_TAKEN: Final = (ConfigurationError, PolicyDenied)  # a receipt reports these; the stream goes on


class ShufflerService(ShufflerServicer):
    """Answers coordinators, senders of reports, and other shufflers; `party.node.interceptors.Gate` stands before it.

    Args:
        policy: The `[shuffler]` table; None: the service is off, and says so.
        state: The node's state folder.
        identity: This node's.
        addresses: HOST:PORT of each party.
        audit: The node's audit log.
        log: The node's log.

    Raises:
        ConfigurationError: What is in the state folder cannot be read.
        ResourceError: It cannot be written.
    """

    def __init__(
        self,
        policy: ShufflerSection | None,
        state: Path,
        identity: Identity,
        addresses: Mapping[str, str],
        audit: Recorder,
        log: Log,
    ) -> None:
        self._me, self._addresses = identity.name, addresses
        self._running: _Running | None = None
        self._submitting = Streams(MAX_STREAMS, self._me)
        self._memory = MemoryLimit(MEMORY_BYTES)
        if policy is not None:
            self._running = _Running(policy, state, identity, addresses, audit, log)

    def renew(self, policy: ShufflerSection | None) -> None:
        """Goes by other rules: routes that are open stay as they were created."""
        if self._running is not None and policy is not None:
            self._running.policy, self._running.store.most_bytes = policy, policy.max_disk

    def compare(self, heads: Heads) -> list[Event]:
        """Which routes the database has lost, according to the audit log.

        Raises:
            ConfigurationError: It is an older copy.
        """
        if self._running is None:
            return []
        store = self._running.store
        return lost(
            heads.heads("shuffler"),
            lambda head: store.knows(head.subject, head.number, head.size, self._me),
            lambda name: RouteLost(route=name),
            lambda name: older(FILE, self._me, name, "move it away, which ends all its routes"),
        )

    async def start(self) -> None:
        """Takes up the routes that there are, and sends the batches that have not arrived."""
        if self._running is not None:
            await self._running.start()

    async def stop(self) -> None:
        """Takes nothing more; when it returns, what was acknowledged is on disk and nothing is under way."""
        if self._running is not None:
            await self._running.stop()

    def close(self) -> None:
        """Closes the files; after `stop`, or where it was never started."""
        if self._running is not None:
            self._running.close()

    # -- coordinators ------------------------------------------------------------------------------------------------
    async def Create(self, request: pb.CreateRouteRequest, context: Context) -> pb.ShuffleRoute:  # noqa: N802
        """Creates a route, where the policy allows it; the same again gives the same answer."""
        coordinator, running = coordinator_of(context, self._me), self.running
        route = route_of(request.document)
        if self._me not in route.shufflers:
            raise ConfigurationError(f"{self._me} is no shuffler of the route '{route.name}'", party=self._me)
        for name in route.shufflers:
            if name not in self._addresses:
                raise ConfigurationError(
                    f"{self._me} does not know the shuffler '{name}' of the route '{route.name}'; its federation file "
                    "has no such party",
                    party=self._me,
                )
        return await self._described(await running.create(route, request.document, coordinator), creator=True)

    async def Flush(self, request: pb.FlushRequest, context: Context) -> pb.ShuffleRoute:  # noqa: N802
        """Lets the batch leave now, if it has enough reports."""
        pool = await self._of_creator(request.route, context)
        self._check_first(pool)
        if not await pool.depart():
            raise PolicyDenied(
                f"fewer than {pool.route.minimum:,} reports wait for the route '{pool.route.name}' at {self._me}, "
                "and a batch has as many at least",
                party=self._me,
            )
        return await self._described(pool, creator=True)

    async def Retire(self, request: pb.RetireRouteRequest, context: Context) -> pb.ShuffleRoute:  # noqa: N802
        """Takes no more reports of a route, and forgets its keys; what is enough for a batch leaves before."""
        pool = await self._of_creator(request.route, context)
        await self.running.retire(pool)
        return await self._described(pool, creator=True)

    # -- coordinators, clients and parties ---------------------------------------------------------------------------
    async def Describe(self, request: pb.DescribeRouteRequest, context: Context) -> pb.ShuffleRoute:  # noqa: N802
        """What a route is, and by which key reports are sealed for this node."""
        pool = await self.running.find(request.route)
        return await self._described(pool, creator=_member(context) == f"coordinator/{pool.stored.creator}")

    # -- clients and parties -----------------------------------------------------------------------------------------
    async def Submit(  # noqa: N802
        self, requests: AsyncIterator[pb.SealedReports], context: Context
    ) -> AsyncIterator[pb.SealedReceipt]:
        """Takes sealed reports, several messages at a time, and gives receipts in their order."""
        running, sender = self.running, _member(context)
        with self._submitting.one(sender):
            async for receipt in answered(requests, partial(self._take, running, sender), IN_FLIGHT):
                yield receipt

    async def _take(self, running: _Running, sender: str, request: pb.SealedReports) -> pb.SealedReceipt:
        size = sum(map(len, request.reports)) + REPORT_COST * len(request.reports)
        if size > MAX_MESSAGE_BYTES:
            raise LimitExceeded(
                f"{self._me} takes at most {MAX_MESSAGE_BYTES >> 20} MiB of reports in a message, each counting "
                f"{REPORT_COST} bytes more than it has; send several",
                party=self._me,
            )
        if running.stopping:
            raise PeerError(f"{self._me} is stopping; send the reports again later", party=self._me)
        held = await self._memory.take(size)
        try:
            pool = await running.find(request.route)
            fates = await pool.take(sender, request.reports)
        except ResourceError:
            raise
        except _NOT_TAKEN as error:
            return pb.SealedReceipt(sequence=request.sequence, fate=pb.NOT_TAKEN, message=error.message)
        finally:
            self._memory.give(held)
        return _receipt(request.sequence, fates)

    # -- parties -----------------------------------------------------------------------------------------------------
    async def Forward(  # noqa: N802
        self, requests: AsyncIterator[pb.BatchPart], context: Context
    ) -> AsyncIterator[pb.ForwardReceipt]:
        """Takes one batch of the shuffler before; the receipt comes when it is on disk."""
        running, sender = self.running, peer_of(context.auth_context())[1]
        coming, nothing = aiter(requests), pb.BatchPart()
        part = await anext(coming, nothing)
        head = part.head
        pool = await running.find_digest(head.route, sender)
        pool.check_head(head, sender)
        async with pool.receiving:
            data, size = bytearray(part.reports), head.reports * pool.width
            while not part.last and part is not nothing and len(data) <= size:
                part = await anext(coming, nothing)
                data += part.reports
            if len(data) != size or not part.last:
                raise MalformedMessage(f"{sender} sent a batch that is cut, or longer than it says", party=sender)
            await pool.relay(head, np.frombuffer(data, np.uint8).reshape(-1, pool.width), sender)
        yield pb.ForwardReceipt(batch=head.batch)

    # -- the collector -----------------------------------------------------------------------------------------------
    async def Collect(self, request: pb.CollectRequest, context: Context) -> AsyncIterator[pb.BatchPart]:  # noqa: N802
        """Batches that have passed all shufflers, after those that the collector has kept."""
        running = self.running
        pool = await running.find(request.route)
        if _member(context) != pool.route.collector:
            raise PolicyDenied(
                f"the route '{pool.route.name}' is for {pool.route.collector} to collect", party=self._me
            )
        if pool.hop + 1 < len(pool.route.shufflers):
            last = pool.route.shufflers[-1]
            raise ConfigurationError(f"the route '{pool.route.name}' is collected at {last}", party=self._me)
        kept = min(request.after, pool.batch - 1)
        for batch in [batch for batch in await pool.unsent() if batch <= kept]:
            to = pool.route.collector
            await running.audit.record(await arrived(pool, running.store, running.disk, batch, to))
        await running.disk(running.store.sent, pool.stored.row, kept, time.time())
        await running.let_go(pool)
        for batch in await pool.unsent():
            async for part in parts(pool, running.store, running.disk, batch):
                yield part

    # -- what they share ---------------------------------------------------------------------------------------------
    @property
    def running(self) -> _Running:
        """What there is where the service is on.

        Raises:
            PolicyDenied: It is off.
        """
        if self._running is None:
            raise PolicyDenied(
                f"the shuffler of {self._me} is off; its operator turns it on by a [shuffler] table in party.toml",
                party=self._me,
            )
        return self._running

    async def _of_creator(self, name: str, context: Context) -> Pool:
        coordinator = coordinator_of(context, self._me)
        pool = await self.running.find(name)
        if pool.stored.creator != coordinator:
            raise PolicyDenied(
                f"the route '{name}' at {self._me} was created by {pool.stored.creator}, who alone may do this",
                party=self._me,
            )
        return pool

    def _check_first(self, pool: Pool) -> None:
        if pool.hop:
            first = pool.route.shufflers[0]
            raise ConfigurationError(f"batches of the route '{pool.route.name}' begin at {first}", party=self._me)

    async def _described(self, pool: Pool, *, creator: bool) -> pb.ShuffleRoute:
        return pb.ShuffleRoute(
            document=pool.stored.document,
            key=None if pool.retired else pool.signed_key(),
            next_batch=pool.batch,
            # What Flush would reveal, and no more: other numbers would reveal when reports came.
            waiting=pool.route.minimum if creator and pool.waiting >= pool.route.minimum else 0,
            unsent=len(await pool.unsent()),
            retired=pool.retired,
        )


class _Running:
    """What there is where the service is on. Of a route that is over nothing stays in memory."""

    def __init__(
        self,
        policy: ShufflerSection,
        state: Path,
        identity: Identity,
        addresses: Mapping[str, str],
        audit: Recorder,
        log: Log,
    ) -> None:
        self.policy, self._identity, self._log = policy, identity, log
        self.audit, self.stopping = audit, False
        self.store = ShufflerStore.open(state / FILE, policy.max_disk)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="shuffler-disk")
        self._executor = ProcessExecutor()
        self.forwarder = Forwarder(identity, addresses, self.store, self.disk, audit, log)
        self.pools: dict[str, Pool] = {}
        self.over: dict[str, Pool] = {}  # that were asked for lately
        self._creating = asyncio.Lock()
        self.timers: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        for stored in await self.disk(self.store.unfinished):
            await self._take_up(stored)

    async def stop(self) -> None:
        self.stopping = True
        for timer in self.timers.values():
            timer.cancel()
        await asyncio.gather(*self.timers.values(), return_exceptions=True)
        await self.forwarder.stop()
        for pool in self.pools.values():
            await pool.settle()

    def close(self) -> None:
        self._executor.close()
        self._thread.shutdown(wait=True)
        self.store.close()

    async def disk(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Does what waits for the disk, one thing after another."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *args, **kwargs))

    async def find(self, name: str) -> Pool:
        """A route by its name."""
        found = await self._named(name)
        if found is None:
            me = self._identity.name
            raise ConfigurationError(f"there is no route '{name[:63]}' at {me}; its coordinator creates it", party=me)
        return found

    async def find_digest(self, digest: bytes, sender: str) -> Pool:
        """A route by the digest of its document."""
        found = next((pool for pool in self.pools.values() if pool.route.digest == digest), None)
        if found is None:
            stored = await self.disk(self.store.route_with, digest)
            found = None if stored is None else await self._named(stored.name)
        if found is None:
            me = self._identity.name
            raise ConfigurationError(
                f"{sender} sent a batch of a route that {me} does not have; its coordinator is to create the same "
                f"route at {me}",
                party=me,
            )
        return found

    async def create(self, route: Route, document: bytes, coordinator: str) -> Pool:
        """A new route, or the very same one again."""
        async with self._creating:
            found = await self._named(route.name)
            if found is not None and (found.stored.document, found.stored.creator) == (document, coordinator):
                return found
            if found is not None:  # before the log records it
                raise ConfigurationError(f"there is another route '{route.name}' already; take another name")
            running = sum(not pool.retired for pool in self.pools.values())
            check_route(self.policy, route, coordinator, self._identity.name, running=running)
            if self.store.is_full:
                raise out_of_space(self._identity.name)
            created = RouteCreated(route=route.name, coordinator=coordinator, document_digest=route.digest)
            await self.audit.record(created)
            random = Randomness.from_os()
            key, tag_key = new_private_key(random), random.bytes(TAG_KEY_BYTES)
            new = StoredRoute(route.name, document, key, tag_key, coordinator, time.time())
            pool = await self._take_up(await self.disk(self.store.add, new))
            self._log.info("route created", route=route.name, coordinator=coordinator)
            return pool

    async def retire(self, pool: Pool) -> None:
        """Ends a route."""
        if pool.retired:
            return
        left = await pool.retire(time.time())
        await self.audit.record(RouteRetired(route=pool.route.name, by=pool.stored.creator, discarded=left))
        self._log.info("route retired", route=pool.route.name, too_few=left)
        await self.let_go(pool)

    async def let_go(self, pool: Pool) -> None:
        """Forgets a route that is over."""
        if await pool.is_over():
            self._forget(pool)

    def _forget(self, pool: Pool) -> None:
        name = pool.route.name
        if self.pools.get(name) is pool:
            del self.pools[name]
        if (timer := self.timers.pop(name, None)) is not None:
            timer.cancel()

    async def _named(self, name: str) -> Pool | None:
        """A route by its name; one that is over is read from the disk."""
        found = self.pools.get(name) or self.over.get(name)
        if found is None:
            stored = await self.disk(self.store.route, name)
            if stored is None or stored.retired is None:  # it is being created just now
                return self.pools.get(name)
            found = self.over[name] = await self.disk(self._pool, stored)
            while len(self.over) > MOST_OVER:
                del self.over[next(iter(self.over))]
        return found

    def _pool(self, stored: StoredRoute) -> Pool:
        return Pool(
            stored, self.store, self._identity, self._executor, self.disk, self.audit, check_memory=self._check_memory
        )

    def _check_memory(self) -> None:
        if sum(pool.memory for pool in self.pools.values()) >= self.policy.max_memory:
            me = self._identity.name
            raise ResourceError(
                f"which reports the routes of {me} have taken is kept in as much memory as its policy allows (rule "
                "max_memory); retire some that are done",
                party=me,
            )

    async def _take_up(self, stored: StoredRoute) -> Pool:
        pool = self._pool(stored)
        await pool.recover()
        self.pools[stored.name] = pool
        self.forwarder.begin(pool, self._forget)
        if pool.route.every and not pool.hop and not pool.retired:
            self.timers[stored.name] = asyncio.create_task(self._depart_regularly(pool))
        return pool

    async def _depart_regularly(self, pool: Pool) -> None:
        """Closes batches at set times only: when enough reports are there must not reveal who came last."""
        every = pool.route.every
        while not pool.retired:
            await asyncio.sleep(every - (time.time() - pool.stored.created) % every)
            try:
                if await pool.depart():
                    self._log.info("batch closed", route=pool.route.name, batch=pool.batch - 1)
            except Exception as error:
                self._log.error("batch not closed", route=pool.route.name, error=error)


def _member(context: Context) -> str:
    role, name = peer_of(context.auth_context())
    return f"{role}/{name}"


def _receipt(sequence: int, fates: np.typing.NDArray[np.uint8]) -> pb.SealedReceipt:
    taken = int(np.count_nonzero(fates == pb.TAKEN))
    if len(fates) and np.all(fates == fates[0]):
        return pb.SealedReceipt(sequence=sequence, fate=cast(pb.ReportFate.ValueType, int(fates[0])), taken=taken)
    return pb.SealedReceipt(sequence=sequence, fates=fates.tobytes(), taken=taken)
