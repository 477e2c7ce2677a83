"""The sums behind an oblivious-transfer extension: keystreams added up, plainly and weighted by elements of GF(2^k).

A block of the extension has one stream for each weight x of k bits; each yields bits r_x. Wanted are Σ r_x and
Σ x·r_x, bit by bit of x. The latter are the k sums of the streams whose weight has bit i.

Source: Roy, "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the Minicrypt Model", CRYPTO 2022,
section 3 (the sums, and all weights' by halving).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.keystream import Keystream
from crypto.protocols.transfers.extension_streams import Block

_SLACK_WORDS: Final = 2

Words = NDArray[np.uint64]


class WeightedSums:
    """Adds up the streams of one block after another.

    Args:
        field_bits: k.
        words: 64-bit words of a stream's part.
    """

    def __init__(self, field_bits: int, words: int) -> None:
        self._field_bits = field_bits
        self._zeros = memoryview(bytes(8 * words))
        rows = np.zeros((max(7, 1 << field_bits), words + _SLACK_WORDS), np.uint64)
        self._rows = rows[:, :words]
        self._targets = [row.view(np.uint8).data for row in rows]
        self._sources = [target[: 8 * words] for target in self._targets]
        self._parts = np.empty((field_bits, words), np.uint64)

    def add_up(self, block: Block) -> tuple[Words, Words]:
        """By bit i of the weights the sum of the streams whose weight has it, and the sum of all.

        Args:
            block: Its streams, which go on by so many words each.

        Returns:
            Shapes (k, words) and (words,), valid until the next block's. The second means nothing where a stream is
            not known.
        """
        return self._add_eight(block) if self._field_bits == 3 else self._add_by_halves(block)

    def _add_by_halves(self, block: Block) -> tuple[Words, Words]:
        """The streams of odd weights add to part 0 and to those of the even ones, then the same with half as many."""
        pairs = len(block) // 2
        odd, sums = self._rows[:pairs], self._rows[pairs : 2 * pairs]
        for pair, (one, other) in enumerate(zip(block[0::2], block[1::2], strict=True)):
            _add(other, self._zeros, self._targets[pair])
            _add(one, self._sources[pair], self._targets[pairs + pair])
        for part in self._parts[:-1]:
            np.bitwise_xor.reduce(odd, axis=0, out=part)
            odd, sums = sums[1::2], sums[0::2]
            sums ^= odd
        self._parts[-1] = odd[0]
        return self._parts, sums[0]

    def _add_eight(self, block: Block) -> tuple[Words, Words]:
        """The same for k = 3, in an order in which nearly all sums are made by the cipher, which adds for nothing.

        A row is named by the weights that it is the sum of.
        """
        targets, sources = self._targets, self._sources
        _add(block[7], self._zeros, targets[5])  # 7
        _add(block[3], sources[5], targets[3])  # 37
        _add(block[5], sources[3], targets[4])  # 357
        _add(block[6], sources[3], targets[6])  # 367
        _add(block[1], sources[4], targets[0])  # 1357
        _add(block[2], sources[6], targets[1])  # 2367
        rest, seven, six = self._rows[4:7]
        rest ^= six
        rest ^= seven  # 567
        _add(block[4], sources[4], targets[2])  # 4567
        if block[0] is not None:
            np.bitwise_xor.reduce(self._rows[:5], axis=0, out=six)  # 1234567
            _add(block[0], sources[6], targets[5])  # all
        return self._rows[:3], seven


def sums_of_rows(rows: Words) -> tuple[Words, Words]:
    """The same of many blocks at once, all of whose streams lie in memory: for short parts.

    Args:
        rows: By block and weight, shape (blocks, 2^k, words).

    Returns:
        Shapes (blocks, k, words) and (blocks, words), as of `WeightedSums.add_up`.
    """
    parts = np.empty((len(rows), rows.shape[1].bit_length() - 1, rows.shape[2]), np.uint64)
    for bit in range(parts.shape[1]):
        odd = rows[:, 1::2]
        np.bitwise_xor.reduce(odd, axis=1, out=parts[:, bit])
        rows = rows[:, 0::2] ^ odd
    return parts, rows[:, 0]


def _add(stream: Keystream | None, source: memoryview, target: memoryview) -> None:
    if stream is not None:
        stream.add_to(source, target)
