"""Cells of a column as codes, chunk by chunk as they are read: about a byte a row where there are few values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from link.errors import InputDataError

Codes = NDArray[np.signedinteger[Any]]
"""Places in a list of values, −1 for none, in the shortest type that has room for all of them."""


def code_type(values: int) -> type[np.signedinteger[Any]]:
    """The shortest type of codes for so many values."""
    return next(kind for kind in (np.int8, np.int16, np.int32) if values <= np.iinfo(kind).max)


class CodedCells:
    """A column while it is read. Each chunk has a dictionary of its own, until all are there."""

    __slots__ = ("_chunks", "_dictionaries", "_name", "n_rows")

    def __init__(self, name: str) -> None:
        """A column without rows, of which errors give the name."""
        self._name, self.n_rows = name, 0
        self._chunks: list[Codes] = []
        self._dictionaries: list[pa.Array] = []

    def add(self, cells: pa.Array) -> None:
        """Takes the next cells.

        Args:
            cells: Strings, or a dictionary of strings. Null and the empty text are empty cells.

        Raises:
            InputDataError: A cell is not UTF-8 text.
        """
        encoded = cells.dictionary_encode()
        values = checked_texts(encoded.dictionary.cast(pa.large_string()), self._name)
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self._chunks.append(codes.astype(code_type(len(values))))
        self._dictionaries.append(values)
        self.n_rows += len(codes)

    def listed(self) -> tuple[pa.Array, Codes]:
        """The distinct values in ascending order of UTF-8 bytes, none of them empty, and the codes of all rows.

        To be called once; chunks are given up one by one.
        """
        found = pa.chunked_array(self._dictionaries, pa.large_string()).dictionary_encode().combine_chunks()
        values = found.dictionary
        order = pc.array_sort_indices(values).to_numpy()
        begins_empty = int(bool(len(values)) and values[int(order[0])].as_py() == "")
        rank = np.empty(len(values), np.int64)
        rank[order] = np.arange(len(values)) - begins_empty
        places = rank[found.indices.to_numpy(zero_copy_only=False)]
        codes = np.empty(self.n_rows, code_type(len(values)))
        row = start = 0
        self._chunks.reverse()
        for values_of_chunk in self._dictionaries:
            chunk, stop = self._chunks.pop(), start + len(values_of_chunk)
            table = np.append(places[start:stop], -1).astype(codes.dtype)
            codes[row : row + len(chunk)] = table[chunk]
            row, start = row + len(chunk), stop
        self._dictionaries.clear()
        return values.take(pa.array(order[begins_empty:])), codes


def checked_texts(texts: pa.Array, name: str) -> pa.Array:
    """The same texts, if Arrow holds them as UTF-8: not all sources of Arrow's arrays see to that.

    Raises:
        InputDataError: They are not; `name` is that of the column.
    """
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise InputDataError(f'The column "{name}" holds text that is not UTF-8; re-encode it.') from None
    return texts
