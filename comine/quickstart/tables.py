"""Tables as transactions: what a row has in each column is an item, `column=value`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from link.errors import InputDataError
from mining.data.loading import load_table
from mining.data.source_options import PLAIN, SourceOptions
from mining.data.tables import Table
from mining.data.transactions import Transactions

_MOST_VALUES: Final = 50  # of a column, whose items are then too rare to be of use


def rows_of_table(
    path: Path, separator: str | None, tell: Callable[[str], None], options: SourceOptions = PLAIN
) -> Transactions | None:
    """The rows of a file of CSV that looks like a table; None where its lines look like lists of items.

    A table has as many cells in each line, and a first line of names, none of which is a cell below it.
    """
    try:
        table = load_table(path, "csv", separator=separator, id_columns=(), options=options)
    except InputDataError:
        return None
    values = {column.name: column.values.to_pylist() for column in table.columns}
    if len(values) < 2 or any(name in found for name, found in values.items()):
        return None
    left_out = [name for name, found in values.items() if len(found) > _MOST_VALUES or len(found) == table.n_rows > 1]
    if len(left_out) == len(values):
        return None
    tell(f"{path}: it has a first line of names, so it is taken as a TABLE, each cell as an item column=value")
    if left_out:
        tell(f"  left out, since their cells differ too much: {', '.join(left_out)}")
    return _as_items(table, frozenset(left_out))


def columns_of(rows: Transactions) -> frozenset[str]:
    """The columns of a table, of which there are items."""
    return frozenset(item.partition("=")[0] for item in rows.items)


def _as_items(table: Table, left_out: frozenset[str]) -> Transactions:
    items: list[str] = []
    pieces: list[tuple[NDArray[np.integer], NDArray[np.integer]]] = []
    for column in table.columns:
        if column.name in left_out:
            continue
        held = np.flatnonzero(column.codes >= 0)
        pieces.append((held, column.codes[held].astype(np.int64) + len(items)))
        items += [f"{column.name}={value}" for value in column.values.to_pylist()]
    return Transactions.from_pieces(items, pieces, table.n_rows)
