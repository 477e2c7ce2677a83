"""What two computing parties send; see `two_party`, `comparison`, `shared_bits` and `secure_sum.shared_sum`."""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Sequence
from dataclasses import dataclass
from math import prod

from crypto.primitives.ristretto255 import POINT_BYTES
from crypto.protocols.comparison.comparison import ands_by_level, blocks, ways
from crypto.protocols.comparison.digit_comparison import tables_of
from crypto.protocols.comparison.digit_tables import CHAIN_BITS, chain, leaves
from crypto.protocols.transfers.base_ot import KEY_BYTES
from crypto.protocols.transfers.extension_codes import block_count, seed_blocks
from crypto.protocols.transfers.extension_seeds import DEFAULT_FIELD_BITS
from crypto.protocols.transfers.ot_extension import batches
from crypto.protocols.transfers.table_transfers import Table, chunks, corrections_shape, filled_up, symbol_count
from link.traffic import Traffic
from protos.v1.oblivious_transfer_pb2 import ChoicePoints, ExtensionRows, TransferKey, TreeSums
from protos.v1.secure_sum_pb2 import MaskedValues
from protos.v1.shares_pb2 import LeafTables, MaskedOperands


def agreement_traffic(
    traffic: Traffic,
    lane: str,
    holders: Sequence[str],
    *,
    senders: Sequence[str] | None = None,
    field_bits: int = DEFAULT_FIELD_BITS,
) -> None:
    """Enters what a `TwoParty` agrees upon: 2 rounds for both directions, which go at once.

    1 round with k = 1, or for one direction alone, where the second message travels with the first choices.

    Args:
        traffic: Where the frames are entered.
        lane: Path of the lane that the `TwoParty` was made with.
        holders: Both parties.
        senders: Those of them that send by an extension, `comparison_senders` of a single comparison; by default both.
        field_bits: k.
    """
    count = seed_blocks(field_bits)
    senders = holders if senders is None else senders
    for sender in senders:
        (receiver,) = (name for name in holders if name != sender)
        path = f"{lane}/from {sender}"
        key = TransferKey(point=bytes(POINT_BYTES))
        traffic.send(receiver, sender, f"{path}/base", TransferKey, key.ByteSize())
        points = 2 * count * field_bits * POINT_BYTES
        traffic.send_array(sender, receiver, f"{path}/base", ChoicePoints, points)
        if field_bits > 1:
            sums = count * (field_bits - 1) * 2 * KEY_BYTES
            traffic.send_array(receiver, sender, path, TreeSums, sums)
    traffic.rounds += 2 if field_bits > 1 and len(senders) == 2 else 1


def shared_sum_traffic(traffic: Traffic, lane: str, *, values: int, word_bytes: int, holders: Sequence[str]) -> None:
    """Enters `secure_sum.shared_sum`: 1 round, none with two parties.

    Args:
        traffic: Where the frames are entered.
        lane: The lane's path.
        values: Length of the vectors.
        word_bytes: Bytes of one value.
        holders: As given to `shared_sum`.
    """
    senders = [party for party in traffic.parties if party not in holders]
    for party in senders:
        traffic.send_array(party, holders[0], lane, MaskedValues, values * word_bytes)
    traffic.rounds += 1 if senders else 0


def comparison_traffic(
    traffic: Traffic,
    lane: str,
    holders: Sequence[str],
    *,
    number: int,
    width: int,
    order: bool = True,
    field_bits: int = DEFAULT_FIELD_BITS,
) -> None:
    """Enters `comparison.at_least`, or `equal_to`; the holders have agreed upon seeds before.

    Args:
        traffic: Where the frames are entered.
        lane: The lane's path.
        holders: Both parties, in the order of the `TwoParty`.
        number: How many numbers.
        width: As given to the function.
        order: Whether it is `at_least`.
        field_bits: k.
    """
    bits = width - 1 if order else width
    if not number:
        return
    if bits > CHAIN_BITS:
        for index, part in enumerate(blocks(number)):
            leader, other = holders[index % 2], holders[1 - index % 2]
            _tree(traffic, f"{lane}/block {index}", leader, other, part.stop - part.start, bits, order, field_bits)
        traffic.rounds += 2 + len(ands_by_level(len(leaves(bits)), order=order))
        return
    digits = _chain(bits)
    for index, part in enumerate(ways(number)):
        leader, other = holders[index], holders[1 - index]
        path, last = f"{lane}/led by {leader}", len(digits) - 1
        received = _by_receiver(bits, leader, other)
        symbols = max(symbol_count(tables) for _, tables in received)
        for size, times in _chunk_sizes(part.stop - part.start, symbols):
            for receiver, tables in received:
                if tables:
                    sender = other if receiver == leader else leader
                    rows = prod(corrections_shape(tables, size, field_bits))
                    traffic.send_array(receiver, sender, f"{path}/choices of {receiver}", ExtensionRows, rows, times)
            for place, table in enumerate(digits):
                sender, receiver = (leader, other) if (last - place) % 2 == 0 else (other, leader)
                found = size * table.size_bytes
                traffic.send_array(sender, receiver, f"{path}/digit {place}", LeafTables, found, times)
    traffic.rounds += len(digits) + 1


