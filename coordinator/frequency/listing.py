"""The collections at the nodes of a federation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from coordinator.frequency.service import FrequencyNode
from jobs.collections.reading import collection_as_data, refused, spends
from jobs.collections.spec import CollectionSpec
from link.errors import ComineError, PolicyDenied
from link.pki.identity import Identity
from protos.v1.frequency_pb2 import CLOSED, LEFT_OUT, Collection

HEADS: Final = ["name", "node", "mechanism", "epsilon", "state", "created", "rounds ended", "reports", "refused"]
_STATES: Final = {CLOSED: "closed", LEFT_OUT: "of another version"}


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found.

    Attributes:
        collections: With what they were created as.
        problems: Why some nodes could not say.
    """

    collections: tuple[tuple[Collection, CollectionSpec], ...]
    problems: tuple[str, ...]

    def lines(self) -> Iterator[list[str]]:
        """The cells of a table."""
        for collection, spec in self.collections:
            yield [
                collection.name,
                collection.node,
                spec.collection.mechanism,
                spends(spec),
                _STATES.get(collection.state, "open"),
                f"{datetime.fromtimestamp(collection.created, UTC):%Y-%m-%d %H:%M}",
                f"{collection.rounds_ended:,}",
                f"{collection.counters.counted:,}",
                f"{refused(collection.counters):,}",
            ]


async def listed(identity: Identity, addresses: Mapping[str, str]) -> Listing:
    """The collections of all these nodes that the coordinator may read.

    Raises:
        ComineError: No node could say.
    """
    nodes = [FrequencyNode(identity, party, address) for party, address in addresses.items()]
    try:
        answers = await asyncio.gather(*(_of(node) for node in nodes), return_exceptions=True)
    finally:
        await asyncio.gather(*(node.close() for node in nodes))
    found: list[tuple[Collection, CollectionSpec]] = []
    errors: list[ComineError] = []
    for answer in answers:
        if isinstance(answer, ComineError):
            errors.append(answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found += answer
    if len(errors) == len(nodes):
        raise errors[0]
    # A node that offers no service, or not to this coordinator, is not worth a line beside others.
    return Listing(tuple(found), tuple(each.message for each in errors if not isinstance(each, PolicyDenied)))


async def _of(node: FrequencyNode) -> list[tuple[Collection, CollectionSpec]]:
    return [(collection, node.spec(collection)) for collection in await node.collections()]


def as_data(found: Listing) -> dict[str, Any]:
    """The collections as JSON, `comine.collections/1`."""
    return {
        "schema": "comine.collections/1",
        "collections": [collection_as_data(collection, spec) for collection, spec in found.collections],
        "problems": list(found.problems),
    }
