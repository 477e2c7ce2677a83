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
from numpy.typing import NDArray

from crypto.primitives.groups.point_hash import KEY_BYTES, Points, points_of
from crypto.primitives.hashing import encode_labels
from crypto.protocols.alignment.common_rows import TWICE, Rows, open_common, own_rows, receive_common
from crypto.protocols.transfers.extension_seeds import prepare_receiving, prepare_sending
from crypto.protocols.transfers.oprf import receive_values, send_values
from link.session import Session
from protos.v1.alignment_pb2 import EvaluatedIdentifiers

_STATISTICAL_BITS: Final = 40
_ORDER: Final = hashlib.sha256(b"comine order of common rows").digest()[:KEY_BYTES]
AT_ONCE: Final = 1 << 17  # identifiers that are looked at in one piece

Values = NDArray[np.uint8]


async def exchange_values(lane: Session, ring: Sequence[str], points: Points, length: int, label: str) -> Rows:
    """Both parties' parts.

    Args:
        lane: The alignment's.
        ring: The merger, and the other party.
        points: From `session_points`.
        length: Of both lists, public, and at least as many as any party has points.
        label: Under which the merger opens what is common.

    Returns:
        Shape (common,): the numbers of this party's common rows, ascending.

    Raises:
        MalformedMessage: The peer's messages have another size.
        ProtocolViolation: The peer's part of the function contradicts itself, or what came out cannot be the
            intersection with this party's rows.
    """
    merger, other = ring
    size = value_bytes(length)
    if lane.me == other:
        sender = await prepare_receiving(lane.lane("seeds"), merger, field_bits=1, symbol_bits=1)
        values = await send_values(lane.lane("values"), merger, sender, points, length, size)
        filling = np.frombuffer(lane.randomness("filling").bytes((length - len(points)) * size), np.uint8)
        values = np.concatenate([values, filling.reshape(-1, size)])
        order = lane.randomness("order").permutation(length)
        await lane.send_array(merger, EvaluatedIdentifiers, values[order])
        del values
        return np.sort(await receive_common(lane, label, order, len(points)))
    receiver = await prepare_sending(lane.lane("seeds"), other, field_bits=1, symbol_bits=1)
    values = await receive_values(lane.lane("values"), other, receiver, points, length, size)
    filled = await lane.recv_array(other, EvaluatedIdentifiers, np.uint8, (length, size))
    ours, theirs = await lane.compute(in_common, values, filled)
    await open_common(lane, label, ours, theirs)
    return own_rows(lane, np.flatnonzero(ours), len(points))


def session_points(lane: Session, identifiers: Sequence[bytes]) -> Points:
    """Each identifier's point under a key of this call, which nobody knew when the identifiers were chosen.

    Raises:
        ValueError: An identifier is given twice.
    """
    key = hashlib.sha256(encode_labels("points of identifiers", lane.id, lane.path)).digest()[:KEY_BYTES]
    points = np.empty((len(identifiers), 2), np.uint64)
    for start in range(0, len(identifiers), AT_ONCE):
        points[start : start + AT_ONCE] = points_of(identifiers[start : start + AT_ONCE], key)
    heads = np.sort(points[:, 0])
    if (heads[1:] == heads[:-1]).any() and len(np.unique(points, axis=0)) != len(points):
        raise ValueError(TWICE)
    return points


def in_common_order(identifiers: Sequence[bytes], rows: Rows) -> Rows:
    """Rows in the order of fixed hashes of their identifiers, which is the same at all parties and in all runs.

    Args:
        identifiers: Of all rows.
        rows: Some rows' numbers, ascending.
    """
    points = np.empty((len(rows), 2), np.uint64)
    for start in range(0, len(identifiers), AT_ONCE):
        first, last = np.searchsorted(rows, (start, start + AT_ONCE))
        piece = identifiers[start : start + AT_ONCE]
        points[first:last] = points_of([piece[row] for row in (rows[first:last] - start).tolist()], _ORDER)
    order = np.argsort(points[:, 0].copy())
    heads = points[order, 0]
    if (heads[1:] == heads[:-1]).any():
        order = np.lexsort(points.T[::-1])
    return rows[order]


def value_bytes(length: int) -> int:
    """Of the function's values where each party's list has so many: 40 + 2·log2(length) bits, rounded up."""
    return -(-(_STATISTICAL_BITS + (length**2 - 1).bit_length()) // 8)


def in_common(ours: Values, theirs: Values) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each value whether the other list has it; values that begin alike are looked at together, some at a time."""
    pieces = min(-(-max(len(ours), len(theirs)) // AT_ONCE), 256)
    found = np.zeros(len(ours), np.bool_), np.zeros(len(theirs), np.bool_)
    piece_of = [each[:, 0].astype(np.uint16) * pieces >> 8 for each in (ours, theirs)]
    for piece in range(pieces):
        here, there = (np.flatnonzero(each == piece) for each in piece_of)
        found[0][here], found[1][there] = _common_piece(ours[here], theirs[there])
    return found


def _common_piece(ours: Values, theirs: Values) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    heads = np.concatenate([_heads(ours), _heads(theirs)])
    order = np.argsort(heads)
    heads = heads[order]
    equal = np.flatnonzero(heads[1:] == heads[:-1])
    pairs = np.sort([order[equal], order[equal + 1]], axis=0)
    pairs[1] -= len(ours)
    if (pairs[0] >= len(ours)).any() or (pairs[1] < 0).any() or (np.diff(equal) == 1).any():
        return _common_strings(ours, theirs)  # heads of one list are equal
    one, other = pairs[:, (ours[pairs[0]] == theirs[pairs[1]]).all(axis=1)]
    return _flags(len(ours), one), _flags(len(theirs), other)


def _common_strings(ours: Values, theirs: Values) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    one, other = (np.ascontiguousarray(each).view(f"S{each.shape[1]}")[:, 0] for each in (ours, theirs))
    return np.isin(one, other), np.isin(other, one)


def _heads(values: Values) -> NDArray[np.uint64]:
    """The first eight bytes of each value, filled up with zeros."""
    heads = np.zeros((len(values), 8), np.uint8)
    heads[:, : values.shape[1]] = values[:, :8]
    return heads.view(np.uint64)[:, 0]


def _flags(number: int, places: Rows) -> NDArray[np.bool_]:
    flags = np.zeros(number, np.bool_)
    flags[places] = True
    return flags
