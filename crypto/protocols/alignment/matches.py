"""Bin by bin, whether what one party has there is another's too: shares of the bit, for two parties of an alignment.

Both know the length of their lists, and a point of each identifier: a hash under a key of the session.
    1  bins     the one party, the collector, puts each of its points into a bin of its own (`bins`). The other draws a
                random target and a random mask for every bin, and programs, at each of its points in each of that one's
                three bins, the target and its own number of the point under the mask (`programmable_oprf`)
    2  collect  the collector evaluates this at its points, once in a bin. What comes out is the bin's target, and the
                other's masked number, if both hold the point; else random. For an empty bin it takes random words
    3  compare  both compare what came out with the target, bin by bin, in a circuit; of the bit they get shares
                (`comparison.equal_to`)

Rounds: those of `oprf` and its store, and of `equal_to`. Bytes: for each place of a list about 600.

Adversary: semi-honest. The other sees the collector's points under streams that it has not, and the collector words
    that are uniform, whatever the other holds. A collector that evaluates several points of one bin learns of these
    whether the other holds two. Collusion: does not apply, two parties; a collector has all others do this at once.
Leakage: the length of the lists.

Source: Pinkas, Schneider, Tkachenko and Yanai, "Efficient Circuit-based PSI with Linear Communication", EUROCRYPT 2019,
section 5, with payloads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.groups.point_hash import KEY_BYTES, Points, Words
from crypto.primitives.hashing import encode_labels
from crypto.primitives.okvs import Layout
from crypto.primitives.shares.additive import AdditiveShare
from crypto.protocols.alignment.bins import THIRDS, Bins, bins_of, matched, points_in
from crypto.protocols.alignment.functions import collect, program
from crypto.protocols.comparison.comparison import equal_to
from crypto.protocols.comparison.two_party import TwoParty
from link.session import Session
from link.tasks import together

STATISTICAL_BITS: Final = 40

Bits = NDArray[np.uint8]
Numbers = NDArray[np.uint64]


class Match(NamedTuple):
    """One party's part of what two have found.

    Attributes:
        bits: By bin, its share of whether the other holds what the collector has there.
        numbers: By bin, what the collector got of the other's masked numbers, at the other the masks; where the other
            holds the point, the difference modulo 2^64 is the number. Shape (bins,); (0,) where none are programmed.
    """

    bits: Bits
    numbers: Numbers


async def collect_matches(
    lane: Session,
    pairs: Mapping[str, TwoParty],
    others: Sequence[str],
    table: Layout,
    points: Points,
    width: int,
    *,
    numbers: bool = False,
) -> tuple[Bins, dict[str, Match]]:
    """The collector's part.

    Args:
        lane: Of its own, at all these parties.
        pairs: This party's agreements with all others.
        others: From whom it collects, the same at all.
        table: Of the bins.
        points: Of this party's rows, shape (n, 2).
        width: Bits that are compared, from `compared_bits`.
        numbers: Whether the others program numbers.

    Returns:
        Each point's bin, shape (n,), and by other party this one's part.

    Raises:
        InternalError: By chance, the points do not fit into their bins.
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: A peer's part of a function contradicts itself.
    """
    key, random = _bin_key(lane), lane.randomness("empty bins")

    def placed() -> tuple[Bins, Points]:
        bins = matched(table, points, key)
        found = np.empty_like(points)
        for third in range(THIRDS):
            here = bins // table.third == third
            found[here] = points_in(points[here], third, key)
        return bins, found

    bins, asked = await lane.compute(placed)
    words = 1 + numbers
    came = await collect(lane, others, asked, _capacities(table), words)
    filled = {other: random.uint64(words * table.sparse).reshape(-1, words) for other in others}
    for each, values in zip(filled.values(), came, strict=True):
        each[bins] = values
    del came
    parts = await together(_compared(lane, pairs[other], lane.me, width, each) for other, each in filled.items())
    return bins, dict(zip(filled, parts, strict=True))


async def program_matches(
    lane: Session, pair: TwoParty, table: Layout, points: Points, width: int, numbers: Numbers | None = None
) -> Match:
    """The other party's part.

    Args:
        lane: As for `collect_matches`.
        pair: This party's agreement with the collector.
        table: As for `collect_matches`.
        points: Of this party's rows, shape (n, 2).
        width: As for `collect_matches`.
        numbers: Of these, shape (n,); at all such parties or at none.

    Raises:
        MalformedMessage: The collector's messages have another size.
    """
    key, words = _bin_key(lane), 1 if numbers is None else 2
    targets = lane.randomness("targets").uint64(words * table.sparse).reshape(-1, words)

    def looked_at() -> tuple[Points, Words]:
        values: Words = targets[bins_of(table, points, key).reshape(-1)]
        if numbers is not None:
            values[:, 1] += np.tile(numbers, THIRDS)
        return np.concatenate([points_in(points, third, key) for third in range(THIRDS)]), values

    asked, values = await lane.compute(looked_at)
    await program(lane, pair.peer, asked, values, _capacities(table))
    return await _compared(lane, pair, pair.peer, width, targets)


def compared_bits(table: Layout, pairs: int) -> int:
    """Of each comparison of so many pairs of parties, so that a random word meets no target but in one of 2^40 runs."""
    return min(STATISTICAL_BITS + (table.sparse * pairs - 1).bit_length(), 64)


async def _compared(lane: Session, pair: TwoParty, collector: str, width: int, words: Numbers) -> Match:
    """Either's part of step 3: of what came out, or of the targets and masks, shape (bins, 1 or 2)."""
    other = pair.peer if lane.me == collector else lane.me
    hop = lane.among(f"bins of {other}", (collector, other))
    own = np.negative(words[:, 0]) if pair.is_first else words[:, 0].copy()
    equal = await equal_to(hop, pair, AdditiveShare(own, lane.me, pair.holders), 0, width)
    bits: Bits = unpack_bits(equal.planes, len(words))[0]
    return Match(bits, words[:, 1:].reshape(-1))


def _bin_key(lane: Session) -> bytes:
    return hashlib.sha256(encode_labels("bins of identifiers", lane.id, lane.path)).digest()[:KEY_BYTES]


def _capacities(table: Layout) -> tuple[int, int]:
    return table.capacity, THIRDS * table.capacity
