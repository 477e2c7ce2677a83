"""The pseudorandom functions of an alignment: for a pair of parties those whose key one has and the other evaluates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, Final

import numpy as np

from crypto.primitives.buckets import Buckets, Records
from crypto.primitives.groups.point_hash import Points, Words
from crypto.primitives.row_hash import row_hashes
from crypto.protocols.comparison.comparison import BLOCK as COMPARED
from crypto.protocols.transfers.extension_seeds import ReceiverSeeds, prepare_receiving, prepare_sending
from crypto.protocols.transfers.oprf import KeyHolder, Packed, PartKey, Parts, part_keys, received_by_part
from crypto.protocols.transfers.programmable_oprf import FUNCTION, Store, receive_store, send_store
from link.session import Session
from link.tasks import together

WORD: Final = np.dtype("<u8")
BIN: Final = np.dtype("<i4")

Programmed = tuple[Points, Words]
"""Points, and at each of them words: shapes (n, 2) and (n, words)."""


async def key_holders(lane: Session, peers: Sequence[str]) -> Sequence[KeyHolder]:
    """The others as those who hold the keys of functions that this party evaluates."""

    async def holder(peer: str) -> KeyHolder:
        hop = _of_key(lane, peer, lane.me)
        return KeyHolder(
            hop.lane("values"), peer, await prepare_sending(hop.lane("seeds"), peer, field_bits=1, symbol_bits=1)
        )

    return await together(map(holder, peers))


async def own_key(lane: Session, evaluator: str) -> tuple[Session, ReceiverSeeds]:
    """The lane and the seeds of the function whose key this party has."""
    hop = _of_key(lane, lane.me, evaluator)
    seeds = await prepare_receiving(hop.lane("seeds"), evaluator, field_bits=1, symbol_bits=1)
    return hop.lane("values"), seeds


def both_values(key: PartKey, theirs: Words, points: Points, words: Words, size: int) -> Packed:
    """The sums of the values of two functions of a pair.

    Args:
        key: Of one function.
        theirs: The points' rows in the other one, of which the peer has the key.
        points: Shape (n, 2).
        words: Of the code, for these points, shape (n, 8).
        size: Bytes of a value.

    Returns:
        Shape (n, size).
    """
    return key.values(points, size, words) ^ row_hashes(theirs, points, size)


async def collect(
    lane: Session,
    others: Sequence[str],
    asked: Buckets,
    parts: tuple[Parts, Parts],
    collected: Buckets,
) -> None:
    """The merger's part: what each other party has programmed at the merger's points.

    Args:
        lane: The alignment's.
        others: All parties but the merger.
        asked: By part, the merger's points, each in its bin; given up here.
        parts: Into which the merger's points are divided, and each other's, public.
        collected: Takes by block of bins what came, in records of `collected_record`.
    """
    own, stored = parts
    holders, number = await key_holders(lane, others), 0
    functions = [holder.lane(FUNCTION) for holder in holders]
    words = collected.record["values"].shape[1]
    record = np.dtype([("point", WORD, (2,)), *collected.record.descr])
    evaluated = collected.like(stored.number, record)

    def points_of(part: int) -> Points:
        return np.ascontiguousarray(asked.read(part)["point"])

    def summed(some: Points, rows: Sequence[Words], part: int) -> None:
        found = np.empty(len(some), record)
        found["point"], found["bin"] = some, asked.read(part)["bin"]
        for place, each in enumerate(rows):
            found["values"][:, place] = row_hashes(each, some, words * WORD.itemsize).view(WORD)
        evaluated.add(stored.parts_of(some), found)

    async for some, rows in received_by_part(lane, functions, asked.counts.tolist(), points_of, own):
        await lane.compute(summed, some, rows, number)
        number += 1
    asked.close()

    def entered(some: Records) -> None:
        found = np.empty(len(some), collected.record)
        found["bin"], found["values"] = some["bin"], some["values"]
        collected.add(found["bin"] // COMPARED, found)

    for part in range(stored.number):
        some = await lane.compute(evaluated.read, part)
        await _with_stores(lane, holders, stored, some, partial(entered, some))
    evaluated.close()


async def _with_stores(
    lane: Session, holders: Sequence[KeyHolder], stored: Parts, some: Records, finish: Callable[[], None]
) -> None:
    """Adds what all stores of a part hold to the values of some points, each as it comes; the last one finishes."""
    points, left, lock = np.ascontiguousarray(some["point"]), len(holders), Lock()
    words = some["values"].shape[2]

    def added(place: int, store: Store) -> None:
        nonlocal left
        some["values"][:, place] ^= store.at(points)
        with lock:
            left -= 1
            last = not left
        if last:
            finish()

    async def taken(place: int, holder: KeyHolder) -> None:
        store = await receive_store(holder.session, holder.name, stored.layout, words)
        await lane.compute(added, place, store)

    await together(taken(*each) for each in enumerate(holders))


def collected_record(others: int, words: int) -> np.dtype[Any]:
    """What came of so many others, each value of so many words, and in which bin it is asked for."""
    return np.dtype([("bin", BIN), ("values", WORD, (others, words))])


def programmed_record(words: int) -> np.dtype[Any]:
    """A point and what is programmed there."""
    return np.dtype([("point", WORD, (2,)), ("value", WORD, (words,))])


async def program(lane: Session, merger: str, programmed: Buckets, parts: tuple[Parts, Parts]) -> None:
    """Every other party's part of `collect`.

    Args:
        lane: The alignment's.
        merger: The one that gets the values.
        programmed: By part of the merger's points, records of `programmed_record`; values look random to the merger.
            Given up here.
        parts: As for `collect`.

    Raises:
        InternalError: By chance, one part of this party's points has more than it has room for.
    """
    own, stored = parts
    masked = programmed.like(stored.number, programmed.record)

    def given(part: int) -> Programmed:
        return _columns(programmed.read(part))

    def keep(_part: int, points: Points, values: Words) -> None:
        found = np.empty(len(points), masked.record)
        found["point"], found["value"] = points, values
        masked.add(stored.parts_of(points), found)

    hop = await mask(lane, merger, own, given, keep)
    programmed.close()
    stored.check(masked.counts.tolist())
    await send_stores(hop, merger, stored, lambda part: _columns(masked.read(part)))
    masked.close()


async def mask(
    lane: Session,
    merger: str,
    own: Parts,
    given: Callable[[int], Programmed],
    keep: Callable[[int, Points, Words], None],
) -> Session:
    """What is programmed, masked by the function that the merger evaluates.

    Args:
        lane: The alignment's.
        merger: The one that evaluates it.
        own: Into which the merger's points are divided.
        given: By part, this party's points and what is programmed there.
        keep: Takes by part the points and the masked values.

    Returns:
        The lane of the stores.
    """
    hop, seeds = await own_key(lane, merger)
    function, number = hop.lane(FUNCTION), 0

    def masked(key: PartKey, part: int) -> None:
        points, values = given(part)
        keep(part, points, values ^ key.values(points, values.shape[1] * WORD.itemsize).view(WORD))

    async for key in part_keys(function, merger, seeds, own.capacity):
        await lane.compute(masked, key, number)
        number += 1
        function.progress(function.path, number, own.number)
    return hop


async def send_stores(hop: Session, merger: str, stored: Parts, masked: Callable[[int], Programmed]) -> None:
    """Sends the stores of masked values, part by part.

    Args:
        hop: From `mask`.
        merger: As for `mask`.
        stored: Into which this party's points are divided.
        masked: By part, points and their masked values.
    """
    random = hop.randomness("store")
    for part in range(stored.number):
        points, values = await hop.compute(masked, part)
        await send_store(hop, merger, stored.layout, points, values, random)


def _columns(records: Records) -> Programmed:
    points, values = (np.ascontiguousarray(records[name]) for name in ("point", "value"))
    return points, values


def _of_key(lane: Session, holder: str, evaluator: str) -> Session:
    """The lane of the function whose key one has and which the other evaluates."""
    return lane.among(f"{holder} for {evaluator}", (holder, evaluator))
