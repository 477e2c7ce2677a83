"""Sources are read in pieces: where a piece ends has no part in what is read, nor in what is told of a fault."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mining.data.formats import csv_text, table_readers, table_sources, text_files, text_sources
from mining.data.loading import load_table, load_transactions
from mining.data.transactions import Transactions
from tests.errors import fails
from tests.examples import examples

pytestmark = pytest.mark.turn(3)

WORD = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs"], exclude_characters="\ufeff"), min_size=1, max_size=5
)
ITEM = st.sampled_from(["a", "b", "ä", "🥖", "c,d", 'q"', "e f", "two\nlines", "007"]) | WORD
ROWS = st.lists(st.lists(ITEM, max_size=5), max_size=30)
SIZES = st.sampled_from([1, 2, 3, 7, 20, 64])


@contextmanager
def pieces_of(size: int) -> Iterator[None]:
    """Everything is read in pieces of a few bytes, rows or records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "AT_ONCE", size)
        patch.setattr(text_sources, "BLOCK_BYTES", size)
        patch.setattr(text_sources, "RECORDS", size)
        patch.setattr(csv_text, "BLOCK_BYTES", size)
        patch.setattr(csv_text, "PARSED_BYTES", max(size, 2))  # Arrow loses a row where a block is CR alone
        patch.setattr(table_sources, "BATCH_ROWS", size)
        patch.setattr(table_sources, "FETCH", size)
        patch.setattr(table_readers, "FETCH", size)
        patch.setattr("mining.data.transactions.AT_ONCE", size)
        yield


def same(got: Transactions, rows: list[list[str]]) -> bool:
    expected = Transactions.from_rows(rows)
    return (
        got.items == expected.items
        and got.offsets.tolist() == expected.offsets.tolist()
        and got.indices.tolist() == expected.indices.tolist()
    )


def text_of(records: list[list[str]], end: str) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerows(records)
    return text.getvalue()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(rows=ROWS, size=SIZES, end=st.sampled_from(["\n", "\r\n"]), mark=st.booleans(), packed=st.booleans())
def test_text(tmp_path: Path, rows: list[list[str]], size: int, end: str, mark: bool, packed: bool) -> None:
    def write(text: str) -> Path:
        data = ("\ufeff" * mark + text).encode()
        (tmp_path / "data").write_bytes(gzip.compress(data) if packed else data)
        return tmp_path / "data"

    plain = [kept for row in rows if (kept := [item for item in row if " " not in item and "\n" not in item])]
    full = [row for row in rows if row]
    items = list(dict.fromkeys(item for row in rows for item in row))
    pairs = [[str(n), item] for n, row in enumerate(rows) for item in (row or [""])]
    wide = [["id", *items], *([str(n), *("01"[item in row] for item in items)] for n, row in enumerate(rows))]
    with pieces_of(size):
        assert same(load_transactions(write("".join(" ".join(row) + end for row in plain)), "basket"), plain)
        assert same(load_transactions(write(text_of(full, end)), "csv"), full)
        assert same(load_transactions(write(text_of([["id", "item"], *pairs], end)), "long"), rows)
        apart = sorted(pairs, key=lambda pair: (len(pair[1]), pair))
        order = list(dict.fromkeys(number for number, _ in apart))
        assert same(
            load_transactions(write(text_of([["id", "item"], *apart], end)), "long"), [rows[int(n)] for n in order]
        )
        assert same(load_transactions(write(text_of(wide, end)), "wide"), rows)
        table = load_table(write(text_of([["id", "cell"], *pairs], end)), "csv")
    assert table.ids[0].to_pylist() == [number for number, _ in pairs]
    values = [*table.columns[0].values.to_pylist(), ""]
    assert [values[code] for code in table.columns[0].codes] == [item for _, item in pairs]


