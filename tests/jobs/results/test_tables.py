"""CSV by columns says the same as the csv and json modules."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from jobs.results import tables
from jobs.results.tables import csv_chunks, readable

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
ROW = st.tuples(st.lists(TEXT, max_size=4), st.none() | st.integers(0, 2**62), st.none() | st.floats(allow_nan=False))


@given(st.lists(ROW, max_size=12))
def test_the_csv_module_reads_back_what_was_written(rows: list[tuple[list[str], int | None, float | None]]) -> None:
    lists, counts, floats = zip(*rows, strict=True) if rows else ((), (), ())
    table = pa.table(
        {
            "itemset": pa.array(lists, pa.list_(pa.string())),
            "count": pa.array(counts, pa.int64()),
            "lift": pa.array(floats, pa.float64()),
        }
    )
    text = b"".join(csv_chunks(table)).decode()
    assert text.count("\n") == len(rows) + 1
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [json.loads(row["itemset"]) for row in read] == list(lists)
    assert [int(row["count"]) if row["count"] else None for row in read] == list(counts)
    assert [float(row["lift"]) if row["lift"] else None for row in read] == list(floats)


def test_long_tables_are_written_in_batches(monkeypatch: object) -> None:
    monkeypatch.setattr(tables, "BATCH_ROWS", 3)  # type: ignore[attr-defined]
    table = pa.table({"itemset": [[str(n)] for n in range(10)], "length": range(10)})
    chunks = list(csv_chunks(table))
    assert len(chunks) == 5
    assert b"".join(chunks).decode().splitlines()[-1] == '"[""9""]",9'


def test_tables_for_people_have_items_joined_and_no_formula() -> None:
    rules = {"antecedent": [["=1+1", "a"], ["b"]], "consequent": [["c"], ["-d", "+e"]], "lift": [2.0, 1.5]}
    read = list(csv.reader(io.StringIO(b"".join(csv_chunks(readable(pa.table(rules)))).decode(), newline="")))
    assert read == [
        ["antecedent", "consequent", "lift", "antecedent_json", "consequent_json"],
        ["'=1+1, a", "c", "2", '["=1+1", "a"]', '["c"]'],
        ["b", "'-d, +e", "1.5", '["b"]', '["-d", "+e"]'],
    ]
