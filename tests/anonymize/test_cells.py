"""Published cells are written one way and read back."""

from __future__ import annotations

import datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anonymize.cells import Interval, Label, Members, format_interval, format_set, parse
from anonymize.columns import Column
from anonymize.covering import covered
from anonymize.hierarchies.builders import dates, grouping, intervals, order, prefix
from anonymize.hierarchies.hierarchy import Hierarchy
from tests.errors import fails


def test_forms() -> None:
    assert format_interval(20, 29) == "[20, 29]"
    assert format_interval(20.0, 30.5, half_open=True) == "[20, 30.5)"
    assert format_interval(20, 20) == "20"
    assert format_interval(datetime.date(2020, 1, 1), datetime.date(2020, 2, 1)) == "[2020-01-01, 2020-02-01]"
    assert format_set(["a", "b"]) == "{a, b}"
    assert format_set(["a"]) == "a"
    assert format_set(["a, b", 'c"']) == '{"a, b", "c"""}'
    assert parse("[20, 29]") == Interval("20", "29")
    assert parse("[-1.5, 29)") == Interval("-1.5", "29", half_open=True)
    assert parse("{a, b}") == Members(("a", "b"))
    for text in ("*", "a", "", "1-2", "[a]", "{a", "[1, 2", "{}", "[1, 2, 3]"):
        assert parse(text) == Label(text)


@given(st.lists(st.text(max_size=4), min_size=2, max_size=5))
def test_sets_are_read_back(values: list[str]) -> None:
    assert parse(format_set(values)) == Members(tuple(values))


@given(st.text(max_size=5), st.text(max_size=5), st.booleans())
def test_intervals_are_read_back(low: str, high: str, half_open: bool) -> None:
    text = format_interval(low, high, half_open=half_open)
    assert (text == low) if low == high and not half_open else parse(text) == Interval(low, high, half_open)


def test_numeric_cells_cover_numbers() -> None:
    column = Column.of("age", pa.chunked_array([[20, 25, 29, 30, 41]]))
    ages = intervals(range(20, 60), (10, 20), name="age")

    def seen(text: str, hierarchy: Hierarchy | None = None) -> list[object]:
        return [value for value, held in zip(column.domain, covered(text, column, hierarchy), strict=True) if held]

    assert seen("*") == [20, 25, 29, 30, 41]
    assert seen("[20, 29]") == [20, 25, 29]
    assert seen("[20, 30)") == [20, 25, 29]
    assert seen("{25, 41}") == [25, 41]
    assert seen("25") == [25]
    assert seen("26") == []
    assert seen("[40, 59]", ages) == [41]
    with fails("E101"):
        seen("young")
    with fails("E101"):
        seen("[x, 5]")


def test_labels_cover_their_leaves() -> None:
    countries = {"France": "Europe", "Spain": "Europe", "Japan": "Asia"}
    column = Column.of("country", pa.chunked_array([list(countries)]))
    hierarchy = grouping(countries, countries, name="country")
    assert covered("Europe", column, hierarchy).tolist() == [True, False, True]
    assert covered("Japan", column).tolist() == [False, True, False]
    assert covered("{Japan, Spain}", column).tolist() == [False, True, True]
    with fails("E101"):
        covered("Europe", column)
    with fails("E101"):
        covered("[a, b]", column)


def test_a_text_that_is_value_and_label_covers_both() -> None:
    column = Column.of("x", pa.chunked_array([["other", "a", "b"]]))
    hierarchy = Hierarchy.of("x", [("a", "other", "*"), ("b", "other", "*"), ("other", "none", "*")])
    assert covered("other", column, hierarchy).all()


def test_dates_codes_and_ordinal_cells() -> None:
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 6, 1)]
    column = Column.of("day", pa.chunked_array([days]))
    assert covered("[2019-12-31, 2020-02-01]", column).tolist() == [True, False]
    assert covered("2020-Q2", column, dates(days)).tolist() == [False, True]
    with fails("E101"):
        covered("2020-Q2", column)
    sizes = Column.of("size", pa.chunked_array([["S", "L", "M"]]), "ordinal", ("S", "M", "L"))
    assert covered("[M, L]", sizes).tolist() == [False, True, True]
    assert covered("[S, M]", sizes, order(("S", "M", "L"), (2,))).tolist() == [True, True, False]
    codes = Column.of("zip", pa.chunked_array([["123", "129", "200"]]), "code")
    assert covered("12*", codes, prefix(["123", "129", "200"], (1,))).tolist() == [True, True, False]
