"""`anonymize.uniqueness` for tables in blocks: columns that point at rows or persons by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonymize.blocks.counted_rows import CountedRows
from anonymize.blocks.table import BlockTable, CountedColumn
from anonymize.columns import missing
from anonymize.release import plain
from anonymize.uniqueness import Rare, Repeated, warnings_of


def repeated(blocks: Iterable[pa.Table], identifiers: Sequence[str], scratch: Path) -> Iterator[Repeated]:
    """Identifiers of which values have several rows.

    Args:
        blocks: Rows with these columns.
        identifiers: Columns that name a person.
        scratch: A folder for what does not fit memory.
    """
    counted = {name: CountedRows(scratch) for name in identifiers}
    for block in blocks:
        for name, each in counted.items():
            each.add(_known(plain(block.select([name]))).drop_null())
    for name, each in counted.items():
        several = values = most = 0
        for _, rows in each.sorted():
            several += int((rows > 1).sum())
            values += len(rows)
            most = max(most, int(rows.max(initial=0)))
        if several:
            yield Repeated(name, several, values, most)


def rare(
    blocks: Iterable[pa.Table], columns: Sequence[str], least: int, scratch: Path, *, together: bool = True
) -> list[Rare]:
    """Of each column, and of all of them together, how many rows stand out; see `uniqueness.rare`.

    Args:
        blocks: Rows with these columns.
        columns: That are released as they are.
        least: How many rows must have a value so that it stands out no more.
        scratch: A folder for what does not fit memory.
        together: Whether all columns are also taken together.
    """
    if not columns:
        return []
    sets = [(name,) for name in columns] + ([tuple(columns)] if together and len(columns) > 1 else [])
    counted = [CountedRows(scratch) for _ in sets]
    number = 0
    for block in blocks:
        known = _known(block)
        number += block.num_rows
        for names, each in zip(sets, counted, strict=True):
            each.add(known.select(list(names)))
    found = []
    for names, each in zip(sets, counted, strict=True):
        few = 0
        for table, rows in each.sorted():
            empty = np.logical_and.reduce([column.is_null().to_numpy() for column in table.columns])
            few += int(rows[(rows < least) & ~empty].sum())
        if few:
            found.append(Rare(names, Fraction(few, number)))
    return found


def warnings(table: BlockTable, insensitive: Sequence[str], least: int, scratch: Path) -> list[str]:
    """What is to be said of columns that leave as they are; see `uniqueness.warnings`."""
    sensitive = [cast("CountedColumn", table.columns[name]) for name in table.roles.sensitive]
    texts = {each.name: pc.unique(each.cells.cast(pa.string())).to_pylist() for each in sensitive}
    of_sensitive = []
    for each in sensitive:
        known = ~missing(pa.chunked_array([each.cells]))
        few = int(each.rows[(each.rows < least) & known].sum())
        of_sensitive += [Rare((each.name,), Fraction(few, table.n_rows))] if few else []
    return warnings_of(texts, rare(table.rows(insensitive), insensitive, least, scratch), of_sensitive, least)


def _known(block: pa.Table) -> pa.Table:
    """The cells with one form of a missing one."""
    columns = []
    for column in block.columns:
        gaps = missing(column)
        columns.append(pc.if_else(pa.array(gaps), pa.scalar(None, column.type), column) if gaps.any() else column)
    return pa.table(columns, block.column_names)
