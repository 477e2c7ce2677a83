"""Intersection of three and more parties' identifiers by shares of zero, for `alignment.intersection`.

All know the length of their lists, and a point of each identifier: a hash under a key of the session.
    1  pairs    every two parties i and j but the merger evaluate two pseudorandom functions at their points (`oprf`): i
                holds the key of one, j that of the other. Their pad of a point is the sum of both values there: who
                has not both the point and the key of one function, does not know the pad
    2  shares   a party's share of a point is the sum of the pads that it has in common with each of the others. Where
                all but the merger hold a point, each pad is in two shares, so the shares add up to zero
    3  collect  each of them programs its shares at its points into a function that the merger evaluates at its own
                (`programmable_oprf`). What the merger gets there adds up to zero where all hold the point; else it is
                random, since a party that does not hold it gave a random word
    4  open     the merger opens how many points are common, then these points in ascending order; every party finds its
                rows among them

Rounds: 15 with one part, and 6 for each further one: twice those of `oprf`, but one; store, opening.
Bytes: about 84 for each place of a list and each of the (n − 1)(n − 2) functions of pairs, and 94 for each of the
    n − 1 programmed ones.

Adversary: semi-honest, and who deviates can invent identifiers; in each function, who deviates has values at a bounded
    number of points (`oprf`). Collusion: any n − 1 parties learn nothing but the intersection of all: an honest party's
    share of any other point takes a pad that they do not know (`docs/protocols/alignment.md` derives it).
Leakage: `alignment_disclosure` for intersection of three and more parties.
Errors: the merger takes a point for a common one by mistake if a random word is zero: in one of 2^40 runs at most, at
    2^24 points.

Source: Kolesnikov, Matania, Pinkas, Rosulek and Trieu, "Practical Multi-party Private Set Intersection from
Symmetric-Key Techniques", CCS 2017, section 5 (shares of zero, conditional on who holds a point, and their
reconstruction); pads here are sums of two functions' values, where there shares are programmed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import numpy as np

from crypto.primitives.groups.point_hash import Points, Words
from crypto.protocols.alignment.common_rows import find, open_size, receive_size, strings
from crypto.protocols.alignment.functions import collect, key_holders, own_key, program
from crypto.protocols.alignment.long_lists import Flags
from crypto.protocols.transfers.oprf import Indices, PartKey, hashed, part_keys, received_rows
from link.session import Session
from link.tasks import together

WORD_BYTES: Final = 8  # of a pad: among 2^24 points, one of the others' adds up to zero with a chance of 2^-40


async def common_points(lane: Session, ring: Sequence[str], points: Points, length: int, label: str) -> Flags:
    """Every party's part.

    Args:
        lane: The alignment's.
        ring: The merger, and two or more other parties.
        points: From `session_points`.
        length: Of all lists, public, and at least as many as any party has points.
        label: Under which the merger opens what is common; under LABEL-size, how many that are.

    Returns:
        Of each row of this party whether it is common.

    Raises:
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: A peer's part of a function contradicts itself, or what came out cannot be the intersection
            with this party's rows.
    """
    merger, *others = ring
    if lane.me == merger:
        return await _collect(lane, others, points, length, label)
    shares = await _shares(lane, [peer for peer in others if peer != lane.me], points, length)
    await program(lane, merger, points, shares, (length, length))  # -> 3
    size = await receive_size(lane, merger, f"{label}-size", len(points))  # <- 4
    flags = np.zeros(len(points), np.bool_)
    if size:
        common = await lane.receive_opened(merger, label, np.uint64, (size, points.shape[1]))  # <- 4
        flags[await lane.compute(find, lane, common, points)] = True
    return flags


async def _collect(lane: Session, others: Sequence[str], points: Points, length: int, label: str) -> Flags:
    """The merger's part."""
    shares = await collect(lane, others, points, (length, length))  # <- 3
    flags: Flags = np.bitwise_xor.reduce(shares)[:, 0] == 0
    rows = np.flatnonzero(flags)
    await open_size(lane, f"{label}-size", len(rows), len(points))  # -> 4
    if len(rows):
        common = points[rows]
        await lane.open(label, common[np.argsort(strings(common))])  # -> 4
    return flags


async def _shares(lane: Session, peers: Sequence[str], points: Points, length: int) -> Words:
    """This party's shares, shape (n, 1): of each point the sum of its pads with all peers."""

    async def own_keys(peer: str) -> AsyncIterator[PartKey]:
        hop, seeds = await own_key(lane, peer)
        async for key in part_keys(hop, peer, seeds, length):
            yield key

    async def others_functions() -> AsyncIterator[tuple[Indices, Sequence[Words]]]:
        async for part in received_rows(lane, await key_holders(lane, peers), points, length):
            yield part

    def summed(some: Points, keys: Sequence[PartKey], theirs: Sequence[Words]) -> Words:
        total = np.zeros((len(some), 1), np.uint64)
        for peer, key, read in zip(peers, keys, theirs, strict=True):
            rows = [key.rows_at(some), read]
            total ^= hashed(rows if lane.me < peer else rows[::-1], some, WORD_BYTES).view("<u8")
        return total

    shares = np.empty((len(points), 1), np.uint64)
    parts: list[AsyncIterator[Any]] = [others_functions(), *map(own_keys, peers)]
    while (part := await together(map(_next, parts)))[0] is not None:
        (numbers, theirs), *own = part
        shares[numbers] = await lane.compute(summed, points[numbers], own, theirs)
    return shares


async def _next(parts: AsyncIterator[Any]) -> Any:
    """The next part; None after the last."""
    return await anext(parts, None)
