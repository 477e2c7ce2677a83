"""A party's table, wherever its rows lie: in this process's memory, or in blocks that other processes count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mining.data.row_ids import AS_THEY_ARE, IdNormalisation, Ids
from mining.data.tables import Table

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")


class TableRows(Protocol):
    """What jobs ask of a party's table: `Table` in memory, `mining.partitioned.tables.rows.PartitionedTable`.

    A *kernel* is a picklable callable that gets rows in memory: all of them, or those of one block at a time, perhaps
    in another process. Each block has dictionaries of its own, so what a kernel gives follows from the texts of cells
    and never from their codes. What it refuses it counts, so that an error tells of all rows.
    """

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns that together name a row."""

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, those of ids not among them."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def only(self, columns: Sequence[str], *, ids: bool = False) -> Self:
        """The same rows with some of their columns, in this order; of blocks, the others are not read.

        Args:
            columns: Of `column_names`, distinct.
            ids: Whether the columns of ids are kept.
        """

    def row_ids(self, normalisation: IdNormalisation = AS_THEY_ARE) -> Ids:
        """The rows' ids in an injective encoding; of blocks, they are read when they are asked for.

        Args:
            normalisation: What is done to ids first, equal at all parties of a job.

        Raises:
            InputDataError: There is no column of ids, or rows have no id or share one; the sentence says how many.
        """

    def value_counts(self, column: str) -> tuple[pa.Array, NDArray[np.int64]]:
        """The distinct texts of a column, and in how many rows each is; the rest of the rows have empty cells.

        Args:
            column: Of `column_names`.

        Returns:
            The texts in ascending order of UTF-8 bytes, Arrow's large strings, none of them empty.
        """

    def total(self, kernel: Callable[[Table], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows, which is the sum of what it gives for any blocks of them.

        Args:
            kernel: Gives arrays of one shape and type.
        """

    def parts(self, kernel: Callable[[Table, int], R]) -> Iterator[R]:
        """What a kernel gives for each block, in the order of the rows.

        Args:
            kernel: Gets a block and the number of its first row among all.
        """
