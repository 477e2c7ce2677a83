"""What an alignment sends and computes; see `alignment`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import numpy as np

from crypto.params import STANDARD_128
from crypto.primitives.groups.point_hash import POINT_BYTES as HASH_BYTES
from crypto.primitives.okvs import MOST_KEYS
from crypto.primitives.permutation_network import network_size
from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.alignment.alignment import ring_from, takes_functions
from crypto.protocols.alignment.bins import THIRDS, table_of
from crypto.protocols.alignment.choices import BLOCK, WORD
from crypto.protocols.alignment.disclosure import Mode
from crypto.protocols.alignment.list_limits import LIST_MEMORY
from crypto.protocols.alignment.matches import compared_bits, value_words
from crypto.protocols.alignment.oprf_intersection import value_bytes
from crypto.protocols.alignment.zero_shares import WORD_BYTES
from crypto.protocols.comparison.comparison import BLOCK as COMPARED
from crypto.protocols.comparison.comparison import ands_by_level
from crypto.protocols.comparison.costs import (
    comparison_traffic,
    opened_traffic,
    permutation_rounds,
    permutation_switches,
    permutation_traffic,
)
from crypto.protocols.comparison.digit_tables import leaves
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES
from crypto.protocols.replicated.verified_costs import heard_traffic, or_traffic
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.transfers.costs import (
    correlated_traffic,
    oprf_rounds,
    oprf_traffic,
    programming_traffic,
    seeds_traffic,
)
from crypto.protocols.transfers.extension_codes import block_count
from crypto.protocols.union.size_classes import LISTS
from link.traffic import Traffic

_COUNT_BYTES = 8
_WORD_BYTES: Final = np.dtype(WORD).itemsize
# about, of each place of a list:
_LISTED_BYTES: Final[Mapping[Mode, int]] = {"intersection": 45, "cardinality": 180, "union": 240}  # or on the disk
_WRITTEN_BYTES: Final[Mapping[Mode, int]] = {"intersection": 100, "cardinality": 270, "union": 350}  # of these, at most
_KEPT_BYTES: Final[Mapping[Mode, int]] = {"intersection": 12, "cardinality": 45, "union": 45}  # in memory alone
_PART_BYTES: Final = 450  # about, with each peer: rows of one part's store, three times, and how it is solved
_NETWORK_BYTES: Final = 20  # about, of each row of a network, while its switches are found
_ORDERED_BYTES: Final = 8  # of each row that goes through it: its order and its share
_BIN_BYTES: Final = np.dtype(np.int32).itemsize  # of each place
_COMPARED_BYTES: Final = 250  # about, of what is under comparison
_MULTIPLIED_BYTES: Final = 60  # about
_BASE_MULTIPLICATIONS: Final = 3 * block_count(1)  # about, of either party


@dataclass(frozen=True)
class AlignmentSizes:
    """What the costs of an alignment depend on.

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
    def positions(self) -> int:
        """Of a union."""
        return self.parties * self.length

    @property
    def takes_functions(self) -> bool:
        """Whether an intersection compares the lists by pseudorandom functions."""
        return takes_functions(self.parties, self.length)


def intersection_traffic(traffic: Traffic, sizes: AlignmentSizes, merger: str, three: Holders3 | None = None) -> None:
    """Enters `alignment.intersection`."""
    ring = ring_from(traffic.parties, merger)
    if three is None:
        maximum_traffic(traffic, [LISTS.beyond])
    else:
        or_traffic(traffic, three, LISTS.beyond)
    if len(ring) > 2:
        _zero_shares_traffic(traffic, ring, sizes, shown=three is not None)
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


