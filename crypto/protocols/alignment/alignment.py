"""Alignment of rows by their identifiers: which row of one party belongs to which row of the others.

n parties hold rows of a table, each with an identifier of its own. Three ways to bring them together:

`intersection`  every party learns which of its rows all others hold too, and all learn them in the same order
`cardinality`   all learn how many identifiers all parties hold, and not which
`union`         every identifier that some party holds gets a public position among positions of nobody; every party
                learns the positions of its own rows, and nobody who else holds what
`union_of_listed`  the same of the identifiers that parties list; each also learns the positions of those that others
                list and it holds

Identifiers are byte strings; what counts as equal (case, blanks, Unicode forms) is settled before.

All agree on one length of all lists, the size class of the job's bound, or of the longest one, a masked maximum, and
    compare the identifiers by pseudorandom functions: intersections of two parties by `oprf_intersection`, of more by
    `zero_shares`; on shares cardinalities by `shared_count`, unions by `shared_positions`.
An intersection of two lists of fewer than `LONG_LISTS` places is the classic exchange: both fill up their lists with
    random points, and raise both lists to their keys. The merger's list is not shuffled by the other, so that the
    merger knows which of its rows are common, and opens to the other, place by place of the list that this one sent,
    which of these are.

Rounds: `intersection` of two short lists 4; else those of its parts.
Group multiplications: twice the length of either list for two short lists.

Adversary: semi-honest; who deviates can invent identifiers. Intersections of three parties and more also withstand
    parties that deviate, where three check (`docs/protocols/alignment.md`). Collusion: any n − 1 parties learn the
    output alone (two short lists: decisional Diffie–Hellman, the hash into the group a random oracle).
Leakage: `alignment_disclosure`. Beside the output all learn the size class of the longest list, or whether one is over
    that of the bound.

Source: for two short lists Meadows, "A More Efficient Cryptographic Matchmaking Protocol", IEEE S&P 1986, and Huberman,
Franklin and Hogg, "Enhancing Privacy and Trust in Electronic Communities", EC 1999.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from crypto.params import STANDARD_128
from crypto.primitives.buckets import Room
from crypto.primitives.groups.commutative import CommutativeKey
from crypto.primitives.groups.ristretto255 import POINT_BYTES, UNIFORM_BYTES, Points, from_uniform_bytes, hash_to_group
from crypto.primitives.hashing import encode_fields
from crypto.primitives.scratch_file import ScratchLimits
from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.alignment.common_rows import (
    KEY,
    Rows,
    open_common,
    own_rows,
    receive_common,
    strings,
)
from crypto.protocols.alignment.layers import KERNEL_POINTS, apply, apply_received, checked
from crypto.protocols.alignment.list_limits import IN_MEMORY
from crypto.protocols.alignment.listed_positions import look_up
from crypto.protocols.alignment.long_lists import Flags, PartedPoints, in_common_order
from crypto.protocols.alignment.oprf_intersection import ORDER, ORDERED, exchange_values, session_key, session_points
from crypto.protocols.alignment.shared_count import count_common
from crypto.protocols.alignment.shared_positions import place_rows
from crypto.protocols.alignment.zero_shares import common_points
from crypto.protocols.comparison.two_party import Pairs
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.transfers.oprf import Parts
from crypto.protocols.union.common_length import agree_on_length
from link.errors import ConfigurationError
from link.session import Session
from protos.v1.alignment_pb2 import EncryptedIdentifiers

_DOMAIN: Final = encode_fields(STANDARD_128.suite.encode(), b"alignment")
LONG_LISTS: Final = 1024  # of two parties, from which on pseudorandom functions cost less than operations on the group


async def intersection(
    session: Session,
    secrets: PairwiseSecrets,
    identifiers: Sequence[bytes],
    *,
    merger: str,
    bound: int | None = None,
    label: str = "intersection",
    limits: ScratchLimits = IN_MEMORY,
    three: Holders3 | None = None,
) -> Rows:
    """Learns which rows all parties hold.

    Every party calls this with the same arguments but `identifiers`.

    Args:
        session: The lane to use; one call per lane.
        secrets: From `pairwise.agree` in this session.
        identifiers: Of this party's rows, different byte strings of any length; perhaps none.
        merger: The party that compares; it learns the outcome first.
        bound: The most rows that any party may have, public. With None all learn the size class of the largest,
            the least (4 + q)·2^j that holds its rows (q = 0 … 3), at least 64.
        label: A label of the job's statement under which the merger opens what is common; with three parties and more
            also LABEL-size, for how many that are.
        limits: What lists may take of memory; an intersection has such where `takes_functions`.
        three: Of three parties and more those who check lengths, where parties may deviate; the merger then shows that
            what it opens is common.

    Returns:
        Shape (common,): the numbers of this party's common rows, in an order that is the same at all parties.

    Raises:
        ConfigurationError: Some party has more rows than the bound allows; all learn so alike, not which one it is.
        MalformedMessage: A peer sent what is no group element, or sizes that the job does not allow.
        ProtocolViolation: What came out cannot be the intersection with this party's rows.
        ValueError: An identifier is given twice.
    """
    lane = session.lane("intersection")
    ring = ring_from(session.parties, merger)
    length = await agree_on_length(lane.lane("length"), secrets, len(identifiers), bound, key=KEY, three=three)
    if takes_functions(len(ring), length):
        with Room(limits, lane.randomness("lists on the disk")) as room:
            if len(ring) == 2:
                common = await exchange_values(lane, ring, identifiers, length, label, room)
            else:
                shown = three is not None
                common = await common_points(lane, ring, identifiers, length, label, room, shown=shown)
            lane.progress(ORDERED, 0, 1)
            return await lane.compute(in_common_order, identifiers, common, ORDER, room)
    await lane.compute(session_points, lane, identifiers)  # refuses one that is given twice
    hashed = await _hashed(lane, identifiers)
    rows = await _exchange(lane, ring, length, hashed, label)
    return await lane.compute(_in_order, rows, hashed)


async def in_agreed_order(
    session: Session, identifiers: Sequence[bytes], common: Flags, limits: ScratchLimits = IN_MEMORY
) -> Rows:
    """The rows that an earlier intersection has found, in an order that is the same at all parties.

    Args:
        session: The lane to use; nothing is sent.
        identifiers: Of this party's rows.
        common: Of each row whether it is common.
        limits: What lists may take of memory.
    """
    with Room(limits, session.randomness("lists on the disk")) as room:
        return await session.compute(in_common_order, identifiers, common, ORDER, room)


def ring_from(parties: Sequence[str], merger: str) -> tuple[str, ...]:
    """The parties in the order of the job, turned so that the merger comes first.

    Raises:
        ConfigurationError: The merger is none of two or more parties.
    """
    if len(parties) < 2 or merger not in parties:
        raise ConfigurationError(
            f"an alignment needs two or more parties with the merger among them, not {merger}; name one of the job's"
        )
    place = parties.index(merger)
    return (*parties[place:], *parties[:place])


def takes_functions(parties: int, length: int) -> bool:
    """Whether an intersection of so many lists of this length compares them by pseudorandom functions."""
    return parties > 2 or length >= LONG_LISTS


async def cardinality(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Pairs,
    identifiers: Sequence[bytes],
    *,
    merger: str,
    bound: int | None = None,
    label: str = "cardinality",
    limits: ScratchLimits = IN_MEMORY,
) -> int:
    """Learns how many identifiers all parties hold; errors are those of `intersection`.

    Args:
        session: The lane to use; one call per lane.
        secrets: From `pairwise.agree` in this session.
        pairs: From `two_party.pairs_of` in this session; what follows an alignment may use them as well.
        identifiers: Of this party's rows.
        merger: The party that compares.
        bound: As for `intersection`.
        label: A label of the job's statement under which all open the number.
        limits: As for `intersection`.
    """
    lane = session.lane("cardinality")
    ring = ring_from(session.parties, merger)
    length = await agree_on_length(lane.lane("length"), secrets, len(identifiers), bound, key=KEY)
    with Room(limits, lane.randomness("lists on the disk")) as room:
        points = await lane.compute(PartedPoints, identifiers, session_key(lane), Parts.of(length), room)
        return await count_common(lane, ring, pairs, points, length, label, room)


async def union(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Pairs,
    identifiers: Sequence[bytes],
    *,
    merger: str,
    bound: int | None = None,
    label: str = "positions",
    key: str = KEY,
    limits: ScratchLimits = IN_MEMORY,
) -> Rows:
    """Learns where this party's rows are among those of all.

    Errors are those of `intersection`.

    Args:
        session: The lane to use; one call per lane.
        secrets: As for `cardinality`.
        pairs: As for `cardinality`.
        identifiers: Of this party's rows.
        merger: The first party.
        bound: As for `intersection`.
        label: A label of the job's statement under which each party learns the positions of its rows.
        key: Of the job, which sets the bound, for people.
        limits: As for `intersection`.

    Returns:
        Shape (positions,): for every position the number of this party's row there, −1 where it has none. There are as
        many positions as all parties' lists have places together, whatever they share.
    """
    lane = session.lane("row-union")
    ring = ring_from(session.parties, merger)
    length = await agree_on_length(lane.lane("length"), secrets, len(identifiers), bound, key=key)
    with Room(limits, lane.randomness("lists on the disk")) as room:
        points = await lane.compute(PartedPoints, identifiers, session_key(lane), Parts.of(length), room)
        return await place_rows(lane, ring, pairs, points, length, label, room)


async def union_of_listed(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Pairs,
    listed: Sequence[bytes],
    others: Sequence[bytes],
    *,
    merger: str,
    label: str = "positions",
    limits: ScratchLimits = IN_MEMORY,
) -> Rows:
    """Learns where this party's identifiers are among those that some party has listed.

    All learn the size classes of the longest list, and of the most identifiers that a party has, listed or not. Errors
    are those of `intersection`.

    Args:
        session: The lane to use; one call per lane.
        secrets: As for `cardinality`.
        pairs: As for `cardinality`.
        listed: Of this party's identifiers those that have positions in any case.
        others: All others: these have one where another party has listed them, and this party learns which do.
        merger: The first party.
        label: A label of the job's statement under which each party learns positions.
        limits: As for `intersection`.

    Returns:
        Shape (positions,): for every position the number of this party's identifier there, of the listed ones and then
        of the others, −1 where it has none. There are as many as all parties' lists have places together.
    """
    lane, number = session.lane("listed-union"), len(listed) + len(others)
    ring = ring_from(session.parties, merger)
    length = await agree_on_length(lane.lane("length"), secrets, len(listed), None, key=KEY)
    whole = await agree_on_length(lane.lane("all"), secrets, number, None, key=KEY)
    key = session_key(lane)
    with Room(limits, lane.randomness("lists on the disk")) as room:
        points = await lane.compute(PartedPoints, listed, key, Parts.of(length), room)
        rows = await place_rows(lane.lane("rows"), ring, pairs, points, length, label, room)
        places = np.flatnonzero(rows >= 0)
        positions = np.empty(len(listed), np.uint32)
        positions[rows[places]] = places
        again = await lane.compute(PartedPoints, listed, key, Parts.of(whole), room)
        rest = await lane.compute(PartedPoints, others, key, Parts.of(whole), room)
        found = await look_up(lane.lane("others"), ring, pairs, (again, positions), rest, whole, len(rows), label, room)
    known = np.flatnonzero(found < len(rows))
    rows[found[known]] = len(listed) + known
    return rows


# -- two parties ------------------------------------------------------------------------------------------
async def _exchange(lane: Session, ring: Sequence[str], length: int, hashed: Points, label: str) -> Rows:
    """Both raise both lists to their keys. No list is shuffled but by its owner, so the merger recognises its rows."""
    merger, other = ring
    (peer,) = lane.others
    key = CommutativeKey.generate(lane.randomness("key"))
    here, order = await _own_list(lane, length, hashed, key)
    await lane.send_array(peer, EncryptedIdentifiers, here)  # -> 1
    there = await lane.recv_array(peer, EncryptedIdentifiers, np.uint8, (length, POINT_BYTES))  # <- 1
    there = await apply_received(lane, key.encrypt, there, peer)
    if lane.me == other:
        await lane.send_array(merger, EncryptedIdentifiers, there)  # -> 2
        return await receive_common(lane, label, order, len(hashed))  # <- 3
    here = await lane.recv_array(other, EncryptedIdentifiers, np.uint8, here.shape)  # <- 2
    await apply_received(lane, checked, here, other)
    sides = [(strings(here), strings(there)), (strings(there), strings(here))]
    ours, theirs = await lane.map(lambda pair: np.isin(pair[0], pair[1]), sides)
    await open_common(lane, label, ours, theirs)  # -> 3
    return own_rows(lane, order[ours], len(hashed))


# -- lists -------------------------------------------------------------------------------------------------------------
async def _hashed(lane: Session, identifiers: Sequence[bytes]) -> Points:
    """H of each identifier, shape (m, 32)."""
    chunks = [identifiers[start : start + KERNEL_POINTS] for start in range(0, len(identifiers), KERNEL_POINTS)]
    hashed = await lane.map(lambda chunk: hash_to_group(chunk, _DOMAIN), chunks)
    return np.concatenate([np.empty((0, POINT_BYTES), np.uint8), *hashed])


async def _own_list(lane: Session, length: int, hashed: Points, key: CommutativeKey) -> tuple[Points, Rows]:
    """This party's list under its key, filled up with random points, in a secret order.

    Returns:
        Shape (length, 32); and for every place which row is there, a number beyond the rows where none does.
    """
    uniform = lane.randomness("random points").bytes(UNIFORM_BYTES * (length - len(hashed)))
    parts = [np.empty((0, POINT_BYTES), np.uint8)]
    if len(hashed):
        parts.append(await apply(lane, key.encrypt, hashed))
    if uniform:
        filling = np.frombuffer(uniform, np.uint8).reshape(-1, UNIFORM_BYTES)
        parts.append(await apply(lane, from_uniform_bytes, filling))
    order = lane.randomness("permutation").permutation(length)
    return np.concatenate(parts)[order], order


def _in_order(rows: Rows, hashed: Points) -> Rows:
    """The rows in the order of their points, which is the same at all parties."""
    return rows[np.argsort(strings(hashed[rows]))]
