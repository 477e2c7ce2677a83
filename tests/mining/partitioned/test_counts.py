"""Rows in blocks give the counts that they give in memory, however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mining import counting, pairs
from mining.candidates import join
from mining.counting import SupportCounter, count_itemsets
from mining.data.transactions import Transactions
from mining.limits import EnumerationLimit
from mining.local_counts import counter_of, frequent_itemsets
from mining.partitioned import kernels
from mining.partitioned.counter import PartitionedCounter
from tests.mining.partitioned.world import PARTITIONS, evenly, partitioned, ragged, same

baskets = st.lists(st.lists(st.integers(0, 11).map(str), max_size=9), max_size=30)


def whole(rows: Transactions, _first: int) -> Transactions:
    return rows


@given(baskets, st.data())
def test_rows_are_the_same_in_all_views(rows: list[list[str]], draw: st.DataObject) -> None:
    data = Transactions.from_rows(rows)
    cut = partitioned(data, draw.draw(ragged(data.n_rows)))
    patterns = draw.draw(st.lists(st.sampled_from(["1*", "3", "nobody's"]), max_size=2))
    some = draw.draw(st.permutations([*(str(item) for item in range(12)), "nobody's"]))[3:]
    for seen, expected in (
        (cut, data),
        (cut.without(patterns), data.without(patterns)),
        (cut.without(patterns).onto(some), data.without(patterns).onto(some)),
        (cut.onto(some).without(patterns).onto(sorted(some)), data.onto(some).without(patterns).onto(sorted(some))),
    ):
        assert (seen.items, seen.n_rows) == (expected.items, expected.n_rows)
        assert np.array_equal(seen.item_counts(), expected.item_counts())
        assert np.array_equal(seen.total(Transactions.item_counts), expected.item_counts())
        blocks = list(seen.parts(whole))
        joined = Transactions.from_pieces(
            [f"{number:02}" for number in range(expected.n_items)],
            [(block.row_numbers() + first, block.indices) for block, first in zip(blocks, firsts(blocks), strict=True)],
            expected.n_rows,
        )
        assert same(joined, expected)


def firsts(blocks: list[Transactions]) -> list[int]:
    return [0, *np.cumsum([block.n_rows for block in blocks])[:-1].tolist()]


@given(baskets, st.data())
def test_each_part_knows_its_first_row(rows: list[list[str]], draw: st.DataObject) -> None:
    data = Transactions.from_rows(rows)
    cuts = draw.draw(ragged(data.n_rows))
    assert list(partitioned(data, cuts).parts(lambda _, first: first)) == cuts[:-1]


@given(baskets, st.data(), st.integers(1, 4))
def test_levels_are_counted_alike(rows: list[list[str]], draw: st.DataObject, least: int) -> None:
    data = Transactions.from_rows(rows)
    memory, blocks = counter_of(data), counter_of(partitioned(data, draw.draw(ragged(data.n_rows))))
    assert isinstance(memory, SupportCounter)
    assert isinstance(blocks, PartitionedCounter)
    counts = memory.count_pairs()
    assert np.array_equal(blocks.count_pairs(), counts)
    while True:
        frequent = memory.keep(counts >= least)
        assert np.array_equal(blocks.keep(counts >= least), frequent)
        if not len(frequent):
            break
        candidates = join(frequent)
        counts = memory.count(candidates)
        assert np.array_equal(blocks.count(candidates), counts)


@given(baskets, st.data())
def test_any_sets_are_counted_alike(rows: list[list[str]], draw: st.DataObject) -> None:
    data = Transactions.from_rows(rows)
    if not data.n_items:
        return
    numbers = st.sets(st.integers(0, data.n_items - 1), min_size=1, max_size=4).map(lambda items: tuple(sorted(items)))
    chosen = draw.draw(st.sets(numbers, max_size=8))
    by_length = {
        length: [items for items in chosen if len(items) == length] for length in {len(items) for items in chosen}
    }
    levels = [np.array(sets, np.int32) for sets in by_length.values()]
    cut = partitioned(data, draw.draw(ragged(data.n_rows)))
    whole = count_itemsets(data, levels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "SETS_AT_ONCE", draw.draw(st.integers(1, 9)))  # in several passes
        for rows_somewhere in (cut, data):
            for found, expected in zip(count_itemsets(rows_somewhere, levels), whole, strict=True):
                assert np.array_equal(found, expected)


@given(baskets, st.data(), st.integers(1, 4), st.none() | st.integers(1, 3), st.integers(1, 200))
def test_what_is_locally_frequent_is_found_alike(
    rows: list[list[str]], draw: st.DataObject, least: int, longest: int | None, limit: int
) -> None:
    data = Transactions.from_rows(rows)
    cut = partitioned(data, draw.draw(ragged(data.n_rows)))
    limits = {"max_length": longest, "limit": limit, "max_candidates": 1 << 20}
    try:
        expected = frequent_itemsets(data, least, **limits)  # type: ignore[arg-type]
    except EnumerationLimit:
        with pytest.raises(EnumerationLimit):
            frequent_itemsets(cut, least, **limits)  # type: ignore[arg-type]
        return
    found = frequent_itemsets(cut, least, **limits)  # type: ignore[arg-type]
    assert (found.items, found.n_rows) == (expected.items, expected.n_rows)
    assert list(found.rows()) == list(expected.rows())


@pytest.mark.parametrize("parts", PARTITIONS)
def test_pairs_are_counted_in_several_passes_and_pieces(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "MOST_COUNTS", 40)
    monkeypatch.setattr(kernels, "OCCURRENCES", 7)
    generator = np.random.default_rng(5)
    rows = [[str(item) for item in np.flatnonzero(generator.random(25) < 0.2)] for _ in range(60)]
    data = Transactions.from_rows(rows)
    cut = partitioned(data, evenly(data.n_rows, parts))
    assert np.array_equal(PartitionedCounter(cut).count_pairs(), SupportCounter(data).count_pairs())


def test_dense_rows_are_counted_along_columns() -> None:
    data = Transactions.from_rows([[str(item) for item in range(10) if item != row % 11] for row in range(3000)])
    cut = partitioned(data, evenly(data.n_rows, 3))
    assert not pairs.prefer_rows(data)
    assert np.array_equal(PartitionedCounter(cut).count_pairs(), SupportCounter(data).count_pairs())


def test_more_items_than_two_bytes_can_number() -> None:
    """Some blocks have few of them, one has all."""
    items = tuple(f"{number:06}" for number in range(66_000))
    wide = np.arange(66_000, dtype=np.int32)
    offsets = np.array([0, 2, 66_002, 66_005, 66_005], np.int64)
    data = Transactions(items, offsets, np.concatenate([[5, 65_999], wide, [5, 70, 65_999]]).astype(np.int32))
    cut = partitioned(data, [0, 1, 1, 2, 4])
    assert np.array_equal(cut.total(Transactions.item_counts), data.item_counts())
    frequent = tuple(items[number] for number in np.flatnonzero(data.item_counts() >= 2))
    assert frequent == ("000005", "000070", "065999")
    expected = SupportCounter(data.onto(frequent)).count_pairs()
    assert np.array_equal(PartitionedCounter(cut.onto(frequent)).count_pairs(), expected)
