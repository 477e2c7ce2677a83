"""The code words of choices in an oblivious-transfer extension, and how their rows become 128 bits.

A choice x of s bits is encoded by a code word of bits, one for each block of Δ. Block b of the sender's row for choice
x differs from the receiver's own by Δ_b wherever the code words differ, so all that differs is secret where there are
enough such blocks: of k bits each, 128 bits together. Blocks come in groups, each with one short code word:

    bits (s = 1)      a group is one block, with the choice itself (the repetition code);
    symbols (s = 3)   a group is seven blocks, with the sums of all non-empty sets of the choice's bits (the simplex
                      code of dimension 3): any two code words differ at four of the seven.

The repetition of a symbol, bit by bit, would take 3·⌈128/k⌉ bits a transfer where the simplex code takes 7·⌈32/k⌉: 77
in place of 129 with k = 3.

A row of all blocks would have 7/4 of the bits that are secret. So a group is folded to four sums of k bits, in such a
way that the four blocks where any two code words differ still determine the sums: what two rows differ by is as good
as uniform in all 128 bits, for every two choices.

Source: Kolesnikov and Kumaresan, "Improved OT Extension for Transferring Short Secrets", CRYPTO 2013 (code words for
choices); Roy, "SoftSpokenOT", CRYPTO 2022, section 5 (over small fields; p = 2 and a linear code).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS

Words = NDArray[np.uint64]
Bits = TypeVar("Bits", bound=NDArray[np.unsignedinteger[Any]])


@dataclass(frozen=True)
class Code:
    """The code of a group.

    Attributes:
        symbol_bits: s, of a choice.
        masks: By block the bits of the choice that its bit of the code word sums up.
        folds: By sum the blocks that add to it.
    """

    symbol_bits: int
    masks: tuple[int, ...]
    folds: tuple[tuple[int, ...], ...]

    def groups(self, field_bits: int) -> int:
        """How many make 128 secret bits with blocks of k."""
        return -(-ROWS // (field_bits * len(self.folds)))

    def blocks(self, field_bits: int) -> int:
        """Blocks of all groups: bits that a receiver sends for a transfer."""
        return self.groups(field_bits) * len(self.masks)

    def word(self, choice: int) -> list[int]:
        """The code word of a choice."""
        return [(choice & mask).bit_count() & 1 for mask in self.masks]

    def encode(self, planes: Words) -> Words:
        """The planes of many choices' code words, shape (blocks of a group, n).

        Args:
            planes: Bit-sliced choices, shape (s, n).
        """
        encoded = np.empty((len(self.masks), *planes.shape[1:]), planes.dtype)
        for mask, plane in zip(self.masks, encoded, strict=True):
            summed = [bit for bit in range(self.symbol_bits) if mask >> bit & 1]
            np.bitwise_xor.reduce(planes[summed], axis=0, out=plane)
        return encoded

    def fold(self, block: int, values: Bits, sums: Bits) -> None:
        """Adds a block of a group to the group's sums; the group's blocks come in order.

        Args:
            block: Its number in the group.
            values: Any shape.
            sums: As many as `folds`, each of that shape; overwritten where a sum begins.
        """
        for fold, target in zip(self.folds, sums, strict=True):
            if block == fold[0]:
                target[...] = values
            elif block in fold:
                target ^= values

    def folded(self, values: Bits) -> Bits:
        """The sums of all groups at once.

        Args:
            values: By group and block, shape (groups, blocks of a group, …).

        Returns:
            Shape (groups, sums, …).
        """
        sums = [np.bitwise_xor.reduce(values[:, list(fold)], axis=1) for fold in self.folds]
        return np.stack(sums, axis=1)  # type: ignore[return-value]


BITS: Final = Code(1, (1,), ((0,),))
SYMBOLS: Final = Code(3, (1, 2, 3, 4, 5, 6, 7), ((0, 1, 3), (1, 2, 4), (2, 3, 5), (0, 2, 6)))
SYMBOL_BITS: Final = SYMBOLS.symbol_bits
CODES: Final = {code.symbol_bits: code for code in (BITS, SYMBOLS)}


def block_count(field_bits: int, symbol_bits: int = 1) -> int:
    """Blocks of k bits that transfers of one of 2^s take; a receiver sends as many bits for each."""
    return CODES[symbol_bits].blocks(field_bits)


def multiples(secret: NDArray[np.uint8], symbol_bits: int) -> NDArray[np.uint8]:
    """What rows of choice x differ by from those of choice 0, for every x.

    Args:
        secret: Δ, one bit an element, shape (blocks, k), with at least the blocks of the code.
        symbol_bits: s.

    Returns:
        Shape (2^s, 128), one bit an element.
    """
    code, field_bits = CODES[symbol_bits], secret.shape[1]
    groups = secret[: code.blocks(field_bits)].reshape(-1, len(code.masks), field_bits)
    words = np.array([code.word(choice) for choice in range(1 << symbol_bits)], np.uint8)
    chosen = groups * words[:, None, :, None]
    return code.folded(chosen.reshape(-1, *groups.shape[1:])).reshape(1 << symbol_bits, -1)[:, :ROWS]
