"""Secure comparison: whether shared numbers reach a public threshold, or equal it, as shared bits; nothing is opened.

Two parties hold additive shares of v modulo 2^64; reduced modulo 2^k they are shares modulo 2^k. Let k be wide enough
for d = v − c in two's complement. Then [v ≥ c] is the turned sign bit of d, which is the XOR of both shares' top bits
and of the carry from the m = k − 1 bits below; and there is a carry where the second holder's y exceeds x = 2^m − 1 −
the first's. Digits of 6 bits are compared by tables (`digit_comparison`); a tree of ANDs brings them together,

    greater = greater_high ⊕ equal_high ∧ greater_low,    equal = equal_high ∧ equal_low.

`equal_to` does the same with the digits' equalities alone.

Rounds: 2 + ⌈log2 ⌈m / 6⌉⌉ for up to `BLOCK` numbers, beside those of `TwoParty` where it has agreed upon nothing yet:
    2 up to m = 6, 3 to 12, 4 to 24, 5 to 48, 6 to 64. Larger batches go in blocks, two at a time.
Output: XOR shares of one bit a number at both holders.
Adversary: semi-honest, private against either holder; no party but the two takes part.
Leakage: how many numbers, the width and the thresholds, all public.
Bytes a number, both directions, with k = 2 in the extension: 8·m for the transfers, about 2·8·m/6 for the tables, 16.5
    per AND, of which there are 2 to 18.

Source: Garay, Schoenmakers and Villegas, "Practical and Secure Solutions for Integer Comparison", PKC 2007, section 3
(the tree); Rathee et al., "CrypTFlow2", CCS 2020, section 3.1 and algorithm 2 (digits, sign by carry).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.sharing import AdditiveShare
from crypto.primitives.xor_sharing import XorShare
from crypto.protocols.and_triples import Triples, make_triples
from crypto.protocols.digit_comparison import (
    EQUAL,
    GREATER,
    Digit,
    Planes,
    Words,
    digits,
    receive_digit_tables,
    send_digit_tables,
)
from crypto.protocols.shared_bits import check_two_party, conjunction
from crypto.protocols.two_party import TwoParty, beside
from link.session import Session
from link.tasks import together

BLOCK: Final = 1 << 17  # numbers; what a block keeps stays below 50 MB
_BLOCKS_AT_ONCE: Final = 2  # one computes while the other waits for its answers

Thresholds = int | NDArray[np.uint64]
Block = Callable[[Session, slice], Awaitable[XorShare]]


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
        session: The lane to talk on, fresh for this call.
        parties: This party's half of the agreement with the other.
        values: Of both parties' holders.
        threshold: Public: one number for all, or a uint64 array of one for each, modulo 2^64.
        width: k, from 2 to 64, public: every v − threshold lies in −2^(k−1) … 2^(k−1) − 1, else the bit is wrong.
            `width_for` gives the least.

    Returns:
        One bit a number.

    Raises:
        TypeError: The shares are of other holders.
        MalformedMessage: The peer's messages have another size.
    """
    _check(parties, values, width, 2)
    difference = values.plus_public(-threshold if isinstance(threshold, int) else np.negative(threshold)).values
    bits = width - 1
    low = difference & _mask(bits)
    top = ((difference >> np.uint64(bits)) & np.uint64(1)).astype(np.bool_)
    number = _mask(bits) - low if parties.is_first else low

    async def block(lane: Session, part: slice) -> XorShare:
        carry = await _compare(lane, parties, number[part], bits, order=True)
        own = np.packbits(top[part], bitorder="little")[None, :]
        return ~XorShare(carry.planes ^ own, carry.number, carry.holder, carry.holders)

    return await _in_blocks(session, parties, values.size, block)


async def equal_to(
    session: Session, parties: TwoParty, values: AdditiveShare, value: Thresholds, width: int
) -> XorShare:
    """Shares of [v = value]; as `at_least`, but for the meaning of `width`.

    Args:
        session: The lane to talk on, fresh for this call.
        parties: This party's half of the agreement with the other.
        values: Of both parties' holders.
        value: Public: one number for all, or a uint64 array of one for each.
        width: k, from 1 to 64, public: v and value are compared modulo 2^k.
    """
    _check(parties, values, width, 1)
    difference = values.plus_public(-value if isinstance(value, int) else np.negative(value))
    number = (-difference if parties.is_first else difference).values & _mask(width)

    async def block(lane: Session, part: slice) -> XorShare:
        return await _compare(lane, parties, number[part], width, order=False)

    return await _in_blocks(session, parties, values.size, block)


