"""Tables in memory as blocks, for the tests of rows in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from anonymize.blocks.table import BlockTable
from anonymize.reading import as_arrow
from anonymize.tables import Table


class TableBlocks:
    """A table cut into pieces: ragged ones, of which some are empty."""

    def __init__(self, data: pa.Table, partitions: int, seed: int = 0) -> None:
        self._data = as_arrow(data)
        cuts = np.sort(np.random.default_rng(seed).integers(0, data.num_rows + 1, partitions - 1))
        self._edges = [0, *cuts.tolist(), data.num_rows]

    @property
    def column_names(self) -> list[str]:
        return list(self._data.column_names)

    def blocks(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        for begin, end in zip(self._edges, self._edges[1:], strict=False):
            yield self._data.select(list(columns)).slice(begin, end - begin)


def in_blocks(table: Table, partitions: int, seed: int = 0) -> BlockTable:
    """A table whose rows were not dropped, in blocks."""
    kinds = {name: column.kind for name, column in table.columns.items()}
    orders = {name: column.domain for name, column in table.columns.items() if column.kind == "ordinal"}
    source = TableBlocks(table.data, partitions, seed)
    return BlockTable.counted(source, source.column_names, table.roles, kinds, orders, "value")
