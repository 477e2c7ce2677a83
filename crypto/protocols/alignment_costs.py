"""What an alignment sends and computes; see `alignment`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from crypto.params import STANDARD_128
from crypto.protocols.alignment import room_of
from crypto.protocols.joint_prf import capacity, rung
from crypto.protocols.joint_prf_costs import PrfSizes, prf_traffic
from crypto.protocols.set_union import ring_from, route_of
from crypto.protocols.union_costs import UnionSizes, union_traffic
from link.traffic import Traffic
from protos.v1.alignment_pb2 import CommonIdentifiers, EncryptedIdentifiers
from protos.v1.joint_prf_pb2 import PrfAnnouncement

_COUNT_BYTES = 8


@dataclass(frozen=True)
class AlignmentSizes:
    """What the costs of an intersection and of its cardinality depend on.

    Attributes:
        lengths: By party, the length of its list.
        announced: Whether each party announces its size class, since the job fixes no bound.
        common: Identifiers that all parties hold.
    """

    lengths: Mapping[str, int]
    announced: bool
    common: int

    @classmethod
    def of(cls, rows: Mapping[str, int], common: int, bound: int | None) -> AlignmentSizes:
        """The sizes where each party has so many rows."""
        room = room_of(len(rows))
        lengths = {name: (bound or capacity(rung(number))) + room for name, number in rows.items()}
        return cls(lengths, bound is None, common)


def intersection_traffic(
    traffic: Traffic, lane: str, sizes: AlignmentSizes, *, merger: str, label: str = "intersection"
) -> None:
    """Enters `alignment.intersection` on the lane of this path."""
    path, ring = f"{lane}/intersection", ring_from(traffic.parties, merger)
    _announcements(traffic, path, sizes)
    if len(ring) == 2:
        other = ring[1]
        for sender, receiver, owner in ((merger, other, merger), (other, merger, other), (other, merger, merger)):
            size = sizes.lengths[owner] * STANDARD_128.point_bytes
            traffic.send_array(sender, receiver, path, EncryptedIdentifiers, size)
        traffic.open(merger, [other], path, label, sizes.lengths[other], sizes.lengths[other])
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
    _announcements(traffic, path, sizes)
    _lists(traffic, path, ring, sizes)
    traffic.open(merger, ring, path, label, 1, _COUNT_BYTES)
    traffic.rounds += len(ring) + 1


def row_union_traffic(
    traffic: Traffic, lane: str, rows: Mapping[str, int], *, merger: str, bound: int | None, label: str = "positions"
) -> None:
    """Enters `alignment.union` on the lane of this path, where each party has so many rows."""
    path = f"{lane}/row-union"
    prf_traffic(traffic, path, PrfSizes.of(rows, bound))
    union_traffic(traffic, path, UnionSizes.expected(rows, 0, 1, bound, {}, fill="union"), merger=merger, label=label)


def alignment_work(sizes: AlignmentSizes, merger: str) -> dict[str, int]:
    """By party, its group multiplications for an intersection, at most: random points of its own need none."""
    ring = len(sizes.lengths) > 2
    total = sum(sizes.lengths.values())
    return {name: total + ring * sizes.common * (2 if name == merger else 1) for name in sizes.lengths}


def _announcements(traffic: Traffic, path: str, sizes: AlignmentSizes) -> None:
    if not sizes.announced:
        return
    room = room_of(len(traffic.parties))
    for party in traffic.parties:
        traffic.broadcast(party, path, PrfAnnouncement(rung=rung(sizes.lengths[party] - room)))
    traffic.rounds += 1


def _lists(traffic: Traffic, path: str, ring: tuple[str, ...], sizes: AlignmentSizes) -> None:
    for owner in ring:
        size = sizes.lengths[owner] * STANDARD_128.point_bytes
        for sender, receiver in pairwise(route_of(ring, owner)):
            traffic.send_array(sender, receiver, f"{path}/list/{owner}", EncryptedIdentifiers, size)
