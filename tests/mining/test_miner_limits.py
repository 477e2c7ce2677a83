"""Enumerations that would explode end at once."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from itertools import combinations

import numpy as np
import pytest

from link.errors import ConfigurationError
from mining.candidates import join
from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.miner import EnumerationLimit, frequent_itemsets
from mining.rules.association import association_rules
from tests.errors import fails

BASKET = [f"item {i}" for i in range(100)]


@pytest.mark.parametrize("limit", [None, 100_000])
@pytest.mark.parametrize("min_count", [1, 2])
def test_subsets_of_a_large_basket_are_not_enumerated(limit, min_count):
    with pytest.raises(EnumerationLimit):
        frequent_itemsets(Transactions.from_rows([BASKET, BASKET, ["a"]]), min_count, limit=limit)


def test_short_itemsets_of_a_large_basket_are():
    assert len(frequent_itemsets(Transactions.from_rows([BASKET]), 1, max_length=2)) == 100 + 4950


def test_an_item_of_every_row_is_found():
    found = frequent_itemsets(Transactions.from_rows([["a", "b"], ["a"], ["a", "c"]]), 3)
    assert list(found) == [(("a",), 3)]


def test_nothing_frequent():
    found = frequent_itemsets(Transactions.from_rows([["a"], ["b"]]), 2)
    assert len(found) == 0
    assert found.to_arrow().column_names == ["itemset", "length", "count", "support"]
    assert len(association_rules(found, Decimal("0.5"))) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_confidence": Decimal("1.1")},
        {"min_confidence": Decimal("NaN")},
        {"measures": ["lfit"]},
        {"consequent": "both"},
    ],
)
def test_wrong_parameters_of_rules(wrong):
    found = frequent_itemsets(Transactions.from_rows([["a", "b"]]), 1)
    with pytest.raises(ConfigurationError):
        association_rules(found, **{"min_confidence": Decimal("0.5")} | wrong)


def test_rules_need_all_subsets():
    pairs_only = Itemsets(("a", "b"), frequent_itemsets(Transactions.from_rows([["a", "b"]]), 1).levels[1:], 1)
    with fails("E100"):
        association_rules(pairs_only, Decimal("0.5"))


def test_too_many_candidates_are_counted_and_not_kept():
    """A row of 26 items at min_support = 1: 657,800 itemsets of seven items have 1,562,275 candidates."""
    frequent = np.fromiter((i for found in combinations(range(26), 7) for i in found), np.int32).reshape(-1, 7)
    tracemalloc.start()
    try:
        with pytest.raises(EnumerationLimit):
            join(frequent, 1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 66 << 20
