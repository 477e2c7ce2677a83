"""A table that a cluster keeps in blocks: counted at the workers; ids are compared here, and read block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mining.data.tables import Table
from mining.partitioned.blocks import MOST_ROWS
from mining.partitioned.spark.cluster import Cluster
from mining.partitioned.spark.runner import OnSpark
from mining.partitioned.spark.table_worker import read_parts, seal_of_parts
from mining.partitioned.spark.worker import NOISE, TABLES, Reader
from mining.partitioned.tables.blocks import TableView, Viewed
from mining.partitioned.tables.rows import PartitionedTable

_AT_ONCE: Final = 1 << 24  # bytes of texts of blocks that wait to be brought together


@dataclass(frozen=True, eq=False, slots=True)
class ClusterTable:
    """A table that a cluster keeps in blocks.

    Attributes:
        cluster: Its own.
        frame: The parts of the blocks.
        places: Of the blocks, ascending, as the rows are.
        seals: By block, what identifies the part of each column.
        lengths: Rows of each.
        id_columns: The columns that together name a row.
        columns: The others.
        digest: Equal where tables are equal, rows in the same order and cut alike.
        origin: What it was encoded from; empty where that is not known.
    """

    needed: ClassVar[tuple[str, ...]] = (NOISE, *TABLES)

    cluster: Cluster
    frame: Any
    places: Sequence[int]
    seals: Sequence[Sequence[bytes]]
    lengths: Sequence[int]
    id_columns: tuple[str, ...]
    columns: tuple[str, ...]
    digest: bytes
    origin: str

    @property
    def read(self) -> Reader:
        """What reads the blocks of a frame of `seen`."""
        return read_parts

    def rows(self, tag: str) -> PartitionedTable:
        """The rows, whose work on the cluster has a tag of its own."""
        runner = OnSpark[TableView](self, tag)
        view = TableView(self.id_columns, self.columns, tuple(range(len(self.id_columns) + len(self.columns))))
        here = _Here(runner, self.lengths)
        sources = [partial(_Block, here, number) for number in range(len(self.places))]
        return PartitionedTable(runner, view, sources, partial(self._value_counts, runner), self.digest)

    def forget(self) -> None:
        """Makes the cluster drop it."""
        self.cluster.forget(self.frame)

    def seen(self, view: TableView) -> tuple[Any, Sequence[bytes]]:
        """The frame of a view's columns, and the seals of its blocks."""
        places = sorted(view.places)
        names = ", ".join(f"'{place}'" for place in places)
        kept = self.frame.where(f"CAST(names AS STRING) IN ('', {names})" if names else "CAST(names AS STRING) = ''")
        return kept, [seal_of_parts([own[place] for place in places]) for own in self.seals]

    def _value_counts(self, runner: OnSpark[TableView], column: str) -> tuple[pa.Array, NDArray[np.int64]]:
        """The distinct texts of a column, and in how many rows each is."""
        view = TableView((), (column,), (len(self.id_columns) + self.columns.index(column),))
        found, size = [_counted(pa.array([], pa.large_string()), np.zeros(0, np.int64))], 0
        for texts, counts in runner.parts(view, counts_of_column):
            found.append(_counted(texts, counts))
            size += found[-1].nbytes
            if size > _AT_ONCE:
                found, size = [_together(found)], 0
        whole = _together(found)
        order = pc.array_sort_indices(whole["text"].combine_chunks())
        texts, counts = (whole[name].combine_chunks().take(order) for name in ("text", "rows"))
        return texts, np.asarray(counts.to_numpy(), np.int64)


class _Here:
    """Blocks that are read from the cluster: short ones together with those behind them, which are asked for next.

    Args:
        runner: Reads them.
        lengths: Rows of each.
    """

    def __init__(self, runner: OnSpark[TableView], lengths: Sequence[int]) -> None:
        self._runner, self._ends = runner, np.cumsum(lengths)
        self._read: dict[tuple[TableView, int], Viewed] = {}

    def block(self, view: TableView, number: int) -> Viewed:
        """A block, with the parts that a view sees."""
        found = self._read.pop((view, number), None)
        if found is None:
            before = int(self._ends[number - 1]) if number else 0
            stop = max(number + 1, int(np.searchsorted(self._ends, before + MOST_ROWS, side="right")))
            found, *others = self._runner.blocks(view, number, stop)
            self._read = {(view, place): each for place, each in enumerate(others, number + 1)}
        return found


@dataclass(frozen=True, eq=False, slots=True)
class _Block:
    """One of them."""

    here: _Here
    number: int

    def table(self, view: TableView) -> Table:
        """What a view sees; errors as of `Runner.total`."""
        return self.here.block(view, self.number).table(view)


def counts_of_column(table: Table, _first: int) -> tuple[pa.Array, NDArray[np.int64]]:
    """The texts of the only column of a block, and in how many of its rows each is."""
    (column,) = table.columns
    return column.values, column.counts()


def _counted(texts: pa.Array, counts: NDArray[np.int64]) -> pa.Table:
    return pa.table({"text": texts, "rows": pa.array(counts, pa.int64())})


def _together(found: Sequence[pa.Table]) -> pa.Table:
    whole = pa.concat_tables(found).group_by("text").aggregate([("rows", "sum")])
    return pa.table({"text": whole["text"], "rows": whole["rows_sum"]})
