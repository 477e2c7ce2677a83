"""Association rules over itemsets whose counts are estimates: with what noise leaves of their confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mining.estimates import EstimatedItemsets
from mining.rules.measure_names import DEFAULT_MEASURES
from mining.rules.measures import MEASURES, RuleCounts


@dataclass(frozen=True, slots=True)
class EstimatedRule:
    """A rule X → Y by its items.

    Attributes:
        antecedent: X, in ascending order.
        consequent: Y, in ascending order, without items of X.
        confidence: The estimated share of records with Y among those with X, 0 … 1.
        low: Lower end of its 95 % interval.
        high: Upper end.
    """

    antecedent: tuple[str, ...]
    consequent: tuple[str, ...]
    confidence: float
    low: float
    high: float

    @property
    def whole(self) -> tuple[str, ...]:
        """X and Y together, in ascending order."""
        return tuple(sorted((*self.antecedent, *self.consequent)))

    def order(self) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        """By which rules are put in the order of `mining.rules.association.Rules`."""
        return len(self.antecedent) + len(self.consequent), self.antecedent, self.consequent


@dataclass(frozen=True, eq=False)
class EstimatedRules:
    """Rules with estimated confidences, in the order of `mining.rules.association.Rules`.

    Attributes:
        itemsets: The itemsets; those of antecedents and of whole rules are among them, those of consequents perhaps.
        rules: The rules.
    """

    itemsets: EstimatedItemsets
    rules: tuple[EstimatedRule, ...]

    def __len__(self) -> int:
        return len(self.rules)

    def to_arrow(self, measures: Sequence[str] = DEFAULT_MEASURES) -> pa.Table:
        """As `Rules.to_arrow`, with `low` and `high` of the confidence, 95 % within, at the end.

        A consequent whose count is not estimated has none, and neither have the measures that need it: they are null.
        Measures other than the confidence are those of the whole counts.
        """
        counts: dict[tuple[str, ...], int] = {
            itemset: count for itemset, count in self.itemsets.rounded().rows() if count is not None
        }
        antecedent = np.array([counts[rule.antecedent] for rule in self.rules], np.int64)
        both = np.minimum(np.array([counts[rule.whole] for rule in self.rules], np.int64), antecedent)
        known = np.array([rule.consequent in counts for rule in self.rules], bool)
        consequent = np.array([counts.get(rule.consequent, 0) for rule in self.rules], np.int64)
        both = np.where(known, np.minimum(both, consequent), both)
        numbers = RuleCounts(both, antecedent, consequent, max(self.itemsets.n_rows, 1))
        texts = pa.list_(pa.string())
        columns = {
            "antecedent": pa.array([rule.antecedent for rule in self.rules], texts),
            "consequent": pa.array([rule.consequent for rule in self.rules], texts),
            "count": pa.array(both, pa.int64()),
            "antecedent_count": pa.array(antecedent, pa.int64()),
            "consequent_count": pa.array(consequent, pa.int64(), mask=~known),
            "support": pa.array(numbers.support, pa.float64()),
        }
        for name in measures:
            columns[name] = self._measure(name, numbers, known)
        for name in ("low", "high"):
            columns[name] = pa.array([getattr(rule, name) for rule in self.rules], pa.float64())
        return pa.table(columns)

    def _measure(self, name: str, numbers: RuleCounts, known: NDArray[np.bool_]) -> pa.Array:
        if name == "confidence":
            return pa.array([rule.confidence for rule in self.rules], pa.float64())
        with np.errstate(divide="ignore", invalid="ignore"):
            values = MEASURES[name](numbers)
        needed = ~known if name != "coverage" else np.zeros(len(known), bool)
        return pa.array(values, pa.float64(), mask=needed | np.isnan(values))
