"""What one party's own columns let it expect of a vertical job: numbers only, and only as many as a plan needs.

A party knows how often its own items occur together, and nothing of the others' rows. So it tells how many of its own
itemsets are frequent in its own rows, by classes of support; what spans parties is for the plan to guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mining.candidates import join
from mining.item_columns import ItemColumns
from mining.limits import EnumerationLimit
from mining.miner import frequent_itemsets
from mining.pairs import n_pairs
from mining.transactions import Transactions

CLASSES: Final = 8
MOST_ITEMSETS: Final = 1 << 17  # that are mined for a plan: about a second
_MOST_CANDIDATES: Final = 1 << 24  # that are counted; where there are more, so many are told
_SHORTER: Final = (4, 3, 2, 1)  # lengths to fall back to where there are more itemsets


@dataclass(frozen=True)
class LocalColumns:
    """What this party expects.

    Attributes:
        by_support: Of 1, 2, 3, … items: how many itemsets are frequent in its own rows, by class of support, the most
            frequent first.
        candidates: Of 1, 2, 3, … items: how many of its own it would decide on; those of one item are all frequent.
        item_bytes: Of the longest name of a frequent item.
        complete: Whether no longer itemset is frequent.
    """

    by_support: tuple[tuple[int, ...], ...]
    candidates: tuple[int, ...]
    item_bytes: int
    complete: bool

    @property
    def items(self) -> int:
        """How many items are frequent."""
        return sum(self.by_support[0]) if self.by_support else 0


def local_columns(columns: ItemColumns, min_support: int | Decimal, max_length: int | None = None) -> LocalColumns:
    """Mines the own rows for a plan.

    Args:
        columns: This party's items, over its own rows.
        min_support: Of the job: a fraction of the common rows, or a count of them.
        max_length: The most items of an itemset.
    """
    n_rows = max(columns.n_rows, 1)
    least = min_support if isinstance(min_support, int) else ceil(Fraction(min_support) * n_rows)
    least = max(1, least)
    kept = columns.select(np.flatnonzero(columns.counts() >= least))
    data = _rows_of(kept)
    for longest in (max_length, *_SHORTER):
        if longest is not None and max_length is not None and longest > max_length:
            continue
        try:
            found = frequent_itemsets(data, least, max_length=longest, limit=MOST_ITEMSETS)
        except EnumerationLimit:
            continue
        levels = [(sets, counts) for sets, counts in found.levels if len(sets)]
        candidates = [kept.n_items, *(_joined(sets) for sets, _ in levels)]
        if longest is not None:
            candidates = candidates[:longest]
        return LocalColumns(
            tuple(_classes(counts, least, n_rows) for _, counts in levels),
            tuple(number for number in candidates if number),
            max((len(item.encode()) for item in kept.items), default=0),
            longest == max_length,
        )
    return LocalColumns((_classes(kept.counts(), least, n_rows),), (kept.n_items,), 0, complete=False)


def _rows_of(columns: ItemColumns) -> Transactions:
    """The rows as transactions of the same items."""
    codes = np.sort(columns.codes.T, axis=1)
    held = codes >= 0
    offsets = np.zeros(columns.n_rows + 1, np.int64)
    np.cumsum(held.sum(axis=1), out=offsets[1:])
    return Transactions(columns.items, offsets, codes[held])


def _joined(sets: NDArray[np.int32]) -> int:
    """How many candidates of one item more there are."""
    if sets.shape[1] == 1:
        return n_pairs(len(sets))
    try:
        return len(join(sets, _MOST_CANDIDATES))
    except EnumerationLimit:
        return _MOST_CANDIDATES


def _classes(counts: NDArray[np.int64], least: int, n_rows: int) -> tuple[int, ...]:
    """How many counts are in each class: equal ratios of support from all rows down to the threshold."""
    if least >= n_rows:
        return (len(counts), *[0] * (CLASSES - 1))
    share = np.log(n_rows / counts) / np.log(n_rows / least)
    places = np.minimum((share * CLASSES).astype(np.int64), CLASSES - 1)
    return tuple(np.bincount(places, minlength=CLASSES).tolist())
