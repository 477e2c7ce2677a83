"""The growth of association rules from frequent itemsets, whatever decides which of them hold.

A rule splits a frequent itemset in two. Taking an item from the antecedent can only lower the confidence, so
consequents grow item by item and only from rules that hold (Agrawal & Srikant 1994, section 3, `ap-genrules`). What is
examined next therefore follows from which rules hold, and from nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.errors import ConfigurationError
from mining.data import arrow_arrays
from mining.itemsets import Itemsets
from mining.lattice import subset_positions

MAX_RULES: Final = 5_000_000
LONGEST: Final = 62  # items of a rule: which of them are in the consequent is given by the bits of a number

FRONTIER: Final = 1 << 20  # rules that may be examined at one time

Numbers = NDArray[np.int64]


class Family:
    """Canonical itemsets numbered through all lengths, with each one's subsets of one item less.

    Args:
        itemsets: In canonical order.

    Attributes:
        itemsets: The same.
        length: Items of each itemset, shape (m,).
        counts: Count of each, shape (m,); zeros where counts are unknown.
        first: Where each one's items begin in `flat`, shape (m + 1,).
        flat: The items of all itemsets, one after the other.
    """

    def __init__(self, itemsets: Itemsets) -> None:
        self.itemsets = itemsets
        levels = itemsets.levels
        sizes = np.array([len(counts) for _, counts in levels], np.int64)
        widths = np.array([sets.shape[1] for sets, _ in levels], np.int64)
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self.length: Numbers = np.repeat(widths, sizes)
        self.counts: Numbers = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in levels)])
        self.flat = np.concatenate([np.empty(0, np.int32), *(sets.ravel() for sets, _ in levels)])
        self.first: Numbers = np.concatenate([[0], np.cumsum(self.length)])
        self._texts = arrow_arrays.texts(itemsets.items)

    def below(self) -> Numbers:
        """At first[s] + d, for itemset s of two items or more, the number of s without its d-th item.

        Raises:
            ConfigurationError: The subset of an itemset is not in the family.
        """
        levels = self.itemsets.levels
        parts = [np.full(len(sets), -1, np.int64) for sets, _ in levels[:1]]
        for level, (sets, _) in enumerate(levels):
            if sets.shape[1] != level + 1:
                raise _incomplete()
            if level:
                position = subset_positions(sets, levels[level - 1][0])
                if np.any(position < 0):
                    raise _incomplete()
                parts.append(position.ravel() + self._starts[level - 1])
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def singles(self) -> Numbers:
        """The number of the itemset of each item alone, shape (items,), -1 where it is not in the family."""
        numbers = np.full(len(self.itemsets.items), -1, np.int64)
        for sets, _ in self.itemsets.levels[:1]:
            numbers[sets[:, 0]] = np.arange(len(sets))
        return numbers

    def rank(self) -> Numbers:
        """Place of each itemset when all are ordered as lists of items, whatever their length."""
        longest = int(self.length.max(initial=0))
        padded = np.full((len(self.length), longest), -1, np.int32)
        for level, (sets, _) in enumerate(self.itemsets.levels):
            padded[self._starts[level] : self._starts[level + 1], : sets.shape[1]] = sets
        rank = np.empty(len(padded), np.int64)
        order = np.lexsort(padded.T[::-1]) if longest else np.empty(0, np.int64)
        rank[order] = np.arange(len(padded))
        return rank

    def items_of(self, numbers: Numbers) -> tuple[NDArray[np.int32], Numbers]:
        """The items of these itemsets one after the other, and where those of each begin, with the end of all."""
        lengths = self.length[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.first[numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return self.flat[places], offsets

    def are_split(self, splits: Splits) -> bool:
        """Whether the items of each itemset are those of its two sides, each on one of them."""

        def keys(numbers: Numbers) -> Numbers:
            items, offsets = self.items_of(numbers)
            return np.repeat(np.arange(len(numbers)), np.diff(offsets)) * len(self.itemsets.items) + items

        both = np.concatenate([keys(splits.antecedent), keys(splits.consequent)])
        return np.array_equal(np.sort(both), keys(splits.whole))

    def lists(self, numbers: Numbers) -> pa.ListArray:
        """The itemsets of these numbers as lists of strings."""
        items, offsets = self.items_of(numbers)
        return arrow_arrays.lists(offsets, self._texts.take(arrow_arrays.numbers(items)))


@dataclass(frozen=True, eq=False, slots=True)
class Splits:
    """Itemsets split in two, by the numbers of a family.

    Attributes:
        whole: Number of the itemset of both sides of each rule.
        antecedent: Number of its antecedent.
        consequent: Number of its consequent.
    """

    whole: Numbers
    antecedent: Numbers
    consequent: Numbers


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Rules to be decided on: each holds where its itemset is frequent enough among those that hold its antecedent.

    Attributes:
        whole: Number of the itemset that each rule splits, ascending.
        antecedent: Number of its antecedent.
    """

    whole: Numbers
    antecedent: Numbers

    def __len__(self) -> int:
        return len(self.whole)


