"""Equivalence classes and histograms against counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from anonymize.columns import Column
from anonymize.grouping import Histograms, group, histogram

KEYS = arrays(np.int32, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(0, 5))


@given(KEYS)
def test_classes_are_the_distinct_keys_in_ascending_order(keys: np.ndarray) -> None:
    labels, classes = group(keys)
    distinct = sorted({tuple(row) for row in keys.tolist()})
    assert classes == len(distinct)
    assert [distinct[label] for label in labels] == [tuple(row) for row in keys.tolist()]


@given(KEYS)
def test_sizes_need_not_be_tight(keys: np.ndarray) -> None:
    wide = group([(column, 1 << 20) for column in keys.T])
    labels, classes = group(keys)
    assert wide[0].tolist() == labels.tolist()
    assert wide[1] == classes


def test_keys_beyond_64_bits() -> None:
    # 12 columns of 2^20 codes are 2^240 keys.
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 3, (500, 12)) * 400_000
    labels, classes = group([(column, 1 << 20) for column in keys.T])
    assert labels.tolist() == group(keys // 400_000)[0].tolist()
    assert classes == len(np.unique(keys, axis=0))


def test_no_columns_are_one_class() -> None:
    labels, classes = group(np.empty((3, 0), np.int32))
    assert (labels.tolist(), classes) == ([0, 0, 0], 1)
    assert group([], n_rows=2)[1] == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 9)), min_size=1))
def test_histograms_count(rows: list[tuple[int, int, int]]) -> None:
    labels, codes, weights = map(np.array, zip(*rows, strict=True))
    plain, weighted = Counter(), Counter()
    for label, code, weight in rows:
        plain[label, code] += 1
        weighted[label, code] += weight
    for found, counts in (
        (histogram(labels, 4, codes, 5), plain),
        (histogram(labels, 4, codes, 5, weights), weighted),
    ):
        assert found.dtype == np.int64
        assert found.tolist() == [[counts[label, code] for code in range(5)] for label in range(4)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1), st.lists(st.integers(0, 2), min_size=6))
def test_rolling_up_is_counting_anew(rows: list[tuple[int, int]], parents: list[int]) -> None:
    labels, codes = map(np.array, zip(*rows, strict=True))
    column = Column("s", "tree", ("a", "b", "c"), codes.astype(np.int32))
    above = np.array(parents)
    rolled = Histograms.of(labels, 6, [column]).rolled_up(above[:6], 3)
    anew = Histograms.of(above[labels], 3, [column])
    assert rolled.classes == 3
    assert rolled.sizes.tolist() == anew.sizes.tolist()
    assert rolled.sensitive["s"].tolist() == anew.sensitive["s"].tolist()


def test_classes_of_the_toy_table(toy, toy_hierarchies) -> None:  # type: ignore[no-untyped-def]
    def sizes(*levels: int) -> list[int]:
        keys = []
        for column, level in zip(toy.quasi_identifiers, levels, strict=True):
            codes = toy_hierarchies[column.name].codes(column, level)[column.codes]
            keys.append((codes, int(codes.max()) + 1))
        labels, classes = group(keys)
        return sorted(Histograms.of(labels, classes).sizes.tolist())

    assert sizes(2, 2) == [1, 2, 5]
    assert sizes(2, 3) == [3, 5]
    assert sizes(1, 3) == [1, 2, 2, 3]
    assert sizes(3, 1) == [1, 1, 2, 4]
    violators = [[sum(s for s in sizes(a, z) if s < 2) for z in range(4)] for a in range(4)]
    assert violators == [[8, 8, 8, 8], [8, 4, 3, 1], [8, 3, 1, 0], [8, 2, 1, 0]]


@pytest.mark.parametrize("values", [1, 3])
def test_an_empty_class_has_an_empty_histogram(values: int) -> None:
    assert histogram(np.array([2]), 3, np.array([0]), values).sum(axis=1).tolist() == [0, 0, 1]
