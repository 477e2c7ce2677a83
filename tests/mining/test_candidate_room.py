"""How many candidates a job may try: never more than it allows, and all together in the room of so many pairs."""

from __future__ import annotations

from math import comb

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import comine
from mining.candidates import most_candidates
from tests.errors import fails

LIMITS = st.integers(1, 200_000_000)


def sets(number: int, length: int) -> np.ndarray:
    return np.broadcast_to(np.int32(0), (number, length))


@given(LIMITS, st.lists(st.integers(0, 10**8), max_size=8), st.integers(0, 30))
def test_all_together_take_no_more_room_than_so_many_pairs(limit: int, numbers: list[int], more: int) -> None:
    found = [sets(number, length) for length, number in enumerate(numbers, 2)]
    length = len(numbers) + 2
    most = most_candidates(found, length, limit)
    assert 0 <= most <= limit
    used = sum(number * (4 * k + 8) for k, number in enumerate(numbers, 2))
    if most:
        assert used + most * (4 * length + 8) <= 16 * limit
    assert most_candidates(found, length + more, limit) <= most
    assert most_candidates([], 2, limit) == limit


@given(LIMITS, st.integers(2, 64))
def test_a_row_whose_subsets_are_all_frequent_ends_within_that_room(limit: int, items: int) -> None:
    found, length = [], 2
    while length <= items and comb(items, length) <= most_candidates(found, length, limit):
        found.append(sets(comb(items, length), length))
        length += 1
    assert sum(len(each) * (4 * each.shape[1] + 8) for each in found) <= 16 * limit


def test_columns_of_several_parties_are_bounded_alike() -> None:
    names = ["north", "south", "east"]
    tables = {name: pd.DataFrame({"id": ["1"], **{f"{name}{k}": ["x"] for k in range(5)}}) for name in names}
    job = {
        "job": {"name": "wide", "task": "itemsets", "parties": names, "dataset": "d", "partition": "vertical"},
        "align": {"mode": "intersection"},
        "itemsets": {"min_support": 1, "max_candidates": 3500},
    }
    with fails("E100"):
        comine.simulate(job, tables)
