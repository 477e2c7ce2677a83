"""Hierarchies made by rule."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.hierarchies.builders import dates, flat, grouping, intervals, order, prefix
from anonymize.hierarchies.files import rows_of
from tests.errors import fails


def test_intervals_of_whole_numbers() -> None:
    assert list(rows_of(intervals([25, 20, 39, 7], (5, 20), name="age"))) == [
        ("7", "[5, 9]", "[0, 19]", "*"),
        ("20", "[20, 24]", "[20, 39]", "*"),
        ("25", "[25, 29]", "[20, 39]", "*"),
        ("39", "[35, 39]", "[20, 39]", "*"),
    ]
    assert next(rows_of(intervals([1, -1], (2,), origin=1))) == ("-1", "[-1, 0]", "*")
    assert next(rows_of(intervals([4], (1,)))) == ("4", "4", "*")


def test_intervals_of_decimals_have_no_rounding_errors() -> None:
    rows = list(rows_of(intervals([0.3, 0.7, 0.75], (0.1, 0.5))))
    assert rows == [
        ("0.3", "[0.3, 0.4)", "[0, 0.5)", "*"),
        ("0.7", "[0.7, 0.8)", "[0.5, 1)", "*"),
        ("0.75", "[0.7, 0.8)", "[0.5, 1)", "*"),
    ]


@pytest.mark.parametrize("widths", [(0,), (-1,), (2, 5), (5, 2), (0.2, 0.5)])
def test_interval_widths_must_nest(widths: tuple[float, ...]) -> None:
    with fails("E100"):
        intervals([1, 2], widths)


@given(st.lists(st.integers(-500, 500), min_size=1), st.lists(st.integers(1, 4), max_size=3), st.integers(-9, 9))
def test_intervals_are_hierarchies(numbers: list[int], factors: list[int], origin: int) -> None:
    widths, width = [], 1
    for factor in factors:
        width *= factor
        widths.append(width)
    hierarchy = intervals(numbers, widths, origin)
    assert hierarchy.height == len(widths) + 1
    assert hierarchy.leaves == tuple(map(str, sorted(set(numbers))))


def test_runs_of_ordered_values() -> None:
    sizes = ("XS", "S", "M", "L", "XL")
    assert list(rows_of(order(sizes, (2, 2)))) == [
        ("XS", "[XS, S]", "[XS, L]", "*"),
        ("S", "[XS, S]", "[XS, L]", "*"),
        ("M", "[M, L]", "[XS, L]", "*"),
        ("L", "[M, L]", "[XS, L]", "*"),
        ("XL", "XL", "XL", "*"),
    ]
    assert [row[1] for row in rows_of(order(sizes, ([1, 3, 1],)))] == ["XS", *["[S, L]"] * 3, "XL"]
    for wrong in ([2, 2], [0, 5], 0):
        with fails("E100"):
            order(sizes, (wrong,))


def test_masked_codes() -> None:
    assert list(rows_of(prefix(["12345", "12399", "99"], (1, 3)))) == [
        ("12345", "1234*", "12***", "*"),
        ("12399", "1239*", "12***", "*"),
        ("99", "9*", "**", "*"),
    ]
    for wrong in ((2, 1), (1, 1), (0, 1)):
        with fails("E100"):
            prefix(["1"], wrong)


def test_calendar() -> None:
    days = [datetime.date(2020, 2, 29), datetime.date(1999, 12, 31)]
    assert list(rows_of(dates(days, ("month", "quarter", "year", "decade", "century")))) == [
        ("1999-12-31", "1999-12", "1999-Q4", "1999", "1990s", "1900-1999", "*"),
        ("2020-02-29", "2020-02", "2020-Q1", "2020", "2020s", "2000-2099", "*"),
    ]
    for wrong in (("year", "month"), ("week",)):
        with fails("E100"):
            dates(days, wrong)  # type: ignore[arg-type]


def test_groups() -> None:
    countries = {"France": "Europe", "Spain": "Europe", "Japan": "Asia"}
    assert list(rows_of(grouping(countries, countries))) == [
        ("France", "Europe", "*"),
        ("Spain", "Europe", "*"),
        ("Japan", "Asia", "*"),
    ]
    with fails("E101"):
        grouping(["France", "China"], countries, name="country")
    with fails("E101"):
        grouping(countries, countries, {"Europe": "World"})


def test_flat() -> None:
    assert list(rows_of(flat([True, False, True]))) == [("true", "*"), ("false", "*")]
