"""Intersection of two parties' identifiers by an oblivious pseudorandom function, without operations on a group.

What comes out, and what each party learns, is as in `alignment.intersection` of two parties:
    0  agree    on the length of both lists: the size class of the job's bound, or of the longer one
    1  values   the merger receives the function's values F at its identifiers (`oprf`), and the other party the key
    2  list     the other party sends F of its identifiers in a secret order, filled up with random values
    3  open     the merger opens, place by place of this list, whether F stands there for one of its own
Both take the common rows in the order of the points of their identifiers, hashes under a key of the session.

The merger knows F at its own identifiers alone. At all others it is as good as random, so that these places of the list
look like those that are filled up. The other party sees the merger's identifiers only under streams that it has not.

Rounds: 6: masked maximum, seeds 2, rows, list, opening; the keys' transfers go with the seeds' last message.
Bytes: 84 for each place of a list, and one opened, at length 10^5: the stores of code words, and values of 10 bytes.

Adversary: semi-honest; who deviates can invent identifiers, and a merger that deviates may test as many as it likes
    once it has the sender's secret (`oprf`). Collusion: does not apply, two parties.
Leakage: `alignment_disclosure` for intersection of two parties.
Errors: a value of 40 + 2·log2(length) bits stands by chance for an identifier that it is not of: at most 2^-40 a run.

Source: Pinkas, Rosulek, Trieu and Yanai, "PSI from PaXoS: Fast, Malicious Private Set Intersection", EUROCRYPT 2020, in
its semi-honest form, with lists filled up to a size class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.hashing import encode_labels
from crypto.primitives.point_hash import KEY_BYTES, points_of
from crypto.protocols.alignment.common_rows import (
    KEY,
    Rows,
    check_different,
    open_common,
    own_rows,
    receive_common,
)
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.transfers.oprf import receive_values, send_values
from crypto.protocols.union.common_length import agree_on_length
from crypto.protocols.union.set_union import ring_from
from link.session import Session
from protos.v1.alignment_pb2 import EvaluatedIdentifiers

_STATISTICAL_BITS: Final = 40

Values = NDArray[np.uint8]


async def oprf_intersection(
    session: Session,
    secrets: PairwiseSecrets,
    identifiers: Sequence[bytes],
    *,
    merger: str,
    bound: int | None = None,
    label: str = "intersection",
) -> Rows:
    """Learns which rows both parties hold; arguments, result and errors are those of `alignment.intersection`.

    Raises:
        ConfigurationError: Some party has more rows than the bound allows; both learn so alike.
        MalformedMessage: The peer's messages have another size.
        ProtocolViolation: What came out cannot be the intersection with this party's rows.
        ValueError: There are not two parties, or an identifier is given twice.
    """
    lane = session.lane("oprf-intersection")
    merger, other = ring_from(session.parties, merger)
    check_different(identifiers)
    length = await agree_on_length(lane.lane("length"), secrets, len(identifiers), bound, key=KEY)
    points_key, code_key = (_public_key(lane, purpose) for purpose in ("points", "code"))
    points, size = await lane.compute(points_of, identifiers, points_key), value_bytes(length)
    seeds = TwoParty(lane.lane("seeds"), (merger, other))
    if lane.me == other:
        sender = await seeds.receiving(lane)
        values = await send_values(lane.lane("values"), merger, sender, points, length, code_key, size)
        order = lane.randomness("order").permutation(length)
        filling = np.frombuffer(lane.randomness("filling").bytes((length - len(points)) * size), np.uint8)
        filled = np.concatenate([values, filling.reshape(-1, size)])[order]
        await lane.send_array(merger, EvaluatedIdentifiers, filled)
        rows = await receive_common(lane, label, order, len(points))
    else:
        receiver = await seeds.sending(lane)
        values = await receive_values(lane.lane("values"), other, receiver, points, length, code_key, size)
        filled = await lane.recv_array(other, EvaluatedIdentifiers, np.uint8, (length, size))
        ours, theirs = await lane.compute(_common, values, filled)
        await open_common(lane, label, ours, theirs)
        rows = own_rows(lane, np.flatnonzero(ours), len(points))
    return rows[np.lexsort(points[rows].T)]


def value_bytes(length: int) -> int:
    """Of the function's values where each party's list has so many: 40 + 2·log2(length) bits, rounded up."""
    return -(-(_STATISTICAL_BITS + (length**2 - 1).bit_length()) // 8)


def _common(ours: Values, theirs: Values) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each value whether the other list has it."""
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


def _public_key(lane: Session, purpose: str) -> bytes:
    """A key of this call, which nobody knew when the identifiers were chosen."""
    return hashlib.sha256(encode_labels("OPRF intersection", lane.id, lane.path, purpose)).digest()[:KEY_BYTES]
