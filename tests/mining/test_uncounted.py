"""Itemsets of which only is known that they are frequent: nothing shows a count of theirs."""

from __future__ import annotations

import hashlib
from decimal import Decimal

import numpy as np
import pytest

from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.miner import frequent_itemsets
from mining.rules import association as rules_module
from mining.rules.association import association_rules
from tests.errors import fails

ROWS = [["c", "b", "a"], ["a", "b"], ["b", "c"], ["a"]]


def uncounted() -> Itemsets:
    """In no canonical order."""
    names = ("c", "b", "a")
    singles, pairs = np.array([[0], [1], [2]], np.int32), np.array([[0, 1], [1, 2]], np.int32)
    return Itemsets(names, [(sets, np.zeros(len(sets), np.int64)) for sets in (singles, pairs)], 4, counted=False)


def test_no_count_is_shown() -> None:
    found = uncounted().canonical()
    assert list(found) == [(("a",), None), (("b",), None), (("c",), None), (("a", "b"), None), (("b", "c"), None)]
    table = found.to_arrow()
    assert table.schema == frequent_itemsets(Transactions.from_rows(ROWS), 2).to_arrow().schema
    assert table["count"].null_count == table["support"].null_count == len(found)
    assert "counts unknown" in repr(found)
    assert "unknown" not in repr(frequent_itemsets(Transactions.from_rows(ROWS), 2))


def test_what_is_made_of_them_has_no_counts_either() -> None:
    kept = uncounted().filter([np.array([True, False, True]), np.array([False, True])])
    assert not kept.counted
    assert len(kept) == 3
    assert uncounted().filter([np.zeros(3, bool), np.zeros(2, bool)]).to_arrow()["count"].null_count == 0


def test_the_digest_is_of_the_items_alone() -> None:
    lines = "a\na b\nb\nb c\nc\n"
    assert uncounted().digest() == uncounted().canonical().digest() == hashlib.sha256(lines.encode()).hexdigest()
    counted = frequent_itemsets(Transactions.from_rows(ROWS), 2)
    assert {itemset for itemset, _ in counted} == {itemset for itemset, _ in uncounted().canonical()}
    assert counted.digest() != uncounted().digest()


def test_rules_do_not_follow_from_them() -> None:
    with fails("E100"):
        association_rules(uncounted(), Decimal("0.5"))


def test_rules_over_more_itemsets_than_one_key_holds_are_ordered_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = frequent_itemsets(Transactions.from_rows(ROWS * 2), 1)
    before = association_rules(counted, Decimal(0)).to_arrow()
    monkeypatch.setattr(rules_module, "ONE_KEY", 0)
    assert association_rules(counted, Decimal(0)).to_arrow().equals(before)
