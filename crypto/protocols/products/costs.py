"""What products of private columns send and compute; see `ot_matrix`, `dealer`, `replicated_counts`, `shared_products`.

Agreements upon extension seeds (`two_party`) and pairwise secrets (`pairwise`) are not in it: they are made once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from crypto.primitives.replicated_sharing import Holders3
from crypto.primitives.ring_matrix import row_blocks
from crypto.protocols.comparison.lifting import blocks
from crypto.protocols.products.chains import Itemset, chains
from crypto.protocols.products.chunk_counts import number_of_chunks
from crypto.protocols.products.dealer import columns_used
from crypto.protocols.products.ot_matrix import Arrangement, Pairs
from crypto.protocols.products.replicated_counts import STREAMS, Layout
from crypto.protocols.products.shared_products import parts_of, word_for
from crypto.protocols.sums.pairwise import KEY_BYTES
from crypto.protocols.transfers.extension_codes import block_count
from crypto.protocols.transfers.ot_extension import BATCH, batches
from crypto.protocols.transfers.vector_transfers import WINDOW, Batch, corrections_of, transfers_of
from link.traffic import Traffic
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionRows
from protos.v1.products_pb2 import (
    BlockTaken,
    Component,
    ComponentSeed,
    DealtProducts,
    MaskedColumns,
    ProductPart,
)
from protos.v1.secure_sum_pb2 import MaskedValues

_WORD_BYTES: Final = 4  # of dealt and replicated columns
_LONG_BYTES: Final = 8


class _Chain:
    """How many messages each party's next one waits for, counted as a session counts rounds."""

    def __init__(self, parties: Collection[str]) -> None:
        self.at = dict.fromkeys(parties, 0)

    def exchange(self, messages: Collection[tuple[str, str]]) -> None:
        """Messages (sender, receiver) that all leave before any is awaited."""
        sent = {sender: self.at[sender] + 1 for sender, _ in messages}
        for sender, receiver in messages:
            self.at[receiver] = max(self.at[receiver], sent[sender])

    def transfers(self, sender: str, receiver: str, number: int, window: int) -> tuple[int, int]:
        """Where sender and receiver stand after so many batches: rows one way, corrections back, a window ahead."""
        ours, theirs, corrections = self.at[sender], self.at[receiver], list[int]()
        for batch in range(number):
            if batch >= window:
                theirs = max(theirs, corrections[batch - window])
            ours = max(ours, theirs + 1)
            corrections.append(ours + 1)
        return ours, max([theirs, *corrections])

    @property
    def longest(self) -> int:
        """Rounds so far."""
        return max(self.at.values())


# -- two parties by transfers ------------------------------------------------------------------------------------------
def pair_products_traffic(
    traffic: Traffic, lane: str, holders: tuple[str, str], *, rows: int, pairs: Pairs, field_bits: int
) -> None:
    """Enters `ot_matrix.pair_products`.

    Args:
        traffic: Where the frames are entered.
        lane: The path of the lane on which it is called.
        holders: The two computing parties.
        rows: Length of the columns.
        pairs: As given to `pair_products`.
        field_bits: k of the extension.
    """
    plan, chain = Arrangement.of(rows, pairs), _Chain(holders)
    sender, receiver = holders if plan.second_chooses else holders[::-1]
    _enter_vectors(traffic, f"{lane}/transfers", sender, receiver, plan.work, 1, field_bits)
    chain.at[sender], chain.at[receiver] = chain.transfers(sender, receiver, len(plan.work), WINDOW)
    _enter_lifting(traffic, chain, lane, holders, len(pairs), number_of_chunks(rows), field_bits)
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
    plan, lifted = Arrangement.of(rows, pairs), len(pairs) * number_of_chunks(rows)
    return TransferWork(
        sum(map(transfers_of, plan.work)) + lifted,
        sum(map(corrections_of, plan.work)) + lifted,
    )


def _enter_vectors(
    traffic: Traffic, lane: str, sender: str, receiver: str, work: Sequence[Batch], word_bytes: int, field_bits: int
) -> None:
    for batch in work:
        rows = transfers_of(batch) // 8 * block_count(field_bits)
        traffic.send_array(receiver, sender, lane, ExtensionRows, rows)
        traffic.send_array(sender, receiver, lane, EncryptedMessages, corrections_of(batch) * word_bytes)


