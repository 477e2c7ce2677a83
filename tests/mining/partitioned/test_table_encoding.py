"""Tables in blocks hold what they hold in memory, cell by cell, and have the same digest."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mining.data.formats import text_files
from mining.data.loading import load_table
from mining.data.tables import Table
from mining.partitioned.cores import Cores
from mining.partitioned.encoding import encode
from mining.partitioned.encoding.source import TableSource
from mining.partitioned.in_process import InProcess
from mining.partitioned.tables import dictionaries, pieces
from mining.partitioned.tables.encode import TableEncoding
from mining.partitioned.tables.stored import StoredTable
from tests.mining.partitioned.tables_world import CELL, cells
from tests.mining.partitioned.test_encoding import Inline

NAMES = ("id", "a", "b.c", "a b")
RECORDS = st.lists(st.tuples(*[CELL] * len(NAMES)), max_size=30)


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "Workers", Inline)


def encoded(source: TableSource, folder: Path, withheld: Sequence[str] = ()) -> StoredTable:
    return TableEncoding(source, withheld, folder, Cores(3)).run()


def load(source: TableSource) -> Table:
    return load_table(
        source.place, source.format, separator=source.separator, query=source.query, id_columns=source.id_columns
    )


def whole(parts: Sequence[list[list[str]]]) -> list[list[str]]:
    return [list(chain.from_iterable(column)) for column in zip(*parts, strict=True)]


def assert_same(source: TableSource, folder: Path, withheld: Sequence[str] = ()) -> StoredTable:
    expected, stored = load(source).without(withheld), encoded(source, folder, withheld)
    found = stored.rows(InProcess)
    assert (found.id_columns, found.column_names, found.n_rows) == (
        expected.id_columns,
        expected.column_names,
        expected.n_rows,
    )
    assert whole(list(found.parts(cells))) == cells(expected)
    assert found.digest() == expected.digest()
    for name in expected.column_names:
        texts, counts = found.value_counts(name)
        assert texts.equals(expected.value_counts(name)[0])
        assert counts.tolist() == expected.value_counts(name)[1].tolist()
    again = StoredTable.open(folder)
    assert again is not None
    assert (again.manifest(), again.is_whole()) == (stored.manifest(), True)
    return stored


def write(records: Sequence[tuple[str, ...]], form: str, folder: Path) -> TableSource:
    """The rows in a format that keeps them."""
    path, ids = folder / form, ("id",) if len(records) % 2 else ()
    if form == "parquet":
        columns = {name: [record[place] for record in records] for place, name in enumerate(NAMES)}
        table = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
        pq.write_table(table, path, row_group_size=4)
        return TableSource(str(path), "parquet", id_columns=ids)
    if form == "sqlite":
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as connection:
            connection.execute('create table rows ("id", "a", "b.c", "a b")')
            connection.executemany("insert into rows values (?, ?, ?, ?)", records)
        connection.close()
        return TableSource(f"sqlite:///{path}", "sql", query="select * from rows order by rowid", id_columns=ids)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n" if len(records) % 2 else "\n", quoting=csv.QUOTE_ALL)
    writer.writerows([NAMES, *records])
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if len(records) % 3 == 0 else data)
    return TableSource(str(path), "csv", id_columns=ids)


@pytest.mark.parametrize("form", ["parquet", "csv", "sqlite"])
@given(RECORDS, st.sampled_from([8, 40, 1 << 24]), st.sampled_from([2, 1 << 18]), st.sampled_from([1, 30, 1 << 25]))
@settings(max_examples=8)
def test_every_format(
    tmp_path_factory: pytest.TempPathFactory, form: str, records: list[tuple[str, ...]], text: int, most: int, once: int
) -> None:
    folder = tmp_path_factory.mktemp("encoded")
    source = write(records, form, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PIECE_BYTES", text)
        patch.setattr(pieces, "MOST_ROWS", most)
        patch.setattr(pieces, "MOST_OCCURRENCES", 4 * most)
        patch.setattr(dictionaries, "AT_ONCE", once)
        patch.setattr(dictionaries, "SAMPLED", 8)
        assert_same(source, folder / "blocks", ["a=a", "a b=*z"] if len(records) % 2 else [])
