"""What products of private columns send and compute; see `ot_matrix`, `dealer`, `replicated_counts`, `shared_products`.

Agreements upon extension seeds (`two_party`) and pairwise secrets (`pairwise`) are not in it: they are made once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Final

import numpy as np

from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.ring_matrix import row_blocks
from crypto.protocols.comparison.lifting import blocks
from crypto.protocols.products.chains import Chain, Itemset, chains
from crypto.protocols.products.chunk_counts import number_of_chunks
from crypto.protocols.products.dealer import columns_used
from crypto.protocols.products.ot_matrix import WORD, Arrangement, Pairs
from crypto.protocols.products.replicated_counts import STREAMS, Layout
from crypto.protocols.products.shared_products import products_by_pair, widths_of, word_for
from crypto.protocols.products.shared_products import row_blocks as blocks_of_rows
from crypto.protocols.sums.pairwise import KEY_BYTES
from crypto.protocols.transfers.costs import VectorSizes, correlated_traffic, rows_traffic, vectors_traffic
from crypto.protocols.transfers.ot_extension import BATCH
from crypto.protocols.transfers.vector_transfers import WINDOW, Batch, Word, batches, corrections_of, transfers_of
from link.traffic import Traffic

_WORD_BYTES: Final = 4  # of dealt and replicated columns
_LONG_BYTES: Final = 8
_SEED_BYTES: Final = 16  # of a node of a tree


class _Chain:
    """How many messages each party's next one waits for, counted as a session counts rounds."""

    def __init__(self, parties: Collection[str]) -> None:
        self.at = dict.fromkeys(parties, 0)

    def exchange(self, messages: Collection[tuple[str, str]]) -> None:
        """Messages (sender, receiver) that all leave before any is awaited."""
        sent = {sender: self.at[sender] + 1 for sender, _ in messages}
        for sender, receiver in messages:
            self.at[receiver] = max(self.at[receiver], sent[sender])

    def transfers(self, sender: str, receiver: str, number: int) -> tuple[int, int]:
        """How far sender and receiver are after so many batches: rows one way, corrections back, a window ahead."""
        ours, theirs, corrections = self.at[sender], self.at[receiver], list[int]()
        for batch in range(number):
            if batch >= WINDOW:
                theirs = max(theirs, corrections[batch - WINDOW])
            ours = max(ours, theirs + 1)
            corrections.append(ours + 1)
        return ours, max([theirs, *corrections])

    @property
    def longest(self) -> int:
        """Rounds so far."""
        return max(self.at.values())


# -- two parties by transfers ------------------------------------------------------------------------------------------
def pair_products_traffic(traffic: Traffic, holders: tuple[str, str], *, rows: int, pairs: Pairs) -> None:
    """Enters `ot_matrix.pair_products` of columns of so many rows."""
    plan, chain = Arrangement.of(rows, pairs), _Chain(holders)
    sender, receiver = holders if plan.second_chooses else holders[::-1]
    sizes = _pair_sizes(rows, plan.widths)
    vectors_traffic(traffic, sender, receiver, sizes, 1)
    chain.at[sender], chain.at[receiver] = chain.transfers(sender, receiver, sizes.batches)
    _enter_lifting(traffic, chain, holders, len(pairs), number_of_chunks(rows))
    traffic.rounds += chain.longest


@dataclass(frozen=True)
class TransferWork:
    """What two parties compute together by transfers.

    Attributes:
        transfers: Of the extension, those of lifting among them.
        words: Correlations of all transfers.
    """

    transfers: int
    words: int


def pair_products_work(rows: int, pairs: Pairs) -> TransferWork:
    """The work of `ot_matrix.pair_products`."""
    sizes, lifted = _pair_sizes(rows, Arrangement.of(rows, pairs).widths), len(pairs) * number_of_chunks(rows)
    return TransferWork(sizes.transfers + lifted, sizes.corrections + lifted)


