"""Rules by trying every split of every frequent itemset, with exact fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

Itemset = frozenset[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with its absolute counts.

    Attributes:
        antecedent: Items of the left side.
        consequent: Items of the right side.
        count: Transactions that hold both sides.
        antecedent_count: Transactions that hold the antecedent.
        consequent_count: Transactions that hold the consequent.
    """

    antecedent: Itemset
    consequent: Itemset
    count: int
    antecedent_count: int
    consequent_count: int

    @property
    def confidence(self) -> Fraction:
        """The share of transactions with the antecedent that hold the consequent too."""
        return Fraction(self.count, self.antecedent_count)


def rules(frequent: dict[Itemset, int], min_confidence: Fraction, *, single: bool = False) -> set[Rule]:
    """All rules that reach a confidence.

    Args:
        frequent: All frequent itemsets and their counts.
        min_confidence: The least confidence.
        single: Whether only consequents of one item are wanted.
    """
    found = set()
    for itemset, count in frequent.items():
        for size in range(1, 2 if single else len(itemset)):
            for chosen in combinations(itemset, size):
                consequent = frozenset(chosen)
                antecedent = itemset - consequent
                if antecedent:
                    rule = Rule(antecedent, consequent, count, frequent[antecedent], frequent[consequent])
                    if rule.confidence >= min_confidence:
                        found.add(rule)
    return found
