"""Mining, counting and filtering agree with plain pooled oracles on random data."""

from __future__ import annotations

from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mining import miner
from mining.candidates import join
from mining.counting import SupportCounter, count_itemsets
from mining.data.items.bitmaps import pack
from mining.data.transactions import Transactions
from mining.filters import closed, downward_closure, maximal, maximal_sets
from mining.itemsets import Itemsets
from mining.miner import EnumerationLimit, frequent_itemsets
from mining.pairs import count_along_columns, count_along_rows, frequent_pairs
from mining.reference.apriori import level_wise
from mining.reference.fpgrowth import fp_growth
from mining.reference.pooled import brute_force

untimed = settings(deadline=None)  # how long an example takes depends on what else the machine does

ITEMS = ["a", "b", "B", "ä", "Ω", "z\u0301", "𝔘", "two words", 'q"uote', "com,ma", "[x]", "007", "t", "=1", "\u00a0"]
databases = st.lists(st.lists(st.sampled_from(ITEMS), max_size=8), max_size=24)


def as_dict(itemsets: Itemsets) -> dict[frozenset[str], int]:
    found = {frozenset(items): count for items, count in itemsets}
    assert len(found) == len(itemsets)
    return found


def lexicographic(sets) -> bool:
    rows = [tuple(row) for row in sets.tolist()]
    return rows == sorted(set(rows)) and all(row == tuple(sorted(set(row))) for row in rows)


@untimed
@given(rows=databases, min_count=st.integers(1, 25))
def test_the_oracles_agree(rows, min_count):
    expected = brute_force(rows, min_count)
    assert level_wise(rows, min_count) == expected
    assert fp_growth(rows, min_count) == expected


@pytest.mark.parametrize("dense", [True, False])
@untimed
@given(rows=databases, min_count=st.integers(1, 25))
def test_mining_equals_the_oracle(dense, rows, min_count):
    with mock.patch.object(miner, "dense", return_value=dense):
        found = frequent_itemsets(Transactions.from_rows(rows), min_count)
    assert as_dict(found) == brute_force(rows, min_count)
    assert found.n_rows == len(rows)
    for sets, counts in found.levels:
        assert lexicographic(sets)
        assert sets.dtype == np.int32
        assert counts.dtype == np.int64


@pytest.mark.parametrize("dense", [True, False])
@untimed
@given(
    rows=databases, min_count=st.integers(1, 6), max_length=st.integers(0, 5), chosen=st.sets(st.sampled_from(ITEMS))
)
def test_length_and_items_restrict_the_result(dense, rows, min_count, max_length, chosen):
    with mock.patch.object(miner, "dense", return_value=dense):
        found = frequent_itemsets(Transactions.from_rows(rows), min_count, max_length=max_length, items=chosen)
    expected = brute_force([[item for item in row if item in chosen] for row in rows], min_count, max_length)
    assert as_dict(found) == expected


@pytest.mark.parametrize("dense", [True, False])
@untimed
@given(rows=databases, min_count=st.integers(1, 4), limit=st.integers(0, 400))
def test_the_limit_stops_exactly_beyond_it(dense, rows, min_count, limit):
    expected = brute_force(rows, min_count)
    with mock.patch.object(miner, "dense", return_value=dense):
        if len(expected) > limit:
            with pytest.raises(EnumerationLimit):
                frequent_itemsets(Transactions.from_rows(rows), min_count, limit=limit)
        else:
            assert len(frequent_itemsets(Transactions.from_rows(rows), min_count, limit=limit)) == len(expected)


@untimed
@given(rows=databases)
def test_pairs_along_rows_and_columns_agree(rows):
    transactions = Transactions.from_rows(rows)
    expected = [sum(a in row and b in row for row in rows) for a, b in combinations(transactions.items, 2)]
    assert count_along_rows(transactions).tolist() == expected
    assert count_along_columns(pack(transactions)).tolist() == expected
    pairs, counts = frequent_pairs(transactions, 2)
    every = list(combinations(range(transactions.n_items), 2))
    assert [tuple(pair) for pair in pairs.tolist()] == [
        pair for pair, count in zip(every, expected, strict=True) if count >= 2
    ]
    assert counts.tolist() == [count for count in expected if count >= 2]


