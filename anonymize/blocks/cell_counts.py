"""Distinct cells of one column with their rows, of a table that comes in blocks."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from link.errors import ConfigurationError

MOST_CELLS: Final = 1 << 20


class CellCounts:
    """How many rows hold each cell of a column; all distinct cells are in memory.

    Args:
        name: Of the column.
        most: How many distinct cells there may be.
    """

    def __init__(self, name: str, most: int = MOST_CELLS) -> None:
        self._name, self._most = name, most
        self._values: pa.Array | None = None
        self._counts = np.zeros(0, np.int64)

    def add(self, cells: pa.ChunkedArray) -> None:
        """Counts the cells of a block, which are no dictionary.

        Raises:
            ConfigurationError: The column has too many distinct cells.
        """
        if not len(cells) and self._values is not None:
            return
        found = pc.value_counts(cells)
        values, counts = found.field("values"), found.field("counts").to_numpy()
        if self._values is not None:
            both = pa.concat_arrays([self._values, values])
            coded = pc.dictionary_encode(both, null_encoding="encode")
            values = coded.dictionary
            counts = np.bincount(coded.indices.to_numpy(), np.concatenate([self._counts, counts]), len(values))
        if len(values) > self._most:
            raise ConfigurationError(
                f'Column "{self._name}" has more than {self._most:,} different values, which is too many for a '
                'quasi-identifier or a sensitive column of rows in blocks; round it, or take engine = "memory".'
            )
        self._values, self._counts = values, counts.astype(np.int64)

    @property
    def values(self) -> pa.Array:
        """The distinct cells, in the order of their first rows; a missing one is null."""
        assert self._values is not None
        return self._values

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each."""
        return self._counts
