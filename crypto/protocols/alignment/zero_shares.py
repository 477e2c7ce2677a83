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
    number of points (`oprf`). If the merger shows what it opens, malicious: an honest party's common points are such as
    all honest parties hold, or it ends. Collusion: any n − 1 parties learn nothing but the intersection of all: an
    honest party's share of any other point takes a pad that they do not know (`docs/protocols/alignment.md` has why).
Leakage: `alignment_disclosure` for intersection of three and more parties.
Errors: the merger takes a point for a common one by mistake if a random word is zero: in one of 2^40 runs at most, at
    2^24 points.

Source: Kolesnikov, Matania, Pinkas, Rosulek and Trieu, "Practical Multi-party Private Set Intersection from
Symmetric-Key Techniques", CCS 2017, section 5 (shares of zero, conditional on who holds a point, and their
reconstruction); pads here are sums of two functions' values, where there shares are programmed.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.buckets import Buckets, Room
from crypto.primitives.groups.point_hash import POINT_BYTES, Points, Words
from crypto.primitives.linear_code import encoded, encoding
from crypto.primitives.row_hash import row_hashes
from crypto.protocols.alignment.common_rows import no_intersection, open_size, receive_size, strings
from crypto.protocols.alignment.functions import Programmed, both_values, key_holders, mask, own_key, send_stores
from crypto.protocols.alignment.long_lists import (
    Flags,
    PartedPoints,
    alike,
    ascending,
    by_first_byte,
    in_common,
)
from crypto.protocols.alignment.oprf_intersection import session_key
from crypto.protocols.alignment.shown_points import OwnWords, ReadWords, check_shown, show
from crypto.protocols.transfers.oprf import KeyHolder, PartKey, Parts, part_keys, received_by_part
from crypto.protocols.transfers.programmable_oprf import FUNCTION, Store, receive_store
from link.session import Session
from link.tasks import together

WORD_BYTES: Final = 8  # of a pad: among 2^24 points, one of the others' adds up to zero with a chance of 2^-40
_WORD: Final = np.dtype("<u8")
_POINT: Final = np.dtype(f"S{POINT_BYTES}")


async def common_points(
    lane: Session,
    ring: Sequence[str],
    identifiers: Sequence[bytes],
    length: int,
    label: str,
    room: Room,
    *,
    shown: bool = False,
) -> Flags:
    """Every party's part.

    Args:
        lane: The alignment's.
        ring: The merger, and two or more other parties.
        identifiers: Of this party's rows.
        length: Of all lists, public, and at least as many as any party has rows.
        label: Under which the merger opens what is common; under LABEL-size, how many that are.
        room: What lists may take.
        shown: Whether the merger may deviate, and so shows that what it opens is common (`shown_points`).

    Returns:
        Of each row of this party whether it is common.

    Raises:
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: A peer's part of a function contradicts itself, or what came out cannot be the intersection
            with this party's rows.
        ValueError: An identifier is given twice.
    """
    merger, *others = ring
    parts = Parts.of(length)
    points = await lane.compute(PartedPoints, identifiers, session_key(lane), parts, room)
    if lane.me == merger:
        return await _collect(lane, others, points, parts, label, room, shown=shown)
    shares = await _shares(lane, [peer for peer in others if peer != lane.me], points, parts, room)
    own = OwnWords(lane) if shown else None
    await _program(lane, merger, points, shares, parts, room, own)  # -> 3
    # Where the merger may deviate, a party with fewer rows does not say so before all have compared.
    size = await receive_size(lane, merger, f"{label}-size", points.rows if own is None else length)  # <- 4
    told, flags = await _opened(lane, merger, points, parts, label, size, room, own)
    if own is not None:
        await check_shown(lane, label, merger, others, told, own)
    if flags is None:
        raise no_intersection(lane)
    return flags


# -- the merger --------------------------------------------------------------------------------------------------------
async def _collect(
    lane: Session, others: Sequence[str], points: PartedPoints, parts: Parts, label: str, room: Room, *, shown: bool
) -> Flags:
    """The merger's part."""
    holders, programmed = await key_holders(lane, others), 1 + shown
    values, read = await _values(lane, holders, points, parts, room, programmed), ReadWords(others)
    flags, common = np.zeros(points.rows, np.bool_), Buckets(alike(parts.capacity), _POINT, room)

    def added_up(part: int, stores: Sequence[Store]) -> None:
        some, words = points.points(part), values.read(part)["words"]
        for place, store in enumerate(stores):
            found = store.at(some)
            words[:, 0] ^= found[:, 0]
            words[:, 1 + place : 2 + place] ^= found[:, 1:]
        zero = words[:, 0] == 0
        flags[points.rows_of(part)[zero]] = True
        by_first_byte(common, strings(some[zero]))
        if shown:
            order = np.argsort(strings(some[zero]))
            read.opened(words[zero][order, 1:])

    for part in range(parts.number):
        stores = await together(
            receive_store(each.session, each.name, parts.layout, programmed) for each in holders
        )  # <- 3
        await lane.compute(added_up, part, stores)
    values.close()
    points.close()
    size, digest = int(flags.sum()), hashlib.sha256()
    await open_size(lane, f"{label}-size", size, points.rows)  # -> 4
    if size:
        await lane.open_pieces(label, _digested(ascending(lane, common), digest), size, *others)  # -> 4
    common.close()
    if shown:
        await show(lane, label, others, digest.digest(), read)
    return flags


