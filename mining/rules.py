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
from mining.measures import DEFAULT_MEASURES, MEASURES, RuleCounts

Consequent = Literal["any", "single"]

# Rules that may be under examination at one time.
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
        numbers = RuleCounts(
            counts[self.whole], counts[self.antecedent], counts[self.consequent], self.itemsets.n_rows
        )
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
    order = np.lexsort((family.rank[found.consequent], family.rank[found.antecedent], family.length[found.whole]))
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

    @property
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


class _Search:
    """Grows consequents from the frequent itemsets, some thousand itemsets at a time."""

    def __init__(self, family: _Family, min_confidence: Fraction, consequent: str, max_rules: int) -> None:
        self._family = family
        self._below = family.below()
        self._needed = _needed_counts(family.counts, min_confidence)
        self._grow = consequent == "any"
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
            # The widest step of one itemset is that of consequents of half its items; an estimate is enough.
            rows_at_once = max(1, _FRONTIER >> min(width, 20))
            for start in range(0, len(sets), rows_at_once):
                stop = min(start + rows_at_once, len(sets))
                self._split(family.starts[level] + np.arange(start, stop), width)
        empty = [np.empty(0, np.int64)]
        return _Found(
            np.concatenate(empty + [part.whole for part in self._found]),
            np.concatenate(empty + [part.antecedent for part in self._found]),
            np.concatenate(empty + [part.consequent for part in self._found]),
        )

    def _split(self, whole: NDArray[np.int64], width: int) -> None:
        """Find all rules of some itemsets of one length."""
        family = self._family
        antecedent = whole
        taken = np.zeros(len(whole), np.int64)  # bit d: the whole's d-th item stands in the consequent
        lowest = np.full(len(whole), width)  # lowest such d; only lower items are taken next, each set once
        for size in range(1, width if self._grow else 2):
            # All items below `lowest` are still in the antecedent, so the d-th of the whole is its d-th too.
            parent = np.repeat(np.arange(len(whole)), lowest)
            position = np.arange(len(parent)) - np.repeat(np.cumsum(lowest) - lowest, lowest)
            smaller = self._below[family.first[antecedent[parent]] + position]
            holds = np.flatnonzero(family.counts[whole[parent]] >= self._needed[smaller])
            parent, lowest = parent[holds], position[holds]
            whole, antecedent = whole[parent], smaller[holds]
            taken = taken[parent] | np.left_shift(1, lowest)
            self._n_rules += len(whole)
            if self._n_rules > self._max_rules:
                raise ConfigurationError(
                    f"More than {self._max_rules} rules reach min_confidence; raise it or min_support, or set "
                    'max_length or consequent = "single".'
                )
            if not len(whole):
                return
            self._found.append(_Found(whole, antecedent, self._rest(whole, taken, width, size)))

    def _rest(self, whole: NDArray[np.int64], taken: NDArray[np.int64], width: int, size: int) -> NDArray[np.int64]:
        """Number of the itemset of the taken items."""
        rest = whole.copy()
        if size == 1:
            position = np.bitwise_count(taken - 1).astype(np.int64)
            items = self._family.flat[self._family.first[whole] + position]
            return items.astype(np.int64)
        for d in range(width - 1, -1, -1):
            # Going downwards, the d-th item of the whole is still the d-th of what is left.
            left_out = np.flatnonzero((taken >> d) & 1 == 0)
            rest[left_out] = self._below[self._family.first[rest[left_out]] + d]
        return rest


def _needed_counts(counts: NDArray[np.int64], min_confidence: Fraction) -> NDArray[np.int64]:
    """For each antecedent's count the least count of the whole: ceil(confidence * count), in whole numbers."""
    distinct, inverse = np.unique(counts, return_inverse=True)
    num, den = min_confidence.numerator, min_confidence.denominator
    needed = np.array([-(-num * count // den) for count in distinct.tolist()], np.int64)
    return needed[inverse]
