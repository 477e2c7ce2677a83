"""Names of items as elements of a set union, and counts in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from link.errors import MalformedMessage
from mining.data.rows import Rows
from mining.joint.tally import Counts
from mining.limits import MAX_ITEM_BYTES

T = TypeVar("T", bound=Rows)


def encoded(names: Iterable[str]) -> list[bytes]:
    """The names in UTF-8, as elements of a union; that some are too long all parties learn there, and not whose."""
    return [name.encode() for name in names]


def nameable(data: T) -> T:
    """The rows without items whose names are too long to be published: to refuse them would reveal a row."""
    names = tuple(name for name in data.items if len(name.encode()) <= MAX_ITEM_BYTES)
    return data if len(names) == data.n_items else data.onto(names)


def decoded(union: Sequence[bytes]) -> tuple[str, ...]:
    """The names of a union, in ascending order of UTF-8 bytes as the union is.

    Raises:
        MalformedMessage: One is no text.
    """
    try:
        return tuple(element.decode() for element in union)
    except UnicodeDecodeError:
        raise MalformedMessage(
            "the union of items holds a name that is not UTF-8; check the versions of all nodes"
        ) from None


def counts_of(data: Rows, items: Sequence[str]) -> Counts:
    """This party's counts of these items; it may have none of one."""
    known = dict(zip(data.items, data.item_counts().tolist(), strict=True))
    return np.array([known.get(item, 0) for item in items], np.int64)
