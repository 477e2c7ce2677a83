"""Estimates on the wire and as tables: what is packed comes back, and nothing else is taken for it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mining.estimates import EstimatedItemsets
from mining.joint.estimated import Estimated, pack_estimates, unpack_estimates
from mining.joint.spent import Spent
from mining.rules.estimated import EstimatedRule, EstimatedRules

SPENT = Spent("shuffle", 3.5, 0.9, 1e-6, 120, "privacy blanket")
ITEMS = ("bread", "milk", "ünï", "ミルク")


def level(rows: list[tuple[list[int], float, float]]) -> Any:
    sets = np.array([each for each, _, _ in rows], np.int32)
    return sets, np.array([count for _, count, _ in rows]), np.array([deviation for _, _, deviation in rows])


def estimates() -> EstimatedItemsets:
    levels = [level([([0], 60.5, 4.0), ([1], 40.25, 3.0), ([3], -2.0, 3.0)]), level([([0, 1], 30.125, 5.5)])]
    return EstimatedItemsets(ITEMS, levels, 100).canonical()


def found(rules: bool = True) -> Estimated:
    itemsets = estimates()
    rule = EstimatedRule(("bread",), ("milk",), 0.5, 0.25, 0.75)
    return Estimated(itemsets, SPENT, EstimatedRules(itemsets, (rule,)) if rules else None)


counts = st.floats(-1e6, 1e6).map(lambda x: x + 0.0)
sets = st.sets(st.frozensets(st.integers(0, 3), min_size=1), max_size=12)


@given(sets, st.data(), st.integers(0, 1 << 40))
def test_estimates_come_back(chosen: set[frozenset[int]], data: st.DataObject, n_rows: int) -> None:
    levels = []
    for length in sorted({len(each) for each in chosen}):
        rows = [sorted(each) for each in chosen if len(each) == length]
        drawn = [(row, data.draw(counts), data.draw(st.floats(0, 1e6))) for row in rows]
        levels.append(level(drawn))
    given_ = Estimated(EstimatedItemsets(ITEMS, levels, n_rows), SPENT)
    packed = pack_estimates(given_)
    again = unpack_estimates(packed)
    assert pack_estimates(again) == packed
    assert again.spent == SPENT
    assert len(again.itemsets) == len(chosen)
    assert again.itemsets.to_arrow().equals(given_.itemsets.canonical().to_arrow())


def test_rules_come_back() -> None:
    again = unpack_estimates(pack_estimates(found()))
    assert again.rules is not None
    assert again.rules.rules == (EstimatedRule(("bread",), ("milk",), 0.5, 0.25, 0.75),)


def changed(**parts: Any) -> bytes:
    content = json.loads(pack_estimates(found())) | parts
    return f"{json.dumps(content, sort_keys=True, separators=(',', ':'), ensure_ascii=False)}\n".encode()


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        pack_estimates(found())[:-1],
        pack_estimates(found()) + b"\n",
        b" " + pack_estimates(found()),
        changed(version=2),
        changed(n_rows=-1),
        changed(n_rows=True),
        changed(items=["milk", "bread", "ミルク"]),
        changed(items=["bread", "milk", 3]),
        changed(itemsets=[[[0], 60.5, -4.0]]),
        changed(itemsets=[[[0], 60, 4.0]]),
        changed(itemsets=[[[7], 60.5, 4.0]]),
        changed(itemsets=[[[], 60.5, 4.0]]),
        changed(itemsets=[[[0], 60.5, 4.0], [[0], 60.5, 4.0]]),
        changed(itemsets=[[[1, 0], 60.5, 4.0]]),
        changed(itemsets=[[[0], math.inf, 4.0]]),
        changed(itemsets=[[[0], "60", 4.0]]),
        changed(itemsets=3),
        changed(rules=[[[0], [1], 1.5, 0.25, 0.75]]),
        changed(rules=[[[0], [2], 0.5, 0.25, 0.75]]),
        changed(rules=[[[0], [], 0.5, 0.25, 0.75]]),
        changed(rules=[[[0], [1], 0.5, 0.25, 0.75]] * 2),
        changed(spent={}),
        changed(spent={**json.loads(pack_estimates(found()))["spent"], "epsilon": -1.0}),
        changed(spent={**json.loads(pack_estimates(found()))["spent"], "n": 0}),
        changed(spent={**json.loads(pack_estimates(found()))["spent"], "model": 1}),
        changed(extra=1),
        b"[" * 100_000,
    ],
)
def test_nothing_else_is_taken_for_estimates(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        unpack_estimates(packed)


def test_a_table_of_itemsets_has_intervals() -> None:
    table = estimates().to_arrow()
    assert table.column_names == ["itemset", "length", "count", "support", "deviation", "low", "high"]
    first, *_ = table.to_pylist()
    assert (first["itemset"], first["count"], first["support"]) == (["bread"], 60, 0.605)
    assert first["low"] == pytest.approx(0.605 - 1.959964 * 0.04)
    last = next(row for row in table.to_pylist() if row["itemset"] == ["ミルク"])
    assert (last["count"], last["support"], last["low"]) == (0, 0.0, 0.0)


def test_a_table_of_rules_has_intervals_of_confidences_and_gaps() -> None:
    itemsets = EstimatedItemsets(ITEMS, [level([([0], 60.5, 4.0)]), level([([0, 1], 70.0, 5.5)])], 100).canonical()
    rule = EstimatedRule(("bread",), ("milk",), 1.0, 0.75, 1.0)
    table = EstimatedRules(itemsets, (rule,)).to_arrow(["confidence", "lift", "coverage"])
    (row,) = table.to_pylist()
    assert table.column_names[-2:] == ["low", "high"]
    assert (row["count"], row["antecedent_count"], row["consequent_count"]) == (60, 60, None)
    assert (row["confidence"], row["lift"], row["coverage"]) == (1.0, None, 0.6)
    assert (row["low"], row["high"]) == (0.75, 1.0)
    known = found().rules
    assert known is not None
    (row,) = known.to_arrow(["lift"]).to_pylist()
    assert row["lift"] == pytest.approx(30 / 60 / (40 / 100))
    assert EstimatedRules(itemsets, ()).to_arrow().num_rows == 0