@pytest.mark.parametrize("memory_budget", [1 << 20, 64, 0])
@untimed
@given(rows=databases, thresholds=st.lists(st.integers(1, 4), min_size=9, max_size=9))
def test_counter_follows_the_levels_of_others(memory_budget, rows, thresholds):
    """What goes on is decided outside (by all parties together), so it need not fit these rows."""
    transactions = Transactions.from_rows(rows)
    oracle = brute_force(rows, 1)
    counter = SupportCounter(transactions, memory_budget)

    def supports(sets):
        return [oracle.get(frozenset(transactions.items[i] for i in row), 0) for row in sets.tolist()]

    counts = counter.count_pairs()
    assert counts.tolist() == supports(np.stack(np.triu_indices(transactions.n_items, 1), axis=1))
    for threshold in thresholds:
        frequent = counter.keep(counts >= threshold)
        assert supports(frequent) == counts[counts >= threshold].tolist()
        candidates = join(frequent)
        counts = counter.count(candidates)
        assert counts.tolist() == supports(candidates.sets)
        half = candidates.select(np.arange(len(candidates)) % 2 == 0)
        assert counter.count(half).tolist() == supports(half.sets)
        assert counter.count(candidates).tolist() == counts.tolist()


@untimed
@given(rows=databases, data=st.data())
def test_any_family_is_counted(rows, data):
    transactions = Transactions.from_rows(rows)
    if not transactions.n_items:
        return
    subsets = st.sets(st.integers(0, transactions.n_items - 1), min_size=1, max_size=6).map(lambda s: tuple(sorted(s)))
    wanted = data.draw(st.lists(subsets, unique=True, max_size=30))
    levels = [
        np.array([s for s in wanted if len(s) == k], np.int32).reshape(-1, k)
        for k in data.draw(st.permutations(range(1, 7)))
    ]
    for sets, counts in zip(levels, count_itemsets(transactions, levels), strict=True):
        for row, count in zip(sets.tolist(), counts.tolist(), strict=True):
            assert count == sum(all(transactions.items[i] in held for i in row) for held in rows)


@untimed
@given(rows=databases, min_count=st.integers(1, 6))
def test_closed_and_maximal_by_definition(rows, min_count):
    frequent = brute_force(rows, min_count)
    mined = frequent_itemsets(Transactions.from_rows(rows), min_count)
    supersets = {a: [b for b in frequent if a < b] for a in frequent}
    assert as_dict(maximal(mined)) == {a: n for a, n in frequent.items() if not supersets[a]}
    assert as_dict(closed(mined)) == {a: n for a, n in frequent.items() if all(frequent[b] < n for b in supersets[a])}
    sets = [level for level, _ in mined.levels]
    closure = downward_closure(maximal_sets(sets)[::-1], limit=len(mined))
    assert [level.tolist() for level in closure] == [level.tolist() for level in sets]


@untimed
@given(family=st.lists(st.sets(st.integers(0, 12), min_size=1, max_size=7), max_size=6), limit=st.integers(0, 200))
def test_downward_closure_by_definition(family, limit):
    expected = {s for given_set in family for k in range(1, 8) for s in combinations(sorted(given_set), k)}
    sets = [np.array([sorted(s)], np.int32) for s in family]
    if len(expected) > limit:
        with pytest.raises(EnumerationLimit):
            downward_closure(sets, limit)
        return
    closure = downward_closure(sets, limit)
    assert all(lexicographic(level) for level in closure)
    assert {tuple(row) for level in closure for row in level.tolist()} == expected


@untimed
@given(rows=databases, min_count=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_canonical_form_forgets_the_dictionary(rows, min_count, seed):
    transactions = Transactions.from_rows(rows)
    shuffled = transactions.onto(np.random.default_rng(seed).permutation(np.array(transactions.items, object)).tolist())
    one, other = frequent_itemsets(transactions, min_count), frequent_itemsets(shuffled, min_count)
    assert one.digest() == other.digest()
    canonical = list(other.canonical())
    assert canonical == list(one)
    keys = [(len(items), [item.encode() for item in items]) for items, _ in canonical]
    assert keys == sorted(keys)
    assert other.canonical().to_arrow().equals(one.to_arrow())
