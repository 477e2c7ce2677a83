"""Lists of an alignment, which may exceed the memory: points, values in a secret order, and rows in the common order.

A list lies in buckets (`crypto.primitives.buckets`), which are worked on one after the other. All lists of a run share
one room; of what they hold, memory has no more than that, a bucket or two, and a byte for each row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.buckets import Buckets, Records, Room
from crypto.primitives.groups.point_hash import Points, points_of
from crypto.protocols.alignment.common_rows import TWICE, Rows
from crypto.protocols.transfers.oprf import Parts
from link.randomness import RandomStream
from link.session import Session

AT_ONCE: Final = 1 << 17  # identifiers, or places of a list, that are looked at in one piece
_MOST_BUCKETS: Final = 256  # of values alike, by their first byte
_ROW: Final = np.dtype("<u4")
_POINT: Final = np.dtype([("point", "<u8", (2,)), ("row", _ROW)])
_KEYED: Final = np.dtype([("key", "<u8"), ("row", _ROW)])
_PLACED: Final = np.dtype([("row", _ROW), ("place", _ROW)])

Flags = NDArray[np.bool_]
Values = NDArray[np.uint8]


def valued(size: int) -> np.dtype[Any]:
    """The type of a value of so many bytes, with the row or place that it is of."""
    return np.dtype([("value", np.uint8, (size,)), ("number", _ROW)])


def with_numbers(values: Values, numbers: NDArray[Any]) -> Records:
    """Values, shape (n, size), each with its row or place."""
    found = np.empty(len(values), valued(values.shape[1]))
    found["value"], found["number"] = values, numbers
    return found


# -- points ------------------------------------------------------------------------------------------------------------
class PartedPoints:
    """The points of a party's identifiers, by part of a pseudorandom function.

    Args:
        identifiers: Of its rows.
        key: Of the points.
        parts: How the function divides them.
        room: For the list.
    """

    def __init__(self, identifiers: Sequence[bytes], key: bytes, parts: Parts, room: Room) -> None:
        self.rows: Final = len(identifiers)
        self._points, self._part = Buckets(parts.number, _POINT, room), -1
        self._some = np.empty(0, _POINT)
        for start in range(0, self.rows, AT_ONCE):
            piece = identifiers[start : start + AT_ONCE]
            found = np.empty(len(piece), _POINT)
            found["point"], found["row"] = points_of(piece, key), np.arange(start, start + len(piece))
            self._points.add(parts.parts_of(found["point"]), found)

    @property
    def sizes(self) -> list[int]:
        """By part, how many points are in it."""
        return self._points.counts.tolist()

    def points(self, part: int) -> Points:
        """The points of a part, in the order of their rows.

        Raises:
            ValueError: An identifier is given twice.
        """
        return np.ascontiguousarray(self._of(part)["point"])

    def rows_of(self, part: int) -> NDArray[np.uint32]:
        """Of each of these, its row."""
        rows: NDArray[np.uint32] = self._of(part)["row"]
        return rows

    def close(self) -> None:
        """Gives them up."""
        self._points.close()
        self._some = np.empty(0, _POINT)

    def _of(self, part: int) -> Records:
        if part != self._part:
            self._part, self._some = part, self._points.read(part)
            check_different(self._some["point"])
        return self._some


def check_different(points: Points) -> None:
    """Refuses points of which two are equal.

    Raises:
        ValueError: An identifier is given twice.
    """
    heads = np.sort(points[:, 0])
    if (heads[1:] == heads[:-1]).any() and len(np.unique(points, axis=0)) != len(points):
        raise ValueError(TWICE)


# -- a secret order ----------------------------------------------------------------------------------------------------
def secret_places(random: RandomStream, length: int, room: Room) -> Buckets:
    """A uniform order of so many rows: that of `RandomStream.permutation`, of the same words.

    Returns:
        The rows in the order of places, `AT_ONCE` to a bucket.
    """
    while True:
        keyed, places = Buckets(_buckets(length), _KEYED, room), Buckets(_pieces(length), _ROW, room)
        for start in range(0, length, AT_ONCE):
            keys = random.uint64(min(AT_ONCE, length - start))
            found = np.empty(len(keys), _KEYED)
            found["key"], found["row"] = keys, np.arange(start, start + len(keys))
            keyed.add(_by_head(keys, len(keyed)), found)
        if _in_order_of_keys(keyed, places):
            return places
        places.close()  # two keys were equal


def secret_order(random: RandomStream, length: int, room: Room) -> NDArray[np.uint32]:
    """`secret_places` in one array, shape (length,)."""
    places, found = secret_places(random, length, room), np.empty(length, _ROW)
    for piece in range(len(places)):
        found[piece * AT_ONCE : (piece + 1) * AT_ONCE] = places.read(piece)
    places.close()
    return found


def _in_order_of_keys(keyed: Buckets, places: Buckets) -> bool:
    """Enters the rows in ascending order of their keys; whether these differ."""
    done = 0
    for bucket in range(len(keyed)):
        found = keyed.read(bucket)
        order = np.argsort(found["key"])
        keys = found["key"][order]
        if (keys[1:] == keys[:-1]).any():
            break
        places.add(np.arange(done, done + len(found)) // AT_ONCE, found["row"][order])
        done += len(found)
    keyed.close()
    return done == int(keyed.counts.sum())


def by_row(values: Buckets, records: Records) -> None:
    """Enters values with their rows into buckets of `AT_ONCE` rows."""
    values.add(records["number"] // AT_ONCE, records)


def list_of(values: Buckets, places: Buckets, room: Room) -> Buckets:
    """The values with their places, `AT_ONCE` places to a bucket.

    Args:
        values: As `by_row` enters them, of all rows.
        places: From `secret_places`, of as many.
        room: For the list.
    """
    asked, found = Buckets(len(values), _PLACED, room), Buckets(len(places), values.record, room)
    for piece in range(len(places)):
        rows = places.read(piece)
        some = np.empty(len(rows), _PLACED)
        some["row"], some["place"] = rows, np.arange(piece * AT_ONCE, piece * AT_ONCE + len(rows))
        asked.add(rows // AT_ONCE, some)
    for bucket in range(len(values)):
        here = _in_turn(values.read(bucket), bucket)
        some = asked.read(bucket)
        found.add(some["place"] // AT_ONCE, with_numbers(here[some["row"] - bucket * AT_ONCE], some["place"]))
    asked.close()
    return found


async def in_turn(session: Session, values: Buckets) -> AsyncIterator[Values]:
    """The values of a list in the order of their places, piece by piece."""
    for bucket in range(len(values)):
        yield await session.compute(lambda number: _in_turn(values.read(number), number), bucket)


def _in_turn(records: Records, bucket: int) -> Values:
    """The values of one bucket, each at its number; all numbers of the bucket are there."""
    values = np.empty_like(records["value"])
    values[records["number"] - bucket * AT_ONCE] = records["value"]
    return values


# -- points in ascending order -----------------------------------------------------------------------------------------
def by_first_byte(listed: Buckets, points: NDArray[np.bytes_]) -> None:
    """Enters points, as strings, into buckets that ascend as they do."""
    first = np.ascontiguousarray(points).view(np.uint8).reshape(-1, points.itemsize)[:, 0]
    listed.add(first.astype(np.uint16) * len(listed) >> 8, points)


async def ascending(session: Session, listed: Buckets) -> AsyncIterator[Values]:
    """The points of such a list in ascending order, piece by piece, shape (some, 16)."""
    for bucket in range(len(listed)):
        found = await session.compute(lambda number: np.sort(listed.read(number)), bucket)
        yield found.view(np.uint8).reshape(-1, found.itemsize)


# -- what two lists have in common -------------------------------------------------------------------------------------
def alike(length: int) -> int:
    """How many buckets there are for values that begin alike, in lists of this length."""
    return _buckets(length)


def by_beginning(values: Buckets, records: Records) -> None:
    """Enters values into buckets of such as begin alike."""
    if len(records):
        values.add(records["value"][:, 0].astype(np.uint16) * len(values) >> 8, records)


def common_numbers(ours: Buckets, theirs: Buckets, rows: int, length: int) -> tuple[Flags, Flags]:
    """Of each of our rows, and of each place of theirs, whether the other list has its value."""
    common, places = np.zeros(rows, np.bool_), np.zeros(length, np.bool_)
    for bucket in range(len(ours)):
        here, there = ours.read(bucket), theirs.read(bucket)
        one, other = in_common(here["value"], there["value"])
        common[here["number"][one]] = True
        places[there["number"][other]] = True
    return common, places


def in_common(ours: Values, theirs: Values) -> tuple[Flags, Flags]:
    """Of each value, of up to 16 bytes, whether the other list has it."""
    number = len(ours)
    low = np.uint64((number + len(theirs)).bit_length())
    keys = np.concatenate([_heads(ours), _heads(theirs)])
    keys >>= low  # what is left of a value's beginning, and below it the value's number: sorted at once
    keys <<= low
    keys |= np.arange(len(keys), dtype=np.uint64)
    keys.sort()
    equal = np.flatnonzero(keys[1:] >> low == keys[:-1] >> low)
    numbers = (keys & np.uint64((1 << int(low)) - 1)).astype(np.int64)
    one, other = numbers[equal], numbers[equal + 1] - number
    if (one >= number).any() or (other < 0).any() or (np.diff(equal) == 1).any():
        return _common_strings(ours, theirs)  # values of one list begin alike
    same = (_heads(ours)[one] == _heads(theirs)[other]) & (_ends(ours)[one] == _ends(theirs)[other])
    return _flags(number, one[same]), _flags(len(theirs), other[same])


def _common_strings(ours: Values, theirs: Values) -> tuple[Flags, Flags]:
    one, other = (np.ascontiguousarray(each).view(f"S{each.shape[1]}")[:, 0] for each in (ours, theirs))
    return np.isin(one, other), np.isin(other, one)


def _heads(values: Values) -> NDArray[np.uint64]:
    """The first eight bytes of each value, filled up with zeros."""
    heads = np.zeros((len(values), 8), np.uint8)
    heads[:, : values.shape[1]] = values[:, :8]
    return heads.view(np.uint64)[:, 0]


def _ends(values: Values) -> NDArray[np.uint64]:
    """The last eight bytes of each value, and fewer where there are no more."""
    return _heads(values[:, -8:])


def _flags(number: int, places: Rows) -> Flags:
    flags = np.zeros(number, np.bool_)
    flags[places] = True
    return flags


# -- the common order --------------------------------------------------------------------------------------------------
def in_common_order(identifiers: Sequence[bytes], common: Flags, key: bytes, room: Room) -> Rows:
    """The rows that are common, in the order of their identifiers' points under a fixed key.

    Args:
        identifiers: Of all rows.
        common: Of each, whether it is common.
        key: Of the points.
        room: For a list.
    """
    number = int(common.sum())
    listed = Buckets(_buckets(number), _POINT, room)
    for start in range(0, len(identifiers), AT_ONCE):
        rows = np.flatnonzero(common[start : start + AT_ONCE])
        piece = identifiers[start : start + AT_ONCE]
        found = np.empty(len(rows), _POINT)
        found["point"] = points_of([piece[row] for row in rows.tolist()], key)
        found["row"] = rows + start
        listed.add(_by_head(found["point"][:, 0], len(listed)), found)
    ordered, done = np.empty(number, np.int64), 0
    for bucket in range(len(listed)):
        found = listed.read(bucket)
        ordered[done : done + len(found)] = found["row"][_order_of(found["point"])]
        done += len(found)
    listed.close()
    return ordered


def _order_of(points: Points) -> NDArray[np.int64]:
    order = np.argsort(points[:, 0].copy())
    heads = points[order, 0]
    return np.lexsort(points.T[::-1]) if (heads[1:] == heads[:-1]).any() else order


# -- buckets -----------------------------------------------------------------------------------------------------------
def _pieces(length: int) -> int:
    return max(-(-length // AT_ONCE), 1)


def _buckets(length: int) -> int:
    return min(_pieces(length), _MOST_BUCKETS)


def _by_head(heads: NDArray[np.uint64], buckets: int) -> NDArray[np.uint64]:
    """Of each word the bucket by its highest byte, so that buckets ascend as the words do."""
    return (heads >> np.uint64(56)) * np.uint64(buckets) >> np.uint64(8)
