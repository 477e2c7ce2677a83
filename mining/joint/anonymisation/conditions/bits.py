"""Conditions as shared bits: all of several, and whether capped counts of others are none or enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.and_triples import make_triples
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.shared_bits import conjunction
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.secure_sum import word_for
from link.session import Session


def word_of(largest: int) -> np.dtype[np.unsignedinteger[np.typing.NBitBase]]:
    """The shortest word in which numbers of 0 … largest are shared and compared."""
    return word_for((1 << width_for(largest)) - 1)


async def all_of(session: Session, parties: TwoParty, bits: Sequence[XorShare]) -> XorShare:
    """Shares of the AND of several words of one bit each, in ⌈log2⌉ rounds; both holders call this.

    Args:
        session: A lane of its own.
        parties: This party's half of the agreement with the other.
        bits: One or more, of equal number.
    """
    left = list(bits)
    if len(left) == 1:
        return left[0]
    triples = await make_triples(session.lane("triples"), parties, (len(left) - 1) * left[0].planes.shape[1] * 8)
    lane = session.lane("tree")
    while len(left) > 1:
        half = len(left) // 2
        first, second = XorShare.stacked(left[:half]), XorShare.stacked(left[half : 2 * half])
        both = await conjunction(lane, parties, triples, first, second)
        left = [*(both.bits(slice(i, i + 1)) for i in range(half)), *left[2 * half :]]
    return left[0]


async def none_or_enough(
    session: Session, parties: TwoParty, sums: AdditiveShare, enough: int, largest: int
) -> XorShare:
    """Shares of whether numbers are 0, or reach `enough`; both holders call this.

    Args:
        session: A lane of its own.
        parties: This party's half of the agreement with the other.
        sums: The numbers, in `word_of(largest)`.
        enough: At least 1.
        largest: What no number exceeds, and `enough` does not either.
    """
    thresholds = np.repeat(np.array([enough, 1], np.uint64), sums.size)
    both = await at_least(session, parties, doubled(sums), thresholds, width_for(largest))
    reached, any_ = both[np.arange(sums.size)], both[np.arange(sums.size, 2 * sums.size)]
    return reached ^ ~any_  # at most one of the two holds


def doubled(share: AdditiveShare) -> AdditiveShare:
    """The share of the same numbers twice over."""
    return AdditiveShare(np.concatenate([share.values, share.values]), share.holder, share.holders)


def joined(parts: Sequence[AdditiveShare]) -> AdditiveShare:
    """The share of several numbers after one another."""
    return AdditiveShare(np.concatenate([part.values for part in parts]), parts[0].holder, parts[0].holders)


def joined_bits(parts: Sequence[XorShare]) -> XorShare:
    """The share of several shares' bits after one another; none need end at a whole byte."""
    bits = np.concatenate([unpack_bits(part.planes, part.number) for part in parts], axis=1)
    return XorShare(pack_bits(bits), bits.shape[1], parts[0].holder, parts[0].holders)


def repeated(share: AdditiveShare, times: int) -> AdditiveShare:
    """The share of one number, as often."""
    return AdditiveShare(np.repeat(share.values, times), share.holder, share.holders)


def node_sums(share: AdditiveShare, starts: Sequence[int] | NDArray[np.int64]) -> AdditiveShare:
    """The share of the sums of consecutive parts that start there; none is empty."""
    sums: Words = np.add.reduceat(share.values, np.asarray(starts), dtype=share.word)
    return AdditiveShare(sums, share.holder, share.holders)


def of_word(share: AdditiveShare, word: np.dtype[np.unsignedinteger[np.typing.NBitBase]]) -> AdditiveShare:
    """The share of the same numbers modulo the size of a shorter word."""
    return AdditiveShare(share.values.astype(word), share.holder, share.holders)
