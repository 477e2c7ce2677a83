"""Files and databases: text stays text."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonymize.reading import read_csv, read_parquet, read_sql
from tests.errors import fails


def test_csv_is_text_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffzip;flag;note\r\n007;t;"a;\n""b"""\r\n\r\n12 ;;NA\r\n'.encode())
    table = read_csv(path, ";")
    assert table.to_pydict() == {"zip": ["007", "12 "], "flag": ["t", ""], "note": ['a;\n"b"', "NA"]}
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_csv(packed, ";").equals(table)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"a,b\n1,2\n3\n",
        b'a,b\n1,"2\n3,4\n',
        b"a,b\n\xff,2\n",
        b"\xff,b\n1,2\n",
        b"a,a\n1,2\n",
    ],
)
def test_csv_that_is_wrong_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with fails("E101"):
        read_csv(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with fails("E101"):
        read_csv(tmp_path / "none.csv")
    with fails("E101"):
        read_parquet(tmp_path / "none.parquet")
    with fails("E101"):
        read_sql(f"sqlite:///{tmp_path}/none.db", "SELECT 1")


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    assert read_csv(path).num_rows == 0


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_parquet(tmp_path / "t.parquet").equals(table)


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a, b, c, d)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(1, "007", 1, 1), (2, None, 2.5, "x")])
    connection.close()
    url = f"sqlite:///{path}"
    assert read_sql(url, "SELECT * FROM t ORDER BY a").to_pydict() == {
        "a": [1, 2],
        "b": ["007", None],
        "c": [1.0, 2.5],
        "d": ["1", "x"],
    }
    assert read_sql(url, "SELECT a, b FROM t WHERE a > 5").column_names == ["a", "b"]
    for query in ("SELECT z FROM t", "DELETE FROM t", "SELEKT"):
        with fails("E101"):
            read_sql(url, query)
    with fails("E101"):
        read_sql(url, "SELECT x'00' AS a")


def test_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, '007' AS b, DATE '2020-02-29' AS c")
    url = f"duckdb:///{path}"
    table = read_sql(url, "SELECT * FROM t")
    assert table.schema.field("c").type == pa.date32()
    assert table.column("b").to_pylist() == ["007"]
    for query in ("SELECT z FROM t", "DELETE FROM t", "SELEKT"):
        with fails("E101"):
            read_sql(url, query)
    (tmp_path / "text.duckdb").write_text("no database")
    with fails("E101"):
        read_sql(f"duckdb:///{tmp_path}/text.duckdb", "SELECT 1")


@pytest.mark.parametrize("url", ["t.db", "mysql://user:hunter2@host/t", "sqlite://t.db"])
def test_other_urls_are_refused(url: str) -> None:
    with fails("E100") as caught:
        read_sql(url, "SELECT 1")
    assert "hunter2" not in str(caught.value)


def test_a_password_is_never_repeated() -> None:
    with fails("E101") as caught:  # nothing listens on port 1
        read_sql("postgres://user:hunter2@127.0.0.1:1/db", "SELECT 1")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("text", "line"), [("a,b\n1,2\n\n3\n", 4), ("a,b\n1,2,3\n", 2), ('a,b\n"x\ny",2\n1,2,3\n', 4)])
def test_a_ragged_row_is_named_by_its_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "a.csv").write_text(text)
    with fails("E101"):
        read_csv(tmp_path / "a.csv")