def ands(digit_count: int, *, order: bool) -> int:
    """How many ANDs the tree takes per number; of an order, the lowest branch's equality is not needed."""
    total = 0
    while digit_count > 1:
        pairs, odd = divmod(digit_count, 2)
        total += 2 * pairs - 1 if order else pairs
        digit_count = pairs + odd
    return total


async def _in_blocks(session: Session, parties: TwoParty, number: int, block: Block) -> XorShare:
    """All blocks, a few at a time, each on a lane of its own; at least one, perhaps empty."""
    if number == 0:
        return XorShare(np.zeros((1, 0), np.uint8), 0, parties.me, parties.holders)
    room = asyncio.Semaphore(_BLOCKS_AT_ONCE)

    async def one(start: int) -> XorShare:
        async with room:
            return await block(session.lane(f"block {start // BLOCK}"), slice(start, min(start + BLOCK, number)))

    return XorShare.joined(await together(one(start) for start in range(0, number, BLOCK)))


async def _compare(lane: Session, parties: TwoParty, numbers: Words, bits: int, *, order: bool) -> XorShare:
    """Shares of [y > x] or [y = x], x the first holder's numbers and y the second's."""
    cut = digits(bits, order=order)
    needed = ands(len(cut), order=order) * (-(-len(numbers) // 8)) * 8
    leaves = _leaves(lane.lane("digits"), parties, numbers, cut)
    if not needed:
        planes = await leaves
        return XorShare(planes[GREATER if order else EQUAL], len(numbers), parties.me, parties.holders)
    planes, triples = await beside(leaves, make_triples(lane.lane("triples"), parties, needed))
    greater, equal = (XorShare(each, len(numbers), parties.me, parties.holders) for each in planes)
    tree = lane.lane("tree")
    if order:
        return await _greater(tree, parties, triples, greater, equal)
    return await _all_equal(tree, parties, triples, equal)


async def _leaves(lane: Session, parties: TwoParty, numbers: Words, cut: tuple[Digit, ...]) -> Planes:
    if parties.is_first:
        return await send_digit_tables(lane, parties.peer, await parties.sending(lane), numbers, cut)
    return await receive_digit_tables(lane, parties.peer, await parties.receiving(lane), numbers, cut)


async def _greater(lane: Session, parties: TwoParty, triples: Triples, greater: XorShare, equal: XorShare) -> XorShare:
    """Halves the digits until one is left: of each pair, the higher decides unless it is equal."""
    while greater.width > 1:
        paired = greater.width // 2 * 2
        low, high = slice(0, paired, 2), slice(1, paired, 2)
        equal_high = equal.bits(high)
        both = await conjunction(
            lane,
            parties,
            triples,
            XorShare.stacked([equal_high, equal_high.bits(slice(1, None))]),
            XorShare.stacked([greater.bits(low), equal.bits(low).bits(slice(1, None))]),
        )
        pairs, odd = paired // 2, slice(paired, None)
        greater = XorShare.stacked([greater.bits(high) ^ both.bits(slice(0, pairs)), greater.bits(odd)])
        # Nobody asks whether the lowest pair is equal; any share stands in for it.
        equal = XorShare.stacked([equal.bits(slice(0, 1)), both.bits(slice(pairs, None)), equal.bits(odd)])
    return greater


async def _all_equal(lane: Session, parties: TwoParty, triples: Triples, equal: XorShare) -> XorShare:
    while equal.width > 1:
        paired = equal.width // 2 * 2
        low, high = equal.bits(slice(0, paired, 2)), equal.bits(slice(1, paired, 2))
        both = await conjunction(lane, parties, triples, high, low)
        equal = XorShare.stacked([both, equal.bits(slice(paired, None))])
    return equal


def _check(parties: TwoParty, values: AdditiveShare, width: int, least: int) -> None:
    check_two_party(parties, values)
    if not least <= width <= 64:
        raise ValueError(f"numbers are compared at {least} to 64 bits, not {width}")


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)
