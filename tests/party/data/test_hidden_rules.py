"""Rules that a party hides in what it contributes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mining.data.transactions import Transactions
from mining.miner import frequent_itemsets
from party.config import DatasetSection
from party.data.hidden_rules import HidingSection, without_rules
from party.data.sources import read_dataset

ROWS = ["abc", "abc", "ab", "ac", "bc", "a", "b", "abd", "bd", "cd"]


def section(**changes: Any) -> HidingSection:
    return HidingSection(**{"rules": ["a -> b"], "min_support": 3, "min_confidence": Decimal("0.6"), **changes})


def test_a_dataset_is_read_without_its_sensitive_rules(tmp_path: Path) -> None:
    path = tmp_path / "baskets.dat"
    path.write_text("\n".join(" ".join(row) for row in ROWS))
    plain = DatasetSection(name="baskets", kind="transactions", source=str(path), format="basket")
    hidden = plain.model_copy(update={"hiding": section()})
    found = {}
    for dataset in (plain, hidden):
        data = read_dataset(dataset, ())
        assert isinstance(data, Transactions)
        found[dataset is hidden] = {frozenset(items) for items, _ in frequent_itemsets(data, 3).rows()}
    assert found[False] - found[True] == {frozenset("ab")}


def test_rules_with_unknown_items_are_hidden_already() -> None:
    data = Transactions.from_rows(ROWS)
    assert without_rules(data, section(rules=["x -> a"])) is data
    assert without_rules(data, section(min_support=11)) is data
    named = section(rules=["x -> a", {"antecedent": ["a"], "consequent": ["b"]}])
    assert without_rules(data, named).n_occurrences == data.n_occurrences - 2


def test_rules_without_number_do_not_keep_an_itemset_from_being_hidden() -> None:
    """Each of the 3¹⁶ rules is certain; nobody has to count them."""
    names = [f"{item:02}" for item in range(16)]
    data = Transactions.from_rows([names] * 4 + [["x", "y"]] * 6)
    hidden = without_rules(data, section(rules=["x -> y"], min_support=4, min_confidence=Decimal(0)))
    assert hidden.n_occurrences == data.n_occurrences - 3


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rules": []}, "at least 1"),
        ({"rules": ["-> b"]}, "names at least one item on its left side"),
        ({"rules": ["a, a"]}, "names the item 'a' twice"),
        ({"min_support": Decimal(0)}, "must be a fraction above 0"),
        ({"method": "magic"}, "Input should be"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        section(**changes)


def test_rules_are_hidden_in_sets_of_items_alone() -> None:
    with pytest.raises(ValidationError, match='needs kind = "transactions"'):
        DatasetSection(name="t", kind="table", source="t.csv", format="csv", hiding=section())
