"""Comparing digits of two private numbers: per digit, XOR shares of y > x and of y = x, by one table of 64 outcomes.

The sender holds x, the receiver y, both cut into digits of up to 6 bits. For each digit the sender writes the outcome
for every value that the receiver's may have, under one random bit of its own, which is its share, and under pads, of
which the receiver knows the one at its own digit: a transfer of one of 64 messages out of six random transfers of one
of two. With H⁰, H¹ the two random words of transfer i, of which the receiver knows the one named by bit i of its digit,

    pads = ⊕_i (H⁰_i on the positions whose bit i is 0, H¹_i on the others),

so the receiver's ⊕_i H_i agrees with them at its digit, and at any other position lacks the bit of one word at least.

Rounds: 2. Bytes: 16/k a bit of y from the receiver; two tables of up to 8 bytes a digit from the sender.
Adversary: semi-honest, as in `ot_extension`. Leakage: how many numbers, and their bits.

Source: Naor and Pinkas, "Computationally Secure Oblivious Transfer", Journal of Cryptology 18(1), 2005, section 2.2
(1-of-N from 1-of-2); Rathee et al., "CrypTFlow2: Practical 2-Party Secure Inference", CCS 2020, section 3.1 (leaves of
the comparison).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, Rows128, pack_bits, unpack_bits, xor_each
from crypto.primitives.correlation_robust import hash_rows
from crypto.primitives.xor_sharing import planes_of
from crypto.protocols.extension_seeds import ReceiverSeeds, SenderSeeds
from crypto.protocols.ot_extension import BATCH
from link.session import Session
from protos.v1.oblivious_transfer_pb2 import ExtensionRows
from protos.v1.shares_pb2 import LeafTables

DIGIT_BITS: Final = 6  # a table of 64 outcomes is one word
GREATER, EQUAL = 0, 1

# Bit j of the i-th is set where bit i of j is 0.
_ZERO_POSITIONS: Final = tuple(
    np.uint64(sum(1 << position for position in range(64) if not position >> bit & 1)) for bit in range(DIGIT_BITS)
)
_ALL: Final = np.uint64(2**64 - 1)
_BELOW_ALL: Final = np.uint64(2**64 - 2)
_ONE: Final = np.uint64(1)

Words = NDArray[np.uint64]
Planes = NDArray[np.uint8]
"""Shape (2, digits, ⌈n / 8⌉): packed shares of y > x and y = x by digit, the lowest digit's first."""


@dataclass(frozen=True)
class Digit:
    """One digit of the numbers.

    Attributes:
        low: Position of its lowest bit.
        bits: How many it has.
        outcomes: What is wanted of it: `GREATER`, `EQUAL` or both; the shares of anything else mean nothing.
    """

    low: int
    bits: int
    outcomes: tuple[int, ...]

    @property
    def table(self) -> type[np.unsignedinteger[Any]]:
        """The word that holds a table of its outcomes."""
        return (np.uint8, np.uint8, np.uint8, np.uint16, np.uint32, np.uint64)[self.bits - 1]

    @property
    def table_bytes(self) -> int:
        """Bytes of its tables."""
        return np.dtype(self.table).itemsize * len(self.outcomes)

    def of(self, numbers: Words) -> Words:
        """This digit of each number."""
        return (numbers >> np.uint64(self.low)) & np.uint64((1 << self.bits) - 1)


