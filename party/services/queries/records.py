"""Which variable of an auditor belongs to which record of the data as they are now.

Where records have ids, a variable is a value of a record: one that has changed is another variable, and a record that
has moved in the file is known again. Where there are none, records are known by their places, so that the earlier ones
must stay as they are, and new ones may follow.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.errors import ConfigurationError
from mining.data.tables import Column, Table
from party.services.queries.conditions import column_of
from party.services.queries.log import AuditorRow, Bound, QueryLog

_DIGEST_BYTES = 16
_BY_ID = -1  # in the place of the number of records, where they are known by ids
_THERE = b""  # in the place of a value, where records themselves are counted


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of the records.

    Attributes:
        by_record: By record its variable, −1 where it has none.
        of: By variable whose it is: variables of one person share the number of the first of them.
    """

    by_record: NDArray[np.int64]
    of: NDArray[np.int64]


def check_records(log: QueryLog, dataset: str, data: Table, columns: tuple[str, ...]) -> None:
    """Makes sure that records can be known again: by the same ids as ever, or where there are none, by their places.

    Args:
        log: Of the node.
        dataset: Its name.
        data: As it is now.
        columns: Those that may be named in queries.

    Raises:
        ConfigurationError: There are other ids than before, earlier records without ids have changed, or a column is
            missing.
    """
    bound, names = log.bound(dataset), columns
    if bound is not None and (bound.records == _BY_ID or data.ids):
        if bound.records != _BY_ID or tuple(bound.digests) != data.id_columns:
            raise ConfigurationError(
                f"the dataset '{dataset}' had other columns of ids when queries were first answered from it, so that "
                "its records cannot be known again; bring back the id of its section"
            )
        return
    if data.ids:
        log.bind(dataset, Bound(_BY_ID, dict.fromkeys(data.id_columns, "")))
        return
    if bound is not None:
        _check(dataset, data, bound)
        names = (*bound.digests, *(name for name in columns if name not in bound.digests))
    if bound is None or bound.records < data.n_rows or len(names) > len(bound.digests):
        log.bind(dataset, Bound(data.n_rows, {name: _digest(data, name, data.n_rows) for name in names}))


def _check(dataset: str, data: Table, bound: Bound) -> None:
    names = data.column_names
    changed = data.n_rows < bound.records or any(
        name not in names or _digest(data, name, bound.records) != digest for name, digest in bound.digests.items()
    )
    if changed:
        raise ConfigurationError(
            f"the dataset '{dataset}' has changed since queries were first answered from it; without ids, auditing "
            "needs the same rows in the same order, and takes new ones at the end only: bring the rows back"
        )


def _digest(data: Table, name: str, records: int) -> str:
    """Of the first cells of a column."""
    column = column_of(data, name)
    codes = column.codes[:records]
    used = np.unique(codes[codes >= 0])
    places = np.where(codes >= 0, np.searchsorted(used, codes), -1).astype(np.int32)
    part = Column(name, column.values.take(pa.array(used)), places)
    return Table((), (), (part,), records).digest().hex()


def variables(log: QueryLog, row: AuditorRow, data: Table, values: NDArray[np.float64] | None) -> Variables:
    """The variables of an auditor that belong to the records.

    Args:
        log: Which remembers them.
        row: The auditor.
        data: The records.
        values: What is audited of them, NaN where there is nothing; None: that they are there.

    Raises:
        InputDataError: Records have no id, or share one.
    """
    if not data.ids:
        return Variables(np.arange(data.n_rows), np.arange(data.n_rows))
    known = log.variables(row)
    found, fresh = np.full(data.n_rows, -1), []
    present = [True] * data.n_rows if values is None else (~np.isnan(values)).tolist()
    cells = [_THERE] * data.n_rows if values is None else [value.tobytes() for value in values + 0.0]
    for place, (identity, cell) in enumerate(zip(data.row_ids(), cells, strict=True)):
        if present[place]:
            who = _keyed(row, identity)
            key = who + _keyed(row, who + cell)
            if key not in known:
                known[key] = len(known)
                fresh.append(key)
            found[place] = known[key]
    log.remember(row, fresh, len(known) - len(fresh))
    first: dict[bytes, int] = {}
    of = [first.setdefault(key[:_DIGEST_BYTES], number) for key, number in sorted(known.items(), key=itemgetter(1))]
    return Variables(found, np.array(of, np.int64))


def _keyed(row: AuditorRow, message: bytes) -> bytes:
    return hashlib.blake2b(message, key=row.id, digest_size=_DIGEST_BYTES).digest()
