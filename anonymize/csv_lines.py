"""Rows as lines of `release.csv`: each distinct cell is made text once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from anonymize.columns import text_of
from link.files.spreadsheet import quoted


def header(names: list[str]) -> str:
    """The first line."""
    return ",".join(_cell(name, alone=len(names) == 1) for name in names) + "\n"


def lines(rows: pa.Table) -> pa.Array:
    """A line for each row, with its end: cells as text, in quotes only where they need them.

    Args:
        rows: So few that their text stays below 2 GiB; there is a column at least.
    """
    cells = [_cells(column, alone=rows.num_columns == 1) for column in rows.columns]
    cells[-1] = pc.binary_join_element_wise(cells[-1], "\n", "")
    return pc.binary_join_element_wise(*cells, ",")


def _cells(column: pa.ChunkedArray, *, alone: bool) -> pa.Array:
    coded = column.combine_chunks()
    if not pa.types.is_dictionary(coded.type):
        coded = pc.dictionary_encode(coded, null_encoding="encode")
    texts = ["" if value is None else text_of(value) for value in coded.dictionary.to_pylist()]
    return pa.array([_cell(text, alone=alone) for text in texts], pa.string()).take(coded.indices)


def _cell(text: str, *, alone: bool) -> str:
    return quoted(text) if text or alone else text