def _zero_shares_traffic(traffic: Traffic, ring: tuple[str, ...], sizes: AlignmentSizes, *, shown: bool) -> None:
    merger, *others = ring
    for holder, evaluator in permutations(others, 2):
        oprf_traffic(traffic, holder, evaluator, sizes.length)
    for other in others:
        oprf_traffic(traffic, other, merger, sizes.length)
        programming_traffic(traffic, other, merger, sizes.length, (1 + shown) * WORD_BYTES // 8)
    traffic.send(merger, ring, _COUNT_BYTES)
    if sizes.common:
        traffic.send(merger, ring, sizes.common * HASH_BYTES)
    if shown:
        traffic.send(merger, ring, len(others) * DIGEST_BYTES)
        heard_traffic(traffic, 1)
        for other in others:
            traffic.send(other, ring, DIGEST_BYTES)
        traffic.rounds += 1
    traffic.rounds += 2 * oprf_rounds(sizes.length) + 1  # the merger's choices of transfers come early


def cardinality_traffic(traffic: Traffic, sizes: AlignmentSizes, merger: str) -> None:
    """Enters `alignment.cardinality`."""
    ring = ring_from(traffic.parties, merger)
    maximum_traffic(traffic, [LISTS.beyond])
    rounds, (bins, width) = traffic.rounds, compared(sizes)
    for place, other in enumerate(ring[1:], start=1):
        seeds_traffic(traffic, other, merger)
        for holder in ring[:place]:
            seeds_traffic(traffic, holder, other)
        _matches_traffic(traffic, other, merger, sizes.length, width, numbers=False)
        _times_traffic(traffic, _choices(ring[:place], (merger, other)), bins)
    multiplied = 2 * (len(ring) - 1) * -(-bins // BLOCK)
    traffic.rounds = rounds + _matches_rounds(sizes.length, width) + multiplied
    opened_traffic(traffic, _WORD_BYTES, traffic.parties)


def row_union_traffic(traffic: Traffic, sizes: AlignmentSizes, merger: str, *, agreed: bool = False) -> None:
    """Enters `alignment.union`.

    Args:
        traffic: Where it is entered.
        sizes: Of its lists.
        merger: As given to it.
        agreed: Whether every two parties have agreed upon both directions before.
    """
    ring, length, (bins, width) = ring_from(traffic.parties, merger), sizes.length, compared_in_turns(sizes)
    holders = ring[:-1]  # of shares of positions
    maximum_traffic(traffic, [LISTS.beyond])
    rounds = traffic.rounds + (len(holders) - 1) * permutation_rounds(sizes.positions, _WORD_BYTES)
    rounds += 1 - (len(holders) - 1)  # the last opening, and choices that leave early
    if not agreed:
        for one, other in permutations(ring, 2):
            seeds_traffic(traffic, one, other)
    for place, owner in enumerate(holders):
        _order_traffic(traffic, owner, holders[place + 1 :], sizes.positions)
    opened_traffic(traffic, length * _WORD_BYTES, holders, ring[:1])
    chosen = Counter[tuple[str, str]]()
    for place, owner in enumerate(ring[1:], start=1):
        others = [holder for holder in holders if holder != owner]
        _order_traffic(traffic, owner, others, bins)
        for one in ring[:place]:
            _matches_traffic(traffic, one, owner, length, width, numbers=True)
            chosen.update(_choices([*others, owner], (one, owner)))
        opened_traffic(traffic, bins * _WORD_BYTES, others, [owner])
        rounds += _matches_rounds(length, width) + permutation_rounds(bins, _WORD_BYTES) + 2 * place * -(-bins // BLOCK)
    _times_traffic(traffic, chosen, bins)
    traffic.rounds = rounds


@dataclass(frozen=True)
class ListedSizes:
    """What the costs of `alignment.union_of_listed` depend on.

    Attributes:
        listed: Of the lists of what has positions in any case.
        whole: Of the lists of all identifiers.
    """

    listed: AlignmentSizes
    whole: AlignmentSizes

    @classmethod
    def of(cls, listed: Mapping[str, int], held: Mapping[str, int]) -> ListedSizes:
        """The sizes where each party has listed so many of so many identifiers."""
        return cls(AlignmentSizes.of(listed, 0, None), AlignmentSizes.of(held, 0, None))

    @property
    def positions(self) -> int:
        """Of the union."""
        return self.listed.positions


def listed_traffic(traffic: Traffic, sizes: ListedSizes, merger: str, *, agreed: bool = False) -> None:
    """Enters `alignment.union_of_listed`; arguments as of `row_union_traffic`."""
    ring, length, (bins, width) = ring_from(traffic.parties, merger), sizes.whole.length, compared_both_ways(sizes)
    maximum_traffic(traffic, [LISTS.beyond])
    row_union_traffic(traffic, sizes.listed, merger, agreed=agreed)
    rounds, chosen = traffic.rounds, Counter[tuple[str, str]]()
    for owner in ring:
        others = [party for party in ring if party != owner]
        for one in others:
            _matches_traffic(traffic, one, owner, length, width, numbers=True)
            chosen.update(_choices(ring, (one, owner)))
        opened_traffic(traffic, bins * _WORD_BYTES, others, [owner])
        rounds += _matches_rounds(length, width) + 2 * len(others) * -(-bins // BLOCK) + 1
    _times_traffic(traffic, chosen, bins)
    traffic.rounds = rounds


def _order_traffic(traffic: Traffic, owner: str, others: Sequence[str], rows: int) -> None:
    for other in others:
        permutation_traffic(traffic, owner, other, rows=rows, width=1, word_bytes=_WORD_BYTES)


def _matches_traffic(traffic: Traffic, other: str, collector: str, length: int, width: int, *, numbers: bool) -> None:
    """Enters what two parties send for `collect_matches` and `program_matches`, without the seeds of comparisons."""
    oprf_traffic(traffic, other, collector, length)
    programming_traffic(traffic, other, collector, THIRDS * length, value_words(width, numbers=numbers))
    holders = tuple(party for party in traffic.parties if party in (collector, other))
    comparison_traffic(traffic, holders, number=table_of(length).sparse, width=width, order=False)


def _matches_rounds(length: int, width: int) -> int:
    """Rounds of matches: choices of transfers come early."""
    return oprf_rounds(length) + 1 + 1 + len(ands_by_level(len(leaves(width)), order=False))


def _choices(holders: Sequence[str], bit_of: tuple[str, str]) -> Counter[tuple[str, str]]:
    """How often `times_bit` takes a party's words by another's bits: by giver and chooser."""
    return Counter((giver, chooser) for chooser in bit_of for giver in holders if giver != chooser)


def _times_traffic(traffic: Traffic, chosen: Mapping[tuple[str, str], int], number: int) -> None:
    """Enters `times_bit` of so many words; many parties take the same many times."""
    for (giver, chooser), times in chosen.items():
        for start in range(0, number, BLOCK):
            correlated_traffic(traffic, giver, chooser, min(BLOCK, number - start), _WORD_BYTES, times=times)


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


def row_union_work(sizes: AlignmentSizes) -> tuple[int, int, int]:
    """What the parties whose turns it is compute for a union, one after another, beside comparisons and agreements.

    Returns:
        Group multiplications; values of pseudorandom functions, or another party's where these are more; transfers.
    """
    bins, holders = compared_in_turns(sizes)[0], sizes.parties - 1
    base = values = 0
    transfers = (holders - 1) * holders // 2 * permutation_switches(sizes.positions)
    for place in range(1, sizes.parties):
        others = holders if place == holders else holders - 1
        base += place * _BASE_MULTIPLICATIONS
        values += max(place, THIRDS) * sizes.length
        transfers += others * permutation_switches(bins) + place * 2 * others * bins
    return base, values, transfers


def compared(sizes: AlignmentSizes) -> tuple[int, int]:
    """How many words a cardinality compares with each other party, and their bits."""
    table = table_of(sizes.length)
    return table.sparse, compared_bits(table, sizes.parties - 1)


def compared_in_turns(sizes: AlignmentSizes) -> tuple[int, int]:
    """How many words any two parties compare for a union, and their bits."""
    table = table_of(sizes.length)
    return table.sparse, compared_bits(table, sizes.parties * (sizes.parties - 1) // 2)


def compared_both_ways(sizes: ListedSizes) -> tuple[int, int]:
    """How many words each of any two parties compares with the other, where it looks up, and their bits."""
    table, parties = table_of(sizes.whole.length), sizes.whole.parties
    return table.sparse, compared_bits(table, parties * (parties - 1))


def listed_work(sizes: ListedSizes) -> tuple[int, int, int]:
    """What the parties compute to look up, one after another, beside comparisons; as of `row_union_work`."""
    parties, others = sizes.whole.parties, sizes.whole.parties - 1
    values = parties * max(others, THIRDS) * sizes.whole.length
    transfers = parties * others * 2 * others * compared_both_ways(sizes)[0]
    return parties * others * _BASE_MULTIPLICATIONS, values, transfers


def function_bytes(sizes: AlignmentSizes) -> int:
    """Memory of a party whose lists are compared by pseudorandom functions, without the identifiers."""
    at_once = min(sizes.length, MOST_KEYS) * max(sizes.parties - 2, 1) * _PART_BYTES
    return at_once + list_bytes(sizes.length)


def list_disk_bytes(sizes: AlignmentSizes, mode: Mode = "intersection") -> int:
    """Disk that lists of a party take at the most, where they exceed the memory for them by default."""
    mode = _listed_as(sizes, mode)
    if sizes.length * _LISTED_BYTES[mode] <= LIST_MEMORY:
        return 0
    return sizes.length * _WRITTEN_BYTES[mode]


def list_bytes(length: int, memory: int = LIST_MEMORY, mode: Mode = "intersection") -> int:
    """Memory that the lists of an alignment take, where so much is for them and the rest on the disk."""
    return length * _KEPT_BYTES[mode] + min(length * _LISTED_BYTES[mode], memory)


def cardinality_bytes(sizes: AlignmentSizes) -> int:
    """Memory of a party of a cardinality, without the identifiers."""
    return _matches_bytes(sizes, compared(sizes)[0], _listed_as(sizes, "cardinality"))


def _listed_as(sizes: AlignmentSizes, mode: Mode) -> Mode:
    """A cardinality lists what a union does where targets take a second word."""
    return "union" if mode == "cardinality" and value_words(compared(sizes)[1], numbers=False) > 1 else mode


def row_union_bytes(sizes: AlignmentSizes) -> int:
    """Memory of the last party of a union, without the identifiers."""
    bins, kept = compared_in_turns(sizes)[0], sizes.positions * _WORD_BYTES  # shared positions of slots
    slots = _order_bytes(sizes.positions) if sizes.parties > 2 else 0
    found = sizes.length * _BIN_BYTES
    turn = max(sizes.length * _KEPT_BYTES["union"], found + _compared_at_once(sizes, bins), found + _order_bytes(bins))
    return min(sizes.length * _LISTED_BYTES["union"], LIST_MEMORY) + kept + max(slots, turn)  # one after the other


def _order_bytes(rows: int) -> int:
    return network_size(rows) * _NETWORK_BYTES + rows * _ORDERED_BYTES


def _matches_bytes(sizes: AlignmentSizes, bins: int, mode: Mode) -> int:
    return list_bytes(sizes.length, mode=mode) + _compared_at_once(sizes, bins)


def _compared_at_once(sizes: AlignmentSizes, bins: int) -> int:
    others = sizes.parties - 1
    at_once = min(bins, 2 * COMPARED) * others * _COMPARED_BYTES + min(bins, BLOCK) * _MULTIPLIED_BYTES
    return at_once + min(THIRDS * sizes.length, MOST_KEYS) * others * _PART_BYTES