@examples(4, 25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, size=SIZES)
def test_parquet_and_databases(tmp_path: Path, rows: list[list[str]], size: int) -> None:
    pairs = [(n, item) for n, row in enumerate(rows) for item in (row or [None])]
    long = pa.table(
        {"id": pa.array([n for n, _ in pairs], pa.int64()), "item": pa.array([i for _, i in pairs], pa.string())}
    )
    items = list(dict.fromkeys(item for row in rows for item in row))
    pq.write_table(long, tmp_path / "long", row_group_size=5)
    pq.write_table(pa.table({"x": pa.array(rows, pa.list_(pa.string()))}), tmp_path / "lists", row_group_size=5)
    pq.write_table(
        pa.table({"id": range(len(rows)), **{i: [i in row for row in rows] for i in items}}), tmp_path / "wide"
    )
    for name, connect in (("s.db", sqlite3.connect), ("d.db", duckdb.connect)):
        (tmp_path / name).unlink(missing_ok=True)
        with closing(connect(tmp_path / name)) as connection:
            connection.execute("CREATE TABLE t (id INTEGER, item TEXT)")
            if pairs:
                connection.executemany("INSERT INTO t VALUES (?, ?)", pairs)
            connection.commit()
    query = "SELECT id, item FROM t ORDER BY id"
    with pieces_of(size):
        assert same(load_transactions(tmp_path / "long", "parquet"), rows)
        assert same(load_transactions(tmp_path / "lists", "parquet"), rows)
        if items:
            assert same(load_transactions(tmp_path / "wide", "parquet", item_column="no such"), rows)
        assert same(load_transactions(f"sqlite:///{tmp_path}/s.db", "sql", query=query), rows)
        assert same(load_transactions(f"duckdb:///{tmp_path}/d.db", "sql", query=query), rows)


@pytest.mark.parametrize("size", [1, 3, 20, 1 << 20])
@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("long", "id,item\n" + "1,a\n" * 40 + "1,a,b\n" + "1,a\n" * 9),
        ("long", "id,item\n" + '1,"a\nb"\n' * 20 + "1\n"),
        ("long", "id,item\n" + "1,a\n" * 40 + ",a\n"),
        ("wide", "id,a\n" + "1,1\n" * 40 + "1,2\n"),
        ("csv", "a,b\n" * 41 + '"a"b\n' + "c\n" * 5),
        ("basket", "a b\n" * 41 + "a\rb\n"),
        ("basket", "ä b\n" * 41 + "\udcff\n"),
        ("basket", "ä b\n" * 41 + "\0\n"),
    ],
)
def test_faults_are_told_with_their_line(tmp_path: Path, form: str, content: str, size: int) -> None:
    (tmp_path / "data").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pieces_of(size), fails("E101"):
        load_transactions(tmp_path / "data", form)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(st.lists(st.sampled_from(["a", "b", "ä", "x\ry"]), min_size=1, max_size=4), min_size=1))
def test_lines_may_all_end_in_cr(tmp_path: Path, rows: list[list[str]]) -> None:
    """As programs for old Macs write them; within quotes a carriage return is part of a cell."""
    plain = [kept for row in rows if (kept := [item for item in row if "\r" not in item])]
    (tmp_path / "data").write_bytes("".join(" ".join(row) + "\r" for row in plain).encode())
    assert same(load_transactions(tmp_path / "data", "basket"), plain)
    text = "".join(",".join(f'"{item}"' if "\r" in item else item for item in row) + "\r" for row in rows)
    (tmp_path / "data").write_bytes(text.encode())
    assert same(load_transactions(tmp_path / "data", "csv"), rows)
    assert same(load_transactions(tmp_path / "data", "csv", separator=","), rows)


@pytest.mark.parametrize("text", ["a b\rc\nd\n", "a\rb\r\nc\r\n", "a\nb\rc"])
@pytest.mark.parametrize("separator", [None, " "])
def test_ends_of_two_kinds_are_refused(tmp_path: Path, text: str, separator: str | None) -> None:
    (tmp_path / "data").write_bytes(text.encode())
    with fails("E101"):
        load_transactions(tmp_path / "data", "basket", separator=separator)
