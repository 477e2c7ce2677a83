"""Tables as CSV, column by column: lists of strings become JSON arrays, missing values become empty cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_BATCH_ROWS: Final = 1 << 17  # keeps each batch far below the 2 GiB of an Arrow string array
_JSON_END: Final = ']"'


def csv_chunks(table: pa.Table) -> Iterator[bytes | memoryview]:
    """The table as UTF-8 CSV with a header and lines ended by a newline, in chunks.

    Args:
        table: Columns of integers, floats and lists of strings. Floats are written with the fewest digits that give
            the same float again.
    """
    yield (",".join(table.column_names) + "\n").encode()
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        cells = [_cells(column) for column in batch.columns]
        cells[-1] = pc.binary_join_element_wise(cells[-1], "\n", "", null_handling="replace", null_replacement="")
        lines = pc.binary_join_element_wise(*cells, ",", null_handling="replace", null_replacement="")
        yield _text(lines)


def json_arrays(column: pa.ListArray) -> pa.StringArray:
    """Each list of strings as a JSON array, not escaped for CSV."""
    return _join(column, [json.dumps(text, ensure_ascii=False) for text in _dictionary(column)], "[", "]")


def _cells(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        quoted = [json.dumps(text, ensure_ascii=False).replace('"', '""') for text in _dictionary(column)]
        return _join(column, quoted, '"[', _JSON_END)
    return pc.cast(column, pa.string())


def _dictionary(column: pa.ListArray) -> list[str]:
    distinct: list[str] = column.flatten().dictionary_encode().dictionary.to_pylist()
    return distinct


def _join(column: pa.ListArray, written: list[str], begin: str, end: str) -> pa.StringArray:
    codes = column.flatten().dictionary_encode().indices
    offsets = pc.subtract(column.offsets, column.offsets[0])
    lists = pa.ListArray.from_arrays(offsets, pa.array(written, pa.string()).take(codes))
    return pc.binary_join_element_wise(begin, pc.binary_join(lists, ", "), end, "")


def _text(lines: pa.StringArray) -> memoryview:
    """All strings of an array, one after the other, without a copy."""
    _, offsets, data = lines.buffers()
    bounds = memoryview(offsets).cast("i")
    return memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]]
