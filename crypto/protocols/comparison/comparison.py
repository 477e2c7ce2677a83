"""Secure comparison: whether shared numbers reach a public threshold, or equal it, as shared bits; nothing is opened.

Two parties hold additive shares of v in words of w bits; reduced modulo 2^k they are shares modulo 2^k. Let k be wide
enough for d = v − c in two's complement. Then [v ≥ c] is the turned sign bit of d, which is the XOR of both shares' top
bits and of the carry out of the m = k − 1 bits below. Digits of these are added up by tables under oblivious transfer:

    up to m = 16, from digit to digit, each taking in the shared carry of the one below (`carry_chain`): least work;
    beyond that, all at once (`digit_comparison`), and a tree of ANDs looks the carries ahead, which takes fewer rounds:
        carry = generate_high ⊕ propagate_high ∧ carry_low,    propagate = propagate_high ∧ propagate_low.

`equal_to` does the same with the digits' equalities alone, over all k bits. A leader sends the last tables. Large
batches are led half by one holder and half by the other, so that both have the same work.

Rounds, beside those of `TwoParty` where it has agreed upon nothing yet: 2 up to m = 6, 3 to 11, 4 to 24, 5 to 48, 6 to
    64. The number of numbers costs none: chunks and blocks follow one another, a few at a time.
Output: XOR shares of one bit a number at both holders.
Adversary: semi-honest, private against either holder; no party but the two takes part.
Leakage: how many numbers, the width and the thresholds, all public.
Bytes a number, both directions, with k = 3 in the extension: 9.6 for every three bits of an index (m and one for each
    carry), 1 to 8 for a digit's tables; in a tree twice that for tables, and 11.25 per AND, of which there are 2 to 18.

Source: Garay, Schoenmakers and Villegas, "Practical and Secure Solutions for Integer Comparison", PKC 2007, section 3
(the tree); Rathee et al., "CrypTFlow2", CCS 2020, section 3.1 and algorithm 2 (digits, sign by carry).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.and_triples import Triples, make_triples
from crypto.protocols.comparison.carry_chain import carried
from crypto.protocols.comparison.digit_comparison import Planes, receive_digit_tables, send_digit_tables
from crypto.protocols.comparison.digit_tables import CHAIN_BITS, leaves
from crypto.protocols.comparison.shared_bits import check_two_party, conjunction
from crypto.protocols.comparison.two_party import TwoParty, beside
from link.session import Session
from link.tasks import together

BOTH_WAYS: Final = 1 << 16  # numbers of a chain, above which it pays to begin streams for both leaders
BLOCK: Final = 1 << 17  # numbers; what a block keeps stays below 50 MB
_BLOCKS_AT_ONCE: Final = 2  # one computes while the other waits for its answers

Thresholds = int | NDArray[np.uint64]


def width_for(largest: int) -> int:
    """The least width for numbers in 0 … largest, a public bound, and thresholds up to it: ⌈log2(largest + 1)⌉ + 1."""
    if not 0 <= largest < 1 << 62:
        raise ValueError("numbers that are compared lie between 0 and 2^62 − 1")
    return max(2, largest.bit_length() + 1)


async def at_least(
    session: Session, parties: TwoParty, values: AdditiveShare, threshold: Thresholds, width: int
) -> XorShare:
    """Shares of [v ≥ threshold]; both holders call this with their shares of the same numbers.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        values: Of both parties' holders.
        threshold: Public: one number for all, or a uint64 array of one for each, modulo 2^w.
        width: k, from 2 to w, public: every v − threshold lies in −2^(k−1) … 2^(k−1) − 1, else the bit is wrong.
            `width_for` gives the least.

    Returns:
        One bit a number.

    Raises:
        TypeError: The shares are of other holders.
        MalformedMessage: The peer's messages have another size.
    """
    _check(parties, values, width, 2)
    share, bits = _less(values, threshold).values, width - 1
    carry = await _compare(session, parties, _lowest(share, bits), bits, order=True)
    sign = pack_bits(share & values.word(1 << bits) != 0)
    return ~XorShare(carry.planes ^ sign, carry.number, carry.holder, carry.holders)


async def equal_to(
    session: Session, parties: TwoParty, values: AdditiveShare, value: Thresholds, width: int
) -> XorShare:
    """Shares of [v = value]; as `at_least`, but for the meaning of `width`.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        values: Of both parties' holders.
        value: Public: one number for all, or a uint64 array of one for each.
        width: k, from 1 to w, public: v and value are compared modulo 2^k.
    """
    _check(parties, values, width, 1)
    difference = _less(values, value)
    share = (-difference if parties.is_first else difference).values
    return await _compare(session, parties, _lowest(share, width), width, order=False)


async def same_words(
    session: Session, parties: TwoParty, number: int, words: Callable[[slice], Words], width: int
) -> XorShare:
    """Shares of whether the holders' own words are equal, of which each has a few blocks in memory at a time.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        number: How many words, public.
        words: This party's, of one of `blocks`, shape (n,); of more than 64 bits shape (n, words), the lowest first.
        width: Lowest bits that are compared, public; more than `CHAIN_BITS`.
    """
    if width <= CHAIN_BITS:
        raise ValueError(f"words are compared block by block at more than {CHAIN_BITS} bits, not at {width}")

    async def lowest(part: slice) -> Words:
        own = words(part)
        return own if own.ndim > 1 else _lowest(own, width)

    return await _by_trees(session, parties, number, lowest, width, order=False)


def ands_by_level(digit_count: int, *, order: bool) -> list[int]:
    """ANDs per number by level of the tree. What the lowest digits pass on does not matter to an order."""
    levels = []
    while digit_count > 1:
        pairs, odd = divmod(digit_count, 2)
        levels.append(2 * pairs - 1 if order else pairs)
        digit_count = pairs + odd
    return levels


def ways(number: int) -> list[slice]:
    """The numbers of a chain in one part, or in two that go in opposite roles, so that both parties work alike."""
    if number <= BOTH_WAYS:
        return [slice(0, number)]
    middle = number // 2 // 8 * 8
    return [slice(0, middle), slice(middle, number)]


def blocks(number: int) -> list[slice]:
    """The numbers of each block of the tree."""
    return [slice(start, min(start + BLOCK, number)) for start in range(0, number, BLOCK)]


async def _compare(session: Session, parties: TwoParty, numbers: Words, bits: int, *, order: bool) -> XorShare:
    """Shares of the carry out of the holders' numbers, or of whether they are equal."""
    if not len(numbers):
        return XorShare(np.zeros((1, 0), np.uint8), 0, parties.me, parties.holders)
    if bits <= CHAIN_BITS:
        return await _by_chain(session, parties, numbers, bits, order=order)

    async def some(part: slice) -> Words:
        return numbers[part]

    return await _by_trees(session, parties, len(numbers), some, bits, order=order)