def class_counts_traffic(traffic: Traffic, holders: tuple[str, str], *, rows: int, sizes: tuple[int, int]) -> None:
    """Enters `class_counts.class_counts` of so many rows; sizes as there."""
    first_writes, chain = sizes[0] >= sizes[1], _Chain(holders)
    writer, chooser = holders if first_writes else holders[::-1]
    written, chosen = sizes if first_writes else sizes[::-1]
    number = rows * (chosen - 1).bit_length()
    messages = -(-number // BATCH)
    rows_traffic(traffic, writer, chooser, number)
    traffic.send(writer, chooser, 2 * _SEED_BYTES * number, messages)
    traffic.send(writer, chooser, rows * written * np.dtype(word_for(rows)).itemsize)
    if number:  # the writer's words follow the seeds at once
        chain.exchange([(chooser, writer)])
    chain.exchange([(writer, chooser)])
    _enter_lifting(traffic, chain, holders, written * chosen, 1)
    traffic.rounds += chain.longest


@lru_cache(maxsize=64)  # a plan asks for the same few again and again: many pairs of parties hold as many columns
def _pair_sizes(rows: int, widths: tuple[int, ...]) -> VectorSizes:
    return VectorSizes.of(batches(rows, widths, WORD))


def _enter_lifting(traffic: Traffic, chain: _Chain, holders: tuple[str, str], sums: int, each: int) -> None:
    """Enters `lifting.lift_sums` of so many sums."""
    first, second = holders
    for block in blocks(sums, each) if sums and each else ():
        correlated_traffic(traffic, first, second, (block.stop - block.start) * each, _LONG_BYTES)
        chain.exchange([(second, first)])
        chain.exchange([(first, second)])


# -- two parties and a dealer ------------------------------------------------------------------------------------------
def dealt_products_traffic(traffic: Traffic, holders: tuple[str, str], *, rows: int, pairs: Pairs) -> None:
    """Enters `dealer.pair_products` with a dealer that is none of the session's parties (`outside_dealer`)."""
    (first, second), chain = holders, _Chain(holders)
    columns = columns_used(pairs)
    cut = row_blocks(rows, sum(columns))
    traffic.send(first, second, columns[0] * rows * _WORD_BYTES, len(cut))
    traffic.send(second, first, columns[1] * rows * _WORD_BYTES, len(cut))
    for _ in cut:
        chain.exchange([(first, second), (second, first)])
    _enter_lifting(traffic, chain, holders, len(pairs), 1)
    traffic.rounds += chain.longest


# -- three computing parties -------------------------------------------------------------------------------------------
def spanning_counts_traffic(
    traffic: Traffic, holders: Holders3, two: tuple[str, str], *, rows: int, itemsets: Collection[Itemset]
) -> None:
    """Enters `replicated_counts.spanning_counts`.

    Args:
        traffic: Where it is entered.
        holders: The three.
        two: Those of them who get the result, in the order of their agreement with each other.
        rows: Length of the columns.
        itemsets: As given to `spanning_counts`.
    """
    layout = Layout.of(chains(itemsets, traffic.parties), traffic.parties)
    cut, chain = row_blocks(rows, layout.width), _Chain(traffic.parties)
    streams = min(STREAMS, len(cut))
    back = [(holder, holders[number - 1]) for number, holder in enumerate(holders)]
    ways = {owner: _component_ways(holders, owner) for owner in layout.used}
    completed = [(owner, receiver) for owner, (_, receivers) in ways.items() for receiver in receivers]
    taken = [(holder, owner) for holder in holders for owner in layout.used if holder != owner]
    for owner, (seeds, _) in ways.items():
        traffic.send(owner, seeds, KEY_BYTES, streams)
    for owner, receiver in completed:
        traffic.send(owner, receiver, len(layout.used[owner]) * rows * _WORD_BYTES, len(cut))
    for sender, receiver in back:
        products = sum(len(places) for places, _ in layout.steps)
        traffic.send(sender, receiver, products * rows * _WORD_BYTES, len(cut) * len(layout.steps))
        traffic.send(sender, receiver, layout.number * _WORD_BYTES)
    for holder, owner in taken:
        traffic.send(holder, owner, 0, len(cut) - streams)
    for number in range(len(cut[::STREAMS])):  # of the first stream, which is the longest
        chain.exchange([*completed, *((owner, r) for owner in ways for r in ways[owner][0] if number == 0)])
        for _ in layout.steps:
            chain.exchange(back)
        if number + 1 < len(cut[::STREAMS]):
            chain.exchange(taken)
    chain.exchange(back)
    _enter_lifting(traffic, chain, two, layout.number, 1)
    traffic.rounds += chain.longest


def _component_ways(holders: Holders3, owner: str) -> tuple[list[str], list[str]]:
    """Who gets seeds of an owner's components, once each, and who the component that completes the sum."""
    if owner in holders:
        number = holders.index(owner)
        return [holders[number - 1]], [holders[(number + 1) % 3]]
    return [holders[0], holders[2], holders[1], holders[0]], [holders[2], holders[1]]


def replicated_flops(rows: int, itemsets: Collection[Itemset], parties: Sequence[str]) -> int:
    """Multiplications and additions of floats that each of the three does for `spanning_counts`."""
    layout = Layout.of(chains(itemsets, parties), tuple(parties))
    entries = sum(len(group.beginnings) * len(group.lasts) for group in layout.groups)
    return 2 * 2 * 3 * rows * entries  # two products of words a holder, each three of limbs


def replicated_elements(rows: int, itemsets: Collection[Itemset], parties: Sequence[str]) -> int:
    """Elements of columns and of their products that the three share for `spanning_counts`."""
    return rows * Layout.of(chains(itemsets, parties), tuple(parties)).width


# -- all parties -------------------------------------------------------------------------------------------------------
def spanning_products_traffic(
    traffic: Traffic, two: tuple[str, str], *, rows: int, itemsets: Collection[Itemset]
) -> None:
    """Enters `shared_products.spanning_products`.

    Args:
        traffic: Where it is entered.
        two: Who get the result, in the order of their agreement with each other.
        rows: Length of the columns.
        itemsets: As given to `spanning_products`.
    """
    every, chain, parties = chains(itemsets, traffic.parties), _Chain(traffic.parties), traffic.parties
    word = word_for(rows)
    word_bytes = np.dtype(word).itemsize
    lengths = [stop - start for start, stop in blocks_of_rows(rows, every)]
    parts = {length: _parts(every, length, word) for length in set(lengths)}
    for length, later in product(lengths, parties[1:]):
        begun, ends = chain.at[later], [chain.at[later]]
        for earlier in parties[: parties.index(later)]:
            for work in parts[length].get((earlier, later), []):
                vectors_traffic(traffic, earlier, later, VectorSizes.of(work), word_bytes)
                chain.at[later] = begun  # all of its parts begin at once, an earlier party's one after another
                chain.at[earlier], end = chain.transfers(earlier, later, len(work))
                ends.append(end)
        chain.at[later] = max(ends)
    others = [party for party in parties if party not in two]
    for party in others:
        traffic.send(party, two[0], len(every) * _LONG_BYTES)
    chain.exchange([(party, two[0]) for party in others])
    _enter_lifting(traffic, chain, two, len(every), 1)
    traffic.rounds += chain.longest


def spanning_products_work(
    rows: int, itemsets: Collection[Itemset], parties: Sequence[str]
) -> dict[tuple[str, str], TransferWork]:
    """The work of `shared_products.spanning_products` by pair of parties, the earlier first; without the lifting."""
    every = chains(itemsets, parties)
    transfers, words = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for length, number in Counter(stop - start for start, stop in blocks_of_rows(rows, every)).items():
        for pair, parts in _parts(every, length, word_for(rows)).items():
            transfers[pair] += number * sum(transfers_of(batch) for work in parts for batch in work)
            words[pair] += number * sum(corrections_of(batch) for work in parts for batch in work)
    return {pair: TransferWork(transfers[pair], words[pair]) for pair in combinations(parties, 2)}


def _parts(every: Sequence[Chain], rows: int, word: Word) -> dict[tuple[str, str], list[list[Batch]]]:
    """By pair of parties the transfers of their parts in a block of so many rows, as `parts_of` cuts them."""
    cut = {
        pair: [batches(rows, widths_of(products), word) for products in both]
        for pair, both in products_by_pair(every).items()
    }
    return {pair: [work for work in parts if work] for pair, parts in cut.items()}
