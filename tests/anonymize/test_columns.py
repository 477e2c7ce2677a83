"""Columns: kinds, order, missing cells and what is no value."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.columns import Column, default_kind, missing, number_of, text_of
from tests.errors import fails


def cells(*values: object, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


@given(st.lists(st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1))
def test_numeric_codes_give_the_numbers_back(values: list[float]) -> None:
    column = Column.of("x", cells(*map(float, values)), "numeric")
    assert list(column.numbers[column.codes]) == values
    assert list(column.domain) == sorted(set(column.domain))
    assert column.counts.sum() == len(values)


@given(st.lists(st.text(max_size=3), min_size=1))
def test_tree_codes_give_the_texts_back(values: list[str]) -> None:
    column = Column.of("x", cells(*values))
    assert [column.domain[code] for code in column.codes] == values
    assert column.texts == tuple(sorted(set(values)))


def test_text_declared_numeric_is_parsed() -> None:
    column = Column.of("x", cells("10", "9", "9.0", "007", "1e1"), "numeric")
    assert column.domain == (7, 9, 10)
    assert column.codes.tolist() == [2, 1, 1, 0, 2]
    assert column.texts == ("7", "9", "10")


def test_text_that_is_no_number_is_named_with_its_row() -> None:
    with fails("E101"):
        Column.of("x", cells("1", "2", "n/a", "3", "n/a"), "numeric")
    for wrong in ("inf", "1_000", "nan", "1,5", "٤٢", "１２", "1\u00a0"):
        with fails("E101"):
            Column.of("x", cells(wrong), "numeric")
    with fails("E101"):
        Column.of("x", cells(1.0, math.inf))


def test_ordinal_values_have_ranks() -> None:
    column = Column.of("x", cells("high", "low", "high"), "ordinal", ("low", "middle", "high"))
    assert column.domain == ("low", "middle", "high")
    assert column.codes.tolist() == [2, 0, 2]
    assert column.numbers.tolist() == [0, 1, 2]
    numbers = Column.of("x", cells(9, 13), "ordinal", (9, 13))
    assert numbers.codes.tolist() == [0, 1]


def test_a_missing_ordinal_value_comes_first() -> None:
    column = Column.of("x", cells("high", None, "low"), "ordinal", ("low", "high"))
    assert column.domain == ("", "low", "high")
    assert column.codes.tolist() == [2, 0, 1]


def test_ordinal_refuses_what_its_order_lacks() -> None:
    with fails("E101"):
        Column.of("x", cells("low", "medium"), "ordinal", ("low", "high"))
    with fails("E100"):
        Column.of("x", cells("low"), "ordinal", ("low", "low"))
    with fails("E100"):
        Column.of("x", cells("low"), "ordinal")
    with fails("E100"):
        Column.of("x", cells("low"), "tree", ("low",))


def test_dates_and_truth() -> None:
    day = datetime.date(2020, 2, 29)
    for given_cells in (cells(day), cells(datetime.datetime(2020, 2, 29)), cells("2020-02-29")):
        column = Column.of("x", given_cells, "date")
        assert column.domain == (day,)
        assert column.texts == ("2020-02-29",)
        assert column.numbers.tolist() == [day.toordinal()]
    assert Column.of("x", cells("yes", "No", "1"), "boolean").domain == (False, True)
    assert Column.of("x", cells(True, False, True)).numbers.tolist() == [0, 1]
    with fails("E101"):
        Column.of("x", cells("2020-13-01"), "date")
    with fails("E101"):
        Column.of("x", cells(datetime.datetime(2020, 2, 29, 12)), "date")
    with fails("E101"):
        Column.of("x", cells("maybe"), "boolean")


def test_default_kinds() -> None:
    assert default_kind(cells(1)) == "numeric"
    assert default_kind(cells(Decimal("1.5"))) == "numeric"
    assert default_kind(cells(True)) == "boolean"
    assert default_kind(cells(datetime.date(2020, 1, 1))) == "date"
    assert default_kind(cells(datetime.datetime(2020, 1, 1))) == "date"
    assert default_kind(cells(datetime.datetime(2020, 1, 1, 8))) == "tree"
    assert default_kind(cells("1")) == "tree"
    assert default_kind(cells("a").dictionary_encode()) == "tree"


def test_missing_cells() -> None:
    assert missing(cells(1.0, None, math.nan)).tolist() == [False, True, True]
    assert missing(cells("a", "", None)).tolist() == [False, True, True]
    assert missing(cells("a", "", None).dictionary_encode()).tolist() == [False, True, True]
    assert missing(cells(1, None)).tolist() == [False, True]
    assert Column.of("x", cells("b", None, "")).domain == ("", "b")


@pytest.mark.parametrize("values", [(1.5, None), (True, None), (datetime.date(2020, 1, 1), None)])
def test_kinds_of_numbers_have_no_place_for_missing_cells(values: tuple[object, ...]) -> None:
    with fails("E100"):
        Column.of("x", cells(*values))
    assert Column.of("x", cells(*values), "tree").domain[0] == ""


def test_numbers_as_text_are_written_one_way() -> None:
    assert Column.of("x", cells(39.0, 40.5), "tree").texts == ("39", "40.5")
    assert Column.of("x", cells(Decimal("1.50"))).texts == ("1.5",)
    assert Column.of("x", cells(-0.0, 0.0)).texts == ("0",)
    assert text_of(1e300) == "1e+300"
    assert text_of(True) == "true"


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_written_numbers_are_read_back(number: float) -> None:
    assert number_of(text_of(number)) == number


def test_kinds_and_numbers_refuse_what_they_cannot() -> None:
    with fails("E100"):
        Column.of("x", cells("a"), "colour")  # type: ignore[arg-type]
    with fails("E100"):
        _ = Column.of("x", cells("a")).numbers
    assert not Column.of("x", cells("a")).is_ordered
    assert Column.of("x", cells(1)).is_ordered


def test_a_column_without_rows_has_no_values() -> None:
    column = Column.of("x", pa.chunked_array([], pa.string()))
    assert column.size == 0
    assert column.codes.dtype == np.int32


def test_large_whole_numbers_stay_apart() -> None:
    column = Column.of("x", cells(2**60, 2**60 + 1))
    assert column.domain == (2**60, 2**60 + 1)
