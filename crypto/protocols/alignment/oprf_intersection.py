"""Intersection of two parties' identifiers by an oblivious pseudorandom function, for `alignment.intersection`.

Both know the length of their lists, and a point of each identifier: a hash under a key of the session.
    1  values   the merger receives the function's values F at its points (`oprf`), and the other party the key
    2  list     the other party sends F of its points in a secret order, filled up with random values
    3  open     the merger opens, place by place of this list, whether F stands there for one of its own

The merger knows F at its own identifiers alone. At all others it is as good as random, so that these places of the list
look like those that are filled up. The other party sees the merger's points only under streams that it has not.

Rounds: 9 with one part, and 2 for each further one: those of `oprf`, list, opening.
Bytes: 94 for each place of a list, one of them opened, at length 10^5: the stores' rows, and values of 10 bytes.

Adversary: semi-honest, and who deviates can invent identifiers; a merger that deviates in the function can test a
    bounded number of them, about twice the list's length (`oprf`). Collusion: does not apply, two parties.
Leakage: `alignment_disclosure` for intersection of two parties.
Errors: a value of 40 + 2·log2(length) bits stands by chance for an identifier that it is not of: at most 2^-40 a run.

Source: Pinkas, Rosulek, Trieu and Yanai, "PSI from PaXoS: Fast, Malicious Private Set Intersection", EUROCRYPT 2020,
with lists filled up to a size class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np

from crypto.primitives.buckets import Buckets, Room
from crypto.primitives.groups.point_hash import KEY_BYTES, Points, points_of
from crypto.primitives.hashing import encode_labels
from crypto.primitives.row_hash import row_hashes
from crypto.protocols.alignment.common_rows import open_common, opened_places, own_rows
from crypto.protocols.alignment.long_lists import (
    AT_ONCE,
    Flags,
    PartedPoints,
    alike,
    by_beginning,
    by_row,
    check_different,
    common_numbers,
    in_turn,
    list_of,
    secret_places,
    valued,
    with_numbers,
)
from crypto.protocols.transfers.extension_seeds import prepare_receiving, prepare_sending
from crypto.protocols.transfers.oprf import KeyHolder, PartKey, Parts, part_keys, received_by_part
from link.session import Session
from protos.v1.alignment_pb2 import EvaluatedIdentifiers

_STATISTICAL_BITS: Final = 40
ORDER: Final = hashlib.sha256(b"comine order of common rows").digest()[:KEY_BYTES]
LISTED: Final = "alignment/list"  # steps
ORDERED: Final = "alignment/order"


async def exchange_values(
    lane: Session, ring: Sequence[str], identifiers: Sequence[bytes], length: int, label: str, room: Room
) -> Flags:
    """Both parties' parts.

    Args:
        lane: The alignment's.
        ring: The merger, and the other party.
        identifiers: Of this party's rows.
        length: Of both lists, public, and at least as many as any party has rows.
        label: Under which the merger opens what is common.
        room: What lists may take.

    Returns:
        Of each row of this party whether it is common.

    Raises:
        MalformedMessage: The peer's messages have another size.
        ProtocolViolation: The peer's part of the function contradicts itself, or what came out cannot be the
            intersection with this party's rows.
        ValueError: An identifier is given twice.
    """
    parts = Parts.of(length)
    points = await lane.compute(PartedPoints, identifiers, session_key(lane), parts, room)
    part = _merge if lane.me == ring[0] else _list
    return await part(lane, points, parts, label, room)


# -- the party that does not merge -------------------------------------------------------------------------------------
async def _list(lane: Session, points: PartedPoints, parts: Parts, label: str, room: Room) -> Flags:
    (merger,) = lane.others
    length, size = parts.capacity, value_bytes(parts.capacity)
    seeds = await prepare_receiving(lane.lane("seeds"), merger, field_bits=1, symbol_bits=1)
    values, number = Buckets(-(-length // AT_ONCE), valued(size), room), 0

    def evaluated(key: PartKey, part: int) -> None:
        found = key.values(points.points(part), size)
        by_row(values, with_numbers(found, points.rows_of(part)))

    hop = lane.lane("values")
    async for key in part_keys(hop, merger, seeds, length):
        await lane.compute(evaluated, key, number)
        number += 1
        hop.progress(hop.path, number, parts.number)
    points.close()
    filling, order = lane.randomness("filling"), lane.randomness("order")

    def listed() -> tuple[Buckets, Buckets]:
        for start in range(points.rows, length, AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, length))
            random = np.frombuffer(filling.bytes(len(rows) * size), np.uint8).reshape(-1, size)
            by_row(values, with_numbers(random, rows))
        places = secret_places(order, length, room)
        return list_of(values, places, room), places

    lane.progress(LISTED, 0, 1)
    found, places = await lane.compute(listed)
    values.close()
    await lane.send_pieces(merger, EvaluatedIdentifiers, in_turn(lane, found), length)
    found.close()
    opened = await opened_places(lane, label, length)

    def common_rows() -> Flags:
        common = np.zeros(points.rows, np.bool_)
        for piece in range(len(places)):
            rows = places.read(piece)
            common[own_rows(lane, rows[opened[piece * AT_ONCE :][: len(rows)]], points.rows)] = True
        places.close()
        return common

    return await lane.compute(common_rows)


# -- the merger --------------------------------------------------------------------------------------------------------
async def _merge(lane: Session, points: PartedPoints, parts: Parts, label: str, room: Room) -> Flags:
    (other,) = lane.others
    length, size = parts.capacity, value_bytes(parts.capacity)
    seeds = await prepare_sending(lane.lane("seeds"), other, field_bits=1, symbol_bits=1)
    ours, theirs = (Buckets(alike(length), valued(size), room) for _ in range(2))
    holder, number, place = KeyHolder(lane.lane("values"), other, seeds), 0, 0
    async for some, (rows,) in received_by_part(holder.session, [holder], points.sizes, points.points, parts):
        found = await lane.compute(row_hashes, rows, some, size)
        await lane.compute(by_beginning, ours, with_numbers(found, points.rows_of(number)))
        number += 1
    points.close()
    lane.progress(LISTED, 0, 1)
    async for values in lane.recv_pieces(other, EvaluatedIdentifiers, length, size):
        numbers = np.arange(place, place + len(values))
        await lane.compute(by_beginning, theirs, with_numbers(values, numbers))
        place += len(values)
    common, places = await lane.compute(common_numbers, ours, theirs, points.rows, length)
    ours.close()
    theirs.close()
    await open_common(lane, label, common, places)
    return common


# -- points and values -------------------------------------------------------------------------------------------------
def session_key(lane: Session) -> bytes:
    """A key of this call, which nobody knew when identifiers were chosen."""
    return hashlib.sha256(encode_labels("points of identifiers", lane.id, lane.path)).digest()[:KEY_BYTES]


def session_points(lane: Session, identifiers: Sequence[bytes]) -> Points:
    """Each identifier's point under `session_key`.

    Raises:
        ValueError: An identifier is given twice.
    """
    key = session_key(lane)
    points = np.empty((len(identifiers), 2), np.uint64)
    for start in range(0, len(identifiers), AT_ONCE):
        points[start : start + AT_ONCE] = points_of(identifiers[start : start + AT_ONCE], key)
    check_different(points)
    return points


def value_bytes(length: int) -> int:
    """Of the function's values where each party's list has so many: 40 + 2·log2(length) bits, rounded up."""
    return -(-(_STATISTICAL_BITS + (length**2 - 1).bit_length()) // 8)
