"""Sources that are not what they should be: one sentence each, whatever the format, and no fault of comine's own."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonymize.verification.rows import read_csv
from link.errors import InputDataError
from mining.data.loading import FORMATS, load_table, load_transactions
from mining.data.source_format import guess_format
from mining.data.transactions import Transactions
from mining.hiding.hide import sanitise
from mining.hiding.sensitive import SensitiveRule, Thresholds
from tests.errors import fails

TEXTS = {
    "nothing": b"",
    "ends of lines": b"\n\n",
    "a header": b"id,item\n",
    "a zero byte": b"a\0b\n",
    "UTF-16": "id,item\n1,a\n".encode("utf-16"),
    "UTF-16 without mark": "id,item\n1,a\n".encode("utf-16-le"),
    "UTF-32": "id,item\n1,a\n".encode("utf-32"),
    "Latin-1": b"id,item\n1,\xe4\n",
    "another separator": b"id;item\n1;a\n2;b\n",
    "a huge cell": b"id,item\n1," + b"x" * 300_000 + b"\n2,b\n",
    "a huge cell in quotes": b'id,item\n1,"' + b"x\n" * 200_000 + b'"\n2,b\n',
    "a huge header": b"id," + b"x" * 300_000 + b"\n2,1\n",
    "a column twice": b"id,item,item\n1,a,b\n",
    "a line too short": b"id,item\n1,a\n2\n",
    "an open quote": b'id,item\n1,"a\n',
    "a quote within": b'id,item\n1,a"b\n"x"y,1\n',
    "half a gzip file": gzip.compress(b"id,item\n1,a\n")[:-5],
    "no gzip file": b"\x1f\x8b\x08\0zzzz",
    "gzip twice": gzip.compress(gzip.compress(b"id,item\n1,a\n")),
    "a spreadsheet": b"PK\x03\x04[Content_Types].xml",
    "two marks": b"\xef\xbb\xbf\xef\xbb\xbfid,item\n1,a\n",
    "a mark": b"\xef\xbb\xbf",
    "two kinds of ends": b"id,item\n1,a\r2,b\n",
    "one column": b"id\n1\n2\n",
    "a column without a name": b"id,,item\n1,2,3\n",
    "quotes": b'"""""\n',
    "no id": b"id,item\n,a\n",
}
BAD = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
TABLES = {
    "no id": pa.table({"id": pa.array([1, None]), "item": ["a", "b"]}),
    "bytes": pa.table({"id": [1, 2], "item": [b"\xff", b"b"]}),
    "structures": pa.table({"id": [1], "item": [{"a": 1}]}),
    "nothing": pa.table({}),
    "lists of lists": pa.table({"x": [[["a"]]]}),
    "a column twice": pa.Table.from_arrays([pa.array([1]), pa.array(["a"]), pa.array(["b"])], ["id", "item", "item"]),
    "lists twice": pa.Table.from_arrays([pa.array([["a"]]), pa.array([["b"]])], ["x", "x"]),
    "truth twice": pa.Table.from_arrays([pa.array([True]), pa.array([True])], ["x", "x"]),
    "no UTF-8": pa.table({"id": [1], "item": BAD}),
    "no UTF-8 in lists": pa.table({"x": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), BAD)}),
    "spans of time": pa.table({"id": [1, 2], "item": pa.array([1, 2], pa.duration("s"))}),
}


def refusal(read: Callable[[], object]) -> str | None:
    """What is told of a source that cannot be read; None where it can. Any other exception is a mistake."""
    try:
        read()
    except InputDataError as error:
        return error.message
    return None


@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
def test_text(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    readers = [lambda form=form: load_transactions(path, form) for form in FORMATS if form != "sql"]
    readers += [lambda: load_table(path, "csv"), lambda: load_table(path, "parquet"), lambda: read_csv(path)]
    readers += [lambda: guess_format(str(path)), lambda: guess_format(str(path), "table")]
    for read in readers:
        told = refusal(read)
        assert told is None or (str(path) in told and len(told) < 1000)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("cut", [0, 10])
def test_parquet(table: pa.Table, cut: int, tmp_path: Path) -> None:
    file = io.BytesIO()
    pq.write_table(table, file)
    path = tmp_path / "data"
    path.write_bytes(file.getvalue()[: len(file.getvalue()) - cut])
    for read in (load_transactions, load_table):
        told = refusal(partial(read, path, "parquet"))
        assert told is None or str(path) in told or "column" in told


@pytest.mark.parametrize("name", ["a column twice", "lists twice", "truth twice"])
def test_a_column_twice_is_told(name: str, tmp_path: Path) -> None:
    pq.write_table(TABLES[name], tmp_path / "data")
    with fails("E101"):
        load_transactions(tmp_path / "data", "parquet")


def test_a_cell_that_is_wrong_behind_one_that_is_huge(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(TEXTS["a huge cell"])
    with fails("E101"):
        load_transactions(tmp_path / "data", "wide")


def test_rules_are_not_hidden_among_itemsets_without_end() -> None:
    data = Transactions.from_rows([[f"i{k}" for k in range(5000)]])
    with fails("E100"):
        sanitise(data, [SensitiveRule.parse("i1 -> i2")], Thresholds(1, Decimal(0)), "bba", "rule")
