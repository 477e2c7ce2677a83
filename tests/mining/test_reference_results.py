"""Published itemsets and rules of well-known data, agreed on by several independent tools."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal

import pytest

from mining.data.loading import load_transactions
from mining.filters import downward_closure, maximal_sets
from mining.miner import frequent_itemsets
from mining.rules.association import association_rules
from mining.thresholds import minimum_count

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.fixture(scope="module")
def expected(shared_data):
    path = shared_data.parent / "acceptance" / "expected.json"
    if not path.exists():
        pytest.skip("the expected results are not there")
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def load(shared_data):
    loaded = {}

    def once(name):
        if name not in loaded:
            loaded[name] = load_transactions(shared_data / "transactions" / name, "basket")
        return loaded[name]

    return once


def test_itemsets(expected, load, shared_data):
    checked = 0
    for name, case in expected["itemsets"].items():
        if not (shared_data / "transactions" / case["data"]).exists():
            continue
        transactions = load(case["data"])
        c = minimum_count(Decimal(str(case["minsup"])), transactions.n_rows)
        assert (transactions.n_rows, c) == (case["rows"], case["minsup_count"]), name
        found = frequent_itemsets(transactions, c)
        assert {str(sets.shape[1]): len(sets) for sets, _ in found.levels} == case["by_length"], name
        assert found.digest() == case["sha256"], name
        closure = downward_closure(maximal_sets([sets for sets, _ in found.levels]), limit=len(found))
        assert sum(map(len, closure)) == len(found), name
        checked += 1
    assert checked >= 10


def test_rules(expected, load):
    for name, case in expected["rules"].items():
        data, support, confidence = name.split("@")
        itemset_case = expected["itemsets"][f"{data}@{support}"]
        itemsets = frequent_itemsets(load(itemset_case["data"]), itemset_case["minsup_count"])
        for consequent in ("any", "single"):
            found = association_rules(itemsets, Decimal(confidence.removeprefix("conf")), consequent=consequent)
            lines = sorted(
                f"{' '.join(row['antecedent'])} => {' '.join(row['consequent'])}\t"
                f"{row['count']}\t{row['antecedent_count']}\t{row['consequent_count']}\n"
                for row in found.to_arrow().to_pylist()
            )
            assert hashlib.sha256("".join(lines).encode()).hexdigest() == case[f"sha256_{consequent}"], name
