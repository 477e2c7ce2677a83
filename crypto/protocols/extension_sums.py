"""The sums behind an oblivious-transfer extension: keystreams added up, plainly and weighted by elements of GF(2^k).

A block of the extension has one stream for each weight x, k bits; each yields symbols r_x of s bits, elements of
GF(2^s), where s divides k and a weight is k/s of them. Wanted are Σ r_x and, for each symbol x_t of the weights,
Σ x_t·r_x. The latter come from the k sums of the streams whose weight has bit i: one multiplication by α each, where
weighing stream by stream would take one for each stream.

Symbols are bit-sliced: s planes of packed bits, the lowest bits first.

Source: Roy, "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the Minicrypt Model", CRYPTO 2022,
section 3 (the sums, and all weights' by halving).
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS
from crypto.primitives.keystream import Keystream

SYMBOL_BITS: Final = {1: 1, 2: 2, 3: 3, 4: 2, 8: 2}
"""By k the s of symbols. Transfers of one of 2^s cost 2^s hashes, so larger symbols cost more than they save."""

_SLACK_WORDS: Final = 2

Words = NDArray[np.uint64]
Planes = TypeVar("Planes", bound=NDArray[Any])
Block = list[Keystream | None]
"""A block's streams by weight; None at weight 0 where that stream is not known."""


def block_count(field_bits: int) -> int:
    """Blocks of k bits that make at least 128: ⌈128 / k⌉."""
    return -(-ROWS // field_bits)


class WeightedSums:
    """Adds up the streams of one block after another.

    Args:
        field_bits: k.
        symbol_bits: s: 1, or `SYMBOL_BITS[k]`.
        words: 64-bit words of a plane.
    """

    def __init__(self, field_bits: int, symbol_bits: int, words: int) -> None:
        self._field_bits, self._shape = field_bits, (symbol_bits, words)
        size = symbol_bits * words
        self._zeros = memoryview(bytes(8 * size))
        rows = np.zeros((max(7, 1 << field_bits), size + _SLACK_WORDS), np.uint64)
        self._rows = rows[:, :size]
        self._targets = [row.view(np.uint8).data for row in rows]
        self._sources = [target[: 8 * size] for target in self._targets]
        self._parts = np.empty((field_bits, size), np.uint64)

    def add_up(self, block: Block) -> tuple[Words, Words]:
        """By bit i of the weights the sum of the streams whose weight has it, and the sum of all.

        Args:
            block: Its streams, which go on by s · words words each.

        Returns:
            Shapes (k, s · words) and (s · words,), valid until the next block's. The second means nothing where a
            stream is not known.
        """
        return self._add_eight(block) if self._field_bits == 3 else self._add_by_halves(block)

    def evaluate(self, parts: Words, rows: Words) -> None:
        """For each symbol of the weights Σ α^i · part i over its bits i.

        Args:
            parts: From `add_up`; they are used up.
            rows: For the result, shape (k, words): the planes of one symbol after another.
        """
        bits, words = self._shape
        if bits == 1:
            rows[:] = parts
            return
        for first in range(0, len(parts), bits):
            planes = parts[first : first + bits].reshape(bits, bits, words)
            value = planes[-1]
            for bit in reversed(range(bits - 1)):
                value = _plus_alpha_times(planes[bit], value, planes[bit] if bit else rows[first : first + bits])

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
        _add(block[7], self._zeros, targets[3])  # 7
        _add(block[3], sources[3], targets[4])  # 37
        _add(block[5], sources[4], targets[5])  # 357
        _add(block[6], sources[4], targets[6])  # 367
        _add(block[1], sources[5], targets[0])  # 1357
        _add(block[2], sources[6], targets[1])  # 2367
        *parts, seven, some, rest, six = self._rows[:7]
        rest ^= six
        rest ^= seven  # 567
        _add(block[4], sources[5], targets[2])  # 4567
        if block[0] is not None:
            for each in (rest, *parts):
                some ^= each  # 1234567 in the end
            _add(block[0], sources[4], targets[3])  # all
        return self._rows[:3], seven


def _add(stream: Keystream | None, source: memoryview, target: memoryview) -> None:
    if stream is not None:
        stream.add_to(source, target)


def multiples(secret: NDArray[np.uint8], symbol_bits: int) -> NDArray[np.uint8]:
    """x·Δ for every symbol x, bit by bit: each symbol of Δ times x.

    Args:
        secret: Δ, one bit an element, shape (n,), n a multiple of s.
        symbol_bits: s.

    Returns:
        Shape (2^s, n), one bit an element.
    """
    planes = secret.reshape(-1, symbol_bits).T
    products = np.zeros((1 << symbol_bits, *planes.shape), np.uint8)
    for choice, product in enumerate(products):
        for bit in reversed(range(symbol_bits)):
            product[:] = _plus_alpha_times(planes * np.uint8(choice >> bit & 1), product, np.empty_like(product))
    return products.transpose(0, 2, 1).reshape(1 << symbol_bits, -1)


def _plus_alpha_times(one: Planes, other: Planes, out: Planes) -> Planes:
    """Adds α·other to one, plane by plane; `out` may be `one`. GF(4), GF(8): GF(2)[α] modulo α^s + α + 1."""
    top = other[-1]
    np.bitwise_xor(one[0], top, out=out[0])
    if len(other) > 1:
        np.bitwise_xor(one[1:], other[:-1], out=out[1:])
        out[1] ^= top
    return out
