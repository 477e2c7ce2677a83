"""How many identifiers all parties hold, and nothing else: by comparisons on shares, for `alignment.cardinality`.

All know the length of their lists, and a point of each identifier: a hash under a key of the session.
    1  match    the merger collects from each other party, bin by bin, shares of whether that one holds the point that
                is there (`matches`)
    2  multiply the bits of all others are multiplied, bin by bin, by correlated transfers (`choices`)
    3  open     every party adds up its shares of the products, and opens the sum

Rounds: those of `matches`; 2 for each other party and 2^20 bins; opening.
Bytes: for each of the n − 1 others about 600 for each place of a list, and 12 for each of (n − 1)² transfers.

Adversary: semi-honest; who deviates can invent identifiers, and a merger that evaluates several points of one bin
    learns of these whether the other holds two. Collusion: any n − 1 parties learn nothing but the number
    (`docs/protocols/alignment.md` derives it).
Leakage: `alignment_disclosure` for cardinality.
Errors: a random word meets a bin's target, so that the number is wrong, or the merger's points do not fit their bins,
    so that the run ends: each in at most one of 2^40 runs.

Source: Pinkas, Schneider, Tkachenko and Yanai, "Efficient Circuit-based PSI with Linear Communication", EUROCRYPT 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crypto.primitives.buckets import Room
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.alignment.bins import table_of
from crypto.protocols.alignment.choices import WORD, Bits, times_bit
from crypto.protocols.alignment.common_rows import no_intersection
from crypto.protocols.alignment.long_lists import PartedPoints
from crypto.protocols.alignment.matches import collect_matches, compared_bits, program_matches
from crypto.protocols.comparison.shared_bits import open_values
from crypto.protocols.comparison.two_party import InTurn, Pairs
from link.session import Session


async def count_common(
    lane: Session, ring: Sequence[str], pairs: Pairs, points: PartedPoints, length: int, label: str, room: Room
) -> int:
    """Every party's part.

    Args:
        lane: The alignment's.
        ring: The merger, and the other parties.
        pairs: This party's agreements with all others.
        points: Of this party's rows, in parts of the length.
        length: Of all lists, public, and at least as many as any party has points.
        label: Under which the number is opened.
        room: What lists may take.

    Raises:
        InternalError: By chance, the merger's points do not fit into their bins.
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: A peer's part of a function contradicts itself, or the number is above that of this party's
            rows.
        ValueError: An identifier is given twice.
    """
    merger, *others = ring
    table = table_of(length)
    width = compared_bits(table, len(others))
    if lane.me == merger:
        _, matches = await collect_matches(lane, pairs, others, table, points, width, room)
    else:
        matches = {merger: await program_matches(lane, pairs[merger], table, points, width, room)}
    turns = {peer: InTurn(pair) for peer, pair in pairs.items()}
    points.close()
    bits, number = dict[str, Bits](), table.sparse
    for peer, match in matches.items():
        bits[peer] = match.bits.planes[0]
        match.words.close()
    total = np.add.reduce(await products(lane.lane("products"), ring, turns, bits, number), dtype=WORD, keepdims=True)
    share = AdditiveShare(total, lane.me, lane.parties)
    opened = await open_values(lane, share, label=label, holders=lane.parties, number=1, word=WORD)  # -> 3
    assert opened is not None  # all are receivers
    if opened[0] > points.rows:
        raise no_intersection(lane)
    return int(opened[0])


async def products(
    session: Session, ring: Sequence[str], turns: Mapping[str, InTurn], bits: Mapping[str, Bits], number: int
) -> Words:
    """This party's shares of the products, modulo 2^32: of each further other's bits with those before.

    Args:
        session: A lane of its own.
        ring: The merger, and the other parties.
        turns: Of this party's agreements with all others.
        bits: By other party, shares of whether it holds what is in a bin, packed; at each other party its own alone.
        number: Of bins.
    """
    merger, *others = ring
    words = (np.ones if session.me == merger else np.zeros)(number, WORD)
    for place, newcomer in enumerate(others):
        holders = (merger, *others[:place])
        if session.me in (*holders, newcomer):
            own = bits[newcomer if session.me == merger else merger]
            words = await times_bit(session.lane(newcomer), turns, holders, (merger, newcomer), own, words)
    return words
