"""How many identifiers all parties hold, and nothing else: by comparisons on shares, for `alignment.cardinality`.

All know the length of their lists, and a point of each identifier: a hash under a key of the session.
    1  bins     the merger puts each of its points into a bin of its own (`bins`). Each other party i draws a random
                target for every bin, and programs it at each of its points in each of that one's three bins, into a
                function that the merger evaluates at its points, once in a bin (`programmable_oprf`). What comes out is
                the bin's target if i holds the point, else random
    2  compare  the merger and i compare what came out with the target, bin by bin, in a circuit; of the bit they get
                shares (`comparison.equal_to`). For an empty bin the merger takes a random word
    3  multiply the bits of all others are multiplied, bin by bin, by correlated transfers (`products`)
    4  open     every party adds up its shares of the products, and opens the sum

Rounds: those of `oprf` and its store, of `equal_to`, 2 for each other party and 2^20 bins; opening.
Bytes: for each of the n − 1 others about 600 for each place of a list, and 12 for each of (n − 1)² transfers.

Adversary: semi-honest; who deviates can invent identifiers, and a merger that evaluates several points of one bin
    learns of these whether the other holds two. Collusion: any n − 1 parties learn nothing but the number
    (`docs/protocols/alignment.md` derives it).
Leakage: `alignment_disclosure` for cardinality.
Errors: a random word meets a bin's target, so that the number is wrong, or the merger's points do not fit their bins,
    so that the run ends: each in at most one of 2^40 runs.

Source: Pinkas, Schneider, Tkachenko and Yanai, "Efficient Circuit-based PSI with Linear Communication", EUROCRYPT 2019;
products on shares after Goldreich, Micali and Wigderson, STOC 1987, by Gilboa's transfers, as in `shared_products`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.groups.point_hash import KEY_BYTES, Points
from crypto.primitives.hashing import encode_labels
from crypto.primitives.okvs import Layout
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.alignment.bins import THIRDS, Bins, bins_of, matched, points_in, table_of
from crypto.protocols.alignment.common_rows import no_intersection
from crypto.protocols.alignment.functions import collect, program
from crypto.protocols.comparison.comparison import equal_to
from crypto.protocols.comparison.shared_bits import open_values
from crypto.protocols.comparison.two_party import TwoParty, pairs_of
from crypto.protocols.transfers.ot_extension import receive_correlated, send_correlated
from link.session import Session
from link.tasks import together

STATISTICAL_BITS: Final = 40
BLOCK: Final = 1 << 20  # bins that are multiplied at a time
COUNT: Final = np.uint32  # holds the greatest number of rows

Bits = NDArray[np.uint8]
Targets = NDArray[np.uint64]


async def count_common(lane: Session, ring: Sequence[str], points: Points, length: int, label: str) -> int:
    """Every party's part.

    Args:
        lane: The alignment's.
        ring: The merger, and the other parties.
        points: From `session_points`.
        length: Of all lists, public, and at least as many as any party has points.
        label: Under which the number is opened.

    Raises:
        InternalError: By chance, the merger's points do not fit into their bins.
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: A peer's part of a function contradicts itself, or the number is above that of this party's
            rows.
    """
    merger, *others = ring
    table, pairs = table_of(length), pairs_of(lane.lane("pairs"))
    if lane.me == merger:
        words = await _collect(lane, table, others, points)
    else:
        words = {merger: await _program(lane, table, merger, points)}
    width = compared_bits(table, len(others))

    async def compared(peer: str) -> Bits:
        other = peer if lane.me == merger else lane.me
        hop, parties = lane.among(f"bins of {other}", (merger, other)), pairs[peer]
        own = np.negative(words[peer]) if parties.is_first else words[peer]
        equal = await equal_to(hop, parties, AdditiveShare(own, lane.me, parties.holders), 0, width)
        bits: Bits = unpack_bits(equal.planes, table.sparse)[0]
        return bits

    bits = dict(zip(words, await together(map(compared, words)), strict=True))
    total = np.zeros(1, COUNT)
    for start in range(0, table.sparse, BLOCK):
        some = {peer: each[start : start + BLOCK] for peer, each in bits.items()}
        total += np.add.reduce(await products(lane.lane(f"products from {start}"), ring, pairs, some), dtype=COUNT)
    share = AdditiveShare(total, lane.me, lane.parties)
    opened = await open_values(lane, share, label=label, holders=lane.parties, number=1, word=COUNT)  # -> 4
    assert opened is not None  # all are receivers
    if opened[0] > len(points):
        raise no_intersection(lane)
    return int(opened[0])


def compared_bits(table: Layout, others: int) -> int:
    """Of each comparison, so that a random word meets no target but in one of 2^40 runs; words have no more than 64."""
    return min(STATISTICAL_BITS + (table.sparse * others - 1).bit_length(), 64)


# -- bins --------------------------------------------------------------------------------------------------------------
async def _collect(lane: Session, table: Layout, others: Sequence[str], points: Points) -> dict[str, Targets]:
    """The merger's part: of each other, by bin what comes out at the point that is there; random where none is."""
    key, random = _bin_key(lane), lane.randomness("empty bins")

    def placed() -> tuple[Bins, Points]:
        bins = matched(table, points, key)
        found = np.empty_like(points)
        for third in range(THIRDS):
            here = bins // table.third == third
            found[here] = points_in(points[here], third, key)
        return bins, found

    bins, asked = await lane.compute(placed)
    found = await collect(lane, others, asked, _capacities(table))
    words = {other: random.uint64(table.sparse) for other in others}
    for each, values in zip(words.values(), found, strict=True):
        each[bins] = values[:, 0]
    return words


