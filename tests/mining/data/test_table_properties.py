"""Whatever text cells hold, every kind of source gives it back byte for byte, and items and bitmaps follow from it."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
from collections import Counter
from contextlib import closing
from decimal import Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crypto.primitives.hashing import encode_fields
from mining.data import row_ids
from mining.data.formats import table_readers, text_files
from mining.data.formats.table_readers import table_from_csv
from mining.data.formats.text_files import read_text
from mining.data.items import item_columns as item_columns_
from mining.data.items.bitmaps import words
from mining.data.items.discretisation import interval_names, interval_of, quantile_cuts
from mining.data.items.item_columns import ItemColumns, Itemisation, item_columns
from mining.data.loading import load_table
from mining.data.row_ids import IdNormalisation, RowIds
from mining.data.tables import Table

pytestmark = pytest.mark.turn(3)

anything = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
awkward = st.sampled_from(
    ["007", "t", "true", "NULL", "nan", "?", " a ", '"', '""', 'a"b', ",", "a\r\nb", "\n", "\r", ""]
)
cell = st.one_of(awkward, anything)
name = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0=\ufeff"), min_size=1, max_size=5)


class Cells(NamedTuple):
    """A table as lists."""

    names: list[str]
    rows: list[list[str]]


@st.composite
def tables(draw: st.DrawFn) -> Cells:
    names = draw(st.lists(name, min_size=2, max_size=4, unique=True))
    return Cells(names, draw(st.lists(st.lists(cell, min_size=len(names), max_size=len(names)), max_size=8)))


def cells_of(table: Table) -> Cells:
    """What a table holds, its columns of ids first."""
    columns = [ids.to_pylist() for ids in table.ids]
    for column in table.columns:
        values = [*column.values.to_pylist(), ""]
        assert values == [*sorted(set(values) - {""}), ""]
        columns.append([values[code] for code in column.codes])
    names = [*table.id_columns, *table.column_names]
    return Cells(names, [list(row) for row in zip(*columns, strict=True)] if table.n_rows else [])


def as_csv(contents: Cells, separator: str, line_end: str, quoting: int) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator=line_end, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(contents.names)
    writer.writerows(contents.rows)
    return text.getvalue().encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    tables(),
    st.sampled_from([",", ";", "\t", "|", " "]),
    st.sampled_from([("\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL)]),
    st.booleans(),
    st.booleans(),
)
def test_csv_is_read_byte_for_byte(
    tmp_path: Path, contents: Cells, separator: str, style: tuple[str, int], mark: bool, packed: bool
) -> None:
    data = b"\xef\xbb\xbf" * mark + as_csv(contents, separator, *style)
    path = tmp_path / "table.csv"
    path.write_bytes(gzip.compress(data) if packed else data)
    first = contents.names[0]
    assert cells_of(load_table(path, "csv", separator=separator, id_columns=[first])) == contents


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(tables(), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]), st.integers(1, 40), st.integers(1, 3))
def test_pieces_of_a_source_make_the_whole_table(
    tmp_path: Path, contents: Cells, quoting: int, size: int, rows: int
) -> None:
    path, first = tmp_path / "table.csv", contents.names[0]
    path.write_bytes(as_csv(contents, ",", "\r\n", quoting))
    whole = table_from_csv(read_text(path, quotes=True), ",", [first], path)
    cells = {key: pa.array([row[place] for row in contents.rows], "str") for place, key in enumerate(contents.names)}
    pq.write_table(pa.table(cells), tmp_path / "table.parquet", row_group_size=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PIECE_BYTES", size)
        patch.setattr(table_readers, "BATCH_ROWS", rows)
        assert load_table(path, "csv", id_columns=[first]).digest() == whole.digest()
        assert load_table(tmp_path / "table.parquet", "parquet", id_columns=[first]).digest() == whole.digest()


@pytest.mark.parametrize("size", [1, 7, 20, 1000])
def test_quotes_within_cells_are_read_in_pieces_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    path = tmp_path / "table.csv"
    path.write_text('id,size,note\n1,5" pipe,"two\nlines"\n2,a,"3"" x"\n3,b"b,"x\ny"\n4,"c",d\n', newline="")
    monkeypatch.setattr(text_files, "PIECE_BYTES", size)
    table = load_table(path, "csv")
    assert cells_of(table).rows == [
        ["1", '5" pipe', "two\nlines"],
        ["2", "a", '3" x'],
        ["3", 'b"b', "x\ny"],
        ["4", "c", "d"],
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(tables())
def test_parquet_and_databases_are_read_byte_for_byte(tmp_path: Path, contents: Cells) -> None:
    # Databases take names for equal that differ in case only.
    ids, query = ["c0", "c1"], "SELECT * FROM t ORDER BY rowid"
    contents = Cells([f"c{place}" for place in range(len(contents.names))], contents.rows)
    arrow = pa.table({key: [row[place] for row in contents.rows] for place, key in enumerate(contents.names)})
    arrow = arrow.cast(pa.schema([(key, pa.string()) for key in contents.names]))
    pq.write_table(arrow, tmp_path / "table.parquet")
    assert cells_of(load_table(tmp_path / "table.parquet", "parquet", id_columns=ids)) == contents
    marks = ", ".join("?" * len(contents.names))
    for path in ((tmp_path / "lite.db"), (tmp_path / "duck.db")):
        path.unlink(missing_ok=True)
    columns = ", ".join(f"{key} TEXT" for key in contents.names)
    with closing(sqlite3.connect(tmp_path / "lite.db")) as lite, lite:
        lite.execute(f"CREATE TABLE t ({columns})")
        lite.executemany(f"INSERT INTO t VALUES ({marks})", contents.rows)
    assert cells_of(load_table(f"sqlite:///{tmp_path}/lite.db", "sql", query=query, id_columns=ids)) == contents
    with duckdb.connect(str(tmp_path / "duck.db")) as duck:
        duck.register("arrow", arrow)
        duck.execute("CREATE TABLE t AS SELECT * FROM arrow")
    assert cells_of(load_table(f"duckdb:///{tmp_path}/duck.db", "sql", query=query, id_columns=ids)) == contents


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(tables(), tables())
def test_digests_are_equal_where_contents_are(tmp_path: Path, one: Cells, other: Cells) -> None:
    def loaded(contents: Cells, quoting: int) -> Table:
        path = tmp_path / "table.csv"
        path.write_bytes(as_csv(contents, ",", "\r\n", quoting))
        return load_table(path, "csv", id_columns=[contents.names[0]])

    first = loaded(one, csv.QUOTE_MINIMAL).digest()
    assert first == loaded(one, csv.QUOTE_ALL).digest()
    assert (first == loaded(other, csv.QUOTE_ALL).digest()) == (one == other)


def table_of(contents: Cells) -> Table:
    cells = [
        pa.chunked_array([[row[place] for row in contents.rows]], pa.string()) for place in range(len(contents.names))
    ]
    return Table.of(contents.names, cells, [contents.names[0]], "the table")


def held(found: ItemColumns) -> list[set[str]]:
    """The items of each row."""
    return [{found.items[code] for code in row if code >= 0} for row in found.codes().T]


@given(tables(), st.data())
def test_items_are_columns_and_values(contents: Cells, data: st.DataObject) -> None:
    found = item_columns(table_of(contents), Itemisation())
    expected = [
        {f"{key}={value}" for key, value in zip(contents.names[1:], row[1:], strict=True) if value}
        for row in contents.rows
    ]
    assert held(found) == expected
    assert list(found.items) == sorted(set().union(*expected))
    assert all(item.startswith(f"{column}=") for item, column in zip(found.items, found.columns, strict=True))
    counts = Counter(item for row in expected for item in row)
    assert found.counts().tolist() == [counts[item] for item in found.items]

    rows = data.draw(st.lists(st.integers(-1, len(expected) - 1), max_size=300))
    moved = found.at(np.array(rows, np.int64))
    assert held(moved) == [expected[row] if row >= 0 else set() for row in rows]
    assert held(item_columns(table_of(contents), Itemisation(), np.array(rows, np.int64))) == held(moved)

    kept = data.draw(st.lists(st.integers(0, max(0, found.n_items - 1)), unique=True, max_size=found.n_items))
    chosen = moved.select(np.array(sorted(kept), np.int64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_columns_, "AT_ONCE", 64 * data.draw(st.integers(1, 3)))
        patch.setattr(item_columns_, "AT_ONCE_BYTES", data.draw(st.sampled_from([1, 100, 1 << 20])))
        packed, counted = chosen.bitmaps(), chosen.counts()
    assert counted.tolist() == chosen.counts().tolist()
    assert packed.shape == (len(kept), words(len(rows)))
    bits = np.unpackbits(packed.view(np.uint8), axis=1, bitorder="little")[:, : len(rows)]
    for number, item in enumerate(chosen.items):
        assert bits[number].tolist() == [item in row for row in held(moved)]


@given(st.lists(st.tuples(cell, cell), max_size=10), st.integers(1, 2), st.integers(1, 3), st.booleans())
def test_ids_are_encoded_cells_however_many_at_a_time(
    rows: list[tuple[str, str]], columns: int, at_once: int, folded: bool
) -> None:
    how = IdNormalisation(trim=True, case="fold", unicode="NFC") if folded else IdNormalisation()
    wanted = [tuple(map(how.apply, row[:columns])) for row in rows]
    cells = [pa.array([row[place] for row in rows], pa.large_string()) for place in range(columns)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_ids, "AT_ONCE", at_once)
        ids = RowIds(cells, how)
        assert list(ids) == [encode_fields(*(cell.encode() for cell in row)) for row in wanted]
        assert ids.empty() == sum(not all(row) for row in wanted)
        assert ids.repeated() == len(wanted) - len(set(wanted))
    assert ids[::-2] == list(ids)[::-2]
    assert [ids[place] for place in range(len(ids))] == list(ids)


def test_ids_are_compared_where_their_hashes_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_ids, "hash", len, raising=False)
    ids = RowIds([pa.array(["a", "b", "a", "cc", "d", "b"], pa.large_string())])
    assert ids.repeated() == 2


numbers = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-50, max_value=50)


@given(
    st.lists(numbers, min_size=1, max_size=6, unique=True).map(sorted),
    st.lists(st.one_of(numbers, st.none()), max_size=20),
)
def test_cuts_are_closed_below_and_open_above(cuts: list[Decimal], values: list[Decimal | None]) -> None:
    contents = Cells(["id", "age"], [[str(i), "" if v is None else f" {v}"] for i, v in enumerate(values)])
    found = item_columns(table_of(contents), Itemisation(cuts={"age": tuple(cuts)}))
    ends = [None, *cuts, None]
    names = interval_names(tuple(cuts))
    for value, items in zip(values, held(found), strict=True):
        expected = set()
        for low, high, text in zip(ends[:-1], ends[1:], names, strict=True):
            if value is not None and (low is None or low <= value) and (high is None or value < high):
                expected.add(f"age={text}")
        assert items == expected


@given(st.lists(numbers, max_size=40), st.integers(2, 6))
def test_quantiles_part_values_evenly_but_never_equal_ones(values: list[Decimal], parts: int) -> None:
    counts = Counter(values)
    distinct = list(counts)
    cuts = quantile_cuts(distinct, np.array([counts[value] for value in distinct], np.int64), parts)
    ordered = sorted(values)
    wanted = {
        ordered[place] for j in range(1, parts) if (place := ceil(Fraction(j * len(values), parts))) < len(values)
    }
    assert list(cuts) == sorted(wanted - set(ordered[:1]))
    sizes = Counter(interval_of(value, cuts) for value in values)
    assert all(sizes[place] for place in range(len(cuts) + 1)) or not values
    if len(distinct) == len(values) >= parts:
        assert max(sizes.values()) - min(sizes.values()) <= 1


@pytest.mark.parametrize(
    ("cut", "text"),
    [("18", "18"), ("1.50", "1.5"), ("1E+3", "1000"), ("-0.0", "0"), ("1E+60", "1E+60"), ("0.07", "0.07")],
)
def test_cuts_are_written_plainly(cut: str, text: str) -> None:
    assert interval_names((Decimal(cut),)) == [f"(-inf,{text})", f"[{text},inf)"]
