"""Queries are read strictly, and conditions are met by the rows that a plain evaluation finds."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any as Anything

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.errors import UsageError
from mining.data.tables import Table
from party.services.queries.conditions import Conditions, bits, check_columns, column_of, numbers
from party.services.queries.language import All, Any, Comparison, Condition, Not, OneOf, Query, parse
from party.services.queries.policy import QueriesSection
from tests.errors import fails


def test_a_query_is_read() -> None:
    assert parse("sum(salary)") == Query("sum", "salary", None)
    assert parse("COUNT( * ) WHERE age >= 30") == Query("count", "*", Comparison("age", ">=", Decimal(30)))
    found = parse(
        """avg("gross salary") where age between 30 and 39.5 and not city in ('Bern', 'L''Isle') or x <> -1e2"""
    )
    assert found.column == "gross salary"
    assert found.condition == Any(
        (
            All(
                (
                    All((Comparison("age", ">=", Decimal(30)), Comparison("age", "<=", Decimal("39.5")))),
                    Not(OneOf("city", ("Bern", "L'Isle"))),
                )
            ),
            Comparison("x", "!=", Decimal(-100)),
        )
    )
    assert found.named == ("age", "city", "x")
    assert parse("max(a) where (a = 1 or b = 2) and c not in (1)").named == ("a", "b", "c")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "median(x)",
        "sum(*)",
        "sum(x) where",
        "sum(x) where a",
        "sum(x) where a = b",
        "sum(x) where a not = 1",
        "sum(x) where a = 1 b = 2",
        "sum(x); drop table staff",
        "sum(x) where a = 'open",
        "sum(x) where a = 12x",
        "sum(x) where (a = 1",
        "sum(x) where and = 1",
        "sum(x) where " + "(" * 51 + "a = 1" + ")" * 51,
        "sum(x) where " + "not " * 60 + "a = 1",
        "sum(x) where a = '" + "y" * 4096 + "'",
        "sum(x) where a = 1e999",
    ],
)
def test_what_is_no_query_is_refused_with_the_place(text: str) -> None:
    with fails("E001"):
        parse(text)


PIECES = ["sum", "(", ")", "where", "a", "=", "1", "and", "or", "not", "in", "'x'", ",", "between"]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=40) | st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse(text), Query)


CELLS = ["", "1", "01", "2", "2.5", "-3", "x", "y", "Infinity", "1e3"]
ROWS = st.lists(st.tuples(st.sampled_from(CELLS), st.sampled_from(CELLS)), min_size=1, max_size=8)
VALUE = st.sampled_from([Decimal(1), Decimal("2.5"), Decimal(-3), "1", "x", "b"])
LEAF = st.one_of(
    st.builds(Comparison, st.sampled_from("ab"), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), VALUE),
    st.builds(OneOf, st.sampled_from("ab"), st.lists(VALUE, min_size=1, max_size=3).map(tuple)),
)
CONDITION = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(All, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Any, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


def table(**columns: list[str]) -> Table:
    return Table.of(
        list(columns), (pa.chunked_array([pa.array(cells, pa.string())]) for cells in columns.values()), (), "t"
    )


def is_met(condition: Condition, row: dict[str, str]) -> bool:
    match condition:
        case Not(part=part):
            return not is_met(part, row)
        case All(parts=parts):
            return all(is_met(each, row) for each in parts)
        case Any(parts=parts):
            return any(is_met(each, row) for each in parts)
        case OneOf(column=column, values=values):
            return any(is_met(Comparison(column, "=", value), row) for value in values)
        case Comparison(column=column, operator=sign, value=value):
            cell: Anything = row[column]
            if cell == "":
                return False
            if isinstance(value, Decimal):
                if cell in ("x", "y", "Infinity"):
                    return False
                cell = Decimal(cell)
            return {
                "=": cell == value,
                "!=": cell != value,
                "<": cell < value,
                "<=": cell <= value,
                ">": cell > value,
                ">=": cell >= value,
            }[sign]


@settings(max_examples=100, deadline=None)
@given(ROWS, CONDITION)
def test_conditions_are_met_by_the_right_rows(rows: list[tuple[str, str]], condition: Condition) -> None:
    data = table(a=[a for a, _ in rows], b=[b for _, b in rows])
    found = Conditions(data).meeting(condition)
    assert found.tolist() == [is_met(condition, {"a": a, "b": b}) for a, b in rows]
    assert Conditions(data).meeting(None).all()


def test_columns_hold_numbers_or_bits() -> None:
    data = table(n=["1", "", "2.5", "1e2"], w=["1", "2", "x", "3"], two=["5", "6", "5", ""], bit=["0", "true", "", "1"])
    np.testing.assert_array_equal(numbers(column_of(data, "n")), [1, np.nan, 2.5, 100])
    np.testing.assert_array_equal(bits(column_of(data, "bit")), [0, 1, np.nan, 1])
    with fails("E101"):
        numbers(column_of(data, "w"))
    with fails("E101"):
        numbers(column_of(data, "two"))
    with fails("E101"):
        bits(column_of(data, "n"))
    with fails("E100"):
        column_of(data, "z")


def test_a_policy_is_held_against_the_data() -> None:
    data = table(n=["1", "", "2.5", "1e2"], w=["1", "2", "x", "3"], bit=["0", "true", "", "1"])
    good = QueriesSection(public=("w",), columns={"n": ("sum",), "bit": ("count",)}, min_size=2, max_overlap=1)
    check_columns(good, data)
    for changes, code in (
        ({"public": ("z",)}, "E100"),
        ({"columns": {"w": ("max",)}}, "E101"),
        ({"columns": {"n": ("count",)}}, "E101"),
    ):
        with fails(code):
            check_columns(good.model_copy(update=changes), data)
