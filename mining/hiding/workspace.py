"""Transactions that are being changed: cells deleted and added, rows taken out, supports at any moment."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mining.data.transactions import Transactions
from mining.hiding.sensitive import Items

Rows = NDArray[np.bool_]


class Workspace:
    """Transactions under change.

    Args:
        data: As they were.

    Attributes:
        data: As they were.
        lengths: Items of each row now, shape (n,).
        released: Which rows are still in, shape (n,).
        deleted: Cells (row, item) that were there and are not, in order.
        added: Cells that were not there and are.
    """

    def __init__(self, data: Transactions) -> None:
        self.data = data
        self.lengths = data.lengths.copy()
        self.released = np.ones(data.n_rows, bool)
        self.deleted: list[tuple[int, int]] = []
        self.added: dict[tuple[int, int], None] = {}
        self._owners = data.row_numbers()
        order = np.argsort(data.indices, kind="stable")
        self._rows_by_item = self._owners[order]
        self._starts = np.searchsorted(data.indices[order], np.arange(data.n_items + 1))
        self._columns: dict[int, Rows] = {}

    @property
    def n_rows(self) -> int:
        """How many rows are still in."""
        return int(self.released.sum())

    def column(self, item: int) -> Rows:
        """Which rows hold an item now, shape (n,); it changes with them."""
        if item not in self._columns:
            column = np.zeros(self.data.n_rows, bool)
            column[self._rows_by_item[self._starts[item] : self._starts[item + 1]]] = True
            self._columns[item] = column & self.released
        return self._columns[item]

    def holding(self, items: Items) -> Rows:
        """Which rows hold all of some items, shape (n,)."""
        found = self.released.copy()
        for item in items:
            found &= self.column(item)
        return found

    def support(self, items: Items) -> int:
        """In how many rows all of some items are."""
        return int(np.count_nonzero(self.holding(items)))

    def shortest(self, rows: Rows) -> NDArray[np.int64]:
        """The numbers of some rows, those with the fewest items first, of equal ones the first."""
        numbers = np.flatnonzero(rows)
        return numbers[np.argsort(self.lengths[numbers], kind="stable")]

    def delete(self, row: int, item: int) -> None:
        """Takes an item out of a row that holds it."""
        self.column(item)[row] = False
        self.lengths[row] -= 1
        if (row, item) in self.added:
            del self.added[row, item]
        else:
            self.deleted.append((row, item))

    def add(self, row: int, item: int) -> None:
        """Puts an item into a row that never held it."""
        self.column(item)[row] = True
        self.lengths[row] += 1
        self.added[row, item] = None

    def remove(self, row: int) -> None:
        """Takes a whole row out."""
        self.released[row] = False
        for column in self._columns.values():
            column[row] = False

    def drop_emptied(self) -> None:
        """Takes out the rows that have lost all their items: files of baskets cannot hold them."""
        for row in np.flatnonzero(self.released & (self.lengths == 0) & (self.data.lengths > 0)).tolist():
            self.remove(row)

    def delete_all(self, cells: Iterable[tuple[int, int]]) -> None:
        """Takes several items out of rows that hold them."""
        for row, item in cells:
            self.delete(row, item)

    def result(self) -> Transactions:
        """The transactions as they are now, rows in their order, over the same dictionary without what is gone."""
        n_items = max(self.data.n_items, 1)
        keys = self._owners.astype(np.int64) * n_items + self.data.indices
        keys = np.setdiff1d(keys, self._keys(self.deleted), assume_unique=True)
        keys = np.union1d(keys, self._keys(self.added))
        rows, items = np.divmod(keys, n_items)
        kept = self.released[rows]
        number = np.cumsum(self.released) - 1
        present = np.zeros(self.data.n_items, bool)
        present[items[kept]] = True
        position = np.cumsum(present) - 1
        names = [self.data.items[index] for index in np.flatnonzero(present)]
        return Transactions.from_occurrences(names, number[rows[kept]], position[items[kept]], self.n_rows)

    def _keys(self, cells: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
        pairs = np.array(list(cells), np.int64).reshape(-1, 2)
        return np.unique(pairs[:, 0] * max(self.data.n_items, 1) + pairs[:, 1])
