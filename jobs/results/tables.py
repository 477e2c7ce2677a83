"""Tables as CSV, column by column: lists of strings become JSON arrays, missing values become empty cells.

No cell is taken for a formula by a spreadsheet, see `link.files.spreadsheet`. In a JSON array a semicolon before a
sign is written by its number, as JSON allows: a spreadsheet that cuts cells at semicolons finds none there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from link.files.spreadsheet import as_json, quoted
from mining.data.arrow_arrays import text, texts

BATCH_ROWS: Final = 1 << 17  # keeps each batch far below the 2 GiB of an Arrow string array


def csv_chunks(table: pa.Table) -> Iterator[bytes | memoryview]:
    """The table as UTF-8 CSV with a header and lines ended by a newline, in chunks.

    Args:
        table: Columns of integers, floats, strings and lists of strings. Floats are written with the fewest digits that
            give the same float again.
    """
    yield (",".join(map(quoted, table.column_names)) + "\n").encode()
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        cells = [_cells(column) for column in batch.columns]
        cells[-1] = pc.binary_join_element_wise(
            cells[-1], text("\n"), text(""), null_handling="replace", null_replacement=""
        )
        lines = pc.binary_join_element_wise(*cells, text(","), null_handling="replace", null_replacement="")
        yield _text(lines)


def readable(table: pa.Table) -> pa.Table:
    """The table as people open it: lists of strings joined by commas, and as JSON in columns at its end."""
    joined = [
        pc.binary_join(column, text(", ")) if pa.types.is_list(column.type) else column for column in table.columns
    ]
    exact = {f"{name}_json": table[name] for name in table.column_names if pa.types.is_list(table[name].type)}
    return pa.table([*joined, *exact.values()], names=[*table.column_names, *exact])


def write_csv(path: Path, table: pa.Table) -> None:
    """Writes a table as `csv_chunks` gives it."""
    with path.open("wb") as file:
        file.writelines(csv_chunks(table))


def _cells(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        return _json_arrays(column)
    if not pa.types.is_string(column.type):
        return pc.cast(column, pa.string())
    distinct = column.dictionary_encode()
    return texts(map(quoted, distinct.dictionary.to_pylist())).take(distinct.indices)


def _json_arrays(column: pa.ListArray) -> pa.StringArray:
    """Each list of strings as a JSON array in quotes; each distinct string is made JSON once."""
    strings = column.flatten().dictionary_encode()
    quotes = texts(as_json(each).replace('"', '""') for each in strings.dictionary.to_pylist())
    offsets = pc.subtract(column.offsets, column.offsets[0])
    lists = pa.ListArray.from_arrays(offsets, quotes.take(strings.indices))
    return pc.binary_join_element_wise(text('"['), pc.binary_join(lists, text(", ")), text(']"'), text(""))


def _text(lines: pa.StringArray) -> memoryview:
    """All strings of an array, one after the other, without a copy."""
    _, offsets, data = lines.buffers()
    bounds = memoryview(offsets).cast("i")
    return memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]]