def _enter_lifting(
    traffic: Traffic, chain: _Chain, lane: str, holders: tuple[str, str], sums: int, each: int, field_bits: int
) -> None:
    """Enters `lifting.lift_sums` of so many sums."""
    (first, second), path = holders, f"{lane}/lift"
    for block in blocks(sums, each) if sums and each else ():
        number = (block.stop - block.start) * each
        for size in batches(number):
            traffic.send_array(second, first, path, ExtensionRows, size // 8 * block_count(field_bits))
        for start in range(0, number, BATCH):
            size = min(BATCH, number - start) * _LONG_BYTES
            traffic.send_array(first, second, path, EncryptedMessages, size)
        chain.exchange([(second, first)])
        chain.exchange([(first, second)])


# -- two parties and a dealer ------------------------------------------------------------------------------------------
def dealt_products_traffic(
    traffic: Traffic,
    lane: str,
    holders: tuple[str, str],
    dealer: str | None,
    *,
    rows: int,
    pairs: Pairs,
    field_bits: int,
) -> None:
    """Enters `dealer.deal` and `dealer.pair_products`; arguments as for `pair_products_traffic`.

    A dealer that is none of the session's parties, None, sends nothing that is counted (`outside_dealer`).
    """
    (first, second), chain = holders, _Chain(traffic.parties)
    columns = columns_used(pairs)
    if dealer is not None:
        traffic.send_array(dealer, second, lane, DealtProducts, columns[0] * columns[1] * _WORD_BYTES)
    for start, stop in row_blocks(rows, sum(columns)):
        for sender, receiver, number in ((first, second, columns[0]), (second, first, columns[1])):
            size = number * (stop - start) * _WORD_BYTES
            traffic.send_array(sender, receiver, lane, MaskedColumns, size)
        chain.exchange([(first, second), (second, first)])
    if dealer is not None:
        chain.exchange([(dealer, second)])
    _enter_lifting(traffic, chain, lane, holders, len(pairs), 1, field_bits)
    traffic.rounds += chain.longest


# -- three computing parties -------------------------------------------------------------------------------------------
def spanning_counts_traffic(
    traffic: Traffic,
    lane: str,
    holders: Holders3,
    two: tuple[str, str],
    *,
    rows: int,
    itemsets: Collection[Itemset],
    field_bits: int,
) -> None:
    """Enters `replicated_counts.spanning_counts`.

    Args:
        traffic: Where the frames are entered.
        lane: The path of the lane on which it is called.
        holders: The three.
        two: Those of them who get the result, in the order of their agreement with each other.
        rows: Length of the columns.
        itemsets: As given to `spanning_counts`.
        field_bits: k of the extension between the two.
    """
    layout = Layout.of(chains(itemsets, traffic.parties), traffic.parties)
    cut, chain = row_blocks(rows, layout.width), _Chain(traffic.parties)
    back = [(holder, holders[number - 1]) for number, holder in enumerate(holders)]
    for number in range(min(STREAMS, len(cut))):
        stream = _Chain(traffic.parties)
        mine, path = cut[number::STREAMS], f"{lane}/{number}"
        for place, (start, stop) in enumerate(mine):
            sent = []
            for owner, columns in layout.used.items():
                seeds, completed = _component_ways(holders, owner)
                for receiver in seeds if place == 0 else ():
                    traffic.send(owner, receiver, path, ComponentSeed, ComponentSeed(seed=bytes(KEY_BYTES)).ByteSize())
                size = len(columns) * (stop - start) * _WORD_BYTES
                for receiver in completed:
                    traffic.send_array(owner, receiver, path, Component, size)
                sent += [(owner, receiver) for receiver in {*(seeds if place == 0 else ()), *completed}]
            stream.exchange(sent)
            for products, _ in layout.steps:
                size = len(products) * (stop - start) * _WORD_BYTES
                for sender, receiver in back:
                    traffic.send_array(sender, receiver, path, ProductPart, size)
                stream.exchange(back)
            if place + 1 < len(mine):
                taken = [(holder, owner) for holder in holders for owner in layout.used if holder != owner]
                for sender, receiver in taken:
                    traffic.send(sender, receiver, path, BlockTaken, BlockTaken().ByteSize())
                stream.exchange(taken)
        chain.at = {party: max(at, stream.at[party]) for party, at in chain.at.items()}
    for sender, receiver in back:
        traffic.send_array(sender, receiver, f"{lane}/counts", ProductPart, layout.number * _WORD_BYTES)
    chain.exchange(back)
    _enter_lifting(traffic, chain, lane, two, layout.number, 1, field_bits)
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
    traffic: Traffic,
    lane: str,
    two: tuple[str, str],
    *,
    rows: int,
    itemsets: Collection[Itemset],
    field_bits: int,
) -> None:
    """Enters `shared_products.spanning_products`.

    Args:
        traffic: Where the frames are entered.
        lane: The path of the lane on which it is called.
        two: Who get the result, in the order of their agreement with each other.
        rows: Length of the columns.
        itemsets: As given to `spanning_products`.
        field_bits: k of the extensions.
    """
    every, chain, parties = chains(itemsets, traffic.parties), _Chain(traffic.parties), traffic.parties
    word_bytes = np.dtype(word_for(rows)).itemsize
    for later in parties[1:]:
        begun, ends = chain.at[later], [chain.at[later]]
        for earlier in parties[: parties.index(later)]:
            for part in parts_of(every, rows, earlier, later):
                path = f"{lane}/{earlier} to {later} {'rows' if part.kept else 'counts'}"
                _enter_vectors(traffic, path, earlier, later, part.work, word_bytes, field_bits)
                chain.at[later] = begun  # all of its parts begin at once, an earlier party's one after another
                chain.at[earlier], end = chain.transfers(earlier, later, len(part.work), WINDOW)
                ends.append(end)
        chain.at[later] = max(ends)
    others = [party for party in parties if party not in two]
    for party in others:
        traffic.send_array(party, two[0], f"{lane}/sum", MaskedValues, len(every) * _LONG_BYTES)
    chain.exchange([(party, two[0]) for party in others])
    _enter_lifting(traffic, chain, lane, two, len(every), 1, field_bits)
    traffic.rounds += chain.longest


def spanning_products_work(
    rows: int, itemsets: Collection[Itemset], parties: Sequence[str]
) -> dict[tuple[str, str], TransferWork]:
    """The work of `shared_products.spanning_products` by pair of parties, the earlier first; without the lifting."""
    every, work = chains(itemsets, parties), {}
    for place, later in enumerate(parties):
        for earlier in parties[:place]:
            cut = [batch for part in parts_of(every, rows, earlier, later) for batch in part.work]
            work[earlier, later] = TransferWork(sum(map(transfers_of, cut)), sum(map(corrections_of, cut)))
    return work
