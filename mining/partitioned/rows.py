"""Rows that lie in blocks: what is seen of them is a table of item numbers, and nothing is encoded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mining.data.transactions import Transactions, matching
from mining.partitioned.runner import Anywhere, Runner, View

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")


class PartitionedRows:
    """A party's rows in blocks, as `mining.data.rows.Rows`.

    Args:
        runner: Where they are counted.
        items: The dictionary that they are seen on.
        counts: In how many rows each of its items is, as the encoder counted.
        digest: Equal where the encoded rows are equal, in the same order.
        target: Their numbers, where not all encoded items are seen as they were encoded; see `View`.
    """

    def __init__(
        self,
        runner: Runner[View, Transactions],
        items: tuple[str, ...],
        counts: NDArray[np.int64],
        digest: bytes,
        target: NDArray[np.int32] | None = None,
    ) -> None:
        self._runner, self.items, self._counts = runner, items, counts
        self._digest = digest
        self._view = View(target, len(items))

    @property
    def n_rows(self) -> int:
        """Number of transactions, empty ones included."""
        return sum(self._runner.lengths)

    @property
    def n_items(self) -> int:
        """Size of the dictionary."""
        return len(self.items)

    def item_counts(self) -> NDArray[np.int64]:
        """Number of rows that hold each item of the dictionary."""
        return self._counts.copy()

    def onto(self, dictionary: Sequence[str]) -> PartitionedRows:
        """The rows on another dictionary; see `Transactions.onto`."""
        position = {item: index for index, item in enumerate(dictionary)}
        if len(position) != len(dictionary):
            raise ValueError("the dictionary holds an item twice")
        known = (position.get(item, -1) for item in self.items)
        return self.renumbered(np.fromiter(known, np.int32, self.n_items), tuple(dictionary))

    def without(self, patterns: Sequence[str]) -> PartitionedRows:
        """The same rows without the items that match a pattern; see `Transactions.without`."""
        removed = matching(self.items, patterns)
        if not removed:
            return self
        return self.onto(tuple(item for item in self.items if item not in removed))

    def renumbered(self, target: NDArray[np.int32], dictionary: tuple[str, ...]) -> PartitionedRows:
        """The rows by a table of new item numbers; see `Transactions.renumbered`."""
        counts = np.zeros(len(dictionary), np.int64)
        kept = target >= 0
        counts[target[kept]] = self._counts[kept]
        before = self._view.target
        if before is not None:  # -1 is the last of these, which drops what was dropped before
            target = np.append(target, np.int32(-1))[before]
        return PartitionedRows(self._runner, dictionary, counts, self._digest, target)

    def total(self, kernel: Callable[[Transactions], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows; see `mining.data.rows.Rows`."""
        return self.placed_total(Anywhere(kernel))

    def placed_total(self, kernel: Callable[[Transactions, int], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows that is told where they are; see `mining.data.rows.Rows`."""
        return self._runner.total(self._view, kernel)

    def parts(self, kernel: Callable[[Transactions, int], R]) -> Iterator[R]:
        """What a kernel gives for each block; see `mining.data.rows.Rows`."""
        return self._runner.parts(self._view, kernel)

    def digest(self) -> bytes:
        """A digest of the rows as they were encoded: that of the same rows in memory."""
        return self._digest

    def close(self) -> None:
        """Ends what counts them, at once; nothing more can be asked of these rows nor of others made from them."""
        self._runner.close()

    def __repr__(self) -> str:
        return f"PartitionedRows(rows={self.n_rows}, items={self.n_items}, blocks={len(self._runner.lengths)})"
