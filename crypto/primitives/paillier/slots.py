"""Many small numbers side by side in one large plaintext, with spare bits that provably suffice.

A plaintext is cut into *blocks*, a block into *slots* of `width` bits, one a number. Sums of plaintexts are sums slot
by slot as long as no slot overflows; that is what the checks of `SlotLayout` prove from a public bound on every sum.

**Several rows to a plaintext.** ρ rows X_0 … X_{ρ−1} fill ρ blocks, C = Σ_r X_r·2^(r·s) for blocks of s bits. Who has
a bit y_r for each row makes ρ *partial sums* over all plaintexts, the r-th Σ y_r·C of those at place r. Its block r is
Σ y_r·X_r; the other blocks hold products of different rows that nobody asked for: in each slot the sum of at most as
many of them as there are rows. The wanted sum is that of all blocks r of the r-th partial sums, which is taken once
they are shares. So narrow rows cost a ρ-th of the plaintexts, and ρ sums instead of one.

**Masks.** Before a partial sum is shown to who can decrypt it, a mask is added to *all* of it. The two who hold masked
sums and masks add up the wanted blocks, each for itself; the masks', negated, are then shares of the wanted sum's.

    "each"   every slot gets a mask that is 40 bits longer than the largest sum, and is that much wider. A slot's
             value and its mask are shares over the integers, so modulo 2^64 too; any of them may be opened alone.
    "whole"  every block gets one mask that is 40 bits longer than the block, and 41 bits above its slots. Slots are
             as narrow as the sums; their shares, modulo 2^width, add up to sum + β, β ∈ {0, 1} a carry from the slot
             below. So either the masks of all slots of a block are opened, and what is left is exact; or nothing is
             opened, slots hold twice the sum, and 2·sum + β ≥ 2·c exactly if sum ≥ c: for comparison only, since β
             reveals of the slot below.

Either way a masked partial sum is within 2^-40 of a distribution that does not depend on the sums, for each mask of it.
A mask that is opened is the sum of ρ independent ones, so that no partial sum shows.

Packing transactions' columns into slots is Goethals, Laur, Lipmaa and Mielikäinen, "On Private Scalar Product
Computation for Privacy-Preserving Data Mining", ICISC 2004, section 5, taken further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from link.randomness import RandomStream

STATISTICAL_BITS: Final = 40
WORD_BITS: Final = 64

Masking = Literal["each", "whole"]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SlotLayout:
    """Where numbers lie in a plaintext.

    Attributes:
        slots: Numbers in a block.
        rows: ρ, the rows of a plaintext.
        largest: No sum over all rows exceeds it.
        masking: How sums are masked.
        plaintext_bits: Every number of at most so many bits is a plaintext.
    """

    slots: int
    rows: int
    largest: int
    masking: Masking
    plaintext_bits: int

    def __post_init__(self) -> None:
        if self.slots < 1 or self.rows < 1 or self.largest < 1:
            raise ValueError("a layout has at least one slot, one row and sums up to 1")
        if self.width > WORD_BITS:
            raise ValueError(
                f"sums up to {self.largest} need slots of {self.width} bits under masks, {WORD_BITS} are the most"
            )
        if self.rows * self.block_bits > self.plaintext_bits:
            raise ValueError(
                f"{self.rows} blocks of {self.block_bits} bits do not fit a plaintext of {self.plaintext_bits}"
            )

    @property
    def width(self) -> int:
        """Bits of a slot: those of a sum; 41 more under a mask of its own: 2^bits + 2^(bits + 40) < 2^(bits + 41)."""
        return self.largest.bit_length() + (STATISTICAL_BITS + 1 if self.masking == "each" else 0)

    @property
    def slots_bits(self) -> int:
        """Bits of a block's slots together."""
        return self.slots * self.width

    @property
    def block_bits(self) -> int:
        """Bits of a block: its slots, and 41 above them where one mask covers them."""
        return self.slots_bits + (STATISTICAL_BITS + 1 if self.masking == "whole" else 0)

    def pack(self, values: NDArray[np.integer]) -> list[mpz]:
        """Plaintexts of rows of numbers.

        Args:
            values: Shape (plaintexts, rows, slots), not negative and at most `largest`.

        Raises:
            ValueError: The shape is another, or a number is out of range.
        """
        if values.shape[1:] != (self.rows, self.slots):
            raise ValueError(f"{self.rows} rows of {self.slots} slots are packed, not {values.shape[1:]}")
        if values.size and not 0 <= int(values.min()) <= int(values.max()) <= self.largest:
            raise ValueError(f"slots hold numbers from 0 to {self.largest}")
        return self._pack(values.astype("<u8", copy=False))

    def unpack(self, partial: Sequence[int]) -> Words:
        """The wanted slots of (masked) partial sums, or of their masks.

        Args:
            partial: ρ for each wanted sum, one after the other.

        Returns:
            Shape (sums, slots): modulo 2^64 where every slot has a mask, else modulo 2^width.
        """
        keep = (mpz(1) << self.slots_bits) - 1
        blocks = [
            (mpz(plaintext) >> place % self.rows * self.block_bits) & keep for place, plaintext in enumerate(partial)
        ]
        if self.masking == "each":
            sums: Words = self._words(blocks).reshape(-1, self.rows, self.slots).sum(axis=1, dtype=np.uint64)
            return sums
        starts = range(0, len(blocks), self.rows)
        return self._words([sum(blocks[start : start + self.rows], mpz(0)) & keep for start in starts])

    def masks(self, count: int, random: RandomStream) -> tuple[list[mpz], Words]:
        """Masks to add to partial sums.

        Args:
            count: How many sums are wanted.
            random: Fresh randomness.

        Returns:
            The masks, ρ for each wanted sum; and `unpack` of them.
        """
        if self.masking == "each":
            drawn = random.uint64(count * self.rows * self.rows * self.slots)
            drawn &= np.uint64((1 << (self.width - 1)) - 1)
            masks = self._pack(drawn.reshape(count * self.rows, self.rows, self.slots))
        else:
            bound = 1 << (self.slots_bits + STATISTICAL_BITS)
            masks = [
                sum((mpz(random.below(bound)) << (block * self.block_bits) for block in range(self.rows)), mpz(0))
                for _ in range(count * self.rows)
            ]
        return masks, self.unpack(masks)

    def _words(self, blocks: Sequence[mpz]) -> Words:
        """The slots of blocks, shape (blocks, slots)."""
        size = -(-self.slots_bits // 8)
        raw = b"".join([block.to_bytes(size, "little") for block in blocks])
        bits = np.unpackbits(np.frombuffer(raw, np.uint8).reshape(-1, size), axis=1, bitorder="little")
        slots = bits[:, : self.slots_bits].reshape(-1, self.slots, self.width)
        words = np.zeros((*slots.shape[:2], WORD_BITS), np.uint8)
        words[..., : self.width] = slots
        return np.packbits(words, axis=-1, bitorder="little").view("<u8")[..., 0].astype(np.uint64)

    def _pack(self, values: Words) -> list[mpz]:
        """Shape (plaintexts, blocks, slots): the bits of every number to its place, as bytes."""
        count, blocks, slots = values.shape
        octets = -(-min(self.width, int(values.max(initial=0)).bit_length()) // 8)
        digits = np.ascontiguousarray(values).view(np.uint8).reshape(count, blocks, slots, 8)[..., :octets]
        used = min(self.width, 8 * octets)
        numbers = np.zeros((count, blocks, slots, self.width), np.uint8)
        numbers[..., :used] = np.unpackbits(digits, axis=-1, bitorder="little")[..., :used]
        bits = np.zeros((count, blocks, self.block_bits), np.uint8)
        bits[..., : self.slots_bits] = numbers.reshape(count, blocks, self.slots_bits)
        packed = np.packbits(bits.reshape(count, blocks * self.block_bits), axis=1, bitorder="little")
        read = mpz.from_bytes
        return [read(row.tobytes(), "little") for row in packed]


def fit(columns: int, largest: int, masking: Masking, plaintext_bits: int) -> tuple[SlotLayout, int]:
    """The layout with the fewest groups of columns, and with the most rows in a plaintext that fit beside these.

    Args:
        columns: Numbers of a row, at least one.
        largest: No sum over all rows exceeds it, at least 1.
        masking: How sums are masked.
        plaintext_bits: Every number of at most so many bits is a plaintext.

    Returns:
        The layout, and the number of groups into which the columns are cut: plaintexts for ρ rows.

    Raises:
        ValueError: Not even one column fits.
    """
    widest = SlotLayout(1, 1, largest, masking, plaintext_bits)
    guard = widest.block_bits - widest.width
    groups = -(-columns // ((plaintext_bits - guard) // widest.width))
    slots = -(-columns // groups)
    rows = plaintext_bits // (slots * widest.width + guard)
    return SlotLayout(slots, rows, largest, masking, plaintext_bits), groups
