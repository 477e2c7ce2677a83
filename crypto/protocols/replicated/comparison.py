"""Which sums of all parties' numbers reach a public threshold, decided among three computing parties.

    1  sum        every party sends its numbers, under masks that cancel among all of them, to the first of the three;
                  the second also takes off z, which it draws in common with the third. So the first knows the sums
                  less z, and the two others know z: an additive share of the first with either of them (`masked_sum`)
    2  digits     the first says which value each digit of its share has, as bits that are replicated: one
                  component from a stream in common with the second, the other to the third. Both know z, so they
                  compute shares of whether the digit generates a carry or passes one on (`digits`)
    3  components they make replicated shares of these: two components from streams in common with the first, the
                  third is what they send to each other
    4  tree       ANDs halve the number of digits: each of the three sends its part, under a sharing of zero, to the one
                  before it. Parts of the last AND stay: they are XOR shares of three holders, and can be opened

Rounds: `masked_sum` 1. `at_least` of k bits, with D = ⌈(k − 1) / 4⌉ digits: 1 for one digit, else 1 + ⌈log2 D⌉. Of many
    numbers the digits are of 3 bits.
Bytes: `costs`; 9 bits among three parties: 55 bits a number beside what is opened, 49 of many.

Output: XOR shares of one bit a number, at the three.
Adversary: semi-honest, one of the three, together with any parties that are none. What any of them sees is uniform, but
    for what is opened later: whatever arrives is under a stream of the two others.
Collusion: any two of the three can compute the sums over the other parties: with n = 3 the third's numbers, with n ≥ 4
    no single contribution.
Leakage: sizes.

Source: Araki, Furukawa, Lindell, Nof and Ohara, CCS 2016, sections 2.1 (ANDs) and 2.2 (sharings of zero, from streams
that pairs have in common); Mohassel and Rindal, "ABY3", CCS 2018, section 5.3 (a sum of two components, each known to a
party, is added up as bits) and section 5.4 (a bit that two parties know chooses among a third's, without a transfer).
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Final

import numpy as np

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.primitives.shares.ring_matrix import random_matrix
from crypto.primitives.shares.xor import XorShare, planes_of, words_of
from crypto.protocols.replicated.digits import carry_planes, digits, looked_up, selected, selected_planes
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session
from link.tasks import together
from protos.v1.replicated_pb2 import MaskedAddends, MaskedDigits, MaskedPart

IN_TURN: Final = 1 << 14  # numbers, above which each of the three is the first for a third of them
BLOCK: Final = 1 << 20  # numbers; at 9 bits what a block keeps stays below 50 MB
_BLOCKS_AT_ONCE: Final = 3  # one of each role


# -- sums --------------------------------------------------------------------------------------------------------------
async def masked_sum(
    session: Session, secrets: PairwiseSecrets, values: Words, holders: Holders3, width: int
) -> AdditiveShare | None:
    """Shares of the sum of all parties' vectors: of the first holder with the second, and likewise with the third.

    Every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        values: Shape (m,), unsigned words of `width` bits or more; m and the type are public and equal at all parties.
        holders: The three computing parties, in the same order at all parties.
        width: The sums are shared modulo 2^width, public.

    Returns:
        Shares of which only the lowest `width` bits mean something; None to the other parties.

    Raises:
        MalformedMessage: A peer's vector has another length.
        ValueError: The holders are not three parties of the job.
    """
    _check_three(session, holders)
    _check_width(8 * values.itemsize, width)
    first, second, third = holders
    context = secrets.context(session, "masked sum")
    masked = await session.compute(secrets.mask, values, context)
    if session.me in holders:
        context = secrets.context(session, "mask of a sum")
    if session.me in (second, third):
        mask = random_matrix(
            secrets.stream(third if session.me == second else second, context), (1, len(values)), values.dtype.type
        )[0]
        if session.me == second:
            masked -= mask
    if session.me != first:
        planes = await session.compute(planes_of, _lowest(masked, width), width)
        await session.send_array(first, MaskedAddends, planes)  # -> 1
        if session.me not in holders:
            return None
        return AdditiveShare(mask, session.me, (first, session.me))
    for peer in session.others:
        planes = await session.recv_array(peer, MaskedAddends, np.uint8, (width, -(-len(values) // 8)))  # <- 1
        masked += await session.compute(words_of, planes, len(values), values.dtype.type)
    return AdditiveShare(masked, first, (first, second))


# -- comparison --------------------------------------------------------------------------------------------------------
async def at_least(
    session: Session, secrets: PairwiseSecrets, values: AdditiveShare, holders: Holders3, threshold: int, width: int
) -> XorShare:
    """Shares of [v ≥ threshold]; the three holders call this with their shares of the same numbers.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        values: As `masked_sum` leaves them, or what has been computed of these.
        holders: As given to `masked_sum`.
        threshold: Public.
        width: k, from 2 to the bits of a word, public: every v − threshold lies in −2^(k−1) … 2^(k−1) − 1, else the bit
            is wrong. No more than was given to `masked_sum`.

    Returns:
        One bit a number.

    Raises:
        MalformedMessage: A holder's message has another size.
    """
    _check_width(values.word_bits, width)
    number, cut = values.size, digits(width - 1, values.size)
    if not number:
        return XorShare(np.zeros((1, 0), np.uint8), 0, session.me, holders)
    own = _lowest(values.plus_public(-threshold).values, width)
    planes = await session.compute(planes_of, own, width)
    carries = await _carries(session, secrets, holders, planes, cut)
    if len(cut) > 1:
        shared = await _replicated(session, secrets, holders, carries)
        carries = await _highest_carry(session, secrets, shared, len(cut))
    context = secrets.context(session, "sharing of zero")
    return XorShare(_under_zero(secrets, holders, carries, context), number, session.me, holders)


async def sums_at_least(
    session: Session, secrets: PairwiseSecrets, values: Words, holders: Holders3, threshold: int, width: int
) -> XorShare | None:
    """Shares of whether the sums of all parties' numbers reach a threshold; every party of the job calls this.

    The three are the first in turn, block by block, so that all send alike. Arguments and errors as of `masked_sum` and
    `at_least`.

    Returns:
        One bit a number; None to the other parties.
    """
    slots = asyncio.Semaphore(_BLOCKS_AT_ONCE)

    async def decide(lane: Session, turn: int, part: slice) -> XorShare | None:
        first, second, third = in_turn(holders, turn)
        async with slots:
            share = await masked_sum(lane.lane("sum"), secrets, values[part], (first, second, third), width)
            if share is None:
                return None
            bits = await at_least(lane.lane("compare"), secrets, share, (first, second, third), threshold, width)
        return XorShare(bits.planes, bits.number, session.me, holders)

    # All lanes are made beforehand: no block waits for what another one got.
    lanes = [(session.lane(f"block {turn}"), turn, part) for turn, part in enumerate(blocks(len(values)))]
    found = await together(decide(*each) for each in lanes)
    bits = [each for each in found if each is not None]
    return XorShare.joined(bits) if bits else None


def blocks(number: int) -> list[slice]:
    """The numbers of each block, all but the last a multiple of eight: one, or as many for each of the three."""
    if number <= IN_TURN:
        return [slice(0, number)]
    count = 3 * -(-number // (3 * BLOCK))
    stops = [part * number // count // 8 * 8 for part in range(count)] + [number]
    return [slice(start, stop) for start, stop in pairwise(stops)]


def in_turn(holders: Holders3, turn: int) -> Holders3:
    """The holders of a block, the one whose turn it is first."""
    first = turn % 3
    return holders[first], holders[(first + 1) % 3], holders[(first + 2) % 3]


def ands_by_level(digit_count: int) -> list[int]:
    """ANDs a number by level of the tree, the last of which is not reshared; nobody asks what the lowest pass on."""
    levels = []
    while digit_count > 1:
        pairs, odd = divmod(digit_count, 2)
        levels.append(2 * pairs - 1)
        digit_count = pairs + odd
    return levels


async def _carries(
    session: Session, secrets: PairwiseSecrets, holders: Holders3, planes: Planes, cut: tuple[int, ...]
) -> Planes:
    """XOR shares, zero at the first holder, of what each digit does to carries.

    The highest digit's carry has both top bits with it, and is turned over: at the end it says that v − c ≥ 0.
    """
    first, second, third = holders
    size, context = planes.shape[1], secrets.context(session, "digits")
    shape = selected_planes(cut) + 1, size
    if session.me == first:
        chosen = await session.compute(selected, planes[:-1], cut)
        mask = random_matrix(secrets.stream(second, context), shape, np.uint8)
        mask ^= np.concatenate([chosen, ~planes[-1:]])
        await session.send_array(third, MaskedDigits, mask)  # -> 2
        return np.zeros((carry_planes(cut), size), np.uint8)
    if session.me == second:
        part = random_matrix(secrets.stream(first, context), shape, np.uint8)
    else:
        part = await session.recv_array(first, MaskedDigits, np.uint8, shape)  # <- 2
    return await session.compute(_carries_of, part, planes, cut, session.me == second)


def _carries_of(part: Planes, planes: Planes, cut: tuple[int, ...], adds: bool) -> Planes:
    found = looked_up(part[:-1], planes[:-1], cut, adds=adds)
    found[len(cut) - 1] ^= part[-1]
    if adds:
        found[len(cut) - 1] ^= planes[-1]
    return found


async def _replicated(session: Session, secrets: PairwiseSecrets, holders: Holders3, part: Planes) -> ReplicatedBits:
    """Makes replicated shares of what the second and the third holder's parts add up to."""
    first, second, third = holders
    context = secrets.context(session, "components")
    if session.me == first:
        own, following = (
            random_matrix(secrets.stream(peer, context), part.shape, np.uint8) for peer in (third, second)
        )
        return ReplicatedBits(own, following, session.me, holders)
    drawn = random_matrix(secrets.stream(first, context), part.shape, np.uint8)
    peer = third if session.me == second else second
    masked = part ^ drawn
    await session.send_array(peer, MaskedPart, masked)  # -> 3
    rest = masked ^ await session.recv_array(peer, MaskedPart, np.uint8, part.shape)  # <- 3
    own, following = (drawn, rest) if session.me == second else (rest, drawn)
    return ReplicatedBits(own, following, session.me, holders)


