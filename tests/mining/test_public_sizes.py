"""Sizes that may be published: coarse, none below the floor, and measured down to where they still say little."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mining.data.formats.table_readers import table_from_arrow
from mining.data.transactions import Transactions
from mining.public_sizes import FLOOR, MOST, NOTHING, SUPPORTS, WHOLE, PublicSizes, between, coarse, measured
from mining.reference.pooled import brute_force
from party.policy.publish import PublishSection

STEPS = [step * 10**power for power in range(2, 10) for step in (1, 2, 5) if step * 10**power <= MOST]
sizes = st.integers(0, 1 << 62)


@given(sizes)
def test_a_number_is_told_as_the_nearest_step(number: int) -> None:
    told = coarse(number)
    if number < FLOOR:
        assert told == 0
        return
    assert told in STEPS
    if number <= MOST:
        nearest = min(max(Fraction(step, number), Fraction(number, step)) for step in STEPS)
        assert max(Fraction(told, number), Fraction(number, told)) == nearest
    assert coarse(told) == told


@given(st.integers(0, MOST))
def test_the_range_of_a_told_number_holds_all_that_is_told_so(number: int) -> None:
    least, most = between(coarse(number))
    assert least <= number <= most


def test_neighbouring_ranges_meet() -> None:
    ranges = [between(step) for step in [0, *STEPS]]
    for (_, most), (least, _) in pairwise(ranges):
        assert most - 2 <= least <= most + 1


frequent = st.lists(
    st.tuples(st.sampled_from([*SUPPORTS, 7, 123]), st.lists(sizes, max_size=12).map(tuple)), max_size=8
).map(tuple)
anything = st.builds(PublicSizes, st.none() | sizes, st.none() | sizes, frequent, st.none() | sizes)


@given(anything)
def test_whatever_is_written_is_told_coarsely(written: PublicSizes) -> None:
    told = written.coarse()
    assert told.coarse() == told
    assert all(coarse(number) == number for number in (told.rows, told.items, told.level_ms) if number is not None)
    assert all(support in SUPPORTS for support, _ in told.frequent)
    assert all(not number or coarse(number) == number for _, numbers in told.frequent for number in numbers)
    assert [support for support, _ in told.frequent] == sorted({s for s, _ in told.frequent}, reverse=True)
    if (written.rows or 0) < FLOOR:
        assert told == NOTHING


@given(anything)
def test_the_lines_to_paste_say_the_same(written: PublicSizes) -> None:
    told = written.coarse()
    read = tomllib.loads(told.as_toml()).get("dataset", {}).get("publish")
    again = NOTHING if read is None else PublishSection.model_validate(read).sizes
    assert again.coarse() == told


@pytest.mark.parametrize("kind", ["transactions", "table"])
def test_what_is_measured_is_what_there_is(kind: str) -> None:
    random = np.random.default_rng(5)
    cells = {f"c{column}": [str(value) for value in random.integers(0, 4, 600)] for column in range(3)}
    rows = [[f"{name}={values[place]}" for name, values in cells.items()] for place in range(600)]
    data = Transactions.from_rows(rows)
    if kind == "table":
        table = pa.table({"id": [str(place) for place in range(600)], **cells})
        found = measured(table_from_arrow(table, ["id"], "the test"))
    else:
        found = measured(data)
    assert (found.rows, found.items) == (600, 12)
    for support, numbers in found.frequent:
        every = brute_force(rows, -(-support * 600 // WHOLE))
        lengths = np.bincount([len(itemset) for itemset in every], minlength=2)[1:]
        assert [number for number in numbers if number] == [number for number in lengths.tolist() if number]
    assert min(support for support, _ in found.frequent) == 200  # at 1 % there are fewer than ten rows


def test_nothing_is_measured_of_no_rows_nor_where_itemsets_are_too_many() -> None:
    assert measured(Transactions.empty()).coarse() == NOTHING
    alike = Transactions.from_rows([[f"i{place}" for place in range(40)]] * 200)
    found = measured(alike)
    assert (found.rows, found.items, found.frequent) == (200, 40, ())
