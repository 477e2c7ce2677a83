"""What runs at the workers of a cluster over tables: each row is the part that a block has of one column.

A block begins with a row that has no part: its number of rows, and the names of its columns. So whoever asks for some
columns gets these alone from Spark's cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, Final

import pyarrow as pa

from mining.data.formats.table_readers import arrow_batches
from mining.data.tables import Table
from mining.partitioned.encoding.source import TableSource
from mining.partitioned.spark.values import to_bytes
from mining.partitioned.spark.worker import WITHIN, Batches, Read, Row, Share, numbered, seal_of
from mining.partitioned.tables.blocks import TableParts, parts_of
from mining.partitioned.tables.pieces import pieces_of, table_pieces

HEAD: Final = b""  # `names` of a block's first row; of a part, they are the place of its column


@dataclass(frozen=True, slots=True)
class ReadTables:
    """Blocks of row groups of Parquet files; the number of a share is the `id` of a row.

    Attributes:
        source: The source; its place is that of the share.
        shares: All of them.
        withheld: Patterns of items whose cells are left empty.
    """

    source: TableSource
    shares: Sequence[Share]
    withheld: tuple[str, ...]

    def __call__(self, rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
        """Blocks in parts."""
        for row in rows:
            share = self.shares[row["id"]]
            found = table_pieces(replace(self.source, place=share.path), share.groups)
            yield from _blocks(found, row["id"], self.withheld)


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Blocks of the rows of a query, with `numbered`'s number first; none of a partition without rows.

    Attributes:
        id_columns: The columns that together name a row.
        withheld: Patterns of items whose cells are left empty.
    """

    id_columns: tuple[str, ...]
    withheld: tuple[str, ...]

    def __call__(self, batches: Batches) -> Iterator[Row]:
        """Blocks in parts."""
        share, coming = numbered(batches)
        first = next(coming, None)
        if first is not None:
            read = arrow_batches(first.schema, chain([first], coming), self.id_columns, "The query")
            yield from _blocks(pieces_of(read, self.id_columns, "The query"), share, self.withheld)


@dataclass(frozen=True, slots=True)
class NoRows:
    """The only block of a query without rows, which tells the names of its columns.

    Attributes:
        names: Of all its columns.
        id_columns: The columns that together name a row.
    """

    names: tuple[str, ...]
    id_columns: tuple[str, ...]

    def __call__(self, _rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
        """Its first row, and a part of each column."""
        schema = pa.schema([(name, pa.string()) for name in self.names])
        read = arrow_batches(schema, (), self.id_columns, "The query")
        yield from _blocks(pieces_of(read, self.id_columns, "The query"), 0, ())


def _blocks(found: Iterable[Table], share: int, withheld: Sequence[str]) -> Iterator[Row]:
    for number, piece in enumerate(found):
        columns = tuple(column.without(withheld).occurring() for column in piece.columns)
        table, place = replace(piece, columns=columns), (share << WITHIN) + number
        yield place, table.n_rows, to_bytes(list(table.column_names)), HEAD
        for column, part in enumerate(parts_of(table)):
            yield place, table.n_rows, part, b"%d" % column


def table_seals(rows: Iterator[dict[str, Any]]) -> Iterator[Row]:
    """What identifies each part of each block, one after the other, and the names of its columns."""
    for place, own in groupby(rows, lambda row: row["place"]):
        head, *parts = own
        yield place, head["rows"], b"".join(seal_of(part["value"]) for part in parts), head["value"]


def read_parts(rows: Iterator[dict[str, Any]]) -> Iterator[Read]:
    """The blocks of rows of some columns, those of each one after the other."""
    for place, own in groupby(rows, lambda row: row["place"]):
        head, *parts = own
        found = {int(part["names"]): part["value"] for part in parts}
        seal = seal_of_parts([seal_of(part) for _, part in sorted(found.items())])
        yield Read(place, head["rows"], TableParts(head["rows"], found, f"block {place}"), seal)


def seal_of_parts(seals: Sequence[bytes]) -> bytes:
    """What identifies some parts of a block, by the places of their columns."""
    return seal_of(*seals)