async def _highest_carry(session: Session, secrets: PairwiseSecrets, shared: ReplicatedBits, count: int) -> Planes:
    """This holder's part of the carry out of the highest digit, one plane.

    Out of each pair of digits comes what the higher generates, or passes on of the lower.
    """
    carry, passes = shared.bits(slice(0, count)), shared.bits(slice(count, None))  # the lowest digit passes nothing on
    while True:
        paired = carry.width // 2 * 2
        low, high = slice(0, paired, 2), slice(1, paired, 2)
        higher = passes.bits(slice(0, paired - 1, 2))
        if carry.width == 2:
            part = higher.local_and(carry.bits(low))
            part ^= carry.bits(high).own
            return part
        lower = passes.bits(slice(1, paired - 1, 2))
        part = await session.compute(
            ReplicatedBits.stacked([higher, higher.bits(slice(1, None))]).local_and,
            ReplicatedBits.stacked([carry.bits(low), lower]),
        )
        both = await _reshared(session, secrets, carry.holders, part)  # -> 4, <- 4
        pairs, odd = paired // 2, carry.width - paired
        carry = ReplicatedBits.stacked([carry.bits(high) ^ both.bits(slice(0, pairs)), carry.bits(slice(paired, None))])
        passes = ReplicatedBits.stacked([both.bits(slice(pairs, None)), passes.bits(slice(passes.width - odd, None))])


