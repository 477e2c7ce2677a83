"""Tables that cannot be read, ids that do not name rows, and cells that are no numbers end in one sentence."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crypto.primitives.hashing import encode_fields
from link.errors import ComineError
from mining.data.formats.table_readers import table_from_arrow
from mining.data.items.item_columns import Itemisation, check_columns, item_columns
from mining.data.loading import load_table
from mining.data.row_ids import AS_THEY_ARE, IdNormalisation, RowIds, checked_ids
from mining.limits import MAX_ITEM_BYTES
from tests.errors import fails

pytestmark = pytest.mark.turn(3)


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "people.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def texts(*cells: str) -> pa.Array:
    return pa.array(cells, pa.large_string())


def refused(path: Path | str, data_format: str = "csv", **options: object) -> str:
    with pytest.raises(ComineError) as error:
        load_table(path, data_format, **options)  # type: ignore[arg-type]
    assert error.value.exit_code == 10
    assert "\n" not in error.value.message
    return error.value.message


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; this format needs a first line with column names"),
        ("id,a\n1,x\n2\n", "is not proper CSV at line 3: every line must have the 2 cells of the first one"),
        ("id,a\n1,x,y\n", "at line 2"),
        ('id,a\n1,"x\n2,y\n3,z\n', "is not proper CSV near line 4: unexpected end of data"),
        ('id,a\n1,"x"y\n', "is not proper CSV near line 2"),
        ("id,a\n1,x\r2,y\n", "near line 2: a carriage return stands alone outside quotes"),
        ("id\n1\r2\n", "a carriage return stands alone outside quotes"),
        ("id;a\n1;x\n", 'has no column named "id" among its 1 column; name the one with the ids of the rows by id'),
        ("id,a,a\n", 'has more than one column named "a"'),
        ("id,,a\n", "column 2 has no name"),
        ("id,a=b\n", 'the name of column "a=b" has an equals sign'),
        (b"id,a\n1,\xff\n", "is not UTF-8 text: line 2"),
        (b"id,a\n1,\0\n", "line 2 holds a zero byte"),
        (gzip.compress(b"id,a\n1,x\n", mtime=0)[:-4], "is not a whole gzip file"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    assert sentence in refused(written(tmp_path, text))


def test_options_fit_the_format(tmp_path: Path) -> None:
    path = written(tmp_path, "id,a\n")
    assert 'not from the format "basket"' in refused(path, "basket")
    assert "needs a query that returns the columns of the table" in refused("sqlite:///x.db", "sql")
    assert "A query is only for" in refused(path, "csv", query="select 1")
    assert "must be one ASCII character" in refused(path, "csv", separator="::")
    assert "there is no file" in refused(tmp_path / "none.csv")
    assert "cannot be read as a Parquet file" in refused(path, "parquet")


def test_literal_quotes_and_blank_lines_are_allowed(tmp_path: Path) -> None:
    table = load_table(written(tmp_path, 'id,size\n\n1,5" pipe\r\n\r\n2,"6"" pipe"\n'), "csv")
    assert table.columns[0].values.to_pylist() == ['5" pipe', '6" pipe']
    assert list(table.row_ids()) == [encode_fields(b"1"), encode_fields(b"2")]


def test_a_table_may_have_no_rows_or_no_columns_but_ids(tmp_path: Path) -> None:
    assert load_table(written(tmp_path, "id,a"), "csv").n_rows == 0
    alone = load_table(written(tmp_path, "id\n1\n2\n"), "csv")
    assert (alone.n_rows, alone.columns) == (2, ())
    found = item_columns(alone, Itemisation())
    assert (found.n_rows, found.n_items, found.bitmaps().shape) == (2, 0, (0, 1))


def test_typed_cells_become_text(tmp_path: Path) -> None:
    day = dt.date(2026, 1, 2)
    arrow = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "float": [2.0, 0.1],
            "flag": [True, None],
            "day": [day, day],
            "exact": [Decimal("1.50"), None],
            "word": pa.array(["007", ""]).dictionary_encode(),
            "nothing": pa.nulls(2),
        }
    )
    pq.write_table(arrow, tmp_path / "table.parquet")
    table = load_table(tmp_path / "table.parquet", "parquet")
    assert {column.name: column.values.to_pylist() for column in table.columns} == {
        "float": ["0.1", "2"],
        "flag": ["true"],
        "day": ["2026-01-02"],
        "exact": ["1.50"],
        "word": ["007"],
        "nothing": [],
    }
    assert table.digest() == table_from_arrow(arrow, ["id"], "the data").digest()
    with closing(sqlite3.connect(tmp_path / "lite.db")) as lite, lite:
        lite.execute("CREATE TABLE t (id, mixed)")
        lite.executemany("INSERT INTO t VALUES (?, ?)", [(1, 2.0), ("b", "007"), (3, None), (4, 7), (5, 0.1)])
    mixed = load_table(f"sqlite:///{tmp_path}/lite.db", "sql", query="select id, mixed from t")
    assert mixed.columns[0].values.to_pylist() == ["0.1", "007", "2", "7"]
    assert mixed.columns[0].codes.tolist() == [2, 1, -1, 3, 0]


def test_cells_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"id": ["1"], "list": [["a"]]}), path)
    assert 'column "list" holds values that are neither text, numbers' in refused(path, "parquet")
    pq.write_table(pa.table({"id": [1.5]}), path)
    assert 'column "id" holds values that are neither text nor whole numbers' in refused(path, "parquet")
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff"))
    pq.write_table(pa.table({"id": ["1"], "a": bad}), path)
    assert 'The column "a" holds text that is not UTF-8' in refused(path, "parquet")
    with closing(sqlite3.connect(tmp_path / "lite.db")) as lite, lite:
        lite.execute("CREATE TABLE t (id, blob)")
        lite.execute("INSERT INTO t VALUES (1.5, x'00')")
    url = f"sqlite:///{tmp_path}/lite.db"
    assert "neither text nor whole numbers" in refused(url, "sql", query="select id from t")
    assert 'column "blob" holds' in refused(url, "sql", query="select 1 as id, blob from t")


def test_queries_that_fail_do_not_tell_rows(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "lite.db")) as lite, lite:
        lite.execute("CREATE TABLE t (id, secret)")
        lite.execute("INSERT INTO t VALUES (1, cast(x'ff' as text))")
    assert "no such column" in refused(f"sqlite:///{tmp_path}/lite.db", "sql", query="select a from t")
    told = refused(f"sqlite:///{tmp_path}/lite.db", "sql", query="select id, secret from t")
    assert "failed while it ran" in told
    duckdb.connect(str(tmp_path / "duck.db")).close()
    url = f"duckdb:///{tmp_path}/duck.db"
    told = refused(url, "sql", query="select 1 as id, cast('secret' as int) as a")
    assert "secret" not in told
    assert "rename all but one" in refused(url, "sql", query="select 1 as id, 2 as id")


@pytest.mark.parametrize(
    ("cells", "normalisation"),
    [
        (["a", "", ""], AS_THEY_ARE),
        (["a", " "], IdNormalisation(trim=True)),
        (["a", "a", "b", "b", "b"], AS_THEY_ARE),
        (["a", "A"], IdNormalisation(case="fold")),
        (["é", "e\u0301"], IdNormalisation(unicode="NFC")),
    ],
)
def test_ids_name_one_row_each(cells: list[str], normalisation: IdNormalisation) -> None:
    with fails("E101"):
        checked_ids([texts(*cells)], ["id"], normalisation)


def test_normal_forms_of_ids() -> None:
    assert IdNormalisation(trim=True).apply(" \t\u00a0a b\n") == "a b"
    assert IdNormalisation(case="fold").apply("STRASSE") == IdNormalisation(case="fold").apply("straße")
    both = IdNormalisation(case="fold", unicode="NFC")
    assert both.apply("E\u0301") == both.apply("é")
    assert AS_THEY_ARE.apply(" É ") == " É "


def test_composite_ids_are_kept_apart() -> None:
    one = RowIds([texts("ab", "a"), texts("c", "bc")])
    assert len({*one, *RowIds([texts("abc")])}) == 3


def test_cells_that_are_no_numbers_give_no_item(tmp_path: Path) -> None:
    table = load_table(written(tmp_path, "id,age\n1,17\n2,?\n3,?\n4,1_0\n5,\n"), "csv")
    how = Itemisation(cuts={"age": (Decimal(18),)})
    assert item_columns(table, how).counts().tolist() == [1, 0]
    assert item_columns(table, how, np.array([0, 4, 1], np.int64)).counts().tolist() == [1, 0]
    of_numbers = item_columns(table, Itemisation(quantiles={"age": 2}))
    assert (of_numbers.items, of_numbers.counts().tolist()) == (("age=(-inf,inf)",), [1])


def test_names_that_are_too_long_to_be_told_are_no_items(tmp_path: Path) -> None:
    longest = "x" * (MAX_ITEM_BYTES - len("note="))
    table = load_table(written(tmp_path, f"id,note\n1,{longest}\n2,{longest}y\n3,a\n"), "csv")
    assert item_columns(table, Itemisation()).items == ("note=a", f"note={longest}")


def test_items_that_a_job_excludes_are_not_there(tmp_path: Path) -> None:
    table = load_table(written(tmp_path, "id,age,name\n1,17,a\n2,50,b\n"), "csv")
    how = Itemisation(cuts={"age": (Decimal(18),)}, exclude=("name=*", "age=(-inf*"))
    found = item_columns(table, how)
    assert found.items == ("age=[18,inf)",)
    assert found.counts().tolist() == [1]


def test_equal_numbers_make_one_interval(tmp_path: Path) -> None:
    table = load_table(written(tmp_path, "id,age\n1,7\n2,7.0\n"), "csv")
    assert item_columns(table, Itemisation(quantiles={"age": 4})).items == ("age=(-inf,inf)",)


def test_columns_are_at_one_party_each() -> None:
    check_columns({"north": ["a"], "south": ["b"]}, ["a"])
    with fails("E100"):
        check_columns({"north": ["a"], "south": ["b", "a"]}, [])
    with fails("E100"):
        check_columns({"north": ["a"]}, ["age"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "separator", "ids", "rows"),
    [
        ("mushroom_table.csv", ",", ["id"], 8124),
        pytest.param("diabetic_data.csv.gz", ",", ["encounter_id"], 101_766, marks=pytest.mark.slow),
        (
            "bank-full.csv.gz",
            ";",
            ["age", "balance", "duration", "pdays", "day", "job", "campaign", "education"],
            45_211,
        ),
    ],
)
def test_real_tables(shared_data: Path, name: str, separator: str, ids: list[str], rows: int) -> None:
    path = shared_data / "tables" / name
    table = load_table(path, "csv", separator=separator, id_columns=ids)
    assert table.n_rows == rows
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file, delimiter=separator))  # type: ignore[arg-type]
    found = item_columns(table, Itemisation())
    counts: dict[str, int] = {}
    for row in read:
        for key, value in row.items():
            if key not in ids and value:
                counts[f"{key}={value}"] = counts.get(f"{key}={value}", 0) + 1
    assert dict(zip(found.items, found.counts().tolist(), strict=True)) == counts


@pytest.mark.data
def test_a_real_table_with_repeated_ids(shared_data: Path) -> None:
    table = load_table(shared_data / "tables" / "diabetic_data.csv.gz", "csv", id_columns=["patient_nbr"])
    with fails("E101"):
        table.row_ids()
    assert (
        len(set(load_table(shared_data / "tables/diabetic_data.csv.gz", "csv", id_columns=["encounter_id"]).row_ids()))
        == 101_766
    )


@pytest.mark.data
def test_numbers_of_a_real_table(shared_data: Path) -> None:
    table = load_table(shared_data / "tables/bank-full.csv.gz", "csv", separator=";", id_columns=["duration"])
    found = item_columns(table, Itemisation(cuts={"age": (Decimal(30), Decimal(60))}, quantiles={"balance": 4}))
    by_column = {
        column: [n for n, of in zip(found.counts().tolist(), found.columns, strict=True) if of == column]
        for column in ("age", "balance")
    }
    assert sum(by_column["age"]) == sum(by_column["balance"]) == table.n_rows
    assert len(by_column["balance"]) == 4
    assert max(by_column["balance"]) - min(by_column["balance"]) < 0.01 * table.n_rows
