"""The coordinator's end of a node's frequency service: collections are made, read, exported and closed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from coordinator.node_client import ANSWER_S, REACH_S, NodeClient
from jobs.collections.estimates import Estimates, Pieces
from jobs.collections.spec import CollectionSpec, digest_of
from ldp.domain import Domain
from link.encoding.chunks import CHUNK_BYTES
from link.errors import ComineError, ConfigurationError, PeerError, PolicyDenied, UsageError
from link.pki.identity import Identity
from protos.v1.frequency_pb2 import (
    CLOSED,
    CloseCollectionRequest,
    Collection,
    CollectionState,
    CreateCollectionRequest,
    DeleteCollectionRequest,
    DescribeCollectionRequest,
    DomainRequest,
    EstimatePart,
    ExportRequest,
    FrequencyRequest,
    ListCollectionsRequest,
    WatchFrequencyRequest,
)
from protos.v1.frequency_pb2_grpc import FrequencyEstimationStub

T = TypeVar("T")

MAX_LABEL_BYTES: Final = 1 << 30
_FILE: Final = re.compile(r"collection\.json|estimates\.csv|round-[0-9]{1,18}\.state")  # that an export has


class FrequencyNode(NodeClient):
    """Calls the frequency service of one node.

    Args:
        identity: The coordinator.
        party: Whose node it must prove to be.
        address: HOST:PORT.
    """

    def __init__(self, identity: Identity, party: str, address: str) -> None:
        super().__init__(identity, party, address)
        self._service: Any = FrequencyEstimationStub(self.channel)

    async def create(self, spec: CollectionSpec, labels: bytes) -> Collection:
        """Creates a collection.

        Args:
            spec: What it is to be.
            labels: The domain's values as UTF-8 lines; empty where they are numbers, or not known.

        Raises:
            PolicyDenied: The node's policy does not allow it.
            ConfigurationError: The node has one of that name.
        """
        first, rest = labels[:CHUNK_BYTES], range(CHUNK_BYTES, len(labels), CHUNK_BYTES)
        requests = chain(
            [CreateCollectionRequest(spec=spec.canonical(), labels=first)],
            (CreateCollectionRequest(labels=labels[start : start + CHUNK_BYTES]) for start in rest),
        )
        created: Collection = await self.call(self._service.Create(requests, timeout=ANSWER_S))
        return created

    async def collections(self) -> list[Collection]:
        """The collections that the coordinator may read, in the order of their names."""
        found = await self.call(self._service.List(ListCollectionsRequest(), timeout=REACH_S))
        return sorted(map(self._known, found.collections), key=lambda collection: collection.name)

    async def describe(self, name: str) -> Collection:
        """A collection as it stands."""
        request = DescribeCollectionRequest(collection=name)
        return self._known(await self.call(self._service.Describe(request, timeout=REACH_S)))

    async def domain(self, collection: Collection) -> Domain | None:
        """The values of a collection; None where they are not known.

        Raises:
            MalformedMessage: The node sends other values than the description promises.
        """
        if not collection.domain_digest:
            return self._read(lambda: self.spec(collection).domain(b""))
        data = bytearray()
        call = self._service.Domain(DomainRequest(collection=collection.name))
        async with aclosing(self.parts(call)) as parts:
            async for part in parts:
                data += part.labels
                if len(data) > MAX_LABEL_BYTES:
                    raise self.malformed("more than 1 GiB of values")
        if digest_of(bytes(data)) != collection.domain_digest:
            raise self.malformed("other values than the collection's description promises")
        return self._read(lambda: self.spec(collection).domain(bytes(data)))

    def spec(self, collection: Collection) -> CollectionSpec:
        """What a collection was created as.

        Raises:
            MalformedMessage: The node's description cannot be read.
        """
        return self._read(lambda: CollectionSpec.from_canonical(collection.spec))

    async def estimate(self, request: FrequencyRequest) -> Estimates:
        """The estimates of one round, as they stand now."""
        call = self._service.Estimate(request, timeout=ANSWER_S)
        async with aclosing(self._estimates(call)) as found:
            async for estimates in found:
                return estimates
        raise self.malformed("no estimates")

    async def watch(
        self, request: FrequencyRequest, every: float, first: int | None = None
    ) -> AsyncGenerator[Estimates]:
        """Estimates as they change, at most every so many seconds, until the collection is closed.

        Args:
            request: Of what.
            every: Seconds.
            first: The first round whose end is shown, though it may be past; None: the latest that has ended.
        """
        call = self._service.Watch(WatchFrequencyRequest(what=request, every=every, first=first))
        async with aclosing(self._estimates(call)) as found:
            async for estimates in found:
                yield estimates

    async def export(self, name: str, *, states: bool) -> AsyncGenerator[tuple[str, bytes]]:
        """The files of a collection, piece by piece: their names and what comes next in them.

        Raises:
            MalformedMessage: The node names a file that no export has.
        """
        call = self._service.Export(ExportRequest(collection=name, states=states))
        async with aclosing(self.parts(call)) as parts:
            async for part in parts:
                if _FILE.fullmatch(part.file) is None:
                    raise self.malformed("a file that no export has")
                yield part.file, part.data

    async def end(self, name: str) -> Collection:
        """Closes a collection: its rounds end now, its estimates stay."""
        request = CloseCollectionRequest(collection=name)
        collection: Collection = await self.call(self._service.Close(request, timeout=ANSWER_S))
        return collection

    async def delete(self, name: str) -> None:
        """Has a closed collection forgotten, with all that the node keeps of it."""
        await self.call(self._service.Delete(DeleteCollectionRequest(collection=name), timeout=ANSWER_S))

    async def _estimates(self, call: Any) -> AsyncGenerator[Estimates]:
        pieces = Pieces(self.party)
        async with aclosing(self.parts(call)) as parts:
            async for part in parts:
                assert isinstance(part, EstimatePart)
                if (whole := pieces.add(part)) is not None:
                    yield whole
        pieces.check_over()

    def _known(self, collection: Collection) -> Collection:
        if collection.state not in CollectionState.values():
            raise self.malformed("a collection in a state that is none")
        return collection

    def _read(self, reading: Callable[[], T]) -> T:
        try:
            return reading()
        except ConfigurationError as error:
            raise self.malformed(f"a description that cannot be read: {error.message}") from None


class Found(NamedTuple):
    """A collection and the node that has it."""

    node: FrequencyNode
    collection: Collection


def address_of(addresses: Mapping[str, str], party: str) -> str:
    """HOST:PORT of a party of the federation.

    Raises:
        ConfigurationError: The federation has no such party.
    """
    if party not in addresses:
        raise ConfigurationError(f"the federation has no party '{party}', only {', '.join(sorted(addresses))}")
    return addresses[party]


def party_named(addresses: Mapping[str, str], party: str | None) -> str:
    """The party whose node is meant: the one that is named, or the federation's only one.

    Raises:
        UsageError: No party is named, and there are several.
        ConfigurationError: The federation has no such party.
    """
    if party is not None:
        address_of(addresses, party)
        return party
    if len(addresses) > 1:
        raise UsageError(f"name the node with --node: one of {', '.join(sorted(addresses))}")
    return next(iter(addresses))


def check_open(collection: Collection) -> None:
    """Refuses to report to a closed collection.

    Raises:
        PolicyDenied: It is closed.
    """
    if collection.state == CLOSED:
        raise PolicyDenied(
            f"the collection '{collection.name}' at {collection.node} is closed and takes no more reports; its "
            f"estimates stay: comine frequency estimate {collection.name}",
            party=collection.node,
        )


@asynccontextmanager
async def node_of(identity: Identity, addresses: Mapping[str, str], party: str | None) -> AsyncIterator[FrequencyNode]:
    """The service of one party for as long as the context lasts.

    Args:
        identity: The coordinator.
        addresses: Of all parties of the federation.
        party: Whose node; None where the federation has one party only.

    Raises:
        UsageError: No party is named, and there are several.
        ConfigurationError: The federation has no such party.
    """
    party = party_named(addresses, party)
    async with FrequencyNode(identity, party, addresses[party]) as node:
        yield node


@asynccontextmanager
async def collection_of(
    identity: Identity, addresses: Mapping[str, str], name: str, party: str | None = None
) -> AsyncIterator[Found]:
    """A collection at its node for as long as the context lasts; without `party`, all nodes are asked who has it.

    Raises:
        UsageError: Several nodes have one of that name.
        ConfigurationError: None has.
        PeerError: None has, and not all could be asked.
    """
    if party is not None or len(addresses) == 1:
        async with node_of(identity, addresses, party) as node:
            yield Found(node, await node.describe(name))
        return
    nodes = [FrequencyNode(identity, each, address) for each, address in addresses.items()]
    try:
        answers = await asyncio.gather(*(node.collections() for node in nodes), return_exceptions=True)
        yield _chosen(name, dict(zip(nodes, answers, strict=True)))
    finally:
        await asyncio.gather(*(node.close() for node in nodes))


def _chosen(name: str, answers: Mapping[FrequencyNode, list[Collection] | BaseException]) -> Found:
    found, unreachable = [], []
    for node, answer in answers.items():
        if isinstance(answer, list):
            found += [Found(node, collection) for collection in answer if collection.name == name]
        elif isinstance(answer, PeerError):
            unreachable.append(answer)
        elif not isinstance(answer, ComineError):  # a node that refuses has no collection for this coordinator
            raise answer
    if len(found) > 1:
        raise UsageError(f"{' and '.join(each.node.party for each in found)} have '{name}'; name one with --node")
    if found:
        return found[0]
    if unreachable:
        raise unreachable[0]
    raise ConfigurationError(
        f"no node of the federation has a collection '{name}' that this coordinator may read; see those that are there "
        "with: comine frequency list"
    )
