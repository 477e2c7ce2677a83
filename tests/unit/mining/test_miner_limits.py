"""Enumerations that would explode end at once."""

from __future__ import annotations

from decimal import Decimal

import pytest

from link.errors import ConfigurationError
from mining.itemsets import Itemsets
from mining.miner import EnumerationLimit, frequent_itemsets
from mining.rules import association_rules
from mining.transactions import Transactions

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
    with pytest.raises(ConfigurationError, match="subsets"):
        association_rules(pairs_only, Decimal("0.5"))
