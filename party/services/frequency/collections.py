"""All collections of a node: created, found by their names, kept going by the clock, and closed."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Final

from crypto.primitives.randomness import Randomness
from jobs.audit.service_events import CollectionCreated
from jobs.collections.spec import CollectionSpec, digest_of
from link.errors import ConfigurationError, InputDataError, ResourceError
from link.logs.structured import Log
from party.services.frequency.access import check_deleter
from party.services.frequency.collection import Collection
from party.services.frequency.policy import (
    FrequencySection,
    check_creation,
    check_memory,
    check_rounds,
    read_spec,
)
from party.services.frequency.schedule import schedule_of
from party.services.frequency.storage.records import StoredCollection
from party.services.frequency.storage.store import FrequencyStore
from party.services.frequency.workers import Workers
from party.state.node_audit import NodeAudit

ID_BYTES: Final = 16
LOOK_S: Final = 1.0  # between two looks at the clock at most, since somebody may set it
RETRY_S: Final = 5.0  # after the end of a round could not be written


class Collections:
    """The collections of one node.

    Args:
        store: Where they are kept.
        policy: The node's.
        audit: The node's audit log.
        log: The node's log.
        me: This party.
        workers: Threads.
        now: Unix seconds.
    """

    def __init__(
        self,
        store: FrequencyStore,
        policy: FrequencySection,
        audit: NodeAudit,
        log: Log,
        me: str,
        workers: Workers,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self.policy, self._audit, self._log, self._me = store, policy, audit, log, me
        self._workers, self.now = workers, now
        self._collections: dict[str, Collection] = {}
        self._left_out: dict[str, Collection] = {}
        self._clocks: dict[str, asyncio.Task[None]] = {}
        self._creating = asyncio.Lock()

    async def start(self) -> None:
        """Takes up what was there when the node stopped, but for collections whose reports this version cannot read.

        Raises:
            ConfigurationError: A collection cannot be read.
        """
        for stored in await self._workers.disk(self._store.collections):
            collection = self._of(stored)
            try:
                await collection.recover()
            except InputDataError as error:
                self._left_out[stored.name] = collection
                self._log.warning("collection left out", collection=stored.name, error=error)
            else:
                self._add(collection)

    async def stop(self) -> None:
        """Ends the clocks, and waits for the batches that are under way."""
        for clock in self._clocks.values():
            clock.cancel()
        await asyncio.gather(*self._clocks.values(), return_exceptions=True)
        await asyncio.gather(*(each.stop() for each in self._collections.values()))

    def all(self) -> list[Collection]:
        """All collections, in the order of their creation."""
        return list(self._collections.values())

    def left_out(self) -> list[Collection]:
        """Those whose reports this version cannot read."""
        return list(self._left_out.values())

    async def find(self, name: str) -> Collection:
        """A collection, whose rounds are what they should be now.

        Raises:
            ConfigurationError: There is none of that name.
            ResourceError: The end of a round cannot be written.
        """
        found = self._collections.get(name)
        if name in self._left_out:
            raise ConfigurationError(
                f"the reports of the collection '{name}' at {self._me} are of another version of comine, which read "
                f"them otherwise; have its creator delete it (comine frequency delete {name}) and create it anew",
                party=self._me,
            )
        if found is None:
            raise no_collection(name, self._me)
        await found.advance()
        return found

    def read(self, data: bytes) -> CollectionSpec:
        """A specification that a coordinator sent; errors as of `party.services.frequency.policy.read_spec`."""
        return read_spec(self.policy, data, self._me)

    def check(self, spec: CollectionSpec, creator: str, label_bytes: int = 0) -> None:
        """Refuses a collection that cannot be created, whatever its labels are.

        Args:
            spec: What it is to be.
            creator: Who asks.
            label_bytes: Of its labels, once they are there.

        Raises:
            PolicyDenied: The node's policy does not allow it.
            LimitExceeded: Its rounds, with those of the creator's other collections, would end too often; or they
                would take too much memory.
            ConfigurationError: The name is taken, or it is meant for another node.
            ResourceError: The collections take as much of the disk as they may.
        """
        if spec.collection.node not in (None, self._me):
            raise ConfigurationError(
                f"the collection '{spec.name}' is meant for the node of {spec.collection.node}, not of {self._me}",
                party=self._me,
            )
        running = [each for each in self._collections.values() if not each.closed]
        check_creation(self.policy, spec, creator, self._me, running=len(running) + len(self._left_out))
        check_rounds(spec, [each.spec for each in running if each.stored.creator == creator], creator, self._me)
        known = (*self._collections.values(), *self._left_out.values())
        taken = sum(each.memory for each in known if each.stored.creator == creator)
        check_memory(spec, label_bytes, taken, creator, self._me)
        if spec.name in self._collections or spec.name in self._left_out:
            raise ConfigurationError(
                f"{self._me} has a collection '{spec.name}' already; take another name", party=self._me
            )
        if self._store.is_full:
            raise ResourceError(
                f"the collections of {self._me} take as much of the disk as its policy allows (rule max_disk); delete "
                "some that are closed",
                party=self._me,
            )

    async def create(self, spec: CollectionSpec, labels: bytes, creator: str) -> Collection:
        """Creates a collection and opens its first round.

        Args:
            spec: What it is to be.
            labels: The domain's values as UTF-8 lines; empty where they are numbers, or unknown.
            creator: Who asks.

        Raises:
            PolicyDenied: The node's policy does not allow it.
            ConfigurationError: The name is taken, or the labels are not what the specification says.
            ResourceError: It cannot be written.
        """
        async with self._creating:
            self.check(spec, creator, len(labels))
            created = self.now()
            initial = await self._workers.turn(
                lambda: schedule_of(spec, spec.domain(labels), created).initial  # refuses wrong labels
            )
            canonical = spec.canonical()
            await self._audit.record(
                CollectionCreated(
                    collection=spec.name,
                    coordinator=creator,
                    spec_digest=hashlib.sha256(canonical).digest(),
                    domain_digest=digest_of(labels) or None,
                )
            )
            stored = StoredCollection(
                name=spec.name,
                id=Randomness.from_os().bytes(ID_BYTES),
                spec=canonical,
                labels=labels,
                creator=creator,
                created=created,
                state=initial,
            )
            await self._workers.disk(self._store.create, stored)
            collection = await self._workers.turn(self._of, stored)
            self._add(collection)
        await collection.advance()
        return collection

    async def delete(self, name: str, by: str) -> None:
        """Forgets a closed collection with all that is kept of it, or one whose reports this version cannot read.

        Args:
            name: Of the collection.
            by: Who asks.

        Raises:
            PolicyDenied: It was created by somebody else.
            ConfigurationError: There is none of that name, or it is open.
            ResourceError: It cannot be written.
        """
        async with self._creating:
            left_out = self._left_out.get(name)
            if left_out is not None:
                check_deleter(left_out.spec, left_out.stored.creator, by, self._me)
                await left_out.discard(by)
                del self._left_out[name]
                return
            found = await self.find(name)
            check_deleter(found.spec, found.stored.creator, by, self._me)
            if not found.closed:
                raise ConfigurationError(
                    f"the collection '{name}' at {self._me} is open; close it first: comine frequency close {name}",
                    party=self._me,
                )
            await found.delete(by)
            del self._collections[name]
            self._clocks.pop(name, None)

    def _of(self, stored: StoredCollection) -> Collection:
        return Collection(stored, self._store, self._audit, self._workers, self.now)

    def _add(self, collection: Collection) -> None:
        self._collections[collection.name] = collection
        if not collection.closed:
            self._clocks[collection.name] = asyncio.create_task(self._keep(collection))

    async def _keep(self, collection: Collection) -> None:
        """Begins and ends rounds in time, whether anybody calls or not."""
        while not collection.closed:
            try:
                wake = await collection.advance()
            except Exception as error:
                self._log.error("round not ended", error=error)
                await asyncio.sleep(RETRY_S)
            else:
                await asyncio.sleep(min(max(wake - self.now(), 0.0), LOOK_S))


def no_collection(name: str, me: str) -> ConfigurationError:
    """The error where somebody asks for a collection that there is not, or not any more."""
    return ConfigurationError(f"{me} has no collection '{name[:63]}'; see: comine frequency list", party=me)
