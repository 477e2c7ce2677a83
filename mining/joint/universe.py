"""Level 1: which items there are, and which of them are frequent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from link.errors import InputDataError, MalformedMessage
from mining.joint.ballot import Ballot, Counts
from mining.joint.parameters import MAX_ITEM_BYTES
from mining.transactions import Transactions


@dataclass(frozen=True, slots=True)
class FrequentItems:
    """The frequent items and this party's rows on them.

    Attributes:
        data: This party's transactions, its dictionary the frequent items in ascending order of UTF-8 bytes.
        supports: Shape (K,), where this party is a learner.
    """

    data: Transactions
    supports: Counts | None


async def frequent_items(ballot: Ballot, data: Transactions) -> FrequentItems:
    """Agrees on a universe of items and decides which are frequent.

    `frequent-items`: an item of support ≥ c reaches the local threshold of some party, so the union of the locally
    frequent items loses nothing, and names of items that are frequent nowhere are never said.
    """
    items = await _universe(ballot, data)
    frequent, supports = await ballot.decide("level-1", _counts(data, items))
    kept = tuple(item for item, keep in zip(items, frequent, strict=True) if keep)
    rows = await ballot.session.compute(data.onto, kept)
    return FrequentItems(rows, supports)


def _counts(data: Transactions, items: tuple[str, ...]) -> Counts:
    """This party's counts of the universe's items; it may have none of one."""
    known = dict(zip(data.items, data.item_counts().tolist(), strict=True))
    return np.array([known.get(item, 0) for item in items], np.int64)


async def _universe(ballot: Ballot, data: Transactions) -> tuple[str, ...]:
    task = ballot.task
    if task.universe == "catalogue":
        if task.catalogue is None:
            raise AssertionError("a catalogue is read before the job is proposed")
        _check_catalogued(ballot.session.me, data, task.catalogue)
        return task.catalogue
    least = 1 if task.universe == "all-items" else ballot.threshold
    names = [data.items[i].encode() for i in np.flatnonzero(data.item_counts() >= least)]
    if any(len(name) > MAX_ITEM_BYTES for name in names):
        raise InputDataError(
            f"the dataset of {ballot.session.me} has an item name of more than {MAX_ITEM_BYTES} bytes; shorten it"
        )
    union = await ballot.union("items", names, "items", MAX_ITEM_BYTES)
    try:
        return tuple(name.decode() for name in union)
    except UnicodeDecodeError:
        raise MalformedMessage(
            "the union of items holds a name that is not UTF-8; check the versions of all nodes"
        ) from None


def _check_catalogued(me: str, data: Transactions, catalogue: tuple[str, ...]) -> None:
    """An item outside the catalogue would be lost without a word, so it ends the job; how many is not said."""
    known = set(catalogue)
    counts = data.item_counts()
    if any(count and item not in known for item, count in zip(data.items, counts, strict=True)):
        raise InputDataError(
            f"the dataset of {me} has items that the public catalogue does not name; extend the catalogue, "
            'or use universe = "frequent-items"'
        )
