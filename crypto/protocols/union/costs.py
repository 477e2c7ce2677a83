"""What a secure set union sends and computes; see `set_union`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from crypto.params import STANDARD_128
from crypto.primitives import blocks
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.union.layers import tuples_per_piece
from crypto.protocols.union.lists import (
    EPSILON_COMMON,
    MOST_CLASSES,
    Fill,
    ListSizes,
    common_fakes,
    spare_for_common_fakes,
    widened,
)
from crypto.protocols.union.set_union import ring_from, route_of
from crypto.protocols.union.size_classes import SETS
from link.traffic import Traffic

_NUMBER_BYTES: Final = 4


@dataclass(frozen=True)
class UnionSizes:
    """What the costs of a union depend on.

    Attributes:
        lists: What all parties know of all lists.
        merged: Tuples of the merged list, fakes included.
        elements: Elements of the union, with the random ones that fill it.
    """

    lists: ListSizes
    merged: int
    elements: int

    @classmethod
    def expected(
        cls,
        held: Mapping[str, int],
        elements: int,
        blocks_each: int,
        bound: int | None,
        fill: Fill = "lists",
        common: float = 0.5,
    ) -> UnionSizes:
        """Sizes with as many common fakes as are drawn on average, unless said otherwise.

        Args:
            held: By party, the size of its set.
            elements: Size of the union of all sets.
            blocks_each: Blocks of an element.
            bound: The job's bound; None where all learn the size class of the largest set.
            fill: As given to `set_union`.
            common: Common fakes that are drawn, as a share of the most that can be: they merge.
        """
        fakes = common_fakes(EPSILON_COMMON)
        capacity = SETS.rounded(bound or max(held.values()))
        lists = ListSizes(len(held), widened(blocks_each), capacity, spare_for_common_fakes(len(held), fakes))
        if fill != "lists":
            return cls(lists, lists.total, lists.most_elements if fill == "union" else elements)
        pairs = len(held) * (len(held) - 1) // 2
        merged = lists.total - round(pairs * 2 * fakes.shift * common) - (sum(held.values()) - elements)
        return cls(lists, max(merged, lists.length), elements)


def union_traffic(traffic: Traffic, sizes: UnionSizes, merger: str, to: Collection[str] | None = None) -> None:
    """Enters `set_union.set_union`: 2n + 2 rounds at the most, or one fewer where only the merger learns the union.

    Args:
        traffic: Where it is entered.
        sizes: Of the lists and of what comes of them.
        merger: As given to `set_union`.
        to: As given to `set_union`.
    """
    ring, width = ring_from(traffic.parties, merger), sizes.lists.blocks
    point_bytes = width * STANDARD_128.point_bytes
    maximum_traffic(traffic, MOST_CLASSES)
    for owner in ring:
        for sender, receiver in pairwise(route_of(ring, owner)):
            traffic.send(sender, receiver, sizes.lists.length * point_bytes)
    traffic.send(merger, ring, _NUMBER_BYTES)
    messages = -(-sizes.merged // tuples_per_piece(width))
    for sender, receiver in pairwise((*ring, merger)):
        traffic.send(sender, receiver, sizes.merged * point_bytes, messages)
    receivers = [party for party in ring[1:] if to is None or party in to]
    traffic.send(merger, receivers, _NUMBER_BYTES)
    traffic.send(merger, receivers, sizes.elements * width * blocks.BLOCK_BYTES)
    traffic.rounds += 2 * len(ring) + bool(receivers)


@dataclass(frozen=True)
class UnionWork:
    """What one party computes for a union.

    Attributes:
        embedded: Blocks that it maps into the group.
        encryptions: Group multiplications before the merge: its layer on every list, or the merger's blinding (at
            most, where the merged list is filled up).
        strips: Group multiplications after it.
    """

    embedded: int
    encryptions: int
    strips: int


def union_work(sizes: UnionSizes, parties: Collection[str], merger: str) -> dict[str, UnionWork]:
    """By party, what it computes for a union."""
    lists, width = sizes.lists, sizes.lists.blocks
    work = {}
    for party in parties:
        own = lists.length
        added = lists.total if party != merger else 2 * own + min(sizes.merged, lists.total - own)
        work[party] = UnionWork(own * width, added * width, sizes.merged * width)
    return work