async def _digested(pieces: AsyncIterator[NDArray[Any]], digest: Any) -> AsyncIterator[NDArray[Any]]:
    async for piece in pieces:
        digest.update(piece.tobytes())
        yield piece


async def _values(
    lane: Session, holders: Sequence[KeyHolder], points: PartedPoints, parts: Parts, room: Room, programmed: int
) -> Buckets:
    """By part, the sum of the values of all others' functions at the merger's points, and their second words if any."""
    functions = [holder.lane(FUNCTION) for holder in holders]
    second = len(holders) * (programmed - 1)
    values, number = Buckets(parts.number, _words(1 + second), room), 0

    def summed(some: Points, rows: Sequence[Words], part: int) -> None:
        found = [row_hashes(each, some, programmed * WORD_BYTES).view(_WORD) for each in rows]
        records = np.empty(len(some), values.record)
        records["words"][:, 0] = np.bitwise_xor.reduce([each[:, 0] for each in found])
        records["words"][:, 1:] = np.concatenate([each[:, 1:] for each in found], axis=1)
        values.put(part, records)

    async for some, rows in received_by_part(lane, functions, points.sizes, points.points, parts):
        await lane.compute(summed, some, rows, number)
        number += 1
    return values


# -- the others --------------------------------------------------------------------------------------------------------
async def _shares(lane: Session, peers: Sequence[str], points: PartedPoints, parts: Parts, room: Room) -> Buckets:
    """This party's shares, by part: of each point the sum of its pads with all peers."""

    async def own_keys(peer: str) -> AsyncIterator[PartKey]:
        hop, seeds = await own_key(lane, peer)
        async for key in part_keys(hop, peer, seeds, parts.capacity):
            yield key

    async def others_functions() -> AsyncIterator[tuple[Points, Sequence[Words]]]:
        holders = await key_holders(lane, peers)
        async for found in received_by_part(lane, holders, points.sizes, points.points, parts):
            yield found

    def summed(number: int, some: Points, keys: Sequence[PartKey], theirs: Sequence[Words]) -> None:
        total, words = np.zeros(len(some), np.uint64), encoded(some, encoding())
        for key, row in zip(keys, theirs, strict=True):
            total ^= both_values(key, row, some, words, WORD_BYTES).view(_WORD)[:, 0]
        shares.put(number, total)

    shares, done = Buckets(parts.number, _WORD, room), 0
    functions: list[AsyncIterator[Any]] = [others_functions(), *map(own_keys, peers)]
    while (part := await together(map(_next, functions)))[0] is not None:
        (some, theirs), *own = part
        await lane.compute(summed, done, some, own, theirs)
        done += 1
    return shares


async def _next(parts: AsyncIterator[Any]) -> Any:
    """The next part; None after the last."""
    return await anext(parts, None)


async def _program(
    lane: Session,
    merger: str,
    points: PartedPoints,
    shares: Buckets,
    parts: Parts,
    room: Room,
    own: OwnWords | None,
) -> None:
    """Programs the shares into the function that the merger evaluates, and gives them up; with own words if any."""
    masked = Buckets(parts.number, _words(1 if own is None else 2), room)

    def given(part: int) -> Programmed:
        some, words = points.points(part), shares.read(part)[:, None]
        return some, words if own is None else np.concatenate([words, own.at(some)], axis=1)

    def keep(part: int, _points: Points, values: Words) -> None:
        records = np.empty(len(values), masked.record)
        records["words"] = values
        masked.put(part, records)

    def kept(part: int) -> Programmed:
        return points.points(part), np.ascontiguousarray(masked.read(part)["words"])

    hop = await mask(lane, merger, parts, given, keep)
    shares.close()
    await send_stores(hop, merger, parts, kept)
    masked.close()


async def _opened(
    lane: Session,
    merger: str,
    points: PartedPoints,
    parts: Parts,
    label: str,
    size: int,
    room: Room,
    own: OwnWords | None,
) -> tuple[bytes, Flags | None]:
    """A digest of the points that the merger opens, and of each row whether its point is among them.

    None in place of the latter where this party does not hold all. Own words, if any, are taken up at all of them.
    """
    digest, missing = hashlib.sha256(), False
    common, flags = Buckets(parts.number, _POINT, room), np.zeros(points.rows, np.bool_)

    def listed(some: NDArray[np.uint8]) -> None:
        digest.update(some.tobytes())
        found = some.view(_WORD)
        common.add(parts.parts_of(found), strings(found))

    def found_in(part: int) -> None:
        nonlocal missing
        opened = common.read(part).view(np.uint8).reshape(-1, POINT_BYTES)
        if own is not None:
            own.opened(opened.view(_WORD))
        ours, theirs = in_common(points.points(part).view(np.uint8), opened)
        missing = missing or not theirs.all() or int(ours.sum()) != len(opened)
        flags[points.rows_of(part)[ours]] = True

    if size:
        async for some in lane.receive_opened_pieces(merger, label, size, POINT_BYTES):  # <- 4
            await lane.compute(listed, some)
        for part in range(parts.number):
            await lane.compute(found_in, part)
    common.close()
    points.close()
    return digest.digest(), None if missing else flags


def _words(number: int) -> np.dtype[Any]:
    """Records of so many words."""
    return np.dtype([("words", _WORD, (number,))])