async def _by_trees(
    session: Session,
    parties: TwoParty,
    number: int,
    numbers: Callable[[slice], Awaitable[Words]],
    bits: int,
    *,
    order: bool,
) -> XorShare:
    """Block by block, led by one holder and the other in turn."""
    slots = asyncio.Semaphore(_BLOCKS_AT_ONCE)

    async def block(lane: Session, leader: str, part: slice) -> XorShare:
        async with slots:
            return await _by_tree(lane, parties, await numbers(part), bits, leader=leader, order=order)

    # All lanes are made beforehand: no block waits for what another one got.
    parts = [
        (session.lane(f"block {index}"), parties.holders[index % 2], part) for index, part in enumerate(blocks(number))
    ]
    return XorShare.joined(await together(block(*each) for each in parts))


async def _by_chain(session: Session, parties: TwoParty, numbers: Words, bits: int, *, order: bool) -> XorShare:
    """Digit by digit; the halves of a large batch in opposite roles."""

    async def half(lane: Session, leader: str, part: slice) -> XorShare:
        plane = await carried(lane, parties, numbers[part], bits, leader=leader, order=order)
        return XorShare(plane[None, :], part.stop - part.start, parties.me, parties.holders)

    halves = zip(parties.holders, ways(len(numbers)), strict=False)
    parts = [(session.lane(f"led by {leader}"), leader, part) for leader, part in halves]
    return XorShare.joined(await together(half(*each) for each in parts))


