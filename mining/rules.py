"""Association rules from frequent itemsets, with an exact confidence test and the usual measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.errors import ConfigurationError
from mining.itemsets import Itemsets
from mining.lattice import subset_positions
from mining.measure_names import DEFAULT_MEASURES
from mining.measures import MEASURES, RuleCounts

Consequent = Literal["any", "single"]

# Splits that may be examined at one time.
_FRONTIER = 1 << 20
_LONGEST = 62


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules antecedent => consequent, in canonical order.

    Rules are ordered by the number of items on both sides together, then by antecedent, then by consequent, both
    compared as lists of items by their UTF-8 bytes.

    Attributes:
        itemsets: The itemsets, canonical; the three arrays below number them through all lengths.
        whole: Number of the itemset antecedent + consequent of each rule.
        antecedent: Number of its antecedent.
        consequent: Number of its consequent.
        measures: Names of the measures wanted.
    """

    itemsets: Itemsets
    whole: NDArray[np.int64]
    antecedent: NDArray[np.int64]
    consequent: NDArray[np.int64]
    measures: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.whole)

    def to_arrow(self) -> pa.Table:
        """A table of the rules.

        Columns: antecedent and consequent (list<string>, items ascending by UTF-8 bytes), count, antecedent_count and
        consequent_count (int64), support (float64), and one float64 column a measure.
        """
        family = _Family(self.itemsets)
        counts = family.counts
        numbers = RuleCounts(counts[self.whole], counts[self.antecedent], counts[self.consequent], self.itemsets.n_rows)
        columns = {
            "antecedent": family.lists(self.antecedent),
            "consequent": family.lists(self.consequent),
            "count": pa.array(numbers.both, pa.int64()),
            "antecedent_count": pa.array(numbers.antecedent, pa.int64()),
            "consequent_count": pa.array(numbers.consequent, pa.int64()),
            "support": pa.array(numbers.support, pa.float64()),
        }
        for name in self.measures:
            columns[name] = pa.array(MEASURES[name](numbers), pa.float64())
        return pa.table(columns)


def association_rules(
    itemsets: Itemsets,
    min_confidence: Decimal,
    *,
    consequent: Consequent = "any",
    measures: Sequence[str] = DEFAULT_MEASURES,
    max_rules: int = 5_000_000,
) -> Rules:
    """Find all rules whose confidence reaches `min_confidence`.

    A rule splits a frequent itemset in two. Taking an item from the antecedent can only lower the confidence, so
    consequents grow item by item and only from rules that hold (Agrawal & Srikant 1994, section 3, `ap-genrules`).
    The test is exact: count * den >= num * antecedent_count for min_confidence = num / den.

    Args:
        itemsets: All frequent itemsets (up to some length), with counts.
        min_confidence: Decimal in [0, 1].
        consequent: "single" for consequents of one item, "any" for all.
        measures: Names of measures, see `mining.measures.MEASURES`.
        max_rules: The most rules wanted.

    Raises:
        ConfigurationError: A parameter is out of range, a measure is unknown, an itemset's subset is missing, or more
            than `max_rules` rules hold.
    """
    if not min_confidence.is_finite() or not 0 <= min_confidence <= 1:
        raise ConfigurationError(f"min_confidence is {min_confidence}, but it must be from 0 to 1.")
    if consequent not in ("any", "single"):
        raise ConfigurationError(f'consequent is "{consequent}", but it must be "any" or "single".')
    for name in measures:
        if name not in MEASURES:
            known = ", ".join(sorted(MEASURES))
            raise ConfigurationError(f'There is no measure "{name}"; known measures are {known}.')
    ordered = itemsets.canonical()
    family = _Family(ordered)
    found = _Search(family, Fraction(min_confidence), consequent, max_rules).run()
    rank = family.rank()
    order = np.lexsort((rank[found.consequent], rank[found.antecedent], family.length[found.whole]))
    return Rules(
        ordered,
        found.whole[order],
        found.antecedent[order],
        found.consequent[order],
        tuple(dict.fromkeys(measures)),
    )


