"""The frequency-estimation service of a node, as `protos/v1/frequency.proto` has it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc

from jobs.audit.events import Event
from jobs.audit.service_events import CollectionLost, EstimatesRead
from jobs.collections.spec import MAX_LABEL_BYTES
from link.errors import ConfigurationError, LimitExceeded, PeerError, PolicyDenied
from link.logs.structured import Log
from link.pki.identity import peer_of
from party.node.interceptors import coordinator_of
from party.node.limits import Held, MemoryLimit, MemoryLimits, Queue, Streams
from party.services.frequency.access import check_closer, check_submitter, may_read
from party.services.frequency.collection import Collection, Snapshot
from party.services.frequency.collections import Collections, no_collection
from party.services.frequency.estimates import Answer, Question, answer, is_shown
from party.services.frequency.export import COLLECTION_FILE, ESTIMATES_FILE, collection_json, header, lines, state_file
from party.services.frequency.messages import (
    collection_of,
    counters_of,
    cut,
    left_out_of,
    parts_of,
    question_of,
    round_of,
)
from party.services.frequency.policy import FrequencySection
from party.services.frequency.readers import Reader
from party.services.frequency.storage.store import FILE, FrequencyStore
from party.services.frequency.submission import Submissions
from party.services.frequency.workers import Workers
from party.state.node_audit import NodeAudit
from party.state.recovery.heads import Heads, lost, older
from protos.v1 import frequency_pb2 as pb
from protos.v1.frequency_pb2_grpc import FrequencyEstimationServicer

Context = grpc.aio.ServicerContext[Any, Any]

SERVICE: Final = "comine.v1.FrequencyEstimation"
MAX_STREAMS: Final = 16  # of one certificate
MAX_CREATIONS: Final = 4  # of one certificate, at once
IN_FLIGHT: Final = 8  # batches of one stream
MEMORY_BYTES: Final = 128 << 20  # of batches of all streams
QUEUE_BYTES: Final = 32 << 20  # of batches of one certificate that wait for room
LEAST_EVERY_S: Final = 0.1
ANSWER_BYTES: Final = 256 << 20  # of estimates of one reader that were made and not taken yet
VALUE_BYTES: Final = 64  # of one value's estimate, from the sums to the message


class FrequencyService(FrequencyEstimationServicer):
    """Answers coordinators and clients; `party.node.interceptors.Gate` stands before it and translates what it raises.

    Args:
        policy: The `[frequency]` table; None: the service is off, and says so.
        state: The node's state folder.
        me: This party.
        audit: The node's audit log.
        log: The node's log.
        now: Unix seconds.

    Attributes:
        submitting: Streams of batches.
        watching: Streams of estimates.
        fetching: Streams of labels.
        memory: What batches take.
        queue: Batches that wait for it.

    Raises:
        ConfigurationError: What is in the state folder cannot be read.
        ResourceError: It cannot be written.
    """

    def __init__(
        self,
        policy: FrequencySection | None,
        state: Path,
        me: str,
        audit: NodeAudit,
        log: Log,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._me, self._audit, self.now = me, audit, now
        self._running: _Running | None = None
        self.submitting, self.watching = Streams(MAX_STREAMS, me), Streams(MAX_STREAMS, me)
        self.fetching = Streams(MAX_STREAMS, me)
        self._creating = Streams(MAX_CREATIONS, me)
        self._answers = MemoryLimits(ANSWER_BYTES)
        self.memory, self.queue = MemoryLimit(MEMORY_BYTES), Queue(QUEUE_BYTES, me)
        if policy is not None:
            self._running = _Running(policy, state, me, audit, log, now)

    def renew(self, policy: FrequencySection | None) -> None:
        """Goes by other rules: collections that are open stay as they were created."""
        if self._running is not None and policy is not None:
            self._running.collections.policy = policy
            self._running.store.most_bytes, self._running.submissions.most_memory = policy.max_disk, policy.max_memory

    def compare(self, heads: Heads) -> list[Event]:
        """Which collections the database has lost, according to the audit log.

        Raises:
            ConfigurationError: It is an older copy.
        """
        if self._running is None:
            return []
        store = self._running.store
        return lost(
            heads.heads("frequency"),
            lambda head: store.knows(head.subject, head.number, head.size),
            lambda name: CollectionLost(collection=name),
            lambda name: older(FILE, self._me, name, "move it away, which ends all its collections"),
        )

    async def start(self) -> None:
        """Takes up the collections that there are.

        Raises:
            ConfigurationError: One cannot be read.
        """
        if self._running is not None:
            await self._running.collections.start()

    async def stop(self) -> None:
        """Takes no further batch; when it returns, all that was acknowledged is on disk, and nothing else under way."""
        if self._running is not None:
            self._running.stopping = True
            await self._running.collections.stop()

    def close(self) -> None:
        """Closes the files; after `stop`, or where it was never started."""
        if self._running is not None:
            self._running.workers.close()
            self._running.store.close()

    # -- coordinators ------------------------------------------------------------------------------------------------
    async def Create(  # noqa: N802
        self, requests: AsyncIterator[pb.CreateCollectionRequest], context: Context
    ) -> pb.Collection:
        """Creates a collection, where the policy allows it; otherwise it is refused before its labels are read."""
        coordinator, running = coordinator_of(context, self._me), self.running
        with self._creating.one(coordinator):
            first = await anext(aiter(requests), pb.CreateCollectionRequest())
            spec = await running.workers.turn(running.collections.read, first.spec)
            running.collections.check(spec, coordinator)
            labels = bytearray(first.labels)
            async for part in requests:
                labels += part.labels
                if len(labels) > MAX_LABEL_BYTES:
                    raise LimitExceeded(
                        f"{self._me} takes labels of at most {MAX_LABEL_BYTES >> 20} MiB; shorten them", party=self._me
                    )
            collection = await running.collections.create(spec, bytes(labels), coordinator)
            return await self._described(collection, self._reader(collection, coordinator))

    async def List(self, request: pb.ListCollectionsRequest, context: Context) -> pb.Collections:  # noqa: ARG002, N802
        """The collections that the coordinator may read."""
        coordinator = coordinator_of(context, self._me)
        found, left_out = (
            [each for each in some if may_read(each.spec, each.stored.creator, coordinator)]
            for some in (self.running.collections.all(), self.running.collections.left_out())
        )
        described = [await self._described(each, self._reader(each, coordinator)) for each in found]
        return pb.Collections(collections=[*described, *(left_out_of(each.stored, self._me) for each in left_out)])

    async def Estimate(self, request: pb.FrequencyRequest, context: Context) -> AsyncIterator[pb.EstimatePart]:  # noqa: N802
        """The estimates of one round, as far as the coordinator may see it."""
        reader = await self._readable(request.collection, context)
        number, question = request.round if request.HasField("round") else await reader.latest(), question_of(request)
        async with self._room_for(reader, question):
            snapshot = None if number is None else await reader.snapshot(number)
            if snapshot is None:
                name = reader.collection.name
                which = "no round with reports yet" if number is None else f"no round {number}, or not any more"
                raise ConfigurationError(f"the collection '{name}' at {self._me} has {which}", party=self._me)
            found = await self.answer(reader.collection, snapshot, question)
            await self._read(reader, snapshot)
            for part in parts_of(reader.collection.name, snapshot, found):
                yield part

    async def Watch(self, request: pb.WatchFrequencyRequest, context: Context) -> AsyncIterator[pb.EstimatePart]:  # noqa: N802
        """Estimates whenever something has changed, and the last ones of each round; until the collection is closed."""
        reader = await self._readable(request.what.collection, context)
        collection, question = reader.collection, question_of(request.what)
        chosen = request.what.round if request.what.HasField("round") else None
        every = max(request.every if math.isfinite(request.every) else 0.0, LEAST_EVERY_S)
        with self.watching.one(reader.name):
            sent: tuple[int, int, bool] | None = None
            recorded: set[int] = set()
            # What ended before the watch began is not news, but for the latest, and for the latest with reports.
            known = (collection.latest_ended, await reader.latest())
            final = min((each for each in known if each is not None), default=0) - 1
            if request.HasField("first"):  # a later one may stem from another collection that had the name before
                ended = -1 if collection.latest_ended is None else collection.latest_ended
                final = min(int(request.first) - 1, ended)
            while True:
                version, closed = collection.changes.version, collection.closed
                async for snapshot in reader.news(chosen, final):
                    if snapshot.final:
                        final = max(final, snapshot.stored.number)
                    seen = (snapshot.stored.number, len(snapshot.aggregator), snapshot.final)
                    if seen == sent or not is_shown(snapshot, self.running.policy):
                        continue
                    async with self._room_for(reader, question):
                        found = await self.answer(collection, snapshot, question)
                        if snapshot.stored.number not in recorded:
                            await self._read(reader, snapshot)
                            recorded.add(snapshot.stored.number)
                        sent = seen
                        for part in parts_of(collection.name, snapshot, found):
                            yield part
                if closed or (chosen is not None and sent is not None and sent[2]):
                    return
                # Time runs from the end of what was sent: who reads slowly gets fewer estimates, and the newest.
                with suppress(TimeoutError):
                    await asyncio.wait_for(collection.changes.over.wait(), every)
                await collection.changes.beyond(version)

    async def Export(self, request: pb.ExportRequest, context: Context) -> AsyncIterator[pb.ExportPart]:  # noqa: N802
        """Files of all rounds: estimates, what the collection is, and where asked for, the sums."""
        reader = await self._readable(request.collection, context)
        with self.fetching.one(reader.name):
            async with aclosing(self._exported(reader, request)) as parts:
                async for part in parts:
                    yield part

    async def _exported(self, reader: Reader, request: pb.ExportRequest) -> AsyncGenerator[pb.ExportPart]:
        collection = reader.collection
        yield pb.ExportPart(file=ESTIMATES_FILE, data=header())
        shown = []
        labels = None if collection.domain is None else collection.domain.labels
        async for snapshot in reader.rounds():
            if not is_shown(snapshot, self.running.policy):
                continue
            shown.append(snapshot)
            async with self._room_for(reader, Question()):
                await self._read(reader, snapshot)
                with suppress(ConfigurationError):  # reports from which nothing is estimated without candidates
                    found = await self.answer(collection, snapshot, Question())
                    for piece in lines(snapshot, found, labels):
                        for data in cut(piece):
                            yield pb.ExportPart(file=ESTIMATES_FILE, data=data)
                if request.states:
                    for data in cut(snapshot.aggregator.to_bytes()):
                        yield pb.ExportPart(file=state_file(snapshot.stored.number), data=data)
        described = collection_json(collection, await reader.counters(), shown, self._me)
        for data in cut(described):
            yield pb.ExportPart(file=COLLECTION_FILE, data=data)

    async def Close(self, request: pb.CloseCollectionRequest, context: Context) -> pb.Collection:  # noqa: N802
        """Ends the rounds now; estimates stay, and no report is taken any more."""
        coordinator = coordinator_of(context, self._me)
        collection = await self.running.collections.find(request.collection)
        check_closer(collection.spec, collection.stored.creator, coordinator, self._me)
        await collection.close(coordinator)
        return await self._described(collection, self._reader(collection, coordinator))

    async def Delete(self, request: pb.DeleteCollectionRequest, context: Context) -> pb.DeleteCollectionReply:  # noqa: N802
        """Forgets a closed collection."""
        coordinator = coordinator_of(context, self._me)
        await self.running.collections.delete(request.collection, coordinator)
        return pb.DeleteCollectionReply()

    # -- coordinators and clients ------------------------------------------------------------------------------------
    async def Describe(self, request: pb.DescribeCollectionRequest, context: Context) -> pb.Collection:  # noqa: N802
        """What a collection is, and which rounds take reports."""
        collection = await self.running.collections.find(request.collection)
        return await self._described(collection, self._check_known(collection, context))

    async def Domain(self, request: pb.DomainRequest, context: Context) -> AsyncIterator[pb.DomainPart]:  # noqa: N802
        """The labels of the domain, in pieces."""
        collection = await self.running.collections.find(request.collection)
        self._check_known(collection, context)
        with self.fetching.one(peer_of(context.auth_context())[1]):
            for data in cut(collection.stored.labels):
                yield pb.DomainPart(labels=data)

    # -- clients -----------------------------------------------------------------------------------------------------
    async def Submit(self, requests: AsyncIterator[pb.ReportBatch], context: Context) -> AsyncIterator[pb.BatchReceipt]:  # noqa: N802
        """Takes batches, several at a time, and gives receipts in their order.

        No more is read from a stream while as many of its batches are under way as may be, or its receipts are not
        taken; so a sender can hold up nobody but itself.
        """
        _, submitter = peer_of(context.auth_context())
        running = self.running
        with self.submitting.one(submitter):
            under_way: asyncio.Queue[asyncio.Task[pb.BatchReceipt] | None] = asyncio.Queue()
            free = asyncio.Semaphore(IN_FLIGHT)
            reading = asyncio.create_task(self._receive(requests, running, submitter, under_way, free))
            try:
                while (task := await under_way.get()) is not None:
                    yield await task
                    free.release()
                await reading  # raises what ended the stream, once all receipts before are sent
            finally:
                reading.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await reading
                while not under_way.empty():
                    left = under_way.get_nowait()
                    if left is not None:
                        left.cancel()  # counted or not: the sender will send it again, and it is counted once

    async def _receive(
        self,
        requests: AsyncIterator[pb.ReportBatch],
        running: _Running,
        submitter: str,
        under_way: asyncio.Queue[asyncio.Task[pb.BatchReceipt] | None],
        free: asyncio.Semaphore,
    ) -> None:
        try:
            async for batch in requests:
                size = running.submissions.checked_size(batch)
                # Nothing more is read before there is room, so a stream holds one batch beside those that have it.
                with self.queue.one(submitter, size):
                    await free.acquire()
                    await running.store.room()
                    held = await self.memory.take(size)
                task = asyncio.create_task(self._take(running, batch, submitter))
                task.add_done_callback(partial(self._leave, held))
                under_way.put_nowait(task)
        finally:
            under_way.put_nowait(None)

    def _leave(self, held: int, task: asyncio.Task[pb.BatchReceipt]) -> None:  # noqa: ARG002 (however it ended)
        self.memory.give(held)

    async def _take(self, running: _Running, batch: pb.ReportBatch, submitter: str) -> pb.BatchReceipt:
        if running.stopping:
            raise PeerError(f"{self._me} is stopping; send the reports again later", party=self._me)
        return await running.submissions.take(batch, submitter)

    # -- what they share ---------------------------------------------------------------------------------------------
    @property
    def running(self) -> _Running:
        """What there is where the service is on.

        Raises:
            PolicyDenied: It is off.
        """
        if self._running is None:
            raise PolicyDenied(
                f"the frequency service of {self._me} is off; its operator turns it on by a [frequency] table in "
                "party.toml",
                party=self._me,
            )
        return self._running

    def _reader(self, collection: Collection, coordinator: str) -> Reader:
        return Reader(collection, coordinator, self._me, self.running.store, self.running.workers)

    async def _readable(self, name: str, context: Context) -> Reader:
        coordinator = coordinator_of(context, self._me)
        return self._reader(await self.running.collections.find(name), coordinator)

    def _check_known(self, collection: Collection, context: Context) -> Reader | None:
        """The caller as a reader, None where it may only report; who may do neither is refused."""
        role, name = peer_of(context.auth_context())
        if role == "coordinator":
            return self._reader(collection, name)
        check_submitter(collection.spec, name, self._me)
        return None

    def _room_for(self, reader: Reader, question: Question) -> AbstractAsyncContextManager[Held]:
        """Room for the estimates of a round, until the reader has taken them: who takes none waits for itself alone."""
        domain = reader.collection.domain
        values = len(question.candidates) + (0 if domain is None else domain.size)
        return self._answers.some(reader.name, VALUE_BYTES * values)

    async def answer(self, collection: Collection, snapshot: Snapshot, question: Question) -> Answer:
        """What a reader is told of a snapshot, where so much has come that it may be told."""
        if len(snapshot.aggregator) and not is_shown(snapshot, self.running.policy):
            raise PolicyDenied(
                f"the policy of {self._me} shows estimates of {self.running.policy.min_reports:,} reports or more "
                f"(rule min_reports), and round {snapshot.stored.number} of '{collection.name}' has fewer",
                party=self._me,
            )
        workers = self.running.workers
        run = workers.quick if question.is_quick(snapshot.mechanism) else workers.slow
        return await run(answer, snapshot, question, collection.spec, collection.domain)

    async def _read(self, reader: Reader, snapshot: Snapshot) -> None:
        """Writes down that estimates are read, but not those of a collection that was deleted meanwhile.

        Another one may have its name by now, and would be held to have had these reports.
        """
        name, number, n = reader.collection.name, snapshot.stored.number, len(snapshot.aggregator)
        if reader.collection.deleted:
            raise no_collection(name, self._me)
        await self._audit.record(EstimatesRead(collection=name, coordinator=reader.name, round=number, reports=n))

    async def _described(self, collection: Collection, reader: Reader | None) -> pb.Collection:
        """What a reader sees of a collection, or where there is None, a client that may report to it."""
        described = collection_of(
            collection.stored,
            [
                round_of(each.stored, each.mechanism.fingerprint)
                for _, each in sorted(collection.open.items())
                if not each.is_ending
            ],
            closed=collection.closed,
            ended=collection.ended,
            domain_digest=collection.domain_digest,
            me=self._me,
            now=self.now(),
        )
        if reader is None:
            described.spec = collection.public_spec
        else:
            described.counters.CopyFrom(counters_of(await reader.counters()))
        return described


class _Running:
    """What there is where the service is on."""

    def __init__(
        self, policy: FrequencySection, state: Path, me: str, audit: NodeAudit, log: Log, now: Callable[[], float]
    ) -> None:
        self.stopping = False
        self.store = FrequencyStore.open(state / FILE, policy.max_disk)
        self.workers = Workers()
        self.collections = Collections(self.store, policy, audit, log, me, self.workers, now)
        self.submissions = Submissions(self.collections, self.store, me, self.workers, now, policy.max_memory)

    @property
    def policy(self) -> FrequencySection:
        return self.collections.policy
