"""Association rules from frequent itemsets, with an exact confidence test and the usual measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from link.errors import ConfigurationError
from mining.data.arrow_arrays import numbers
from mining.itemsets import Itemsets
from mining.rules.growth import MAX_RULES, Family, Numbers, RuleGrowth, Splits
from mining.rules.measure_names import DEFAULT_MEASURES
from mining.rules.measures import MEASURES, RuleCounts

Consequent = Literal["any", "single"]

ONE_KEY: Final = 1 << 28  # itemsets: the places of two and a length fit 62 bits


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
    whole: Numbers
    antecedent: Numbers
    consequent: Numbers
    measures: tuple[str, ...] = DEFAULT_MEASURES

    @classmethod
    def of(cls, family: Family, splits: Splits, measures: Sequence[str] = DEFAULT_MEASURES) -> Rules:
        """The rules that split these itemsets so, put into canonical order."""
        order = _canonical_order(family, splits)
        return cls(
            family.itemsets,
            splits.whole[order],
            splits.antecedent[order],
            splits.consequent[order],
            tuple(dict.fromkeys(measures)),
        )

    def __len__(self) -> int:
        return len(self.whole)

    def to_arrow(self) -> pa.Table:
        """A table of the rules.

        Columns: antecedent and consequent (list<string>, items ascending by UTF-8 bytes), count, antecedent_count and
        consequent_count (int64), support (float64), and one float64 column a measure. All but the first two are null
        where the counts of the itemsets are unknown.
        """
        family = Family(self.itemsets)
        sides = {"antecedent": family.lists(self.antecedent), "consequent": family.lists(self.consequent)}
        return pa.table(sides | (self._numbers(family) if self.itemsets.counted else self._nulls()))

    def _numbers(self, family: Family) -> dict[str, pa.Array]:
        counts = family.counts
        found = RuleCounts(counts[self.whole], counts[self.antecedent], counts[self.consequent], self.itemsets.n_rows)
        columns = {
            "count": numbers(found.both),
            "antecedent_count": numbers(found.antecedent),
            "consequent_count": numbers(found.consequent),
            "support": numbers(found.support),
        }
        return columns | {name: numbers(MEASURES[name](found)) for name in self.measures}

    def _nulls(self) -> dict[str, pa.Array]:
        counts = dict.fromkeys(("count", "antecedent_count", "consequent_count"), pa.nulls(len(self), pa.int64()))
        return counts | dict.fromkeys(("support", *self.measures), pa.nulls(len(self), pa.float64()))


def association_rules(
    itemsets: Itemsets,
    min_confidence: Decimal,
    *,
    consequent: Consequent = "any",
    measures: Sequence[str] = DEFAULT_MEASURES,
    max_rules: int = MAX_RULES,
) -> Rules:
    """Find all rules whose confidence reaches `min_confidence`.

    Consequents grow as in `mining.rules.growth` (Agrawal & Srikant 1994, section 3). The test is exact:
    count * den >= num * antecedent_count for min_confidence = num / den.

    Args:
        itemsets: All frequent itemsets (up to some length), with counts.
        min_confidence: Decimal in [0, 1].
        consequent: "single" for consequents of one item, "any" for all.
        measures: Names of measures, see `mining.rules.measures.MEASURES`.
        max_rules: The most rules wanted.

    Raises:
        ConfigurationError: A parameter is out of range, a measure is unknown, an itemset's subset is missing, the
            counts are unknown, or more than `max_rules` rules hold.
    """
    if not itemsets.counted:
        raise ConfigurationError(
            "Rules cannot be found where only which itemsets are frequent is known; run the job with "
            'disclose = "supports", or with task = "rules".'
        )
    if not min_confidence.is_finite() or not 0 <= min_confidence <= 1:
        raise ConfigurationError(f"min_confidence is {min_confidence}, but it must be from 0 to 1.")
    if consequent not in ("any", "single"):
        raise ConfigurationError(f'consequent is "{consequent}", but it must be "any" or "single".')
    for name in measures:
        if name not in MEASURES:
            known = ", ".join(sorted(MEASURES))
            raise ConfigurationError(f'There is no measure "{name}"; known measures are {known}.')
    family = Family(itemsets.canonical())
    needed = _needed_counts(family.counts, Fraction(min_confidence))
    growth = RuleGrowth(family, single=consequent == "single", max_rules=max_rules)
    while (batch := growth.next_batch()) is not None:
        growth.keep(family.counts[batch.whole] >= needed[batch.antecedent])
    return Rules.of(family, growth.found(), measures)


def _canonical_order(family: Family, splits: Splits) -> Numbers:
    """The permutation that puts rules into canonical order."""
    rank, number = family.rank(), len(family.length)
    length, antecedent, consequent = family.length[splits.whole], rank[splits.antecedent], rank[splits.consequent]
    if number < ONE_KEY:  # sorts in half the time
        return np.argsort((length * number + antecedent) * number + consequent)
    return np.lexsort((consequent, antecedent, length))


def _needed_counts(counts: Numbers, min_confidence: Fraction) -> Numbers:
    """For each antecedent's count the least count of the whole: ceil(confidence * count), in whole numbers."""
    distinct, inverse = np.unique(counts, return_inverse=True)
    num, den = min_confidence.numerator, min_confidence.denominator
    needed = np.array([-(-num * count // den) for count in distinct.tolist()], np.int64)
    return needed[inverse]
