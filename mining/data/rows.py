"""A party's rows, wherever they lie: in this process's memory, or in blocks that other processes count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mining.data.transactions import Transactions

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")


class Rows(Protocol):
    """What joint mining asks of a party's rows: `Transactions` in memory, `mining.partitioned.rows.PartitionedRows`.

    A *kernel* is a picklable callable that gets rows in memory: all of them, or those of one block at a time, perhaps
    in another process. The items of rows that it gets have numbers, and their names are empty. It may keep what it
    has prepared for the next block.
    """

    @property
    def items(self) -> tuple[str, ...]:
        """The dictionary; distinct strings."""

    @property
    def n_rows(self) -> int:
        """Number of transactions, empty ones included."""

    @property
    def n_items(self) -> int:
        """Size of the dictionary."""

    def item_counts(self) -> NDArray[np.int64]:
        """Number of rows that hold each item of the dictionary."""

    def onto(self, dictionary: Sequence[str]) -> Self:
        """The rows on another dictionary; items outside it are dropped, rows keep their number."""

    def without(self, patterns: Sequence[str]) -> Self:
        """The same rows without the items that match a pattern of `fnmatch.fnmatchcase`."""

    def renumbered(self, target: NDArray[np.int32], dictionary: tuple[str, ...]) -> Self:
        """The rows by a table of new item numbers; see `Transactions.renumbered`."""

    def total(self, kernel: Callable[[Transactions], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows, which is the sum of what it gives for any blocks of them.

        Args:
            kernel: Gives arrays of one shape and type.
        """

    def placed_total(self, kernel: Callable[[Transactions, int], NDArray[N]]) -> NDArray[N]:
        """As `total`, of a kernel that also gets the number of the first of its rows among all."""

    def parts(self, kernel: Callable[[Transactions, int], R]) -> Iterator[R]:
        """What a kernel gives for each block, in the order of the rows.

        Args:
            kernel: Gets a block and the number of its first row among all.
        """