@dataclass(frozen=True, eq=False, slots=True)
class _Frontier:
    """Rules that hold, or whole itemsets to begin with, whose consequents grow next: all of one size.

    Attributes:
        size: Items of each consequent.
        whole: Number of the itemset that each rule splits, ascending.
        antecedent: Number of its antecedent, of two items or more.
        moved: Bit d says that the d-th item of the whole stands in the consequent.
        lowest: The lowest such d; only lower items are moved next, so that each consequent is met once.
    """

    size: int
    whole: Numbers
    antecedent: Numbers
    moved: Numbers
    lowest: Numbers

    def part(self, rows: slice | NDArray[np.bool_]) -> _Frontier:
        return _Frontier(self.size, self.whole[rows], self.antecedent[rows], self.moved[rows], self.lowest[rows])


@dataclass(frozen=True, eq=False, slots=True)
class _Asked:
    """The last batch, and how each of its rules comes from one of the frontier.

    Attributes:
        batch: The rules.
        frontier: What has grown.
        parent: Place in the frontier of the rule that each comes from.
        position: Which item of the whole has moved.
    """

    batch: Batch
    frontier: _Frontier
    parent: Numbers
    position: Numbers

    def kept(self, holds: NDArray[np.bool_]) -> _Frontier:
        """The rules that hold."""
        rows = np.flatnonzero(holds)
        parent, position = self.parent[rows], self.position[rows]
        moved = self.frontier.moved[parent] | np.left_shift(1, position)
        return _Frontier(self.frontier.size + 1, self.batch.whole[rows], self.batch.antecedent[rows], moved, position)


class RuleGrowth:
    """Names in turn which rules are to be decided on next, and takes which of them hold.

    Every consequent size is one batch, or so many as memory allows.

    Args:
        family: All frequent itemsets, up to some length.
        single: Whether only consequents of one item are wanted.
        max_rules: The most rules wanted.

    Raises:
        ConfigurationError: An itemset is too long, or one of its subsets is missing.
    """

    def __init__(self, family: Family, *, single: bool, max_rules: int = MAX_RULES) -> None:
        if family.length.max(initial=0) > LONGEST:
            raise ConfigurationError(
                f"Rules of more than {LONGEST} items are not supported; set max_length in the job."
            )
        self._family = family
        self._below = family.below()
        self._singles = family.singles()
        self._single, self._max_rules = single, max_rules
        whole = np.flatnonzero(family.length > 1)
        self._pending = [_Frontier(0, whole, whole, np.zeros(len(whole), np.int64), family.length[whole])]
        self._asked: _Asked | None = None
        self._n_found = 0
        self._found: list[Splits] = []

    def next_batch(self) -> Batch | None:
        """Rules that nobody has decided on yet, at least one; None where there are no more.

        Call `keep` before the next time.
        """
        while self._pending:
            frontier = self._pending.pop()
            total = int(frontier.lowest.sum())
            if total > FRONTIER and len(frontier.whole) > 1:
                middle = len(frontier.whole) // 2
                self._pending += [frontier.part(slice(middle, None)), frontier.part(slice(middle))]
            elif total:
                self._asked = self._grown(frontier)
                return self._asked.batch
        return None

    def keep(self, holds: NDArray[np.bool_]) -> None:
        """Takes the decision on the last batch, one flag a rule.

        Raises:
            ConfigurationError: More rules hold than are wanted.
        """
        assert self._asked is not None
        rules, self._asked = self._asked.kept(holds), None
        self._n_found += len(rules.whole)
        if self._n_found > self._max_rules:
            raise ConfigurationError(
                f"More than {self._max_rules} rules reach min_confidence; raise it or min_support, or set "
                'max_length or consequent = "single".'
            )
        if len(rules.whole):
            self._found.append(Splits(rules.whole, rules.antecedent, self._consequents(rules)))
        if not self._single:
            self._pending.append(rules.part(self._family.length[rules.antecedent] > 1))

    def found(self) -> Splits:
        """All rules that hold, once there are no more batches."""
        return Splits(
            *(
                np.concatenate([np.empty(0, np.int64), *(getattr(part, side) for part in self._found)])
                for side in ("whole", "antecedent", "consequent")
            )
        )

    def _grown(self, frontier: _Frontier) -> _Asked:
        """Move one more item, lower than all moved so far, from each antecedent to its consequent."""
        parent = np.repeat(np.arange(len(frontier.whole)), frontier.lowest)
        position = np.arange(len(parent)) - np.repeat(np.cumsum(frontier.lowest) - frontier.lowest, frontier.lowest)
        # All items below the lowest moved one are still there, so the d-th item of the whole is the antecedent's d-th.
        antecedent = self._below[self._family.first[frontier.antecedent[parent]] + position]
        return _Asked(Batch(frontier.whole[parent], antecedent), frontier, parent, position)

    def _consequents(self, rules: _Frontier) -> Numbers:
        """Number of the itemset of the moved items of each rule."""
        family = self._family
        if rules.size == 1:
            moved = family.flat[family.first[rules.whole] + rules.lowest]
            single: Numbers = np.take(self._singles, moved)
            return single
        rest: Numbers = rules.whole.copy()
        lengths = family.length[rest]  # ascending, as the wholes are
        for d in range(int(lengths[-1]) - 1, -1, -1):
            # Going downwards, the d-th item of the whole is still the d-th of what is left.
            longer = int(np.searchsorted(lengths, d, side="right"))
            stays = longer + np.flatnonzero((rules.moved[longer:] >> d) & 1 == 0)
            rest[stays] = self._below[family.first[rest[stays]] + d]
        return rest


def _incomplete() -> ConfigurationError:
    return ConfigurationError("Rules need the counts of all subsets of each itemset, and some are missing.")
