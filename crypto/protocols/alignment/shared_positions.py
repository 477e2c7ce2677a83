"""Every identifier that some party holds at a position of its own, and nothing else: for `alignment.union`.

All know the length L of their lists, and a point of each identifier: a hash under a key of the session. The parties are
P_1, the merger, to P_n. There are n·L positions, and as many slots: L of each party.
    1  slots    nobody knows which slot has which position: each of P_1 to P_{n−1} puts the positions in an order of its
                own, of which these parties have shares (`shared_permutation`). P_1 alone gets those of its slots, and
                puts its rows there. Then it is the turn of P_2, P_3, and so on, for P_i:
    2  match    P_i collects from each party before it, bin by bin, shares of whether that one holds the point that is
                there, and of the position that it has there (`matches`)
    3  fresh    P_i brings the shared positions of its slots to its bins in a secret order, so that each of its rows has
                one, and nobody else knows which
    4  choose   party after party before it, what a bin has becomes y + c·(p − y), for the bit c and the position p of
                that party (`choices`): its own slot's position stays where nobody before it holds the point
    5  open     the others open to P_i their shares of what its bins have

Rounds: those of `shared_permutation` for each of P_1 to P_{n−2}; for each of P_2 to P_n those of `matches` and of one
    more order, 2 to 4 for each party before it and 2^20 bins, opening.
Bytes: `costs.row_union_traffic`.

Adversary: semi-honest; who deviates can invent identifiers. Collusion: any n − 1 parties learn nothing but the
    positions of their own rows, which are uniform (`docs/protocols/alignment.md` derives it).
Leakage: `alignment_disclosure` for union.
Errors: a random word meets some bin's target, so that a row gets a random position: in one of 2^40 runs at most. The
    points of one of the n − 1 do not fit their bins, so that the run ends: for each in one of 2^40 at most.

Source: composed of Pinkas, Schneider, Tkachenko and Yanai, "Efficient Circuit-based PSI with Linear Communication",
EUROCRYPT 2019, with payloads, and Mohassel and Sadeghian, EUROCRYPT 2013 (permute and share). Who has which position
is the output of private identifiers in Garimella, Mohassel, Rosulek, Sadeghian and Singh, "Private Set Operations from
Oblivious Switching", PKC 2021, which open the size of the union.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.buckets import Room
from crypto.primitives.okvs import Layout
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.protocols.alignment.bins import Bins, table_of
from crypto.protocols.alignment.choices import WORD, times_bit
from crypto.protocols.alignment.common_rows import Rows
from crypto.protocols.alignment.long_lists import AT_ONCE, PartedPoints, secret_order
from crypto.protocols.alignment.matches import Match, collect_matches, compared_bits, program_matches
from crypto.protocols.comparison.comparison import blocks
from crypto.protocols.comparison.shared_bits import open_values
from crypto.protocols.comparison.shared_permutation import permute
from crypto.protocols.comparison.two_party import InTurn, Pairs
from link.errors import ProtocolViolation
from link.session import Session
from link.tasks import together

Turns = Mapping[str, InTurn]  # of agreements, what serves one order, or choice, after another
Order = NDArray[np.uint32]


async def place_rows(
    lane: Session, ring: Sequence[str], pairs: Pairs, points: PartedPoints, length: int, label: str, room: Room
) -> Rows:
    """Every party's part.

    Args:
        lane: The alignment's.
        ring: The merger, and the other parties.
        pairs: This party's agreements with all others.
        points: Of this party's rows, in parts of the length.
        length: Of all lists, public, and at least as many as any party has points.
        label: Under which each party's positions are opened to it.
        room: What lists may take.

    Returns:
        Shape (parties · length,): for every position the number of this party's row there, −1 where it has none.

    Raises:
        InternalError: By chance, this party's points do not fit into their bins.
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: A peer's part of a function contradicts itself, or what came out are no positions of this
            party's rows.
        ValueError: An identifier is given twice.
    """
    (*holders, _), number = ring, len(ring) * length
    turns = {peer: InTurn(pair) for peer, pair in pairs.items()}
    width = compared_bits(table_of(length), len(ring) * len(holders) // 2)
    shares = np.zeros(number, WORD)
    if lane.me in holders:
        shares = await _shared_slots(lane.lane("slots"), turns, holders, number, room)
    positions = await open_positions(lane, holders, shares[:length], label, ring[0])  # -> 1
    for place, owner in enumerate(ring[1:], 1):
        turn, own = lane.lane(f"rows of {owner}"), shares[place * length : (place + 1) * length]
        if lane.me in (owner, *holders):
            found = await _turn(
                turn, (pairs, turns), ring[: place + 1], holders, points, positions, own, width, label, room
            )
            positions = found if lane.me == owner else positions
    points.close()
    own_rows = positions[: points.rows].astype(np.int64)
    if (own_rows >= number).any() or len(np.unique(own_rows)) < points.rows:
        raise ProtocolViolation(
            f"what came out of the alignment are no positions of {lane.me}'s rows or items, so "
            f"{' or '.join(lane.others)} sent something wrong; check these nodes",
            party=lane.others[0] if len(ring) == 2 else None,
        )
    rows = np.full(number, -1, np.int64)
    rows[own_rows] = np.arange(points.rows)
    return rows


async def _shared_slots(lane: Session, turns: Turns, holders: Sequence[str], number: int, room: Room) -> Words:
    """This party's share of the slots' positions, in the orders of all holders, one after another."""
    words = np.zeros(number, WORD)
    for place, owner in reversed(list(enumerate(holders))):
        others = holders[place + 1 :]
        order = None
        if lane.me == owner:
            order = await lane.compute(secret_order, lane.randomness("order"), number, room)
        if order is not None and not others:
            words = order
        elif lane.me in (owner, *others):
            words = await _ordered(lane.lane(f"order of {owner}"), turns, owner, others, words, order)
    return words


async def _ordered(
    lane: Session, turns: Turns, owner: str, others: Sequence[str], words: Words, order: Order | None
) -> Words:
    """This party's share of shared words in the order of one of them, who may or may not have a share."""

    async def part(peer: str, own: Words) -> Words:
        pair = turns[peer]
        hop = lane.among(f"words of {peer if lane.me == owner else lane.me}", pair.holders)
        found = await permute(hop, pair, AdditiveShare(own, lane.me, pair.holders), 1, owner, order)
        return found.values

    if order is None:
        return await part(owner, words)
    parts, total = await together(part(other, np.zeros_like(words)) for other in others), np.empty_like(words)
    for start in range(0, len(total), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        np.add.reduce([words[order[some]], *(each[some] for each in parts)], dtype=WORD, out=total[some])
    return total


async def _turn(
    lane: Session,
    agreed: tuple[Pairs, Turns],
    ring: Sequence[str],
    holders: Sequence[str],
    points: PartedPoints,
    positions: Words,
    slots: Words,
    width: int,
    label: str,
    room: Room,
) -> Words:
    """Steps 2 to 5 for the last party of the ring.

    Args:
        lane: Of this turn.
        agreed: This party's agreements with all others.
        ring: All whose turn was, and the owner of this one.
        holders: Who has shares of slots; the owner may be one.
        points: Of this party's rows.
        positions: Of this party's rows, where its turn was.
        slots: This party's share of the owner's slots, shape (length,); zeros at who is no holder.
        width: Bits that are compared.
        label: As for `place_rows`.
        room: As for `place_rows`.

    Returns:
        At the owner the positions of its rows; at all others nothing.
    """
    (pairs, turns), (*before, owner) = agreed, ring
    others = [holder for holder in holders if holder != owner]
    table = table_of(len(slots))
    bins, order, matches = np.empty(0, np.int32), None, dict[str, Match]()
    if lane.me == owner:
        bins, matches = await collect_matches(lane, pairs, before, table, points, width, room, numbers=True)  # <- 2
        order = await lane.compute(_secret_order, lane, table, bins, len(slots), room)
    elif lane.me in before:
        own = positions[: points.rows]
        matches = {owner: await program_matches(lane, pairs[owner], table, points, width, room, own)}  # -> 2
    words = np.zeros(table.sparse, WORD)
    words[: len(slots)] = slots
    words = await _ordered(lane.lane("fresh"), turns, owner, others, words, order)  # <-> 3
    words = await choose_positions(lane, turns, before, (*others, owner), matches, words)  # <-> 4
    return (await open_positions(lane, (*others, owner), words, label, owner))[bins]  # -> 5


async def choose_positions(
    lane: Session,
    turns: Turns,
    before: Sequence[str],
    holders: Sequence[str],
    matches: Mapping[str, Match],
    words: Words,
) -> Words:
    """Step 4: what bins have, or in its place the position of a party that holds what is there.

    Args:
        lane: Of the turn.
        turns: Of this party's agreements with all others.
        before: Whose positions come in place, one after another.
        holders: Who has shares of what bins have; the last of them collects.
        matches: Of this party, by the other one; they are given up.
        words: Its share of what the bins have, shape (bins,).
    """
    owner = holders[-1]
    for other in before:
        bits, apart = np.zeros(-(-len(words) // 8), np.uint8), np.negative(words)  # apart: p − y
        if lane.me in (other, owner):
            match = matches[other if lane.me == owner else owner]
            bits = match.bits.planes[0]
            await lane.compute(_add_numbers, apart, match, lane.me == owner)
        hop = lane.lane(f"held by {other}")
        words = words + await times_bit(hop, turns, holders, (other, owner), bits, apart)
    for match in matches.values():
        match.words.close()
    return words


def _add_numbers(words: Words, match: Match, collects: bool) -> None:
    """Adds a party's shares of the other's numbers."""
    for block, part in enumerate(blocks(len(words))):
        numbers = match.numbers(block)
        words[part] += (numbers if collects else np.negative(numbers)).astype(WORD)


def _secret_order(lane: Session, table: Layout, bins: Bins, length: int, room: Room) -> Order:
    """By bin which of the owner's slots, or of what fills these up, comes there: for its rows some of its slots."""
    slots = secret_order(lane.randomness("slots"), length, room)
    order, empty = np.empty(table.sparse, np.uint32), np.ones(table.sparse, np.bool_)
    empty[bins] = False
    order[bins] = slots[: len(bins)]
    order[empty] = np.concatenate([slots[len(bins) :], np.arange(length, table.sparse, dtype=np.uint32)])
    return order


async def open_positions(lane: Session, holders: Sequence[str], words: Words, label: str, to: str) -> Words:
    """Opens shared positions to one party; at all others nothing.

    Args:
        lane: Of the turn.
        holders: Who has shares.
        words: This party's share.
        label: As for `place_rows`.
        to: Who gets them.
    """
    share = AdditiveShare(words, lane.me, tuple(holders)) if lane.me in holders else None
    opened = await open_values(lane, share, label=label, holders=holders, number=len(words), word=WORD, to=(to,))
    return np.empty(0, WORD) if opened is None else opened