async def _program(lane: Session, table: Layout, merger: str, points: Points) -> Targets:
    """Every other party's part: its targets, by bin."""
    key, targets = _bin_key(lane), lane.randomness("targets").uint64(table.sparse)

    def looked_at() -> tuple[Points, Bins]:
        thirds = [points_in(points, third, key) for third in range(THIRDS)]
        return np.concatenate(thirds), bins_of(table, points, key).reshape(-1)

    asked, bins = await lane.compute(looked_at)
    await program(lane, merger, asked, targets[bins][:, None], _capacities(table))
    return targets


def _bin_key(lane: Session) -> bytes:
    return hashlib.sha256(encode_labels("bins of identifiers", lane.id, lane.path)).digest()[:KEY_BYTES]


def _capacities(table: Layout) -> tuple[int, int]:
    return table.capacity, THIRDS * table.capacity


# -- products ----------------------------------------------------------------------------------------------------------
async def products(
    session: Session, ring: Sequence[str], pairs: Mapping[str, TwoParty], bits: Mapping[str, Bits]
) -> Words:
    """This party's shares of the products, modulo 2^32.

    What is shared of the product x of some others' bits becomes shares of x·(b ⊕ c) = z + (x − 2z)·c, where z = x·b,
    for the next one, whose share is c and the merger's b. Of a product with another's bit, that one lets its bit choose
    in a transfer with each who has a share of x, correlated by this.

    Args:
        session: A lane of its own.
        ring: The merger, and the other parties.
        pairs: This party's agreements with all others.
        bits: By other party, shares of whether it holds what is in a bin; at each other party its own alone.
    """
    merger, *others = ring

    async def give(taker: str, words: Words) -> Words:
        hop = session.among(f"{session.me} to {taker} for {newcomer}", (session.me, taker))
        return -await send_correlated(hop, taker, await pairs[taker].sending(hop), words)

    async def take(giver: str, chosen: Bits) -> Words:
        hop = session.among(f"{giver} to {session.me} for {newcomer}", (session.me, giver))
        return await receive_correlated(hop, giver, await pairs[giver].receiving(hop), chosen, COUNT)

    words = np.ones(len(next(iter(bits.values()))), COUNT)
    for place, newcomer in enumerate(others):
        holders = others[:place]
        if session.me == newcomer:
            taken = await together(take(giver, bits[merger]) for giver in (merger, *holders))
            words = np.add.reduce(taken, dtype=COUNT)
        elif session.me == merger:
            own = bits[newcomer]
            taken = await together(take(giver, own) for giver in holders)
            times = np.add.reduce([words * own, *taken], dtype=COUNT)
            words = times + await give(newcomer, words - times - times)
        elif session.me in holders:
            times = await give(merger, words)
            words = times + await give(newcomer, words - times - times)
    return words
