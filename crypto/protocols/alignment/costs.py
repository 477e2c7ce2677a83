"""What an alignment sends and computes; see `alignment`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from crypto.params import STANDARD_128
from crypto.protocols.alignment.alignment import room_of
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.union.costs import UnionSizes, union_traffic
from crypto.protocols.union.joint_prf_costs import PrfSizes, prf_traffic
from crypto.protocols.union.set_union import ring_from, route_of
from crypto.protocols.union.size_classes import LISTS
from link.traffic import Traffic
from protos.v1.alignment_pb2 import CommonIdentifiers, EncryptedIdentifiers

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


def intersection_traffic(
    traffic: Traffic, lane: str, sizes: AlignmentSizes, *, merger: str, label: str = "intersection"
) -> None:
    """Enters `alignment.intersection` on the lane of this path."""
    path, ring = f"{lane}/intersection", ring_from(traffic.parties, merger)
    maximum_traffic(traffic, f"{path}/length", [LISTS.beyond])
    if len(ring) == 2:
        other = ring[1]
        for sender, receiver in ((merger, other), (other, merger), (other, merger)):
            traffic.send_array(sender, receiver, path, EncryptedIdentifiers, sizes.length * STANDARD_128.point_bytes)
        traffic.open(merger, [other], path, label, sizes.length, sizes.length)
        traffic.rounds += 3
        return
    _lists(traffic, path, ring, sizes)
    traffic.open(merger, ring, path, f"{label}-size", 1, _COUNT_BYTES)
    traffic.rounds += len(ring) + 1
    if sizes.common:
        size = sizes.common * STANDARD_128.point_bytes
        for sender, receiver in pairwise((*ring, merger)):
            traffic.send_array(sender, receiver, path, CommonIdentifiers, size)
        traffic.open(merger, ring, path, label, sizes.common, size)
        traffic.rounds += len(ring)


def cardinality_traffic(
    traffic: Traffic, lane: str, sizes: AlignmentSizes, *, merger: str, label: str = "cardinality"
) -> None:
    """Enters `alignment.cardinality` on the lane of this path."""
    path, ring = f"{lane}/cardinality", ring_from(traffic.parties, merger)
    maximum_traffic(traffic, f"{path}/length", [LISTS.beyond])
    _lists(traffic, path, ring, sizes)
    traffic.open(merger, ring, path, label, 1, _COUNT_BYTES)
    traffic.rounds += len(ring) + 1


def row_union_traffic(
    traffic: Traffic, lane: str, rows: Mapping[str, int], *, merger: str, bound: int | None, label: str = "positions"
) -> None:
    """Enters `alignment.union` on the lane of this path, where each party has so many rows."""
    path = f"{lane}/row-union"
    prf_traffic(traffic, path, PrfSizes.of(rows, bound))
    union_traffic(traffic, path, UnionSizes.expected(rows, 0, 1, bound, fill="union"), merger=merger, label=label)


def alignment_work(sizes: AlignmentSizes, parties: Collection[str], merger: str) -> dict[str, int]:
    """By party, its group multiplications for an intersection, at most: random points of its own need none."""
    ring, total = len(parties) > 2, len(parties) * sizes.length
    return {name: total + ring * sizes.common * (2 if name == merger else 1) for name in parties}


def _lists(traffic: Traffic, path: str, ring: tuple[str, ...], sizes: AlignmentSizes) -> None:
    size = sizes.length * STANDARD_128.point_bytes
    for owner in ring:
        for sender, receiver in pairwise(route_of(ring, owner)):
            traffic.send_array(sender, receiver, f"{path}/list/{owner}", EncryptedIdentifiers, size)
