"""Tables in blocks are what they are in memory, under any cut; what is damaged is refused and removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mining.data.formats.table_readers import table_from_arrow
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.partitioned.cores import Cores
from mining.partitioned.processes import Processes
from mining.partitioned.tables.blocks import TableBlock, TableParts, TableView, block_bytes, parts_of
from tests.errors import fails
from tests.mining.partitioned.tables_world import CELL, between, cells, partitioned
from tests.mining.partitioned.world import PARTITIONS, evenly, ragged

pytestmark = pytest.mark.turn(3)

NAMES = ("id", "a", "b")


def table_of(records: Sequence[tuple[str, ...]], ids: tuple[str, ...] = ("id",)) -> Table:
    columns = {name: pa.array([record[place] for record in records], pa.string()) for place, name in enumerate(NAMES)}
    return table_from_arrow(pa.table(columns), ids, "the test")


RECORDS = st.lists(st.tuples(*[CELL] * len(NAMES)), max_size=20)


def held(text: str, table: Table) -> NDArray[np.int64]:
    """By column, how many cells hold a text."""
    places = [(column, column.values.index(pa.scalar(text, pa.large_string())).as_py()) for column in table.columns]
    return np.array([np.count_nonzero((column.codes == place) & (place >= 0)) for column, place in places], np.int64)


@given(RECORDS, st.data())
def test_a_table_in_blocks_is_the_table(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, ...]], draw: st.DataObject
) -> None:
    whole = table_of(records, draw.draw(st.sampled_from([(), ("id",), ("id", "a")])))
    cuts = draw.draw(ragged(len(records)) | st.sampled_from([evenly(len(records), parts) for parts in PARTITIONS]))
    blocks: TableRows = partitioned(whole, cuts, tmp_path_factory.mktemp("blocks"))
    kept = draw.draw(st.permutations(whole.column_names).map(lambda names: names[1:]))
    ids = draw.draw(st.booleans())
    seen: list[tuple[TableRows, TableRows]] = [(blocks, whole), (blocks.only(kept, ids=ids), whole.only(kept, ids=ids))]
    for found, expected in seen:
        assert (found.id_columns, found.column_names) == (expected.id_columns, expected.column_names)
        assert found.n_rows == expected.n_rows
        parts = list(found.parts(cells))
        ((memory,),) = [list(expected.parts(cells))]
        assert [[cell for part in parts for cell in part[place]] for place in range(len(memory))] == memory
        assert list(found.parts(lambda _, first: first)) == cuts[:-1]
        assert found.total(partial(held, "ä")).tolist() == expected.total(partial(held, "ä")).tolist()


def test_parts_in_memory_are_taken_for_nothing() -> None:
    whole = table_of([("1", "x", "y"), ("2", "", "z")])
    view = TableView(("id",), ("b",), (0, 2))
    parts = dict(enumerate(parts_of(whole)))
    assert cells(TableParts(2, parts, "block 0").table(view)) == [["1", "2"], ["y", "z"]]
    beyond = replace(whole, columns=tuple(replace(each, codes=each.codes + 1) for each in whole.columns))
    cut = {place: part[:-1] for place, part in parts.items()}
    for n_rows, wrong in ((3, parts), (2, {0: parts[0]}), (2, cut), (2, dict(enumerate(parts_of(beyond))))):
        with fails("E101"):
            TableParts(n_rows, wrong, "block 0").table(view)


def test_only_what_is_seen_is_read(tmp_path: Path) -> None:
    whole = table_of([("1", "x", "y"), ("2", "", "z")])
    path = tmp_path / "block"
    data = bytearray(block_bytes(whole))
    data[-1] ^= 1  # of the last column
    path.write_bytes(data)
    assert cells(TableView((), ("a",), (1,)).of(TableBlock(path))) == [["x", ""]]
    with fails("E101"):
        TableView((), ("b",), (2,)).of(TableBlock(path))
    assert not path.exists()
    with fails("E101"):
        TableView((), ("a",), (1,)).of(TableBlock(path))


@given(RECORDS, st.data())
def test_a_damaged_block_is_refused_and_removed(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[str, ...]], draw: st.DataObject
) -> None:
    whole = block_bytes(table_of(records))
    path, place = tmp_path_factory.mktemp("blocks") / "block", draw.draw(st.integers(0, len(whole) - 1))
    kind = draw.draw(st.sampled_from(["changed", "cut", "longer"]))
    path.write_bytes(
        {
            "changed": whole[:place] + bytes([whole[place] ^ draw.draw(st.integers(1, 255))]) + whole[place + 1 :],
            "cut": whole[:place],
            "longer": whole + b"\0" * (place + 1),
        }[kind]
    )
    with fails("E101"):
        TableView(("id",), ("a", "b"), (0, 1, 2)).of(TableBlock(path))
    assert not path.exists()


@pytest.mark.parametrize("distinct", [255, 256, 65_535, 65_536])
def test_codes_are_as_short_as_the_dictionary_allows(tmp_path: Path, distinct: int) -> None:
    column = pa.array([*map(str, range(distinct)), ""], pa.string())
    whole = table_from_arrow(pa.table({"a": column}), (), "the test")
    path = tmp_path / "block"
    path.write_bytes(block_bytes(whole))
    (found,) = TableView((), ("a",), (0,)).of(TableBlock(path)).columns
    assert found.values.equals(whole.columns[0].values)
    assert np.array_equal(found.codes, whole.columns[0].codes)
    text = sum(map(len, map(str, range(distinct)))) + 4 * distinct
    width = 1 if distinct < 256 else 2 if distinct < 65_536 else 4
    assert path.stat().st_size - text - width * (distinct + 1) < 200


def two(sources: Sequence[Callable[[], TableBlock]], lengths: Sequence[int]) -> Processes[TableBlock]:
    return Processes(sources, lengths, Cores(2))


def test_processes_count_tables_as_memory_does(tmp_path: Path) -> None:
    records = [(f"p{place}", "ä" if place % 3 else "", str(place % 5)) for place in range(100)]
    whole = table_of(records)
    blocks = partitioned(whole, [0, 0, 40, 100], tmp_path, two)
    try:
        assert blocks.total(partial(held, "ä")).tolist() == [66, 0]
        assert blocks.only(["b"]).total(partial(held, "3")).tolist() == [20]
        assert [cells(between(whole, 0, 0)), cells(between(whole, 0, 40)), cells(between(whole, 40, 100))] == [
            *blocks.parts(cells)
        ]
    finally:
        blocks.close()
