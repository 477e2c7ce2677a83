"""Tuples in words of 62 bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.blocks.keys import Index, Packing, distinct
from anonymize.grouping import group
from tests.errors import fails

SIZES = st.lists(st.sampled_from([1, 2, 7, 1 << 16, 1 << 30, (1 << 31) - 1]), min_size=1, max_size=6)


@given(sizes=SIZES, data=st.data())
def test_tuples_are_packed_counted_and_found(sizes: list[int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.sampled_from([0, size // 2, size - 1]) for size in sizes)), min_size=1))
    columns = np.array(rows, np.int32).T
    packing = Packing(sizes)
    words = packing.pack(list(columns))
    for place, column in enumerate(columns):
        assert (packing.column(words, place) == column).all()
    labels, number = group(columns.T)
    known, counts = distinct(words)
    assert counts.tolist() == np.bincount(labels, minlength=number).tolist()
    assert Index(known).find(words).tolist() == labels.tolist()
    merged, sums = distinct(np.concatenate([known, words], axis=1), np.concatenate([counts, np.ones(len(rows), int)]))
    assert (merged == known).all()
    assert (sums == 2 * counts).all()


@pytest.mark.parametrize("size", [3, (1 << 31) - 1])
def test_an_unknown_tuple_says_that_the_source_has_changed(size: int) -> None:
    packing = Packing([size] * 3)
    known, _ = distinct(packing.pack([np.array([0, 1], np.int32)] * 3))
    with fails("E101"):
        Index(known).find(packing.pack([np.array([2], np.int32)] * 3))