def open_bits_traffic(
    traffic: Traffic,
    lane: str,
    label: str,
    holders: Sequence[str],
    *,
    number: int,
    width: int = 1,
    to: Sequence[str] | None = None,
) -> None:
    """Enters `shared_bits.open_bits`: 1 round.

    Args:
        traffic: Where the frames are entered.
        lane: The lane's path.
        label: As given to `open_bits`, like all that follows.
        holders: All holders of shares.
        number: How many words.
        width: Bits of a word.
        to: The receivers; all parties by default.
    """
    _open(traffic, lane, label, holders, number, width * -(-number // 8), to)


def open_values_traffic(
    traffic: Traffic,
    lane: str,
    label: str,
    holders: Sequence[str],
    *,
    number: int,
    word_bytes: int = 8,
    to: Sequence[str] | None = None,
) -> None:
    """Enters `shared_bits.open_values`: 1 round. Arguments as for `open_bits_traffic`; `word_bytes` is the word's."""
    _open(traffic, lane, label, holders, number, number * word_bytes, to)


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
    bits = width - 1 if order else width
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


def comparison_senders(holders: Sequence[str], number: int, width: int, *, order: bool = True) -> tuple[str, ...]:
    """The holders that send by an extension in `at_least`, or `equal_to`, one of them where numbers are very short."""
    digits = chain(width - 1 if order else width)
    return tuple(holders[: len(ways(number))] if digits is not None and len(digits) == 1 else holders)


def _tree(
    traffic: Traffic, lane: str, leader: str, other: str, number: int, bits: int, order: bool, field_bits: int
) -> None:
    cut = leaves(bits)
    tables = tables_of(cut, order=order)
    for size, times in _chunk_sizes(number, symbol_count(tables)):
        rows = prod(corrections_shape(tables, size, field_bits))
        traffic.send_array(other, leader, f"{lane}/digits/choices", ExtensionRows, rows, times)
        found = size * sum(table.size_bytes for table in tables)
        traffic.send_array(leader, other, f"{lane}/digits/tables", LeafTables, found, times)
    octets = -(-number // 8)
    levels = ands_by_level(len(cut), order=order)
    for sender, receiver in ((leader, other), (other, leader)):
        for batch, times in Counter(batches(8 * octets * sum(levels))).items():
            rows = block_count(field_bits) * batch // 8
            traffic.send_array(receiver, sender, f"{lane}/triples/from {sender}", ExtensionRows, rows, times)
        for planes in levels:
            traffic.send_array(sender, receiver, f"{lane}/tree", MaskedOperands, 2 * planes * octets)


def _chain(bits: int) -> list[Table]:
    return [digit.table for digit in chain(bits) or ()]


def _by_receiver(bits: int, leader: str, other: str) -> list[tuple[str, list[Table]]]:
    """The tables that each party receives: the leader sends the last, and from there every other one."""
    upwards = _chain(bits)
    return [(other, upwards[::-2][::-1]), (leader, upwards[-2::-2][::-1])]


def _chunk_sizes(number: int, symbols: int) -> ItemsView[int, int]:
    """The sizes of the chunks, and how many there are of each."""
    return Counter(filled_up(part.stop - part.start) for part in chunks(number, symbols)).items()


def _open(
    traffic: Traffic,
    lane: str,
    label: str,
    holders: Sequence[str],
    number: int,
    size: int,
    to: Sequence[str] | None,
) -> None:
    receivers = traffic.parties if to is None else to
    for holder in holders:
        traffic.open(holder, receivers, lane, label, number, size)
    traffic.rounds += 1
