"""Some of the rows that lie in blocks, chosen by chance: a block's other rows are left out where it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mining.data.rows import Rows
from mining.data.transactions import Transactions
from mining.partitioned.random_groups import RandomGroups
from mining.partitioned.runner import Anywhere

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")


class ChosenRows:
    """The rows of one group, as `mining.data.rows.Rows`.

    Args:
        rows: All rows.
        groups: Of these.
        number: Of the group.
        n_rows: Its size.
    """

    def __init__(self, rows: Rows, groups: RandomGroups, number: int, n_rows: int) -> None:
        self._rows, self._groups, self._number, self.n_rows = rows, groups, number, n_rows

    @property
    def items(self) -> tuple[str, ...]:
        """The dictionary; distinct strings."""
        return self._rows.items

    @property
    def n_items(self) -> int:
        """Size of the dictionary."""
        return self._rows.n_items

    def item_counts(self) -> NDArray[np.int64]:
        """Number of rows that hold each item of the dictionary."""
        return self.total(Transactions.item_counts)

    def onto(self, dictionary: Sequence[str]) -> ChosenRows:
        """The rows on another dictionary; see `Transactions.onto`."""
        return self._of(self._rows.onto(dictionary))

    def without(self, patterns: Sequence[str]) -> ChosenRows:
        """The same rows without the items that match a pattern; see `Transactions.without`."""
        return self._of(self._rows.without(patterns))

    def renumbered(self, target: NDArray[np.int32], dictionary: tuple[str, ...]) -> ChosenRows:
        """The rows by a table of new item numbers; see `Transactions.renumbered`."""
        return self._of(self._rows.renumbered(target, dictionary))

    def total(self, kernel: Callable[[Transactions], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows; see `mining.data.rows.Rows`."""
        return self.placed_total(Anywhere(kernel))

    def placed_total(self, kernel: Callable[[Transactions, int], NDArray[N]]) -> NDArray[N]:
        """As of `parts`, added up where the blocks lie."""
        return self._rows.placed_total(_Chosen(kernel, self._groups, self._number))

    def parts(self, kernel: Callable[[Transactions, int], R]) -> Iterator[R]:
        """What a kernel gives for the chosen rows of each block, with the number of its first row, chosen or not."""
        return self._rows.parts(_Chosen(kernel, self._groups, self._number))

    def _of(self, rows: Rows) -> ChosenRows:
        return ChosenRows(rows, self._groups, self._number, self.n_rows)


@dataclass(frozen=True, eq=False, slots=True)
class _Chosen(Generic[R]):
    """A kernel over the chosen rows of a block."""

    kernel: Callable[[Transactions, int], R]
    groups: RandomGroups
    number: int

    def __call__(self, rows: Transactions, first: int) -> R:
        return self.kernel(rows.chosen(self.groups.of(first, rows.n_rows) == self.number), first)
