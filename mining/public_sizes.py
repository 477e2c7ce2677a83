"""What the owner of a dataset may publish of its size: a few coarse numbers, which say nothing of any row or item.

Numbers are 1, 2 or 5 times a power of ten, whichever is nearest as a ratio; one below `FLOOR` is not published. They
are measured once, for the owner's own eyes, and stand in a file from then on: what is published is what stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Final

import numpy as np

from mining.data.items.item_columns import Itemisation, item_columns
from mining.data.rows import Rows
from mining.data.tables import Table
from mining.data.transactions import Transactions
from mining.limits import EnumerationLimit
from mining.local_counts import frequent_itemsets

FLOOR: Final = 100
SUPPORTS: Final = (5000, 2000, 1000, 500, 200, 100, 50, 20, 10, 5)
"""The supports at which numbers of frequent itemsets are published, in ten-thousandths of the rows."""
WHOLE: Final = 10_000
LONGEST: Final = 10
MOST: Final = 10**8
"""The largest number that is published."""
_STEPS: Final = (1, 2, 5)
_LEAST_ROWS: Final = 10  # at a support; below, the number of itemsets says more of single rows than of the whole
_MOST_ITEMSETS: Final = 1 << 16  # that are mined at a time to be counted

Frequent = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class PublicSizes:
    """Sizes of a dataset.

    Attributes:
        rows: Its rows; None: not published.
        items: Distinct items; None: not published.
        frequent: By descending support, in ten-thousandths: how many itemsets of 1, 2, 3, … items are frequent; 0, or
            left out at the end: fewer than `FLOOR`.
        level_ms: Milliseconds of a level on the cluster that its rows lie on; None: on none, or not published.
    """

    rows: int | None = None
    items: int | None = None
    frequent: Frequent = ()
    level_ms: int | None = None

    def coarse(self) -> PublicSizes:
        """As they are published, however they were written."""
        rows = coarse(self.rows or 0) or None
        if rows is None:  # nothing of a dataset this small is published
            return NOTHING
        known = {support: _coarse(numbers) for support, numbers in self.frequent if support in SUPPORTS}
        published = sorted(known.items(), reverse=True)
        while (
            len(published) > 1 and not published[1][1]
        ):  # which goes without saying where a lower support has nothing either
            del published[0]
        level_ms = None if self.level_ms is None else coarse(max(self.level_ms, FLOOR))
        return PublicSizes(rows, coarse(self.items or 0) or None, tuple(published), level_ms)

    def as_toml(self) -> str:
        """The lines of `[dataset.publish]`; none where nothing may be published."""
        if self.rows is None:
            return ""
        lines = ["[dataset.publish]", f"rows = {self.rows:_}"]
        if self.items is not None:
            lines.append(f"items = {self.items:_}")
        if self.level_ms is not None:
            lines.append(f"level_s = {self.level_ms / 1000:g}")
        if self.frequent:
            lines.append("[dataset.publish.frequent]")
            for support, numbers in self.frequent:
                listed = ", ".join(f"{number:_}" for number in numbers)
                lines.append(f'"{support / WHOLE:g}" = [{listed}]')
        return "\n".join(lines) + "\n"


NOTHING: Final = PublicSizes()


def coarse(number: int) -> int:
    """The nearest of 1, 2 and 5 times a power of ten; 0 for what is below `FLOOR`."""
    if number < FLOOR:
        return 0
    power: int = 10 ** (len(str(min(number, MOST))) - 1)
    steps = [power * step for step in (*_STEPS, 10)]
    near = [low for low, high in pairwise(steps) if number * number < low * high]
    return min(near[0] if near else steps[-1], MOST)


def between(published: int) -> tuple[int, int]:
    """The numbers that are published as this one: the least and the most."""
    if published < FLOOR:
        return 0, FLOOR - 1
    digit = int(str(published)[0])
    ratios = {1: (Fraction(1, 2), 2), 2: (Fraction(1, 2), Fraction(5, 2)), 5: (Fraction(2, 5), 2)}
    down, up = ratios[digit]
    return max(FLOOR, int(published * float(down) ** 0.5)), int(published * float(up) ** 0.5) + 1


def least_measured(n_rows: int) -> int:
    """In how many rows an item must be for `measured` to tell of it by more than the number of items."""
    return max(_LEAST_ROWS, ceil(Fraction(SUPPORTS[-1] * n_rows, WHOLE)))


def measured(data: Rows | Table) -> PublicSizes:
    """The sizes of rows as they are, down to where there are too few rows or too many itemsets; not yet coarse."""
    rows = transactions_of(data, Itemisation()) if isinstance(data, Table) else data
    frequent = list[tuple[int, tuple[int, ...]]]()
    for support in SUPPORTS:
        least = ceil(Fraction(support * rows.n_rows, WHOLE))
        if least < _LEAST_ROWS:
            break
        try:
            found = frequent_itemsets(rows, least, max_length=LONGEST, limit=_MOST_ITEMSETS)
        except EnumerationLimit:
            break
        frequent.append((support, tuple(len(sets) for sets, _ in found.levels)))
    items = int(np.count_nonzero(rows.item_counts()))
    return PublicSizes(rows.n_rows, items, tuple(frequent))


def _coarse(numbers: Sequence[int]) -> tuple[int, ...]:
    """Coarse, without what is below the floor at the end."""
    published = [coarse(number) for number in numbers[:LONGEST]]
    while published and not published[-1]:
        published.pop()
    return tuple(published)


def transactions_of(table: Table, itemisation: Itemisation) -> Transactions:
    """A table's rows as sets of items."""
    columns = item_columns(table, itemisation)
    codes = np.sort(columns.codes().T, axis=1)
    held = codes >= 0
    offsets = np.zeros(columns.n_rows + 1, np.int64)
    np.cumsum(held.sum(axis=1), out=offsets[1:])
    return Transactions(columns.items, offsets, codes[held])
