"""One bit out of a table, by oblivious transfer: the sender holds tables of 2^b bits, the receiver an index of b bits.

The index is cut into symbols; for each there is one random transfer of one of 2^s words (`extension_seeds`). With
H_j(x) the sender's word x of symbol j, as long as a table, the tables go under the pads

    pads = ⊕_j ⊕_x (H_j(x) on the positions whose symbol j is x),

of which the receiver's ⊕_j H_j(x_j) has the bit at its index and, at any other position, lacks one of the words.

Source: Naor and Pinkas, "Computationally Secure Oblivious Transfer", Journal of Cryptology 18(1), 2005, section 2.2
(1-of-N from a transfer for each digit of the index); Kolesnikov and Kumaresan, "Improved OT Extension for Transferring
Short Secrets", CRYPTO 2013 (one row of the extension for a symbol).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, pack_bits
from crypto.primitives.correlation_robust import hash_words
from crypto.primitives.shares.masks import Words
from crypto.protocols.transfers.extension_batches import batch_bytes, hear_batch
from crypto.protocols.transfers.extension_codes import SYMBOL_BITS
from crypto.protocols.transfers.extension_seeds import Expanded, ReceiverSeeds, SenderSeeds, Told
from link.session import Session

INDEX_BITS: Final = 6  # a table of 64 bits is one word
BATCH: Final = 1 << 18  # transfers at once; those of a few chunks are in memory together, at 60 bytes and more each
_AT_ONCE: Final = 1 << 14  # of them, so that words of 2^s messages stay in the second-level cache

Packed = NDArray[np.uint8]


@dataclass(frozen=True)
class Table:
    """The size of tables.

    Attributes:
        bits: b, of an index: 1 to `INDEX_BITS`.
        columns: Tables under one index: 1 or 2.
    """

    bits: int
    columns: int = 1

    @property
    def word(self) -> type[np.unsignedinteger[Any]]:
        """The word that holds one table, in its lowest 2^b bits."""
        return (np.uint8, np.uint8, np.uint8, np.uint16, np.uint32, np.uint64)[self.bits - 1]

    @property
    def positions(self) -> np.unsignedinteger[Any]:
        """All positions of a table."""
        return self.word((1 << (1 << self.bits)) - 1)

    @property
    def size_bytes(self) -> int:
        """Bytes of all tables under one index."""
        return np.dtype(self.word).itemsize * self.columns

    @property
    def symbols(self) -> tuple[int, ...]:
        """Bits of each symbol of an index, the lowest first."""
        whole, rest = divmod(self.bits, SYMBOL_BITS)
        return (SYMBOL_BITS,) * whole + (rest,) * bool(rest)


def symbol_count(tables: Sequence[Table]) -> int:
    """Transfers that one index of each takes."""
    return sum(len(table.symbols) for table in tables)


def filled_up(number: int) -> int:
    """Indices that are taken where there are so many: a multiple of what the extension makes at once."""
    return -(-number // ROWS) * ROWS


def filled(numbers: Words) -> Words:
    """Numbers and zeros, `filled_up`."""
    more = np.zeros((filled_up(len(numbers)), *numbers.shape[1:]), numbers.dtype)
    more[: len(numbers)] = numbers
    return more


def octets(chunk: slice) -> slice:
    """The bytes of packed bits that hold a chunk's."""
    return slice(chunk.start // 8, -(-chunk.stop // 8))


def chunks(number: int, symbols: int) -> list[slice]:
    """Consecutive numbers such that a chunk's transfers are one batch of the extension."""
    size = max(ROWS, BATCH // symbols // ROWS * ROWS)
    return [slice(start, min(start + size, number)) for start in range(0, number, size)]


def chosen_bytes(tables: Sequence[Table], number: int, field_bits: int) -> int:
    """Bytes that the receiver sends for so many indices into each table."""
    return batch_bytes(field_bits, symbol_count(tables) * number, SYMBOL_BITS)


def choose(seeds: ReceiverSeeds, tables: Sequence[Table], indices: Sequence[Words]) -> tuple[Expanded, list[Words]]:
    """The receiver's choices.

    Args:
        seeds: The sender's counterpart.
        tables: Sizes of the tables.
        indices: Into each; shape (n,), of the table's word, below 2^b, n a multiple of 128.

    Returns:
        The batch; and by table the receiver's pads, shape (columns, n), of which the bit at its index
        counts.
    """
    number, first = len(indices[0]), seeds.used
    choices = np.zeros((SYMBOL_BITS, symbol_count(tables), number // 8), np.uint8)
    symbol = 0
    for table, index in zip(tables, indices, strict=True):
        for bit in range(table.bits):
            place = symbol + bit // SYMBOL_BITS
            choices[bit % SYMBOL_BITS, place] = pack_bits(index & table.word(1 << bit) != 0)
        symbol = place + 1
    batch = seeds.expand(choices.reshape(SYMBOL_BITS, -1))
    pads, symbol = [], 0
    for table in tables:
        count = len(table.symbols)
        part = slice(symbol * number, (symbol + count) * number)
        hashed = hash_words(batch.rows[part], first + part.start, seeds.domain, _NO_OFFSET, table.word, table.columns)
        pads.append(np.bitwise_xor.reduce(hashed.reshape(table.columns, count, number), axis=1))
        symbol += count
    return batch, pads


async def hear_choices(session: Session, peer: str, seeds: SenderSeeds, tables: Sequence[Table], number: int) -> Told:
    """What the receiver tells of so many indices into each table: `hear_batch` of its lane."""
    return await hear_batch(session, peer, seeds.field_bits, symbol_count(tables) * number, SYMBOL_BITS)


def pads_of(seeds: SenderSeeds, tables: Sequence[Table], told: Told, number: int) -> list[Words]:
    """The sender's pads for all positions.

    Args:
        seeds: The receiver's counterpart.
        tables: Sizes of the tables.
        told: From `hear_choices`.
        number: n.

    Returns:
        By table shape (columns, n).

    Raises:
        ProtocolViolation: The receiver's choices contradict each other; nothing of the batch may be used.
    """
    first, offsets = seeds.used, seeds.offsets(SYMBOL_BITS)
    rows = seeds.expand(told, SYMBOL_BITS)
    pads: list[Words] = [np.zeros((table.columns, number), table.word) for table in tables]
    done = 0
    for table, pad in zip(tables, pads, strict=True):
        for symbol, bits in enumerate(table.symbols):
            masks = _positions(table, symbol)
            for part in _pieces(number):
                start = done + part.start
                some = rows[start : done + part.stop]
                words = hash_words(some, first + start, seeds.domain, offsets[: 1 << bits], table.word, table.columns)
                words &= masks
                pad[:, part] ^= np.bitwise_xor.reduce(words, axis=0)
            done += number
    return pads


@cache
def _positions(table: Table, symbol: int) -> Words:
    """For each value of a symbol the positions whose index has it, shape (2^s', 1, 1), s' the symbol's bits."""
    bits = table.symbols[symbol]
    masks = [0] * (1 << bits)
    for position in range(1 << table.bits):
        masks[position >> symbol * SYMBOL_BITS & (1 << bits) - 1] |= 1 << position
    return np.array(masks, table.word).reshape(-1, 1, 1)


def _pieces(number: int) -> Iterator[slice]:
    return itertools.starmap(slice, itertools.pairwise([*range(0, number, _AT_ONCE), number]))


_NO_OFFSET: Final = np.zeros((1, 2), np.uint64)
