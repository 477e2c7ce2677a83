"""Tables: what they take, what they refuse, and missing cells."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from anonymize.roles import Roles
from anonymize.tables import Table
from tests.errors import fails

ROLES = Roles(identifiers=("name",), quasi_identifiers=("zip", "age"), sensitive=("disease",))
DATA: dict[str, list[Any]] = {
    "name": ["Ann", "Bob", "Cid"],
    "age": [30, 20, 30],
    "zip": ["12", "13", "12"],
    "disease": ["flu", "flu", "cough"],
}


@pytest.mark.parametrize(
    "data",
    [
        DATA,
        pa.table(DATA),
        pd.DataFrame(DATA),
        pd.DataFrame(DATA, index=[7, 7, 9]),
        [dict(zip(DATA, row, strict=True)) for row in zip(*DATA.values(), strict=True)],
        pa.table(DATA).to_batches()[0],
    ],
    ids=["lists", "arrow", "pandas", "index", "dictionaries", "batch"],
)
def test_tables_of_many_libraries_are_the_same(data: object) -> None:
    table = Table.of(data, ROLES)
    assert list(table.columns) == ["name", "age", "zip", "disease"]
    assert [column.name for column in table.quasi_identifiers] == ["zip", "age"]
    assert table.quasi_codes.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert [column.name for column in table.sensitive] == ["disease"]
    assert (table.n_rows, table.dropped, table.kept.tolist()) == (3, 0, [0, 1, 2])
    assert table.data.to_pydict() == DATA


def test_any_object_with_the_arrow_stream_is_a_table() -> None:
    class Frame:  # as polars offers it
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table(DATA).__arrow_c_stream__(requested_schema)

    assert Table.of(Frame(), ROLES).n_rows == 3


def test_views_of_strings_are_strings() -> None:
    views = pa.array(["a", None, "b"], pa.string_view())
    for cells in (views, pa.DictionaryArray.from_arrays(pa.array([0, None, 2]), views)):
        table = Table.of(pa.table({"s": cells}), Roles(sensitive=("s",)), missing="value")
        assert table.columns["s"].texts == ("", "a", "b")
        assert "view" not in str(table.data.schema)


def test_missing_cells_are_refused_by_default() -> None:
    data = {**DATA, "age": [30, None, math.nan]}
    with fails("E101"):
        Table.of(pd.DataFrame(data), ROLES)
    many = {**{name: values * 4 for name, values in DATA.items()}, "zip": [""] * 12}
    with fails("E101"):
        Table.of(many, ROLES)


def test_rows_with_missing_cells_can_be_dropped() -> None:
    table = Table.of({**DATA, "age": [30, None, 40], "name": [None, None, None]}, ROLES, missing="drop")
    assert (table.n_rows, table.dropped, table.kept.tolist()) == (2, 1, [0, 2])
    assert table.columns["age"].domain == (30, 40)
    assert table.data.column("zip").to_pylist() == ["12", "12"]
    with fails("E101"):
        Table.of({**DATA, "age": [None, None, None]}, ROLES, missing="drop")


def test_a_missing_cell_can_be_a_value() -> None:
    table = Table.of({**DATA, "zip": ["12", None, ""]}, ROLES, missing="value")
    assert table.columns["zip"].domain == ("", "12")
    with fails("E100"):
        Table.of({**DATA, "age": [30, None, 20]}, ROLES, missing="value")


def test_gaps_may_stand_where_nothing_is_computed() -> None:
    roles = Roles(identifiers=("name",), quasi_identifiers=("zip",), sensitive=("disease",), insensitive=("age",))
    table = Table.of({**DATA, "age": [30.0, None, 20.0]}, roles)
    assert table.columns["age"].kind == "tree"
    assert table.columns["age"].domain == ("", "20", "30")


def test_kinds_and_orders() -> None:
    table = Table.of(DATA, ROLES, {"zip": "code"}, {"disease": ["flu", "cough"]})
    assert table.columns["zip"].kind == "code"
    assert table.columns["disease"].kind == "ordinal"
    assert table.columns["disease"].domain == ("flu", "cough")
    with fails("E100"):
        Table.of(DATA, ROLES, {"zipp": "code"})
    with fails("E100"):
        Table.of(DATA, ROLES, orders={"zipp": ["1"]})
    with fails("E100"):
        Table.of(DATA, ROLES, {"zip": "tree"}, {"zip": ["12", "13"]})


def test_what_is_no_table_is_refused() -> None:
    with fails("E101"):
        Table.of({name: [] for name in DATA}, ROLES)
    for wrong in (3, "text", pd.Series([1]), [1, 2], {"a": 1}):
        with fails("E101"):
            Table.of(wrong, ROLES)
    with fails("E101"):
        Table.of({"a": [1, 2], "b": [1]}, ROLES)
    with fails("E101"):
        Table.of({"a": [1, "x"]}, ROLES)
    with fails("E101"):
        Table.of(pa.table([[1], [2]], ["a", "a"]), ROLES)
    for nested in ([[1], [2]], [{"b": 1}], [b"1"]):
        with fails("E101"):
            Table.of({"a": nested}, ROLES)
    with fails("E100"):
        Table.of(DATA, ROLES, missing="ignore")  # type: ignore[arg-type]


def test_columns_are_looked_up_by_name_and_role() -> None:
    table = Table.of(DATA, ROLES)
    assert table.sensitive_column("disease").name == "disease"
    with fails("E100"):
        table.column("diseases")
    with fails("E100"):
        table.sensitive_column("age")


def test_one_row_and_no_quasi_identifiers() -> None:
    table = Table.of({"s": ["x"]}, Roles(sensitive=("s",)))
    assert table.quasi_codes.shape == (1, 0)


def test_rows_of_dictionaries_may_lack_keys() -> None:
    table = Table.of([{"a": 1}, {"b": "x", "a": 2}], Roles(quasi_identifiers=("a",), insensitive=("b",)))
    assert table.data.column("b").to_pylist() == [None, "x"]


def test_other_columns_are_coded_when_they_are_asked_for() -> None:
    roles = Roles(quasi_identifiers=("zip",), sensitive=("disease",), insensitive=("name", "age"))
    table = Table.of(DATA, roles, {"name": "numeric"})
    assert "name" in table.columns
    assert len(table.columns) == 4
    assert table.columns["age"] is table.columns["age"]
    with fails("E101"):
        _ = table.columns["name"]
    with pytest.raises(KeyError):
        _ = table.columns["nothing"]
    with fails("E101"):
        Table.of(DATA, roles, {"zip": "boolean"})


def test_tables_are_pickled() -> None:
    table = pickle.loads(pickle.dumps(Table.of(DATA, ROLES, orders={"disease": ["flu", "cough"]})))
    assert table.columns["disease"].domain == ("flu", "cough")
    assert table.columns["name"].domain == ("Ann", "Bob", "Cid")
