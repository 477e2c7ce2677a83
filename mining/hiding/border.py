"""Border-based hiding: delete where the itemsets that shall stay frequent mind it least.

The revised positive border holds the maximal frequent itemsets without a sensitive part; while they stay frequent,
nothing is lost. `Border` keeps their supports up to date, and two rules choose the next cell from it:

    BBA      least sum of weights of the border itemsets that the deletion touches; an itemset weighs the more, the
             nearer its support is to the threshold, and yet more once it has fallen below
    MaxMin   the cell whose weakest touched border itemset is strongest

Source: Sun and Yu, "A border-based approach for hiding sensitive frequent itemsets", ICDM 2005, section 4 (the
weight's denominator is sup0 − minsup, and below the threshold it has a second branch); Moustakides and Verykios, "A
MaxMin approach for hiding frequent itemsets", Data & Knowledge Engineering 65(1), 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mining.filters import maximal_sets
from mining.hiding.sensitive import Items
from mining.hiding.workspace import Workspace
from mining.itemsets import Itemsets

Rule = Literal["bba", "maxmin"]


class Border:
    """The revised positive border and the supports that it has left.

    Args:
        work: The rows.
        kept: F', all frequent itemsets without a sensitive part, over the dictionary of the rows.
        min_count: The least count of a frequent itemset.

    Attributes:
        sets: The border itemsets.
        supports: Of each, now.
    """

    def __init__(self, work: Workspace, kept: Itemsets, min_count: int) -> None:
        kept = kept.canonical()
        number = {item: index for index, item in enumerate(work.data.items)}
        position = np.array([number[item] for item in kept.items], np.int32)
        self.sets: list[Items] = [
            tuple(sorted(position[row].tolist())) for sets in maximal_sets(_by_length(kept)) for row in sets
        ]
        self._work, self._min_count = work, min_count
        self.supports = np.array([work.support(items) for items in self.sets], np.int64)
        self._before = self.supports.copy()
        self._touching: dict[int, NDArray[np.int64]] = {}
        for at, items in enumerate(self.sets):
            for item in items:
                self._touching[item] = np.append(self._touching.get(item, np.empty(0, np.int64)), at)

    def weights(self) -> NDArray[np.float64]:
        """What it costs now to take one more row from each border itemset (Sun and Yu, definition 6)."""
        span = self._before - self._min_count
        above = (self._before - self.supports + 1) / np.maximum(span, 1)
        below = len(self.sets) + 1 + self._min_count - self.supports
        return np.where((self.supports > self._min_count) & (span > 0), above, below).astype(np.float64)

    def touching(self, item: int) -> NDArray[np.int64]:
        """The numbers of the border itemsets with an item."""
        return self._touching.get(item, np.empty(0, np.int64))

    def row_costs(self, rows: NDArray[np.int64]) -> RowCosts:
        """What it costs to take whole rows out, kept up to date while they go."""
        numbers = range(len(self.sets))
        inside = np.array([self._holding(number, rows) for number in numbers], bool).reshape(len(self.sets), len(rows))
        return RowCosts(self, inside)

    def reduce_support(self, sensitive: Sequence[Items], rule: Rule) -> None:
        """Makes itemsets infrequent, cell by cell.

        Args:
            sensitive: The itemsets, longest first; of one length the rarest is taken first.
            rule: By which cells are chosen; ties go to the first row and item.
        """
        work, combine = self._work, np.add if rule == "bba" else np.maximum
        nothing = 0.0 if rule == "bba" else -np.inf
        for items in sorted(sensitive, key=lambda each: (-len(each), work.support(each), each)):
            rows = np.flatnonzero(work.holding(items))
            inside = self._inside(items, rows)
            prices = self._prices(rule)
            costs = np.full((len(rows), len(items)), nothing)
            for number, here in inside.items():
                for column in self._columns(number, items):
                    costs[here, column] = combine(costs[here, column], prices[number])
            for _ in range(len(rows) - self._min_count + 1):
                at, column = (int(part) for part in np.unravel_index(int(np.argmin(costs)), costs.shape))
                costs[at] = np.inf
                work.delete(int(rows[at]), items[column])
                hit = [int(number) for number in self.touching(items[column]) if inside[int(number)][at]]
                self.supports[hit] -= 1
                now = self._prices(rule)
                for number in hit:
                    here = inside[number]
                    here[at] = False
                    changed = now[number] - prices[number] if rule == "bba" else now[number]
                    for touched in self._columns(number, items):
                        costs[here, touched] = combine(costs[here, touched], changed)
                prices = now

    def _prices(self, rule: Rule) -> NDArray[np.float64]:
        """What a border itemset adds to the cost of a cell, or below which no cell with it costs."""
        return self.weights() if rule == "bba" else -self.supports.astype(np.float64)

    def _inside(self, items: Items, rows: NDArray[np.int64]) -> dict[int, NDArray[np.bool_]]:
        """By number of each border itemset with one of these items: in which of the rows it is."""
        numbers = np.unique(np.concatenate([self.touching(item) for item in items])).tolist()
        return {number: self._holding(number, rows) for number in numbers}

    def _holding(self, number: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        here: NDArray[np.bool_] = np.all([self._work.column(item)[rows] for item in self.sets[number]], axis=0)
        return here

    def _columns(self, number: int, items: Items) -> list[int]:
        return [column for column, item in enumerate(items) if item in self.sets[number]]


class RowCosts:
    """The weights of the border itemsets in each of some rows, added up.

    Args:
        border: Its supports go with the rows.
        inside: Shape (number of border itemsets, r): which is in which row.

    Attributes:
        of_rows: Shape (r,).
    """

    def __init__(self, border: Border, inside: NDArray[np.bool_]) -> None:
        self._border, self._inside = border, inside
        self._weights = border.weights()
        self.of_rows = self._weights @ inside

    def lose(self, at: int) -> None:
        """Takes note that a row goes."""
        hit = np.flatnonzero(self._inside[:, at])
        self._border.supports[hit] -= 1
        weights = self._border.weights()
        self.of_rows += (weights[hit] - self._weights[hit]) @ self._inside[hit]
        self._weights = weights


def _by_length(kept: Itemsets) -> list[NDArray[np.int32]]:
    found = {sets.shape[1]: sets for sets, _ in kept.levels}
    return [found.get(length, np.empty((0, length), np.int32)) for length in range(1, max(found, default=0) + 1)]