class _Family:
    """Canonical itemsets numbered through all lengths, with each one's subsets of one item less."""

    def __init__(self, itemsets: Itemsets) -> None:
        self.itemsets = itemsets
        levels = itemsets.levels
        sizes = np.array([len(counts) for _, counts in levels], np.int64)
        widths = np.array([sets.shape[1] for sets, _ in levels], np.int64)
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.length = np.repeat(widths, sizes)
        self.counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in levels)])
        self.flat = np.concatenate([np.empty(0, np.int32), *(sets.ravel() for sets, _ in levels)])
        self.first = np.concatenate([[0], np.cumsum(self.length)])
        self.single = np.full(len(itemsets.items), -1, np.int64)
        if levels:
            self.single[levels[0][0][:, 0]] = np.arange(len(levels[0][0]))
        self._texts = pa.array(itemsets.items, pa.string())

    def below(self) -> NDArray[np.int64]:
        """At first[s] + d, for itemset s of two items or more, the number of s without its d-th item."""
        parts = [np.full(len(sets), -1, np.int64) for sets, _ in self.itemsets.levels[:1]]
        for level, (sets, _) in enumerate(self.itemsets.levels):
            if sets.shape[1] != level + 1:
                raise ConfigurationError("Rules need the counts of all subsets of each itemset, and some are missing.")
            if level:
                position = subset_positions(sets, self.itemsets.levels[level - 1][0])
                if np.any(position < 0):
                    raise ConfigurationError(
                        "Rules need the counts of all subsets of each itemset, and some are missing."
                    )
                parts.append(position.ravel() + self.starts[level - 1])
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def rank(self) -> NDArray[np.int64]:
        """Place of each itemset when all are ordered as lists of items, whatever their length."""
        longest = int(self.length.max(initial=0))
        padded = np.full((len(self.length), longest), -1, np.int32)
        for level, (sets, _) in enumerate(self.itemsets.levels):
            padded[self.starts[level] : self.starts[level + 1], : sets.shape[1]] = sets
        rank = np.empty(len(padded), np.int64)
        order = np.lexsort(padded.T[::-1]) if longest else np.empty(0, np.int64)
        rank[order] = np.arange(len(padded))
        return rank

    def lists(self, numbers: NDArray[np.int64]) -> pa.ListArray:
        """The itemsets of these numbers as lists of strings."""
        lengths = self.length[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.first[numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return pa.ListArray.from_arrays(offsets.astype(np.int32), self._texts.take(pa.array(self.flat[places])))


@dataclass(frozen=True, eq=False, slots=True)
class _Found:
    whole: NDArray[np.int64]
    antecedent: NDArray[np.int64]
    consequent: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class _Frontier:
    """Rules under examination, all of itemsets of one length and with consequents of one size.

    Attributes:
        whole: Number of the itemset that each rule splits.
        antecedent: Number of its antecedent.
        moved: Bit d tells that the d-th item of the whole stands in the consequent.
        lowest: The lowest such d; only lower items are moved next, so that each consequent is met once.
    """

    whole: NDArray[np.int64]
    antecedent: NDArray[np.int64]
    moved: NDArray[np.int64]
    lowest: NDArray[np.int64]

    def part(self, rows: slice) -> _Frontier:
        return _Frontier(self.whole[rows], self.antecedent[rows], self.moved[rows], self.lowest[rows])


class _Search:
    """Grows consequents item by item, so many rules at a time as memory allows."""

    def __init__(self, family: _Family, min_confidence: Fraction, consequent: str, max_rules: int) -> None:
        self._family = family
        self._below = family.below()
        self._needed = _needed_counts(family.counts, min_confidence)
        self._every_size = consequent == "any"
        self._max_rules = max_rules
        self._n_rules = 0
        self._found: list[_Found] = []

    def run(self) -> _Found:
        family = self._family
        for level, (sets, _) in enumerate(family.itemsets.levels):
            width = sets.shape[1]
            if width < 2:
                continue
            if width > _LONGEST:
                raise ConfigurationError(
                    f"Rules of more than {_LONGEST} items are not supported; set max_length in the job."
                )
            self._split(family.starts[level] + np.arange(len(sets)), width)
        empty = [np.empty(0, np.int64)]
        return _Found(
            np.concatenate(empty + [part.whole for part in self._found]),
            np.concatenate(empty + [part.antecedent for part in self._found]),
            np.concatenate(empty + [part.consequent for part in self._found]),
        )

    def _split(self, whole: NDArray[np.int64], width: int) -> None:
        """Find all rules of some itemsets of one length."""
        root = _Frontier(whole, whole, np.zeros(len(whole), np.int64), np.full(len(whole), width))
        pending = [(1, root)]
        while pending:
            size, frontier = pending.pop()
            if len(frontier.whole) > 1 and int(frontier.lowest.sum()) > _FRONTIER:
                middle = len(frontier.whole) // 2
                pending += [(size, frontier.part(slice(middle, None))), (size, frontier.part(slice(middle)))]
                continue
            rules = self._grown(frontier)
            if not len(rules.whole):
                continue
            self._n_rules += len(rules.whole)
            if self._n_rules > self._max_rules:
                raise ConfigurationError(
                    f"More than {self._max_rules} rules reach min_confidence; raise it or min_support, or set "
                    'max_length or consequent = "single".'
                )
            self._found.append(_Found(rules.whole, rules.antecedent, self._consequents(rules, width, size)))
            if self._every_size and size + 1 < width:
                pending.append((size + 1, rules))

    def _grown(self, frontier: _Frontier) -> _Frontier:
        """Move one more item, lower than all moved so far, from each antecedent to its consequent; keep what holds."""
        family = self._family
        parent = np.repeat(np.arange(len(frontier.whole)), frontier.lowest)
        position = np.arange(len(parent)) - np.repeat(np.cumsum(frontier.lowest) - frontier.lowest, frontier.lowest)
        # All items below the lowest moved one are still there, so the d-th item of the whole is the antecedent's d-th.
        antecedent = self._below[family.first[frontier.antecedent[parent]] + position]
        holds = np.flatnonzero(family.counts[frontier.whole[parent]] >= self._needed[antecedent])
        parent, position = parent[holds], position[holds]
        moved = frontier.moved[parent] | np.left_shift(1, position)
        return _Frontier(frontier.whole[parent], antecedent[holds], moved, position)

    def _consequents(self, rules: _Frontier, width: int, size: int) -> NDArray[np.int64]:
        """Number of the itemset of the moved items of each rule."""
        family = self._family
        if size == 1:
            moved = family.flat[family.first[rules.whole] + rules.lowest]
            return np.take(family.single, moved)
        rest: NDArray[np.int64] = rules.whole.copy()
        for d in range(width - 1, -1, -1):
            # Going downwards, the d-th item of the whole is still the d-th of what is left.
            stays = np.flatnonzero((rules.moved >> d) & 1 == 0)
            rest[stays] = self._below[family.first[rest[stays]] + d]
        return rest


def _needed_counts(counts: NDArray[np.int64], min_confidence: Fraction) -> NDArray[np.int64]:
    """For each antecedent's count the least count of the whole: ceil(confidence * count), in whole numbers."""
    distinct, inverse = np.unique(counts, return_inverse=True)
    num, den = min_confidence.numerator, min_confidence.denominator
    needed = np.array([-(-num * count // den) for count in distinct.tolist()], np.int64)
    return needed[inverse]
