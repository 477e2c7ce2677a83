"""Rules agree with an oracle that tries every split with exact fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mining.data.transactions import Transactions
from mining.miner import frequent_itemsets
from mining.reference.pooled import brute_force
from mining.reference.rules import rules
from mining.rules.association import association_rules
from mining.rules.measures import MEASURES
from tests.errors import fails

untimed = settings(deadline=None)  # how long an example takes depends on what else the machine does

ITEMS = ["a", "b", "B", "ä", "𝔘", "two words", 'q"uote', "com,ma", "[x]", "007"]
databases = st.lists(st.lists(st.sampled_from(ITEMS), max_size=6), max_size=24)
confidences = st.decimals(0, 1, places=3) | st.sampled_from([Decimal("0.5"), Decimal(1), Decimal(0)])


@untimed
@given(rows=databases, min_count=st.integers(1, 5), confidence=confidences, single=st.booleans())
def test_rules_equal_the_oracle(rows, min_count, confidence, single):
    expected = rules(brute_force(rows, min_count), Fraction(confidence), single=single)
    itemsets = frequent_itemsets(Transactions.from_rows(rows), min_count)
    found = association_rules(itemsets, confidence, consequent="single" if single else "any", measures=list(MEASURES))
    table = found.to_arrow().to_pylist()
    keys = [(len(r["antecedent"]) + len(r["consequent"]), r["antecedent"], r["consequent"]) for r in table]
    assert keys == sorted(keys)
    by_sides = {(rule.antecedent, rule.consequent): rule for rule in expected}
    assert len(found) == len(table) == len(expected)
    n = len(rows)
    for row in table:
        assert row["antecedent"] == sorted(row["antecedent"])
        assert row["consequent"] == sorted(row["consequent"])
        rule = by_sides.pop((frozenset(row["antecedent"]), frozenset(row["consequent"])))
        assert (row["count"], row["antecedent_count"], row["consequent_count"]) == (
            rule.count,
            rule.antecedent_count,
            rule.consequent_count,
        )
        for name, value in expected_measures(rule, n).items():
            assert row[name] == pytest.approx(value, rel=1e-12, abs=1e-15), name
    assert not by_sides


def expected_measures(rule, n):
    """The textbook formulas in exact probabilities."""
    both, a, c = (Fraction(x, n) for x in (rule.count, rule.antecedent_count, rule.consequent_count))
    leverage = both - a * c
    change = both / a - c
    certainty = change / (1 - c) if change > 0 else change / c
    zhang = leverage / max(both * (1 - a), a * (c - both)) if leverage else 0
    return {
        "support": both,
        "confidence": both / a,
        "coverage": a,
        "lift": both / (a * c),
        "leverage": leverage,
        "conviction": a * (1 - c) / (a - both) if a > both else math.inf,
        "jaccard": both / (a + c - both),
        "kulczynski": (both / a + both / c) / 2,
        "cosine": float(both) / math.sqrt(a * c),
        "imbalance_ratio": abs(a - c) / (a + c - both),
        "all_confidence": min(both / a, both / c),
        "max_confidence": max(both / a, both / c),
        "added_value": change,
        "certainty": certainty,
        "zhang": zhang,
    }


@untimed
@given(rows=databases.filter(lambda rows: any(len(set(row)) > 1 for row in rows)))
def test_the_number_of_rules_is_bounded(rows):
    itemsets = frequent_itemsets(Transactions.from_rows(rows), 1)
    n_rules = len(association_rules(itemsets, Decimal(0)))
    assert len(association_rules(itemsets, Decimal(0), max_rules=n_rules)) == n_rules
    with fails("E100"):
        association_rules(itemsets, Decimal(0), max_rules=n_rules - 1)
