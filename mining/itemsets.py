"""Itemsets, with their counts where these are known, in arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mining.data.arrow_arrays import lists, numbers, text, texts
from mining.lattice import Sets, is_ascending, lexicographic_order

Level = tuple[Sets, NDArray[np.int64]]


@dataclass(frozen=True, eq=False, repr=False)
class Itemsets:
    """Itemsets over a dictionary, with absolute counts.

    Attributes:
        items: The dictionary.
        levels: Per length the itemsets, shape (m, k), positions in `items` ascending in a row, and their m counts.
            Lengths ascend; a length without itemsets may be absent.
        n_rows: Number of transactions to which the counts refer.
        counted: Whether the counts are known; where they are not, those of the levels mean nothing.
    """

    items: tuple[str, ...]
    levels: Sequence[Level]
    n_rows: int
    counted: bool = True

    def __len__(self) -> int:
        return sum(len(counts) for _, counts in self.levels)

    def __repr__(self) -> str:
        uncounted = "" if self.counted else ", counts unknown"
        return f"<{len(self)} itemsets over {len(self.items)} items in {self.n_rows} transactions{uncounted}>"

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], int | None]]:
        """Each itemset as a tuple of items, in dictionary order, with its count; None where counts are unknown."""
        names = np.array(self.items, dtype=object)
        for sets, counts in self.levels:
            known = counts.tolist() if self.counted else [None] * len(counts)
            yield from zip(map(tuple, names[sets]), known, strict=True)

    def rows(self) -> Iterator[tuple[tuple[str, ...], int | None]]:
        """The same as iteration."""
        return iter(self)

    def filter(self, masks: Sequence[NDArray[np.bool_]]) -> Itemsets:
        """The itemsets for which the mask of their level holds."""
        levels = [
            (sets[mask], counts[mask]) for (sets, counts), mask in zip(self.levels, masks, strict=True) if mask.any()
        ]
        return Itemsets(self.items, levels, self.n_rows, self.counted)

    def most_frequent(self, k: int) -> Itemsets:
        """The k of largest counts, in canonical order; of equal ones the shorter first, then by their items' bytes.

        Of all frequent itemsets these are closed under subsets: a subset has no smaller a count, and is shorter.

        Raises:
            ValueError: The counts are unknown.
        """
        if not self.counted:
            raise ValueError("itemsets without counts have no order")
        found = self.canonical()
        if len(found) <= k:
            return found
        counts = np.concatenate([counts for _, counts in found.levels])
        kept = np.zeros(len(counts), bool)
        kept[np.argsort(-counts, kind="stable")[:k]] = True
        ends = np.cumsum([len(counts) for _, counts in found.levels])
        return found.filter(np.split(kept, ends[:-1]))

    def canonical(self) -> Itemsets:
        """The same itemsets ordered by length and then by their items' UTF-8 bytes, items ascending inside each.

        The dictionary is sorted in the same order (which is that of Python strings).
        """
        if self.is_canonical():
            return self
        order = sorted(range(len(self.items)), key=self.items.__getitem__)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        levels = []
        for sets, counts in sorted(self.levels, key=lambda level: level[0].shape[1]):
            if len(sets):
                ranked = np.sort(rank[sets], axis=1)
                by_bytes = lexicographic_order(ranked)
                levels.append((ranked[by_bytes], counts[by_bytes]))
        return Itemsets(tuple(self.items[index] for index in order), levels, self.n_rows, self.counted)

    def is_canonical(self) -> bool:
        """Whether they stand in that order: level-wise mining gives it, and to see that is far quicker than to sort."""
        lengths = [sets.shape[1] for sets, _ in self.levels]
        return (
            all(a < b for a, b in pairwise(self.items))
            and all(a < b for a, b in pairwise(lengths))
            and all(len(sets) > 0 and is_ascending(sets) for sets, _ in self.levels)
        )

    def to_arrow(self) -> pa.Table:
        """A table with columns itemset (list<string>), length (int32), count (int64) and support (float64).

        Rows and items stand in the order of this object; see `canonical`. Counts and supports that are unknown are
        null.
        """
        counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in self.levels)])
        unknown = None if self.counted else np.ones(len(counts), bool)
        return pa.table(
            {
                "itemset": self._lists(),
                "length": numbers(self._lengths()),
                "count": numbers(counts, unknown),
                "support": numbers(counts / max(self.n_rows, 1), unknown),
            }
        )

    def digest(self) -> str:
        """SHA-256 in hexadecimal of the itemsets in a form that no order of computation changes.

        One line an itemset: its items in ascending order of UTF-8 bytes joined by a blank, then, where counts are
        known, a tab and its count; lines in ascending order of bytes, each ended by a newline.
        """
        table = self.canonical().to_arrow()
        lines = pc.binary_join(table["itemset"], text(" "))
        if self.counted:
            lines = pc.binary_join_element_wise(lines, pc.cast(table["count"], pa.string()), text("\t"))
        listed = "".join(f"{line}\n" for line in sorted(lines.to_pylist()))
        return hashlib.sha256(listed.encode()).hexdigest()

    def _lengths(self) -> NDArray[np.int32]:
        return np.repeat(
            np.array([sets.shape[1] for sets, _ in self.levels], np.int32), [len(sets) for sets, _ in self.levels]
        )

    def _lists(self) -> pa.ListArray:
        flat = np.concatenate([np.empty(0, np.int32), *(sets.ravel() for sets, _ in self.levels)])
        offsets = np.concatenate([[0], np.cumsum(self._lengths())])
        return lists(offsets, texts(self.items).take(numbers(flat)))
