"""What two computing parties send; see `two_party`, `comparison`, `shared_bits` and `secure_sum.shared_sum`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crypto.primitives.bit_matrix import ROWS
from crypto.primitives.permutation_network import layer_count, network_size
from crypto.protocols.comparison.comparison import ands_by_level, blocks, ways
from crypto.protocols.comparison.digit_comparison import tables_of
from crypto.protocols.comparison.digit_tables import CHAIN_BITS, chain, leaves
from crypto.protocols.comparison.shared_lookup import offered_bytes, rows_at_once
from crypto.protocols.comparison.shared_permutation import switch_work
from crypto.protocols.transfers.costs import VectorSizes, rows_traffic, seeds_traffic, vectors_traffic
from crypto.protocols.transfers.extension_batches import MESSAGES
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.transfers.table_transfers import Table, chosen_bytes, chunks, filled_up, symbol_count
from crypto.protocols.transfers.vector_transfers import rounds as vector_rounds
from link.traffic import Traffic


def agreement_traffic(traffic: Traffic, holders: Sequence[str]) -> None:
    """Enters what a `TwoParty` agrees upon: 2 rounds for both directions, which go at once."""
    first, second = holders
    seeds_traffic(traffic, first, second)
    seeds_traffic(traffic, second, first)
    traffic.rounds += 2


def shared_sum_traffic(traffic: Traffic, size: int, holders: Sequence[str]) -> None:
    """Enters `secure_sum.shared_sum` of vectors of so many bytes: 1 round, none with two parties."""
    senders = [party for party in traffic.parties if party not in holders]
    for party in senders:
        traffic.send(party, holders[0], size)
    traffic.rounds += bool(senders)


def comparison_traffic(
    traffic: Traffic, holders: Sequence[str], *, number: int, width: int, order: bool = True
) -> None:
    """Enters `comparison.at_least`, or `equal_to`; the holders have agreed upon seeds before.

    Args:
        traffic: Where it is entered.
        holders: Both parties, in the order of the `TwoParty`.
        number: How many numbers.
        width: As given to the function.
        order: Whether of `at_least`.
    """
    bits = width - order
    if not number:
        return
    if bits > CHAIN_BITS:
        tables = tables_of(leaves(bits), order=order)
        levels = ands_by_level(len(tables), order=order)
        for index, part in enumerate(blocks(number)):
            leader, other = holders[index % 2], holders[1 - index % 2]
            size = part.stop - part.start
            _tables_traffic(traffic, leader, other, tables, size)
            octets = -(-size // 8)
            triples = 8 * octets * sum(levels)
            for sender, receiver in ((leader, other), (other, leader)):
                rows_traffic(traffic, sender, receiver, triples)
                traffic.send(sender, receiver, 2 * octets * sum(levels), len(levels))
        traffic.rounds += 2 + len(levels)
        return
    upwards = _chain(bits)
    for leader, part in zip(holders, ways(number), strict=False):
        (other,) = (holder for holder in holders if holder != leader)
        # The leader sends the last table, and from there every other one.
        _tables_traffic(traffic, leader, other, upwards[::-2], part.stop - part.start)
        _tables_traffic(traffic, other, leader, upwards[-2::-2], part.stop - part.start)
    traffic.rounds += len(upwards) + 1


def permutation_traffic(traffic: Traffic, owner: str, other: str, *, rows: int, width: int, word_bytes: int) -> None:
    """Enters `shared_permutation.permute`: rounds as `permutation_rounds`, which the caller counts."""
    vectors_traffic(traffic, other, owner, _switch_sizes(rows, width, word_bytes), word_bytes)


def permutation_switches(rows: int) -> int:
    """Transfers of `permutation_traffic`."""
    return layer_count(network_size(rows)) * network_size(rows) // 2


def permutation_rounds(rows: int, word_bytes: int) -> int:
    """Rounds of `permutation_traffic`, of rows of one word."""
    return vector_rounds(_switch_sizes(rows, 1, word_bytes).batches)


@lru_cache(maxsize=64)  # a plan asks for the same few again and again: all pairs of parties have the same rows
def _switch_sizes(rows: int, width: int, word_bytes: int) -> VectorSizes:
    return VectorSizes.of(switch_work(rows, width, np.dtype(f"u{word_bytes}").type))


def opened_traffic(traffic: Traffic, size: int, holders: Sequence[str], to: Collection[str] | None = None) -> None:
    """Enters `shared_bits.open_bits` or `open_values` of so many bytes: 1 round.

    Args:
        traffic: Where it is entered.
        size: Of one holder's shares.
        holders: All holders of shares.
        to: The receivers; all parties by default.
    """
    for holder in holders:
        traffic.send(holder, traffic.parties if to is None else to, size)
    traffic.rounds += 1


def look_up_traffic(traffic: Traffic, holders: Sequence[str], *, number: int, entries: int) -> None:
    """Enters `shared_lookup.look_up` of so many indices in a table of so many entries."""
    (first, second), bits = holders, max(entries - 1, 0).bit_length()
    step = rows_at_once(bits)
    for start in range(0, number, step):
        some = min(step, number - start)
        transfers = -(-some // ROWS) * ROWS * bits
        rows_traffic(traffic, first, second, transfers)
        traffic.send(first, second, some * offered_bytes(bits))
        traffic.rounds += 2


@dataclass(frozen=True)
class ComparisonWork:
    """What costs processor time, counted once for both holders: each transfer and triple makes work at either.

    Attributes:
        transfers: Transfers of one of 8.
        messages: Messages that their senders hash, up to 8 a transfer.
        triples: AND triples: two transfers of one of 2 each.
        table_bytes: Bytes of tables that are written, sent and looked up.
    """

    transfers: int
    messages: int
    triples: int
    table_bytes: int


def comparison_work(number: int, width: int, *, order: bool = True) -> ComparisonWork:
    """The work of `at_least`, or `equal_to`; arguments as for `comparison_traffic`."""
    bits = width - order
    tables, triples = _chain(bits), 0
    if bits > CHAIN_BITS:
        tables = tables_of(leaves(bits), order=order)
        planes = sum(ands_by_level(len(tables), order=order))
        triples = sum(8 * planes * -(-(part.stop - part.start) // 8) for part in blocks(number))
    symbols = [symbol for table in tables for symbol in table.symbols]
    return ComparisonWork(
        number * len(symbols),
        number * sum(1 << symbol for symbol in symbols),
        triples,
        number * sum(table.size_bytes for table in tables),
    )


def _tables_traffic(traffic: Traffic, sender: str, receiver: str, tables: Sequence[Table], number: int) -> None:
    """Enters transfers of one bit out of each of these tables, for so many indices."""
    if not tables:
        return
    chosen, answered, messages = _table_bytes(tuple(tables), number)
    traffic.send(receiver, sender, chosen, MESSAGES * messages)
    traffic.send(sender, receiver, answered, messages * len(tables))


@lru_cache(maxsize=64)  # the blocks of a comparison have one size, but for the last
def _table_bytes(tables: tuple[Table, ...], number: int) -> tuple[int, int, int]:
    """Bytes of the receiver and of the sender of such transfers, and messages of the receiver."""
    parts = [filled_up(part.stop - part.start) for part in chunks(number, symbol_count(tables))]
    chosen = sum(chosen_bytes(tables, part, DEFAULT_FIELD_BITS) for part in parts)
    return chosen, sum(parts) * sum(table.size_bytes for table in tables), len(parts)


def _chain(bits: int) -> list[Table]:
    return [digit.table for digit in chain(bits) or ()]
