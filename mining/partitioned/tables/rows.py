"""A table that lies in blocks: what is seen of it is a choice of columns, and only these are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mining.data.row_ids import AS_THEY_ARE, IdNormalisation, check_has_ids, check_ids
from mining.data.tables import Table
from mining.partitioned.runner import Anywhere, Runner
from mining.partitioned.tables.blocks import TableView, Viewed
from mining.partitioned.tables.ids import StoredIds

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")


class PartitionedTable:
    """A party's table in blocks, as `mining.data.table_rows.TableRows`.

    Args:
        runner: Where it is counted.
        view: What is seen of it.
        sources: The blocks, as the runner has them: their ids are read here.
        value_counts: Gives the distinct texts of a column of all rows, and in how many rows each is, as the encoder
            counted.
        digest: Equal where the encoded rows are equal, in the same order.
    """

    def __init__(
        self,
        runner: Runner[TableView, Table],
        view: TableView,
        sources: Sequence[Callable[[], Viewed]],
        value_counts: Callable[[str], tuple[pa.Array, NDArray[np.int64]]],
        digest: bytes,
    ) -> None:
        self._runner, self._view, self._value_counts, self._digest = runner, view, value_counts, digest
        self._sources = sources

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns that together name a row."""
        return self._view.id_columns

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, those of ids not among them."""
        return self._view.columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self._runner.lengths)

    def only(self, columns: Sequence[str], *, ids: bool = False) -> PartitionedTable:
        """The same rows with some of their columns, in this order; see `mining.data.table_rows.TableRows`."""
        view = self._view
        n_ids, place = len(view.id_columns), dict(zip(view.columns, view.places[len(view.id_columns) :], strict=True))
        kept = n_ids if ids else 0
        places = (*view.places[:kept], *(place[name] for name in columns))
        seen = TableView(view.id_columns[:kept], tuple(columns), places)
        return PartitionedTable(self._runner, seen, self._sources, self._value_counts, self._digest)

    def row_ids(self, normalisation: IdNormalisation = AS_THEY_ARE) -> StoredIds:
        """The rows' ids in an injective encoding; see `mining.data.table_rows.TableRows`.

        Raises:
            InputDataError: There is no column of ids, rows have no id or share one, or a block is damaged.
        """
        check_has_ids(self.id_columns)
        n_ids = len(self.id_columns)
        view = TableView(self.id_columns, (), self._view.places[:n_ids])
        blocks = [partial(_seen, view, source) for source in self._sources]
        ids = StoredIds(blocks, self._runner.lengths, normalisation)
        check_ids(ids, self.id_columns, normalisation)
        return ids

    def value_counts(self, column: str) -> tuple[pa.Array, NDArray[np.int64]]:
        """The distinct texts of a column, and in how many rows each is; see `mining.data.table_rows.TableRows`.

        Raises:
            InputDataError: They are damaged on the disk.
        """
        return self._value_counts(column)

    def total(self, kernel: Callable[[Table], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows; see `mining.data.table_rows.TableRows`."""
        return self._runner.total(self._view, Anywhere(kernel))

    def parts(self, kernel: Callable[[Table, int], R]) -> Iterator[R]:
        """What a kernel gives for each block; see `mining.data.table_rows.TableRows`."""
        return self._runner.parts(self._view, kernel)

    def digest(self) -> bytes:
        """A digest of the table as it was encoded: that of the same table in memory."""
        return self._digest

    def close(self) -> None:
        """Ends what counts it, at once; nothing more can be asked of this table nor of others made from it."""
        self._runner.close()

    def __repr__(self) -> str:
        return f"PartitionedTable(rows={self.n_rows}, ids={list(self.id_columns)}, columns={list(self.column_names)})"


def _seen(view: TableView, source: Callable[[], Viewed]) -> Table:
    return view.of(source())
