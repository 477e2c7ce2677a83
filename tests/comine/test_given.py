"""Data that programs hand over to a simulation: every form gives the rows that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import comine
from comine.given import data_of
from mining.data.transactions import Transactions
from tests.errors import fails

ROWS = [["bread", "milk"], ["bread"], ["milk", "tea"], []]
HELD = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0]])
ITEMS = ["bread", "milk", "tea"]
LONG = {"id": [4, 4, 1, 3, 3, 2], "item": ["bread", "milk", "bread", "milk", "tea", None]}


class Foreign:
    """A table of a library that nobody here knows, as the Arrow PyCapsule interface has it."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def one_hot(kind: Any) -> pd.DataFrame:
    return pd.DataFrame(HELD.astype(kind), columns=ITEMS)


def forms() -> Iterator[Any]:
    yield pytest.param(ROWS, id="lists")
    yield pytest.param((iter(row) for row in ROWS), id="iterators")
    yield pytest.param([set(row) for row in ROWS], id="sets")
    yield pytest.param(pd.Series(ROWS), id="series of lists")
    yield pytest.param(pa.array(ROWS), id="Arrow's lists")
    yield pytest.param(pa.chunked_array([pa.array(ROWS[:1]), pa.array(ROWS[1:])]), id="Arrow's lists in chunks")
    yield pytest.param(pa.table({"basket": pa.array(ROWS)}), id="a column of lists")
    yield pytest.param(pd.DataFrame({"id": range(4), "basket": ROWS}), id="a pandas column of lists")
    for kind in (bool, int, np.uint8, float):
        yield pytest.param(one_hot(kind), id=f"one-hot {kind.__name__}")
    yield pytest.param(one_hot(bool).set_index(pd.Index([7, 8, 9, 1], name="receipt")), id="one-hot with an index")
    yield pytest.param(one_hot(bool).astype(pd.SparseDtype(bool, False)), id="one-hot, sparse")
    yield pytest.param(one_hot(bool).convert_dtypes(), id="one-hot of nullable types")
    yield pytest.param(pa.Table.from_pandas(one_hot(bool)), id="one-hot of Arrow")
    yield pytest.param(Foreign(pa.Table.from_pandas(one_hot(bool))), id="one-hot of another library")
    yield pytest.param(pd.DataFrame(LONG), id="long")
    yield pytest.param(pd.DataFrame(LONG).set_index("id"), id="long with ids as index")
    yield pytest.param(pd.DataFrame(LONG).astype({"item": "category"}), id="long of categories")
    yield pytest.param(pa.table(LONG), id="long of Arrow")
    yield pytest.param(Foreign(pa.table(LONG)), id="long of another library")
    yield pytest.param(Transactions.from_rows(ROWS), id="encoded")


def rows_of(data: Any) -> list[list[str]]:
    assert isinstance(data, Transactions)
    ends = data.offsets.tolist()
    return [[data.items[code] for code in data.indices[a:b]] for a, b in pairwise(ends)]


@pytest.mark.parametrize("given", [*forms()])
def test_every_form_gives_its_rows(given: Any) -> None:
    assert rows_of(data_of("north", given, "transactions", ["id"], "item")) == ROWS


def test_a_frame_of_polars() -> None:
    polars = pytest.importorskip("polars")
    for frame in (polars.DataFrame(LONG), polars.DataFrame(HELD.astype(bool), schema=ITEMS), polars.Series(ROWS)):
        assert rows_of(data_of("north", frame, "transactions", ["id"], "item")) == ROWS


def test_columns_have_the_names_that_are_said() -> None:
    frame = pd.DataFrame(LONG).rename(columns={"id": "receipt", "item": "article"})
    assert rows_of(data_of("north", frame, "transactions", ["receipt"], "article")) == ROWS


@pytest.mark.parametrize("given", [[[1, 2], [np.int64(2)]], pd.DataFrame({"id": [1, 1, 2], "item": [1, 2, 2]})])
def test_whole_numbers_are_items(given: Any) -> None:
    assert rows_of(data_of("north", given, "transactions", ["id"], "item")) == [["1", "2"], ["2"]]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(pd.DataFrame({"receipt": [1, 1, 2], "article": ["a", "b", "a"]}), id="other names"),
        pytest.param(pd.DataFrame({"a": [1, 2]}), id="counts"),
        pytest.param(pd.DataFrame({"a": [1.0, None]}), id="gaps"),
        pytest.param(pd.DataFrame({"id": [1, 2]}), id="no items"),
        pytest.param(pd.DataFrame({"a": ["x", 1]}), id="cells of several types"),
        pytest.param(HELD, id="an array without names"),
        pytest.param([["bread", 1.5]], id="fractions"),
        pytest.param([["bread", True]], id="truth values"),
        pytest.param([["bread", None]], id="nothing"),
        pytest.param(["bread milk"], id="lines"),
        pytest.param([b"bread"], id="bytes"),
        pytest.param(7, id="a number"),
    ],
)
def test_what_holds_no_transactions_is_told_in_one_sentence(given: Any) -> None:
    with fails("E101"):
        data_of("north", given, "transactions", ["id"], "item")


@pytest.mark.parametrize("given", [None, [["bread"]], "north.dat"])
def test_data_that_no_party_is_named_for_are_refused(given: Any) -> None:
    with fails("E100"):
        comine.simulate(job(), given)


def job(min_support: object = 0.5) -> dict[str, object]:
    return {
        "job": {"name": "w", "task": "itemsets", "parties": ["north", "south"], "dataset": "baskets"},
        "itemsets": {"min_support": min_support},
    }


def warned(given: Any, tmp_path: Any, min_support: object = 0.5, **options: Any) -> list[str]:
    with pytest.warns(comine.DataWarning) as caught:
        comine.simulate(job(min_support), {"north": given, "south": [["bread"]] * 4}, **options)
    return [str(each.message) for each in caught]


def test_a_file_that_was_misread_is_hinted_at(tmp_path: Any) -> None:
    path = tmp_path / "north.csv"
    path.write_text("bread;milk\nbread;tea\nmilk;tea\n")
    (sentence,) = warned(path, tmp_path)
    assert sentence.startswith("the data of north: most items hold")
    assert sentence.endswith('write format = "csv", separator = ";"')


def test_a_party_without_rows_is_hinted_at(tmp_path: Any) -> None:
    assert warned([], tmp_path) == [
        "the data of north: there is no transaction; check the source, and the query where there is one"
    ]


@pytest.mark.parametrize("number", [4996, 496])
def test_a_count_where_a_share_may_be_meant_is_hinted_at(tmp_path: Any, number: int) -> None:
    (sentence,) = warned([["bread"]] * number, tmp_path, min_support=5)
    assert sentence == f"min_support = 5 is a count, here of {number + 4:,} transactions; 5 % is 0.05, if that is meant"


def test_a_count_that_no_itemset_can_reach_is_hinted_at() -> None:
    with pytest.warns(comine.DataWarning, match="5 is a count, here of 4 transactions"), fails("E100"):
        comine.simulate(job(5), {"north": [["tea"]] * 2, "south": [["bread"]] * 2})


def test_a_sound_simulation_is_not_hinted_at() -> None:
    comine.simulate(job(2), {"north": [["bread", "milk"]] * 100, "south": [["bread"]] * 4})  # a warning is an error
