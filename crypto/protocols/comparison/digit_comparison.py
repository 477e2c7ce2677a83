"""The digits of two private numbers, all at once: XOR shares of what a tree of ANDs then brings together.

For each digit the first holder sends tables with one outcome for every value of the second's (`digit_tables`):

    generate:  s + r ≥ 2^b, a carry out of the digit by itself;
    propagate: s + r = 2^b − 1, a carry out of it where one comes in; for an equality s = r.

Rounds: 2. Chunks follow one another, a few at a time.
Bytes: 7·⌈32/k⌉/8 a symbol from the receiver; tables of up to 8 bytes from the sender, two a digit for an order (one
    for the lowest), one for an equality.
Adversary: semi-honest, as in `ot_extension`. Leakage: how many numbers, and their bits.

Source: `table_transfers` and `digit_tables`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.carry_chain import CHUNKS_AT_ONCE
from crypto.protocols.comparison.digit_tables import Digit, index_of, look_up, positions, under
from crypto.protocols.transfers.extension_batches import tell_batch
from crypto.protocols.transfers.extension_seeds import Expanded, ReceiverSeeds, SenderSeeds, Told
from crypto.protocols.transfers.stages import in_stages
from crypto.protocols.transfers.table_transfers import (
    Packed,
    Table,
    choose,
    chunks,
    filled,
    hear_choices,
    octets,
    pads_of,
    symbol_count,
)
from link.session import Session
from protos.v1.shares_pb2 import LeafTables

GENERATE, PROPAGATE = 0, 1

Planes = NDArray[np.uint8]
"""Shape (2, digits, ⌈n / 8⌉): packed shares of what is generated and propagated by digit, the lowest digit's first."""


@dataclass
class _Chunk:
    """A chunk of a party's numbers, filled up with zeros; where its shares go; and what is kept for the tables."""

    numbers: Words
    place: slice
    pads: list[Words]
    indices: list[Words]


def wanted(digit: Digit, *, order: bool) -> tuple[int, ...]:
    """What the tree takes of a digit. What the lowest propagates does not matter to an order."""
    if not order:
        return (PROPAGATE,)
    return (GENERATE, PROPAGATE) if digit.low else (GENERATE,)


def tables_of(digits: tuple[Digit, ...], *, order: bool) -> list[Table]:
    """The tables of all digits."""
    return [replace(digit.table, columns=len(wanted(digit, order=order))) for digit in digits]


async def send_digit_tables(
    session: Session, peer: str, seeds: SenderSeeds, numbers: Words, digits: tuple[Digit, ...], *, order: bool
) -> Planes:
    """The sender's part.

    Args:
        session: The lane to use, fresh for this call.
        peer: The receiver.
        seeds: For this lane.
        numbers: Unsigned, as of `Digit.of`; n is public.
        digits: From `digit_tables.leaves`, the same at both.
        order: Whether an order is wanted, else an equality.

    Returns:
        This party's shares. What is not `wanted` means nothing.

    Raises:
        MalformedMessage: The receiver's rows have another size.
    """
    planes = np.zeros((2, len(digits), -(-len(numbers) // 8)), np.uint8)
    tables, random = tables_of(digits, order=order), session.randomness("outcomes")
    choosing = session.lane("choices")
    writing: list[Session] = []

    def written(chunk: _Chunk, told: Told, shares: Planes) -> Packed:
        pads = pads_of(seeds, tables, told, len(chunk.numbers))
        sent = []
        for index, (digit, pad) in enumerate(zip(digits, pads, strict=True)):
            found = positions(digit, chunk.numbers, order=order)[::-1]
            for outcome, column in zip(wanted(digit, order=order), pad, strict=True):
                column ^= under(found[outcome], shares[outcome, index], digit)
                sent.append(column.view(np.uint8))
        return np.concatenate(sent)

    async def send(chunk: _Chunk) -> None:
        number = len(chunk.numbers)
        shares = np.frombuffer(random.bytes(2 * len(digits) * number // 8), np.uint8).reshape(2, len(digits), -1)
        told = await hear_choices(choosing, peer, seeds, tables, number)  # <- 1
        if not writing:
            writing.append(session.lane("tables"))  # made after the first choices have come, whose round it counts
        found = await session.compute(written, chunk, told, shares)
        await writing[0].send_array(peer, LeafTables, found)  # -> 2
        planes[:, :, chunk.place] = shares[:, :, : chunk.place.stop - chunk.place.start]

    await in_stages(_chunks(numbers, tables), [send], CHUNKS_AT_ONCE)
    return planes


async def receive_digit_tables(
    session: Session, peer: str, seeds: ReceiverSeeds, numbers: Words, digits: tuple[Digit, ...], *, order: bool
) -> Planes:
    """The receiver's part; arguments, result and errors as for `send_digit_tables`."""
    planes = np.zeros((2, len(digits), -(-len(numbers) // 8)), np.uint8)
    tables = tables_of(digits, order=order)
    size = sum(table.size_bytes for table in tables)
    choosing, reading = session.lane("choices"), session.lane("tables")

    def chosen(chunk: _Chunk) -> Expanded:
        chunk.indices = [index_of(digit, chunk.numbers, None) for digit in digits]
        batch, chunk.pads = choose(seeds, tables, chunk.indices)
        return batch

    def read(chunk: _Chunk, received: Packed) -> Planes:
        shares = np.zeros((2, len(digits), len(chunk.numbers) // 8), np.uint8)
        done = 0
        for index, (digit, pad, position) in enumerate(zip(digits, chunk.pads, chunk.indices, strict=True)):
            for outcome, column in zip(wanted(digit, order=order), pad, strict=True):
                column ^= received[done : done + column.nbytes].view(column.dtype)
                shares[outcome, index] = look_up(column, position)
                done += column.nbytes
        return shares

    async def tell_choices(chunk: _Chunk) -> None:
        await tell_batch(choosing, peer, await session.compute(chosen, chunk))  # -> 1

    async def take_tables(chunk: _Chunk) -> None:
        received = await reading.recv_array(peer, LeafTables, np.uint8, (size * len(chunk.numbers),))  # <- 2
        shares = await session.compute(read, chunk, received)
        planes[:, :, chunk.place] = shares[:, :, : chunk.place.stop - chunk.place.start]

    await in_stages(_chunks(numbers, tables), [tell_choices, take_tables], CHUNKS_AT_ONCE)
    return planes


def _chunks(numbers: Words, tables: list[Table]) -> Iterator[_Chunk]:
    for part in chunks(len(numbers), symbol_count(tables)):
        yield _Chunk(filled(numbers[part]), octets(part), [], [])