def digits(bits: int, *, order: bool) -> tuple[Digit, ...]:
    """Numbers cut into digits whose sizes differ by at most one.

    Args:
        bits: Of a number.
        order: Whether y > x is wanted in the end, else y = x. The lowest digit's equality does not matter to an order.
    """
    count = -(-bits // DIGIT_BITS)
    cuts = [bits * i // count for i in range(count + 1)]
    return tuple(
        Digit(low, high - low, ((GREATER,) if low == 0 else (GREATER, EQUAL)) if order else (EQUAL,))
        for low, high in itertools.pairwise(cuts)
    )


def chunks(number: int, bits: int) -> list[slice]:
    """The numbers of each chunk: one batch of the extension."""
    size = max(ROWS, BATCH // bits // ROWS * ROWS)
    return [slice(start, min(start + size, number)) for start in range(0, number, size)]


async def send_digit_tables(
    session: Session, peer: str, seeds: SenderSeeds, numbers: Words, cut: tuple[Digit, ...]
) -> Planes:
    """The sender's part.

    Args:
        session: The lane to talk on, fresh for this call.
        peer: The receiver.
        seeds: For this lane.
        numbers: x, shape (n,); n is public.
        cut: From `digits`, the same at both.

    Returns:
        This party's shares.

    Raises:
        MalformedMessage: The receiver's rows have another size.
    """
    bits = _bits(cut)
    planes = np.zeros((2, len(cut), -(-len(numbers) // 8)), np.uint8)
    random = session.randomness("outcomes")
    for chunk in chunks(len(numbers), bits):
        part = _filled_up(numbers[chunk])
        shares = np.frombuffer(random.bytes(2 * len(cut) * len(part) // 8), np.uint8).reshape(2, len(cut), -1)
        shape = (ROWS // seeds.field_bits, bits * len(part) // 8)
        corrections = await session.recv_array(peer, ExtensionRows, np.uint8, shape)  # <- 1
        tables = await session.compute(_tables, seeds, corrections, part, cut, shares)
        await session.send_array(peer, LeafTables, tables)  # -> 2
        some = _octets(chunk)
        planes[:, :, some] = shares[:, :, : some.stop - some.start]
    return planes


async def receive_digit_tables(
    session: Session, peer: str, seeds: ReceiverSeeds, numbers: Words, cut: tuple[Digit, ...]
) -> Planes:
    """The receiver's part.

    Args:
        session: The lane to talk on, fresh for this call.
        peer: The sender.
        seeds: For this lane.
        numbers: y, shape (n,); n is public.
        cut: From `digits`, the same at both.

    Returns:
        This party's shares.

    Raises:
        MalformedMessage: The sender's tables have another size.
    """
    bits = _bits(cut)
    planes = np.zeros((2, len(cut), -(-len(numbers) // 8)), np.uint8)
    pads = []
    # All rows leave before the first tables are awaited, so that the number of chunks costs no rounds.
    for chunk in chunks(len(numbers), bits):
        corrections, chunk_pads = await session.compute(_choose, seeds, _filled_up(numbers[chunk]), cut)
        await session.send_array(peer, ExtensionRows, corrections)  # -> 1
        pads.append(chunk_pads)
    size = sum(digit.table_bytes for digit in cut)
    for chunk, chunk_pads in zip(chunks(len(numbers), bits), pads, strict=True):
        part = _filled_up(numbers[chunk])
        tables = await session.recv_array(peer, LeafTables, np.uint8, (size * len(part),))  # <- 2
        shares = await session.compute(_read, tables, chunk_pads, part, cut)
        some = _octets(chunk)
        planes[:, :, some] = shares[:, :, : some.stop - some.start]
    return planes


def _tables(seeds: SenderSeeds, corrections: Planes, numbers: Words, cut: tuple[Digit, ...], shares: Planes) -> Planes:
    """The sender's tables of a chunk, digit by digit, as they are sent."""
    first = seeds.used
    rows = seeds.expand(corrections)
    either = hash_rows(rows, first, seeds.domain).reshape(-1, len(numbers), 2)
    one = hash_rows(xor_each(rows, seeds.delta), first, seeds.domain).reshape(-1, len(numbers), 2)
    either ^= one
    sent = []
    for index, digit in enumerate(cut):
        pads = np.bitwise_xor.reduce(one[digit.low : digit.low + digit.bits], axis=0)
        for bit in range(digit.bits):
            part = either[digit.low + bit]
            part &= _ZERO_POSITIONS[bit]
            pads ^= part
        value = digit.of(numbers)
        for outcome in digit.outcomes:
            table = (_BELOW_ALL if outcome == GREATER else _ONE) << value
            table ^= pads[:, outcome]
            table ^= np.negative(unpack_bits(shares[outcome, index], len(numbers)).astype(np.uint64))
            sent.append(table.astype(digit.table).view(np.uint8))
    return np.concatenate(sent)


def _choose(seeds: ReceiverSeeds, numbers: Words, cut: tuple[Digit, ...]) -> tuple[Planes, list[NDArray[Any]]]:
    """The receiver's corrections of a chunk, and per digit the pads of its outcomes, of which one bit will matter."""
    first, bits = seeds.used, _bits(cut)
    corrections, rows = seeds.expand(planes_of(numbers, bits).reshape(-1))
    hashed: Rows128 = hash_rows(rows, first, seeds.domain).reshape(bits, len(numbers), 2)
    pads = [
        np.bitwise_xor.reduce(hashed[digit.low : digit.low + digit.bits], axis=0).astype(digit.table) for digit in cut
    ]
    return corrections, pads


def _read(tables: Planes, pads: list[NDArray[Any]], numbers: Words, cut: tuple[Digit, ...]) -> Planes:
    """The receiver's shares of a chunk."""
    shares = np.zeros((2, len(cut), len(numbers) // 8), np.uint8)
    done = 0
    for index, (digit, pad) in enumerate(zip(cut, pads, strict=True)):
        value = digit.of(numbers).astype(digit.table)
        for outcome in digit.outcomes:
            size = value.nbytes
            table = tables[done : done + size].view(digit.table) ^ pad[:, outcome]
            shares[outcome, index] = pack_bits(((table >> value) & digit.table(1)).astype(np.uint8))
            done += size
    return shares


def _bits(cut: tuple[Digit, ...]) -> int:
    return sum(digit.bits for digit in cut)


def _filled_up(numbers: Words) -> Words:
    """With zeros, to what the extension makes at once."""
    filled = np.zeros(-(-len(numbers) // ROWS) * ROWS, np.uint64)
    filled[: len(numbers)] = numbers
    return filled


def _octets(chunk: slice) -> slice:
    return slice(chunk.start // 8, -(-chunk.stop // 8))
