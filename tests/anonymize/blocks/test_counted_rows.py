"""Distinct rows are counted and sorted the same in memory and on the disk."""

from __future__ import annotations

import datetime
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.blocks import counted_rows
from anonymize.blocks.counted_rows import CountedRows
from anonymize.grouping import group

CELLS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), st.sampled_from(["", "a", "B", "é", "aa", None])),
    "long": (pa.large_string(), st.sampled_from(["x", "y"])),
    "whole": (pa.int16(), st.integers(-3, 3) | st.none()),
    "real": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), None])),
    "truth": (pa.bool_(), st.booleans() | st.none()),
    "day": (pa.date32(), st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 4))),
    "none": (pa.null(), st.none()),
}


@st.composite
def tables(draw: st.DrawFn) -> list[pa.Table]:
    names = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(*(CELLS[name][1] for name in names)), max_size=40))
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    whole = pa.table([pa.array(cells, CELLS[name][0]) for name, cells in zip(names, columns, strict=True)], names)
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    edges = [0, *cuts, len(rows)]
    return [whole.slice(begin, end - begin) for begin, end in pairwise(edges)]


def as_sorted(whole: pa.Table) -> list[tuple[str, ...]]:
    order = pc.sort_indices(whole, [(name, "ascending") for name in whole.column_names])
    return [tuple(map(_written, row)) for row in zip(*(c.to_pylist() for c in whole.take(order).columns), strict=True)]


def _written(cell: object) -> str:
    return "0.0" if isinstance(cell, float) and cell == 0 else repr(cell)


@pytest.mark.parametrize(("most", "at_once"), [(1, 2), (1, 1000), (4, 3), (1000, 1000)])
@given(blocks=tables())
def test_rows_are_counted_in_order(most: int, at_once: int, blocks: list[pa.Table]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        counted = CountedRows(Path(scratch), most, at_once)
        for block in blocks:
            counted.add(block)
        found: list[tuple[str, ...]] = []
        distinct: list[tuple[str, ...]] = []
        for table, rows in counted.sorted():
            assert table.schema == blocks[0].schema
            each = list(zip(*(map(_written, column.to_pylist()) for column in table.columns), strict=True))
            distinct += each
            for row, number in zip(each, rows.tolist(), strict=True):
                found += [row] * number
    expected = as_sorted(pa.concat_tables(blocks))
    assert found == expected
    assert max(Counter(distinct).values(), default=1) == 1  # of equal rows in several runs there is one sum


def test_few_rows_of_each_run_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 24 runs with 8,000 rows each, merged eight at a time, 8 · 1,536 rows are held at most."""
    counted, held = CountedRows(tmp_path, 7_999, at_once=8), []
    for run in range(24):
        counted.add(pa.table({"number": pa.array(range(run, 8_000 * 24, 24))}))
    monkeypatch.setattr(counted_rows, "HELD_ROWS", 1)

    def seen(columns: Any, rows: int) -> Any:
        held.append(rows)
        return group(columns, rows)

    monkeypatch.setattr(counted_rows, "group", seen)
    numbers = [number for table, _ in counted.sorted() for number in table.column("number").to_pylist()]
    assert numbers == list(range(8_000 * 24))
    assert max(held) <= 8 * 1_536
    assert len(list(tmp_path.iterdir())) == 3
