"""What an alignment sends and computes; see `alignment`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Final

from crypto.params import STANDARD_128
from crypto.primitives.okvs import MOST_KEYS
from crypto.primitives.point_hash import POINT_BYTES as HASH_BYTES
from crypto.protocols.alignment.alignment import room_of, takes_functions
from crypto.protocols.alignment.oprf_intersection import value_bytes
from crypto.protocols.alignment.zero_shares import WORD_BYTES
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.transfers.costs import oprf_rounds, oprf_traffic, programming_traffic
from crypto.protocols.transfers.extension_codes import block_count
from crypto.protocols.union.costs import union_traffic
from crypto.protocols.union.joint_prf_costs import PrfSizes, prf_traffic
from crypto.protocols.union.lists import ListSizes
from crypto.protocols.union.set_union import ring_from, route_of
from crypto.protocols.union.size_classes import LISTS
from link.traffic import Traffic

_COUNT_BYTES = 8
PLACE_BYTES: Final = 70  # about: points, values of lists or shares, their order, and what is common
_PART_BYTES: Final = 450  # about, with each peer: rows of one part's store, three times, and how it is solved
_BASE_MULTIPLICATIONS: Final = 3 * block_count(1)  # about, of either party


@dataclass(frozen=True)
class AlignmentSizes:
    """What the costs of an intersection and of its cardinality depend on.

    Attributes:
        parties: How many there are.
        length: Of every party's list, without fakes.
        common: Identifiers that all parties hold.
    """

    parties: int
    length: int
    common: int

    @classmethod
    def of(cls, rows: Mapping[str, int], common: int, bound: int | None) -> AlignmentSizes:
        """The sizes where each party has so many rows."""
        return cls(len(rows), LISTS.rounded(bound or max(rows.values())), common)

    @property
    def takes_functions(self) -> bool:
        """Whether an intersection compares the lists by pseudorandom functions."""
        return takes_functions(self.parties, self.length)

    @property
    def listed(self) -> int:
        """Places of every party's list over the group."""
        return self.length + room_of(self.parties)


def intersection_traffic(traffic: Traffic, sizes: AlignmentSizes, merger: str) -> None:
    """Enters `alignment.intersection`."""
    ring = ring_from(traffic.parties, merger)
    maximum_traffic(traffic, [LISTS.beyond])
    if len(ring) > 2:
        _zero_shares_traffic(traffic, ring, sizes)
        return
    other = ring[1]
    if sizes.takes_functions:
        oprf_traffic(traffic, other, merger, sizes.length)
        traffic.send(other, merger, sizes.length * value_bytes(sizes.length))
        traffic.send(merger, [other], sizes.length)
        traffic.rounds += oprf_rounds(sizes.length) + 2
        return
    for sender, receiver in ((merger, other), (other, merger), (other, merger)):
        traffic.send(sender, receiver, sizes.length * STANDARD_128.point_bytes)
    traffic.send(merger, ring, sizes.length)
    traffic.rounds += 3


def _zero_shares_traffic(traffic: Traffic, ring: tuple[str, ...], sizes: AlignmentSizes) -> None:
    merger, *others = ring
    for holder, evaluator in permutations(others, 2):
        oprf_traffic(traffic, holder, evaluator, sizes.length)
    for other in others:
        oprf_traffic(traffic, other, merger, sizes.length)
        programming_traffic(traffic, other, merger, sizes.length, WORD_BYTES // 8)
    traffic.send(merger, ring, _COUNT_BYTES)
    if sizes.common:
        traffic.send(merger, ring, sizes.common * HASH_BYTES)
    traffic.rounds += 2 * oprf_rounds(sizes.length) + 1  # the merger's choices of transfers come early


def cardinality_traffic(traffic: Traffic, sizes: AlignmentSizes, merger: str) -> None:
    """Enters `alignment.cardinality`."""
    maximum_traffic(traffic, [LISTS.beyond])
    _lists(traffic, ring_from(traffic.parties, merger), sizes)


def row_union_traffic(traffic: Traffic, rows: Mapping[str, int], *, merger: str, bound: int | None) -> None:
    """Enters `alignment.union`, where each party has so many rows."""
    prf_traffic(traffic, PrfSizes.of(rows, bound))
    union_traffic(traffic, ListSizes.expected(rows, bound), merger)


def intersection_work(sizes: AlignmentSizes) -> tuple[int, int]:
    """What one party computes for an intersection.

    Returns:
        Its group multiplications, at most: random points of its own need none. And how many values of a pseudorandom
        function it computes; with these the multiplications are only those of base transfers.
    """
    if not sizes.takes_functions:
        return cardinality_work(sizes), 0
    functions = 2 * sizes.parties - 3  # of a party that does not merge
    return functions * _BASE_MULTIPLICATIONS, functions * sizes.length


def function_bytes(sizes: AlignmentSizes) -> int:
    """Memory of a party whose lists are compared by pseudorandom functions, without the identifiers."""
    pairs = max(sizes.parties - 2, 1)
    return sizes.length * PLACE_BYTES + min(sizes.length, MOST_KEYS) * pairs * _PART_BYTES


def cardinality_work(sizes: AlignmentSizes) -> int:
    """Group multiplications of one party for a cardinality, at most."""
    return sizes.parties * sizes.listed


def _lists(traffic: Traffic, ring: tuple[str, ...], sizes: AlignmentSizes) -> None:
    """Every party's list around the ring, and what they have in common opened."""
    for owner in ring:
        for sender, receiver in pairwise(route_of(ring, owner)):
            traffic.send(sender, receiver, sizes.listed * STANDARD_128.point_bytes)
    traffic.send(ring[0], ring, _COUNT_BYTES)
    traffic.rounds += len(ring) + 1
