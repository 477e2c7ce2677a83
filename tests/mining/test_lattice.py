"""Keys, joins and look-ups hold for any number of items and any length, whichever kind of key they need."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mining.candidates import join
from mining.itemsets import Itemsets
from mining.lattice import SetKeys, find, is_ascending, lexicographic_order, subset_positions, unique_sets
from mining.limits import EnumerationLimit

untimed = settings(deadline=None)  # how long an example takes depends on what else the machine does


@st.composite
def families(draw, min_length=1):
    """Rows of one length over few items (masks), some (numbers), or many and far apart (bytes)."""
    universe = draw(st.sampled_from([8, 55, 57, 200, 5_000, 2**31 - 1]))
    length = draw(st.integers(min_length, 8))
    pool = draw(st.lists(st.integers(0, universe - 1), min_size=length, max_size=12, unique=True))
    if draw(st.booleans()):
        low = 0 if universe < 200 else universe - 100
        pool = list(range(low, low + min(universe, 100)))
    row = st.sets(st.sampled_from(pool), min_size=length, max_size=length).map(sorted)
    return np.array(draw(st.lists(row, min_size=1, max_size=25)), np.int32)


@untimed
@given(sets=families())
def test_keys_order_as_rows_do(sets):
    rows = sets.tolist()
    order = lexicographic_order(sets)
    assert [rows[i] for i in order] == sorted(rows)
    assert unique_sets(sets).tolist() == sorted(map(list, set(map(tuple, rows))))


@untimed
@given(sets=families(), data=st.data())
def test_foreign_rows_are_not_found(sets, data):
    family = unique_sets(sets)
    length = family.shape[1]
    item = st.sampled_from(np.unique(family).tolist()) | st.integers(0, 70) | st.integers(0, 2**31 - 1)
    row = st.sets(item, min_size=length, max_size=length).map(sorted)
    others = np.array(data.draw(st.lists(row, max_size=20)) + family.tolist(), np.int32)
    known = set(map(tuple, family.tolist()))
    keys = SetKeys(family)
    assert (find(keys.of(family), keys.of(others)) >= 0).tolist() == [tuple(row) in known for row in others.tolist()]


@untimed
@given(sets=families(min_length=2), data=st.data())
def test_subset_positions_by_definition(sets, data):
    subsets = {tuple(np.delete(row, d)) for row in sets for d in range(sets.shape[1])}
    chosen = sorted(data.draw(st.sets(st.sampled_from(sorted(subsets)))))
    shorter = np.array(chosen, np.int32).reshape(-1, sets.shape[1] - 1)
    expected = [
        [chosen.index(t) if (t := tuple(np.delete(row, d))) in chosen else -1 for d in range(sets.shape[1])]
        for row in sets
    ]
    assert subset_positions(sets, shorter).tolist() == expected


@untimed
@given(sets=families())
def test_join_by_definition(sets):
    frequent = unique_sets(sets)
    rows = [tuple(row) for row in frequent.tolist()]
    known, length = set(rows), frequent.shape[1]
    joined = {tuple(sorted({*a, *b})) for a, b in combinations(rows, 2) if a[:-1] == b[:-1]}
    expected = sorted(c for c in joined if all(s in known for s in combinations(c, length)))
    candidates = join(frequent)
    assert [tuple(row) for row in candidates.sets.tolist()] == expected
    assert [rows[i] for i in candidates.left] == [c[:-1] for c in expected]
    assert [rows[i] for i in candidates.right] == [c[:-2] + c[-1:] for c in expected]
    if expected:
        with pytest.raises(EnumerationLimit):
            join(frequent, limit=len(expected) - 1)
    assert len(join(frequent, limit=len(expected))) == len(expected)


def test_long_rows_of_many_items_use_byte_keys():
    rng = np.random.default_rng(7)
    sets = np.sort(np.stack([rng.choice(3000, 20, replace=False) for _ in range(300)]), axis=1).astype(np.int32)
    sets = np.concatenate([sets, sets[:50]])
    assert SetKeys(sets).of(sets).dtype.kind == "S"
    assert unique_sets(sets).tolist() == sorted(map(list, set(map(tuple, sets.tolist()))))


@untimed
@given(st.integers(1, 4).flatmap(lambda k: st.lists(st.lists(st.integers(0, 5), min_size=k, max_size=k), min_size=1)))
def test_ascending_rows_are_told_from_others(rows: list[list[int]]) -> None:
    sets = np.array(rows, np.int32)
    ascending = all(a < b for row in rows for a, b in pairwise(row)) and all(a < b for a, b in pairwise(rows))
    assert is_ascending(sets) is ascending


@untimed
@given(st.sets(st.frozensets(st.sampled_from("abcdef"), min_size=1, max_size=3), min_size=1), st.randoms())
def test_the_canonical_form_is_one_whatever_the_order(family: set[frozenset[str]], shuffled: random.Random) -> None:
    def made(items: list[str], order: list[frozenset[str]]) -> Itemsets:
        position = {item: index for index, item in enumerate(items)}
        levels = []
        for length in sorted({len(itemset) for itemset in order}):
            sets = [sorted(position[item] for item in itemset) for itemset in order if len(itemset) == length]
            counts = [sum(map(ord, itemset)) for itemset in order if len(itemset) == length]
            levels.append((np.array(sets, np.int32), np.array(counts, np.int64)))
        return Itemsets(tuple(items), levels, 10_000)

    items, order = list("abcdef"), sorted(family, key=sorted)
    first = made(items, order).canonical()
    shuffled.shuffle(items)
    shuffled.shuffle(order)
    second = made(items, order).canonical()
    assert first.items == second.items
    assert all((a[0] == b[0]).all() and (a[1] == b[1]).all() for a, b in zip(first.levels, second.levels, strict=True))
    again = second.canonical()
    assert again is second
