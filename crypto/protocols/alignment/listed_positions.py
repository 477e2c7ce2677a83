"""Where a party's other identifiers are among those that some party has listed: for `alignment.union_of_listed`.

What parties have listed has positions (`shared_positions`). Each also holds identifiers that it has not listed; of
these it learns the positions of those that another has listed, and of the rest that nobody has. One after another, with
P_i for whose turn it is:
    1  match    P_i collects from every other party, bin by bin, shares of whether that one has listed what is there,
                and of its position (`matches`)
    2  choose   y is that nobody has it; party after party, what a bin has becomes y + c·(p − y), for the bit c and
                the position p of that party (`shared_positions.choose_positions`)
    3  open     the others open to P_i their shares of what its bins have

Rounds: for each party those of `matches`, 2 to 4 for each other one and 2^20 bins, opening.
Bytes: `costs.listed_traffic`.

Adversary: semi-honest. Collusion: any n − 1 parties learn nothing but what is put out; steps 1 to 3 are those of
    `shared_positions` (`docs/protocols/alignment.md` derives it).
Leakage: which of a party's own identifiers others have listed, to that party; not who, nor how many.
Errors: as of `shared_positions`, over both directions of every two parties.

Source: as of `shared_positions`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crypto.primitives.buckets import Room
from crypto.primitives.shares.masks import Words
from crypto.protocols.alignment.bins import table_of
from crypto.protocols.alignment.choices import WORD
from crypto.protocols.alignment.long_lists import PartedPoints
from crypto.protocols.alignment.matches import Match, Numbers, collect_matches, compared_bits, program_matches
from crypto.protocols.alignment.shared_positions import choose_positions, open_positions
from crypto.protocols.comparison.two_party import InTurn, Pairs
from link.errors import ProtocolViolation
from link.session import Session


async def look_up(
    lane: Session,
    ring: Sequence[str],
    pairs: Pairs,
    listed: tuple[PartedPoints, Numbers],
    others: PartedPoints,
    length: int,
    number: int,
    label: str,
    room: Room,
) -> Words:
    """Every party's part.

    Args:
        lane: Of its own.
        ring: All parties, in the same order at all.
        pairs: This party's agreements with all others.
        listed: Points of what this party has listed, in parts of the length, and their positions, shape (listed,).
        others: Points of its other identifiers, in parts of the length.
        length: Public, and at least as many as any party has identifiers.
        number: Of positions.
        label: Under which each party's positions are opened to it.
        room: What lists may take.

    Returns:
        Shape (others,): the position of each; `number` where nobody has listed it.

    Raises:
        InternalError: By chance, this party's points do not fit into their bins.
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: A peer's part of a function contradicts itself, or what came out are no positions.
        ValueError: An identifier is given twice.
    """
    table, turns = table_of(length), {peer: InTurn(pair) for peer, pair in pairs.items()}
    width, found = compared_bits(table, len(ring) * (len(ring) - 1)), np.empty(0, WORD)
    (points, positions) = listed
    for owner in ring:
        turn, peers = lane.lane(f"others of {owner}"), [party for party in ring if party != owner]
        words = np.zeros(table.sparse, WORD)
        if lane.me == owner:
            bins, matches = await collect_matches(turn, pairs, peers, table, others, width, room, numbers=True)  # <- 1
            words[:] = number
        else:
            match = await program_matches(turn, pairs[owner], table, points, width, room, positions)  # -> 1
            matches = dict[str, Match]({owner: match})
        words = await choose_positions(turn, turns, peers, (*peers, owner), matches, words)  # <-> 2
        opened = await open_positions(turn, (*peers, owner), words, label, owner)  # -> 3
        if lane.me == owner:
            found = opened[bins]
    points.close()
    others.close()
    taken = np.concatenate([positions, found[found < number]])
    if (found > number).any() or len(np.unique(taken)) < len(taken):
        raise ProtocolViolation(
            f"what came out of the alignment are no positions of {lane.me}'s rows or items, so "
            f"{' or '.join(lane.others)} sent something wrong; check these nodes",
            party=lane.others[0] if len(ring) == 2 else None,
        )
    return found
