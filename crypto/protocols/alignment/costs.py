"""What an alignment sends and computes; see `alignment`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from crypto.params import STANDARD_128
from crypto.protocols.alignment.alignment import room_of
from crypto.protocols.alignment.oprf_intersection import value_bytes
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.transfers.costs import oprf_traffic
from crypto.protocols.union.costs import UnionSizes, union_traffic
from crypto.protocols.union.joint_prf_costs import PrfSizes, prf_traffic
from crypto.protocols.union.set_union import ring_from, route_of
from crypto.protocols.union.size_classes import LISTS
from link.traffic import Traffic

_COUNT_BYTES = 8


@dataclass(frozen=True)
class AlignmentSizes:
    """What the costs of an intersection and of its cardinality depend on.

    Attributes:
        length: Of every party's list.
        common: Identifiers that all parties hold.
    """

    length: int
    common: int

    @classmethod
    def of(cls, rows: Mapping[str, int], common: int, bound: int | None) -> AlignmentSizes:
        """The sizes where each party has so many rows."""
        return cls(LISTS.rounded(bound or max(rows.values())) + room_of(len(rows)), common)


def intersection_traffic(traffic: Traffic, sizes: AlignmentSizes, merger: str) -> None:
    """Enters `alignment.intersection`."""
    ring = ring_from(traffic.parties, merger)
    maximum_traffic(traffic, [LISTS.beyond])
    if len(ring) == 2:
        for sender, receiver in ((merger, ring[1]), (ring[1], merger), (ring[1], merger)):
            traffic.send(sender, receiver, sizes.length * STANDARD_128.point_bytes)
        traffic.send(merger, ring, sizes.length)
        traffic.rounds += 3
        return
    _lists(traffic, ring, sizes)
    if sizes.common:
        size = sizes.common * STANDARD_128.point_bytes
        for sender, receiver in pairwise((*ring, merger)):
            traffic.send(sender, receiver, size)
        traffic.send(merger, ring, size)
        traffic.rounds += len(ring)


def oprf_intersection_traffic(traffic: Traffic, length: int, merger: str) -> None:
    """Enters `oprf_intersection`, with lists of this length."""
    merger, other = ring_from(traffic.parties, merger)
    maximum_traffic(traffic, [LISTS.beyond])
    oprf_traffic(traffic, other, merger, length)
    traffic.send(other, merger, length * value_bytes(length))
    traffic.send(merger, [other], length)
    traffic.rounds += 5


def cardinality_traffic(traffic: Traffic, sizes: AlignmentSizes, merger: str) -> None:
    """Enters `alignment.cardinality`."""
    maximum_traffic(traffic, [LISTS.beyond])
    _lists(traffic, ring_from(traffic.parties, merger), sizes)


def row_union_traffic(traffic: Traffic, rows: Mapping[str, int], *, merger: str, bound: int | None) -> None:
    """Enters `alignment.union`, where each party has so many rows."""
    prf_traffic(traffic, PrfSizes.of(rows, bound))
    union_traffic(traffic, UnionSizes.expected(rows, 0, 1, bound, fill="union"), merger)


def alignment_work(sizes: AlignmentSizes, parties: Collection[str], merger: str) -> dict[str, int]:
    """By party, its group multiplications for an intersection, at most: random points of its own need none."""
    ring, total = len(parties) > 2, len(parties) * sizes.length
    return {name: total + ring * sizes.common * (2 if name == merger else 1) for name in parties}


def _lists(traffic: Traffic, ring: tuple[str, ...], sizes: AlignmentSizes) -> None:
    """Every party's list around the ring, and what they have in common opened."""
    for owner in ring:
        for sender, receiver in pairwise(route_of(ring, owner)):
            traffic.send(sender, receiver, sizes.length * STANDARD_128.point_bytes)
    traffic.send(ring[0], ring, _COUNT_BYTES)
    traffic.rounds += len(ring) + 1
