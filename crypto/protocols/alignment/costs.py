"""What an alignment sends and computes; see `alignment`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import numpy as np

from crypto.params import STANDARD_128
from crypto.primitives.groups.point_hash import POINT_BYTES as HASH_BYTES
from crypto.primitives.okvs import MOST_KEYS
from crypto.protocols.alignment.alignment import takes_functions
from crypto.protocols.alignment.bins import THIRDS, table_of
from crypto.protocols.alignment.list_limits import LIST_MEMORY
from crypto.protocols.alignment.oprf_intersection import value_bytes
from crypto.protocols.alignment.shared_count import BLOCK, COUNT, compared_bits
from crypto.protocols.alignment.zero_shares import WORD_BYTES
from crypto.protocols.comparison.comparison import BLOCK as COMPARED
from crypto.protocols.comparison.comparison import ands_by_level
from crypto.protocols.comparison.costs import comparison_traffic, opened_traffic
from crypto.protocols.comparison.digit_tables import leaves
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.transfers.costs import (
    correlated_traffic,
    oprf_rounds,
    oprf_traffic,
    programming_traffic,
    seeds_traffic,
)
from crypto.protocols.transfers.extension_codes import block_count
from crypto.protocols.union.costs import union_traffic
from crypto.protocols.union.joint_prf_costs import PrfSizes, prf_traffic
from crypto.protocols.union.lists import ListSizes
from crypto.protocols.union.set_union import ring_from
from crypto.protocols.union.size_classes import LISTS
from link.traffic import Traffic

_COUNT_BYTES = 8
_PLACE_BYTES: Final = 70  # about, of a cardinality: points, shares, and bins
_LISTED_BYTES: Final = 45  # about, in memory or on the disk: points, and values with their places, or shares
_WRITTEN_BYTES: Final = 100  # about, of them, on the disk, where nothing is in memory
_KEPT_BYTES: Final = 12  # about, of them, in memory: what is common, what of it is opened, and the result
_PART_BYTES: Final = 450  # about, with each peer: rows of one part's store, three times, and how it is solved
_BIN_BYTES: Final = 9  # a target, and a bit
_POINT_BYTES: Final = 40  # about, of each of three points that are programmed for a row
_COMPARED_BYTES: Final = 250  # about, of what is under comparison
_MULTIPLIED_BYTES: Final = 60  # about
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
    ring = ring_from(traffic.parties, merger)
    maximum_traffic(traffic, [LISTS.beyond])
    rounds, (bins, width), word_bytes = traffic.rounds, compared(sizes), np.dtype(COUNT).itemsize
    for place, other in enumerate(ring[1:], start=1):
        oprf_traffic(traffic, other, merger, sizes.length)
        programming_traffic(traffic, other, merger, THIRDS * sizes.length, WORD_BYTES // 8)
        seeds_traffic(traffic, other, merger)
        holders = tuple(party for party in traffic.parties if party in (merger, other))
        comparison_traffic(traffic, holders, number=bins, width=width, order=False)
        givers, before = ring[:place], ring[1:place]
        for holder in givers:
            seeds_traffic(traffic, holder, other)
        for giver, taker in [*((holder, other) for holder in givers), *((holder, merger) for holder in before)]:
            for start in range(0, bins, BLOCK):
                correlated_traffic(traffic, giver, taker, min(BLOCK, bins - start), word_bytes)
    levels = len(ands_by_level(len(leaves(width)), order=False))
    multiplied = 2 * (len(ring) - 1) * -(-bins // BLOCK)
    traffic.rounds = rounds + oprf_rounds(sizes.length) + 1 + 1 + levels + multiplied  # choices of transfers come early
    opened_traffic(traffic, word_bytes, traffic.parties)


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
        return sizes.parties * sizes.length, 0
    functions = 2 * sizes.parties - 3  # of a party that does not merge
    return functions * _BASE_MULTIPLICATIONS, functions * sizes.length


def cardinality_work(sizes: AlignmentSizes) -> tuple[int, int, int]:
    """What the merger computes for a cardinality, beside comparisons and agreements with all others.

    Returns:
        Its group multiplications; values of pseudorandom functions, or another party's where these are more; transfers.
    """
    others = sizes.parties - 1
    transfers = (2 * others - 1) * compared(sizes)[0]
    return others * _BASE_MULTIPLICATIONS, max(others, THIRDS) * sizes.length, transfers


def compared(sizes: AlignmentSizes) -> tuple[int, int]:
    """How many words a cardinality compares with each other party, and their bits."""
    table = table_of(sizes.length)
    return table.sparse, compared_bits(table, sizes.parties - 1)


def function_bytes(sizes: AlignmentSizes) -> int:
    """Memory of a party whose lists are compared by pseudorandom functions, without the identifiers."""
    at_once = min(sizes.length, MOST_KEYS) * max(sizes.parties - 2, 1) * _PART_BYTES
    return at_once + list_bytes(sizes.length)


def list_disk_bytes(sizes: AlignmentSizes) -> int:
    """Disk that lists of a party take at the most, where they exceed the memory for them by default."""
    if sizes.length * _LISTED_BYTES <= LIST_MEMORY:
        return 0
    return sizes.length * _WRITTEN_BYTES


def list_bytes(length: int, memory: int = LIST_MEMORY) -> int:
    """Memory that the lists of an intersection take, where so much is for them and the rest on the disk."""
    return length * _KEPT_BYTES + min(length * _LISTED_BYTES, memory)


def cardinality_bytes(sizes: AlignmentSizes) -> int:
    """Memory of the merger of a cardinality, or another party's where that is more; without the identifiers."""
    (bins, _), others = compared(sizes), sizes.parties - 1
    at_once = min(bins, 2 * COMPARED) * others * _COMPARED_BYTES + min(bins, BLOCK) * _MULTIPLIED_BYTES
    at_once += sizes.length * _PLACE_BYTES + min(sizes.length, MOST_KEYS) * max(sizes.parties - 2, 1) * _PART_BYTES
    return THIRDS * sizes.length * _POINT_BYTES + bins * others * _BIN_BYTES + at_once