async def _by_tree(
    lane: Session, parties: TwoParty, numbers: Words, bits: int, *, leader: str, order: bool
) -> XorShare:
    """All digits at once, then ANDs."""
    count = len(leaves(bits))
    needed = sum(ands_by_level(count, order=order)) * (-(-len(numbers) // 8)) * 8
    planes, triples = await beside(
        _leaves(lane.lane("digits"), parties, numbers, bits, leads=parties.me == leader, order=order),
        make_triples(lane.lane("triples"), parties, needed),
    )
    generated, passed = (XorShare(each, len(numbers), parties.me, parties.holders) for each in planes)
    tree = lane.lane("tree")
    if order:
        return await _carry(tree, parties, triples, generated, passed)
    return await _all_equal(tree, parties, triples, passed)


async def _leaves(lane: Session, parties: TwoParty, numbers: Words, bits: int, *, leads: bool, order: bool) -> Planes:
    cut = leaves(bits)
    if leads:
        return await send_digit_tables(lane, parties.peer, await parties.sending(lane), numbers, cut, order=order)
    return await receive_digit_tables(lane, parties.peer, await parties.receiving(lane), numbers, cut, order=order)


async def _carry(lane: Session, parties: TwoParty, triples: Triples, carry: XorShare, propagate: XorShare) -> XorShare:
    """Halves the digits until one is left: out of a pair comes what the higher generates, or passes on of the lower."""
    while carry.width > 1:
        paired = carry.width // 2 * 2
        low, high = slice(0, paired, 2), slice(1, paired, 2)
        higher = propagate.bits(high)
        both = await conjunction(
            lane,
            parties,
            triples,
            XorShare.stacked([higher, higher.bits(slice(1, None))]),
            XorShare.stacked([carry.bits(low), propagate.bits(low).bits(slice(1, None))]),
        )
        pairs, odd = paired // 2, slice(paired, None)
        carry = XorShare.stacked([carry.bits(high) ^ both.bits(slice(0, pairs)), carry.bits(odd)])
        # Nobody asks whether the lowest pair passes a carry on; any share will do.
        propagate = XorShare.stacked([propagate.bits(slice(0, 1)), both.bits(slice(pairs, None)), propagate.bits(odd)])
    return carry


async def _all_equal(lane: Session, parties: TwoParty, triples: Triples, equal: XorShare) -> XorShare:
    while equal.width > 1:
        paired = equal.width // 2 * 2
        low, high = equal.bits(slice(0, paired, 2)), equal.bits(slice(1, paired, 2))
        both = await conjunction(lane, parties, triples, high, low)
        equal = XorShare.stacked([both, equal.bits(slice(paired, None))])
    return equal


def _check(parties: TwoParty, values: AdditiveShare, width: int, least: int) -> None:
    check_two_party(parties, values)
    most = values.word_bits
    if not least <= width <= most:
        raise ValueError(f"numbers in words of {most} bits are compared at {least} to {most} bits, not {width}")


def _less(values: AdditiveShare, subtrahend: Thresholds) -> AdditiveShare:
    """Shares of v − c, in the word of those of v."""
    if isinstance(subtrahend, int):
        return values.plus_public(-subtrahend)
    return values.plus_public(np.negative(subtrahend).astype(values.word))


def _lowest(values: Words, bits: int) -> Words:
    """In the shortest word."""
    mask = np.array((1 << bits) - 1, np.min_scalar_type((1 << bits) - 1))
    lowest: Words = values.astype(mask.dtype)
    lowest &= mask
    return lowest
