"""Tables in memory, cut into blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from hypothesis import strategies as st

from mining.data.tables import Column, Table
from mining.partitioned.in_process import InProcess
from mining.partitioned.runner import Runner
from mining.partitioned.tables.blocks import TableBlock, TableView, block_bytes
from mining.partitioned.tables.rows import PartitionedTable

CELL = st.sampled_from(["a", "b", "ä", "🥖", "c,d", 'q"', "e f", "two\nlines", "007", "7", "zz", ""])

Engine = Callable[[Sequence[Callable[[], TableBlock]], Sequence[int]], Runner[TableView, Table]]


def between(table: Table, start: int, stop: int) -> Table:
    """Some rows, their columns with dictionaries of their own."""
    ids = tuple(pa.concat_arrays([cells[start:stop]]) for cells in table.ids)
    columns = (Column(each.name, each.values, each.codes[start:stop]).occurring() for each in table.columns)
    return Table(table.id_columns, ids, tuple(columns), stop - start)


def partitioned(table: Table, cuts: Sequence[int], folder: Path, engine: Engine = InProcess) -> PartitionedTable:
    """The rows in blocks that end at these cuts."""
    sources = []
    for place, (start, stop) in enumerate(pairwise(cuts)):
        path = folder / f"{place}.block"
        path.write_bytes(block_bytes(between(table, start, stop)))
        sources.append(partial(TableBlock, path))
    places = tuple(range(len(table.ids) + len(table.columns)))
    view = TableView(table.id_columns, table.column_names, places)
    lengths = [stop - start for start, stop in pairwise(cuts)]
    return PartitionedTable(engine(sources, lengths), view, sources, table.value_counts, table.digest())


def cells(table: Table, _first: int = 0) -> list[list[str]]:
    """By column, those of ids first, the cells of all rows."""
    found = [texts.to_pylist() for texts in table.ids]
    return found + [[([*each.values.to_pylist(), ""])[code] for code in each.codes.tolist()] for each in table.columns]
