"""What a set union of pseudonyms sends and computes; see `set_union`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

from crypto.params import STANDARD_128
from crypto.primitives.groups.embedding import BLOCK_BYTES
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.union.layers import pieces
from crypto.protocols.union.lists import ListSizes
from crypto.protocols.union.set_union import ring_from, route_of
from crypto.protocols.union.size_classes import SETS
from link.traffic import Traffic


def union_traffic(traffic: Traffic, sizes: ListSizes, merger: str) -> None:
    """Enters `set_union.set_union`: 2n + 2 rounds at the most.

    Args:
        traffic: Where it is entered.
        sizes: Of all lists.
        merger: As given to `set_union`.
    """
    ring, point_bytes = ring_from(traffic.parties, merger), STANDARD_128.point_bytes
    maximum_traffic(traffic, [SETS.beyond])
    for owner in ring:
        for sender, receiver in pairwise(route_of(ring, owner)):
            traffic.send(sender, receiver, sizes.length * point_bytes)
    messages = len(list(pieces(sizes.total)))
    for sender, receiver in pairwise((*ring, merger)):
        traffic.send(sender, receiver, sizes.total * point_bytes, messages)
    traffic.send(merger, ring[1:], sizes.elements * BLOCK_BYTES)
    traffic.rounds += 2 * len(ring) + 1


@dataclass(frozen=True)
class UnionWork:
    """What one party computes for a union.

    Attributes:
        embedded: Blocks that it maps into the group.
        encryptions: Group multiplications before the merge: its layer on every list, or the merger's blinding (at
            most, since equal elements are blinded once).
        strips: Group multiplications after it.
    """

    embedded: int
    encryptions: int
    strips: int


def union_work(sizes: ListSizes, parties: Collection[str], merger: str) -> dict[str, UnionWork]:
    """By party, what it computes for a union."""
    added = {party: sizes.total if party != merger else sizes.length + sizes.total for party in parties}
    return {party: UnionWork(sizes.length, number, sizes.total) for party, number in added.items()}
