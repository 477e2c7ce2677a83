"""What one party expects of a joint run: exact where it holds all rows, sensible where it holds a part."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mining.candidates import join
from mining.joint import local_sizes as module
from mining.joint.local_sizes import local_sizes, united
from mining.joint.parameters import HorizontalMining, RuleParameters
from mining.miner import frequent_itemsets
from mining.pairs import n_pairs
from mining.rule_growth import Family, RuleGrowth
from mining.thresholds import local_threshold, minimum_count
from mining.transactions import Transactions

rows = st.lists(st.sets(st.sampled_from("abcdefghij"), max_size=7), min_size=1, max_size=60)


def task(min_support: str | int = "0.2", **others: Any) -> HorizontalMining:
    support = min_support if isinstance(min_support, int) else Decimal(min_support)
    return HorizontalMining(support, ("north", "south"), "north", ("north", "south"), **others)


@given(rows, st.sampled_from(["0.1", "0.25", "0.5"]), st.sampled_from([None, 1, 2, 3]))
def test_who_holds_all_rows_knows_the_candidates(data: list[set[str]], support: str, longest: int | None) -> None:
    transactions = Transactions.from_rows(data)
    found = local_sizes(transactions, task(support, max_length=longest), 2, transactions.n_rows)
    pooled = frequent_itemsets(transactions, minimum_count(Decimal(support), len(data)))
    items = len(pooled.items)
    expected = [items, n_pairs(items), *(len(join(sets)) for sets, _ in pooled.levels[1:])][:longest]
    while len(expected) > 1 and not expected[-1]:
        expected.pop()
    assert list(found.candidates) == expected
    assert list(found.frequent) == [items, *(len(sets) for sets, _ in pooled.levels[1:longest])]
    assert found.complete


@settings(max_examples=50)
@given(rows, st.integers(2, 4), st.integers(0, 500), st.booleans())
def test_sets_are_those_of_the_run(data: list[set[str]], parties: int, more: int, everything: bool) -> None:
    transactions, n_rows = Transactions.from_rows(data), len(data) + more
    given_task = task(strategy="one-shot", union="all", universe="all-items" if everything else "frequent-items")
    found = local_sizes(transactions, given_task, parties, n_rows)
    least = minimum_count(Decimal("0.2"), n_rows)
    threshold = local_threshold(Decimal("0.2"), len(data), least, parties, given_task.lambda_, n_rows)
    counts = transactions.item_counts()
    assert found.items.elements == np.count_nonzero(counts >= threshold)
    assert found.held == (None if not everything else replace(found.held or found.items, elements=len(counts)))
    own = frequent_itemsets(transactions, threshold)
    assert found.itemsets is not None
    assert found.itemsets.elements == sum(len(sets) for sets, _ in own.levels[1:])
    assert [level.elements for level in found.levels] == [len(sets) for sets, _ in own.levels[1:]]
    assert all(0 <= each.novelty <= 1 for each in (found.items, found.itemsets, *found.levels))


@settings(max_examples=30)
@given(rows, st.sampled_from(["0.1", "0.3"]), st.sampled_from(["0", "0.5", "0.6", "1"]), st.booleans())
def test_who_holds_all_rows_knows_which_rules_are_examined(
    data: list[set[str]], support: str, confidence: str, single: bool
) -> None:
    transactions = Transactions.from_rows(data)
    asked = RuleParameters(Decimal(confidence), "single" if single else "any")
    found = local_sizes(transactions, task(support, disclose="frequent", rules=asked), 2, transactions.n_rows)
    family = Family(frequent_itemsets(transactions, minimum_count(Decimal(support), len(data))).canonical())
    growth, examined = RuleGrowth(family, single=single), []
    while (batch := growth.next_batch()) is not None:
        examined.append(len(batch))
        least = [Fraction(confidence) * int(count) for count in family.counts[batch.antecedent]]
        growth.keep(
            np.array([int(both) >= count for both, count in zip(family.counts[batch.whole], least, strict=True)])
        )
    assert list(found.rules) == examined


def test_the_variants_of_a_job_are_told_with_it() -> None:
    data = Transactions.from_rows([list("abcdef"), list("abc"), list("ab")] * 20)
    alone = local_sizes(data, task(), 2, 120)
    assert (alone.mined, alone.held, alone.levels, alone.rules) == (False, None, (), ())
    for variant in (task(thin=True), task(strategy="one-shot")):
        found = local_sizes(data, task(), 2, 120, [variant])
        assert found.mined
        assert found == local_sizes(data, variant, 2, 120)
    hidden = local_sizes(data, task(), 2, 120, [task(universe="hidden")])
    assert hidden == replace(alone, held=hidden.held)
    assert hidden.held is not None
    assert hidden.held.elements == 6


@given(st.lists(st.integers(0, 1000), max_size=6), st.floats(0, 1))
def test_a_union_lies_between_its_largest_set_and_their_sum(sizes: list[int], novelty: float) -> None:
    assert max(sizes, default=0) <= united(sizes, novelty) <= sum(sizes)


def test_a_limit_is_told_and_short_candidates_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ITEMSETS", 60)
    data = Transactions.from_rows([list("abcdefghij")] * 20)
    found = local_sizes(data, task(strategy="one-shot"), 2, 40)
    assert not found.complete
    assert found.candidates == (10, 45, 120)
    assert found.itemsets is None


def test_candidates_over_the_job_s_limit_are_told_to_be_so() -> None:
    data = Transactions.from_rows([list("abcdefghij")] * 20)
    assert local_sizes(data, task(max_candidates=100), 2, 20).candidates == (10, 45, 101)


def test_no_rows() -> None:
    found = local_sizes(Transactions.empty(), task(), 3, 0)
    assert (found.candidates, found.items.elements) == ((0,), 0)


def test_chance_is_taken_off() -> None:
    """Items of nearly the threshold's frequency: a part of the rows makes more of them frequent than there are."""
    random = np.random.default_rng(3)
    shares = np.where(np.arange(300) < 60, 0.13, 0.095)
    pooled = random.random((9000, 300)) < shares
    data = [[f"{item:03}" for item in np.flatnonzero(row)] for row in pooled[:1500]]
    actual = int((pooled.sum(axis=0) >= 900).sum())
    transactions = Transactions.from_rows(data)
    raw = int((transactions.item_counts() >= 150).sum())
    found = local_sizes(transactions, task("0.1", max_length=1), 6, 9000).candidates[0]
    assert abs(found - actual) < abs(raw - actual)


@pytest.mark.data
def test_the_parts_of_retail_tell_the_whole(shared_data: Path) -> None:
    from mining.loading import load_transactions

    data = load_transactions(shared_data / "transactions" / "retail.dat.gz", "basket")
    parts = [module._part(data, place, 3) for place in range(3)]
    found = sorted(local_sizes(part, task("0.005", max_length=1), 3, data.n_rows).candidates[0] for part in parts)
    actual = len(frequent_itemsets(data, minimum_count(Decimal("0.005"), data.n_rows), max_length=1).items)
    assert found[1] == pytest.approx(actual, rel=0.03)