async def _reshared(
    session: Session, secrets: PairwiseSecrets, holders: tuple[str, ...], part: Planes
) -> ReplicatedBits:
    """Makes replicated shares of what three holders' parts add up to: under a sharing of zero, to the holder before."""
    number = holders.index(session.me)
    before, after = holders[number - 1], holders[(number + 1) % 3]
    masked = _under_zero(secrets, holders, part, secrets.context(session, "sharing of zero"))
    await session.send_array(before, MaskedPart, masked)
    following = await session.recv_array(after, MaskedPart, np.uint8, part.shape)
    return ReplicatedBits(masked, following, session.me, holders)


def _under_zero(secrets: PairwiseSecrets, holders: tuple[str, ...], part: Planes, context: bytes) -> Planes:
    """The part under this holder's part of a sharing of zero."""
    masked = part.copy()
    for peer in holders:
        if peer != secrets.me:
            masked ^= random_matrix(secrets.stream(peer, context), part.shape, np.uint8)
    return masked


def _lowest(values: Words, width: int) -> Words:
    lowest: Words = values.astype(np.uint64)
    lowest &= np.uint64((1 << width) - 1)
    return lowest


def _check_three(session: Session, holders: Holders3) -> None:
    if len(set(holders)) != 3 or not set(holders) <= set(session.parties):
        raise ValueError(f"the holders of replicated shares are three parties of the job, not {list(holders)}")


def _check_width(word_bits: int, width: int) -> None:
    if not 2 <= width <= word_bits:
        raise ValueError(f"numbers in words of {word_bits} bits are compared at 2 to {word_bits} bits, not {width}")
