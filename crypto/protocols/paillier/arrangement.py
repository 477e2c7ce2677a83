"""How two parties' columns and their products lie in Paillier plaintexts: public, and the same at both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.primitives.columns import Columns, bits_of
from crypto.primitives.paillier.slots import Masking, SlotLayout, Words, fit
from crypto.protocols.comparison.comparison import width_for
from crypto.protocols.products.ot_matrix import Pairs

CHUNK_BYTES: Final = 1 << 20  # of encrypted rows in a message
REPLY_WORK: Final = 32  # of a reply, made fresh with a uniform residue and decrypted, beside an encryption from tables


@dataclass(frozen=True, eq=False)
class Arrangement:
    """The public side of a call of `paillier_dot`.

    Attributes:
        rows: Length of the columns.
        used: The different columns of the pairs, the key holder's and the evaluator's.
        places: Of each pair the places of its columns among those.
        scale: What a product counts in a slot: 2 where slots hold twice the sum.
        layout: Where numbers lie in a plaintext.
        groups: Ciphertexts for one plaintext's rows: as many groups of the key holder's columns.
        ciphertext_bytes: Size of a ciphertext.
    """

    rows: int
    used: tuple[NDArray[np.int64], NDArray[np.int64]]
    places: tuple[NDArray[np.int64], NDArray[np.int64]]
    scale: int
    layout: SlotLayout
    groups: int
    ciphertext_bytes: int

    @classmethod
    def of(cls, rows: int, pairs: Pairs, key_bits: int) -> Arrangement:
        """The arrangement in which these pairs of columns of so many rows are opened.

        Slots get one mask each where only some products of the columns are asked for; one mask covers them all where
        every product is opened.

        Raises:
            ValueError: There are no pairs, or so many rows that not even one column fits.
        """
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise ValueError("products are of pairs of columns, at least one")
        (first, of_first), (second, of_second) = (np.unique(side, return_inverse=True) for side in pairs.T)
        all_asked = len(np.unique(pairs, axis=0)) == len(first) * len(second)
        masking: Masking = "whole" if all_asked else "each"
        layout, groups = fit(len(first), max(1, rows), masking, key_bits - 1)
        layout = replace(layout, rows=_rows_of_a_plaintext(rows, len(second), layout.rows))
        return cls(rows, (first, second), (of_first, of_second), 1, layout, groups, key_bits // 4)

    @property
    def requests(self) -> int:
        """Ciphertexts that the key holder sends."""
        return self._plaintexts * self.groups

    @property
    def sums(self) -> int:
        """Of the rows that a column of the evaluator selects, in each group."""
        return len(self.used[1]) * self.groups

    @property
    def replies(self) -> int:
        """Ciphertexts that the evaluator sends: partial sums, as many to a sum as a plaintext has rows."""
        return self.sums * self.layout.rows

    @property
    def work(self) -> int:
        """What both do, in encryptions; multiplications aside, which are as many in every arrangement."""
        return self.requests + REPLY_WORK * self.replies

    @property
    def _plaintexts(self) -> int:
        """Of one group."""
        return -(-self.rows // self.layout.rows)

    def chunks(self) -> list[Chunk]:
        """The rows of each message, beginning at whole bytes of the packed columns."""
        size = max(8, CHUNK_BYTES // (self.ciphertext_bytes * self.groups) // 8 * 8)
        return [
            Chunk(start, min(size, self._plaintexts - start), self.groups) for start in range(0, self._plaintexts, size)
        ]

    def plaintexts(self, chunk: Chunk, columns: Columns) -> list[mpz]:
        """The key holder's rows of a chunk, packed, group by group."""
        rows = np.zeros((chunk.size, self.layout.rows, self.groups * self.layout.slots), np.uint8)
        rows[..., : len(self.used[0])] = self._bits(chunk, columns[self.used[0]])
        rows *= np.uint8(self.scale)
        groups = np.split(rows, self.groups, axis=-1)
        return [plaintext for group in groups for plaintext in self.layout.pack(group)]

    def selection(self, chunk: Chunk, columns: Columns) -> NDArray[np.bool_]:
        """The evaluator's bits of a chunk.

        Returns:
            Shape (size, rows of a plaintext · columns): row by row of the plaintexts, its columns' bits.
        """
        return self._bits(chunk, columns[self.used[1]]).reshape(chunk.size, -1).astype(np.bool_)

    def _bits(self, chunk: Chunk, columns: Columns) -> NDArray[np.uint8]:
        """Shape (size, rows of a plaintext, columns); zeros behind the last row."""
        per = self.layout.rows
        start, stop = chunk.start * per, min((chunk.start + chunk.size) * per, self.rows)
        bits = np.zeros((len(columns), chunk.size * per), np.uint8)
        bits[:, : stop - start] = bits_of(columns, (start, stop))
        return bits.reshape(len(columns), chunk.size, per).transpose(1, 2, 0)

    def of_pairs(self, slots: Words) -> Words:
        """The numbers of the pairs, in their order, from the slots of all sums, shape (sums, slots)."""
        return slots.reshape(len(self.used[1]), -1)[self.places[1], self.places[0]]

    def without_masks(self, masked: Words, masks: Words) -> Words:
        """The products of the pairs.

        Args:
            masked: The slots of all masked sums, shape (sums, slots).
            masks: Of the pairs, in their order.

        Returns:
            In the order of the pairs, modulo 2^width.
        """
        modulus = np.uint64((1 << self.layout.width) - 1)
        if self.layout.masking == "each":
            return (self.of_pairs(masked) - masks) & modulus
        # The masks of all products are here. Those of a group's last slots, which hold no column, do not matter: a
        # carry goes upwards.
        grid: Words = np.zeros((len(self.used[1]), self.groups * self.layout.slots), np.uint64)
        grid[self.places[1], self.places[0]] = masks
        slots, carry = grid.reshape(masked.shape), np.zeros(len(masked), np.uint64)
        for slot in range(self.layout.slots):
            added = slots[:, slot] + carry
            slots[:, slot] = (masked[:, slot] - added) & modulus
            carry = (added + slots[:, slot]) >> np.uint64(self.layout.width)
        return self.of_pairs(slots)


def doubled_layout(columns: int, rows: int, key_bits: int) -> tuple[SlotLayout, int]:
    """`slots.fit` for doubled sums: a sum and its carry are compared at the width for 2·rows + 1, sign included."""
    return fit(columns, (1 << width_for(2 * rows + 1)) - 1, "whole", key_bits - 1)


def _rows_of_a_plaintext(rows: int, columns: int, most: int) -> int:
    """ρ from 1 to `most` with the least work: every further row spares encryptions and takes a reply a column more."""
    return min(range(1, most + 1), key=lambda each: -(-rows // each) + REPLY_WORK * columns * each)


@dataclass(frozen=True)
class Chunk:
    """The rows of one message.

    Attributes:
        start: The first plaintext of each group.
        size: Plaintexts of each group.
        groups: How many groups.
    """

    start: int
    size: int
    groups: int

    @property
    def ciphertexts(self) -> int:
        """In the message."""
        return self.size * self.groups


def in_pieces(number: int, size: int) -> Iterator[slice]:
    """0 … number − 1 in pieces of at most `size`."""
    return (slice(start, min(start + size, number)) for start in range(0, number, size))


def joined(parts: Sequence[Sequence[mpz]]) -> list[mpz]:
    """All elements of all parts."""
    return [element for part in parts for element in part]
