"""Data as programs hand them over to a simulation: tables of any library, and rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

import numpy as np
import pyarrow as pa

from anonymize.reading import ArrowTable
from jobs.data import Data, DataKind
from link.errors import InputDataError
from link.files.printable import is_text, one_line
from mining.data.formats.table_readers import table_from_arrow
from mining.data.frames import transactions_from_arrow
from mining.data.transactions import Transactions

Rows = Iterable[Iterable[str | int]]
Given = str | os.PathLike[str] | Data | ArrowTable | Rows


def data_of(party: str, given: Given, kind: DataKind, ids: Sequence[str], item: str) -> Data:
    """What a program hands over, as a job takes it.

    Args:
        party: Whose it is.
        given: Data of a job, a table of any library that hands over Arrow's, or for transactions rows.
        kind: What the job needs.
        ids: Columns of ids.
        item: The column of items, in a long table of transactions.

    Raises:
        InputDataError: It is something else, or holds what no job takes.
    """
    if isinstance(given, get_args(Data)):
        return cast(Data, given)
    where = f"the data of {party}"
    if isinstance(given, pa.Array | pa.ChunkedArray):
        given = pa.table({item: given})
    if _is_table(given):
        table = _arrow(party, given)
        return (
            table_from_arrow(table, ids, where)
            if kind == "table"
            else transactions_from_arrow(table, ids[0], item, where)
        )
    return _encode(party, given)


def _is_table(given: object) -> bool:
    """Whether it hands over Arrow's columns; a single column of lists is rows, as for everybody else."""
    return hasattr(given, "__arrow_c_stream__") and len(getattr(given, "shape", ("rows", "columns"))) == len(
        ("rows", "columns")
    )


def _arrow(party: str, given: Any) -> pa.Table:
    try:
        return pa.table(given.sparse.to_dense() if hasattr(given, "sparse") else given)  # as pandas calls it
    except UnicodeEncodeError:
        raise InputDataError(
            f"the data of {party} hold half a character (a lone surrogate); correct or leave it out", party=party
        ) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputDataError(f"the data of {party} cannot be read as a table: {one_line(str(error))}") from None


def _encode(party: str, rows: object) -> Transactions:
    if not isinstance(rows, Iterable):
        raise InputDataError(
            f"the data of {party} is neither the path of a file, nor a table, nor an iterable of rows, but of type "
            f"{type(rows).__name__}",
            party=party,
        )
    if isinstance(rows, np.ndarray) and rows.ndim > 1 and rows.dtype.kind in "biuf" and rows.size and rows.max() <= 1:
        raise InputDataError(
            f"the data of {party} are an array of 0 and 1 without names of items; give a data frame, whose columns "
            "have names",
            party=party,
        )
    encoded = []
    for number, row in enumerate(rows, 1):
        items = None if isinstance(row, str | bytes) or not isinstance(row, Iterable) else [*row]
        if items is None or not all(isinstance(item, str) or _is_number(item) for item in items):
            raise InputDataError(
                f"row {number} of {party} is not a collection of items, which are text or whole numbers; give each "
                "transaction as a list of its items",
                party=party,
            )
        items = [str(item) for item in items]
        if not all(map(is_text, items)):
            raise InputDataError(
                f"row {number} of {party} has an item with half a character (a lone surrogate); correct it, or leave "
                "it out",
                party=party,
            )
        encoded.append(items)
    return Transactions.from_rows(encoded)


def _is_number(item: object) -> bool:
    """Whether it is a whole number, of Python or numpy; truth values are none."""
    return isinstance(item, int | np.integer) and not isinstance(item, bool)
