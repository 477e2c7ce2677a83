"""Truncation equals its definition row by row, and one record moves M of the counts by one each at most."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mining.data.transactions import Transactions
from mining.joint.distributed import truncation
from mining.joint.distributed.truncation import Excess, truncated_item_counts
from tests.mining.joint.distributed.distributed_world import truncated_items, truncated_sets

ITEMS = tuple(sorted([*"abcdefgh", "bread, white", "ünï"]))

rows = st.lists(st.lists(st.sampled_from(ITEMS), max_size=10), max_size=12)


def on_all(given_rows: list[list[str]]) -> Transactions:
    return Transactions.from_rows(given_rows).onto(ITEMS)


@st.composite
def candidates(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Itemsets of one length in lexicographic order, and an order of preference."""
    width = draw(st.integers(1, 3))
    all_sets = list(combinations(range(len(ITEMS)), width))
    chosen = sorted(draw(st.sets(st.sampled_from(all_sets), min_size=1, max_size=40)))
    return np.array(chosen, np.int32), np.array(draw(st.permutations(range(len(chosen)))), np.int64)


@given(rows, st.integers(1, 10))
def test_items_of_rows(given_rows: list[list[str]], most: int) -> None:
    kept = [truncated_items(row, most) for row in given_rows]
    expected = [sum(item in row for row in kept) for item in ITEMS]
    assert truncated_item_counts(on_all(given_rows), most).tolist() == expected


@given(rows, candidates(), st.integers(1, 30))
def test_longer_candidates(given_rows: list[list[str]], chosen: tuple[np.ndarray, np.ndarray], most: int) -> None:
    sets, order = chosen
    named = [frozenset(ITEMS[item] for item in each) for each in sets[order].tolist()]
    whole = np.array([sum(each <= set(row) for row in given_rows) for each in named])
    lost = Excess(sets, order, most)(on_all(given_rows))
    assert (whole - lost[order]).tolist() == truncated_sets(given_rows, named, most)


@given(rows, candidates(), st.integers(1, 20), st.data())
def test_one_record_moves_at_most_so_many_counts_by_one(
    given_rows: list[list[str]], chosen: tuple[np.ndarray, np.ndarray], most: int, data: st.DataObject
) -> None:
    """Δ∞ = 1 and Δ₁ = M, wherever the record stands, whatever it holds."""
    sets, order = chosen
    record = data.draw(st.lists(st.sampled_from(ITEMS), max_size=10))
    at = data.draw(st.integers(0, len(given_rows)))
    with_it = [*given_rows[:at], record, *given_rows[at:]]

    def both(these: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
        held = np.array([sum({ITEMS[i] for i in each} <= set(row) for row in these) for each in sets.tolist()])
        return truncated_item_counts(on_all(these), most), held - Excess(sets, order, most)(on_all(these))

    for more, fewer in zip(both(with_it), both(given_rows), strict=True):
        assert set((more - fewer).tolist()) <= {0, 1}
        assert (more - fewer).sum() <= most


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_blocks_of_candidates_and_words_of_rows(seed: int, most: int) -> None:
    """More than 255 candidates and 64 rows: quotas go on from block to block."""
    random = np.random.default_rng(seed)
    items = tuple(f"i{k:02}" for k in range(26))
    held = random.random((150, len(items))) < random.choice([0.2, 0.6], (150, 1))
    data = Transactions.from_rows([[items[k] for k in np.flatnonzero(row)] for row in held]).onto(items)
    sets = np.array(list(combinations(range(len(items)), 2)), np.int32)
    assert len(sets) > truncation.AT_ONCE
    order = random.permutation(len(sets))
    both = held[:, sets[order, 0]] & held[:, sets[order, 1]]
    expected = (both & (np.cumsum(both, axis=1) > most)).sum(axis=0)
    assert Excess(sets, order, most)(data)[order].tolist() == expected.tolist()


def test_long_rows_lose_each_item_about_as_often() -> None:
    """Each of 3,000 rows of 20 of 40 items keeps 10, so an item is dropped in half of the rows that hold it.

    An item is in 1,500 rows, so a share of drops has a standard deviation of 0.0129 if they are independent; 0.1 off is
    nearly eight of these, below 10^-12 for all 40 together.
    """
    random = np.random.default_rng(7)
    items = tuple(f"item {k}" for k in range(40))
    given_rows = [[items[k] for k in random.permutation(40)[:20]] for _ in range(3000)]
    data = Transactions.from_rows(given_rows)
    kept = truncated_item_counts(data, 10) / data.item_counts()
    assert np.abs(kept - 0.5).max() < 0.1


def test_rows_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more rows than are packed at once, each counts as it does alone."""
    random = np.random.default_rng(5)
    data = Transactions.from_rows([item for item in ITEMS if random.random() < 0.7] for _ in range(300)).onto(ITEMS)
    sets = np.array(list(combinations(range(len(ITEMS)), 2)), np.int32)
    order = random.permutation(len(sets))
    whole = Excess(sets, order, 5)(data), truncation.candidates_held(data, sets, order[:20])
    monkeypatch.setattr(truncation, "MOST_ROWS", 70)
    pieces = Excess(sets, order, 5)(data), truncation.candidates_held(data, sets, order[:20])
    for one, other in zip(whole, pieces, strict=True):
        assert one.tolist() == other.tolist()
