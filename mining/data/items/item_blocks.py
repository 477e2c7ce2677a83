"""Items of a table whose rows lie in blocks: counted where they are, and gathered in the order of positions.

Cells stay in blocks, of which some at a time are read; of all rows only their positions are in memory, four bytes each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mining.data.coded_cells import Codes, code_type
from mining.data.items.bitmaps import Bitmaps, mark, words
from mining.data.items.item_columns import Itemisation, ItemRows, named_values, numbered
from mining.data.table_rows import TableRows
from mining.data.tables import Column, Table


@dataclass(frozen=True, eq=False, slots=True)
class ItemBlocks(ItemRows):
    """Rows of items in blocks; what is asked of `ItemColumns` gives the same.

    Attributes:
        table: The blocks.
        values: By column the texts that are known, Arrow's large strings; those of `numbers`.
        places: By row of the table its position among these rows, −1 where it is none of them.
    """

    table: TableRows
    values: tuple[pa.Array, ...]
    places: NDArray[np.int32]

    def counts(self) -> NDArray[np.int64]:
        """Number of rows that hold each item."""
        found = np.zeros(self.n_items, np.int64)
        here = _packed(self.places)
        for values, numbers, column in zip(self.values, self.numbers, self.table.column_names, strict=True):
            held = _held(self.table, column, values, here)
            np.add.at(found, numbers[:-1][numbers[:-1] >= 0], held[numbers[:-1] >= 0])
        return found

    def bitmaps(self) -> Bitmaps:
        """Which row holds which item; see `ItemRows`."""
        found = np.zeros((self.n_items, words(self.n_rows)), np.uint64)
        items = [_items(values, numbers) for values, numbers in zip(self.values, self.numbers, strict=True)]
        chosen = [place for place, (values, _) in enumerate(items) if len(values)]
        table = self.table.only([self.table.column_names[place] for place in chosen])
        kernel = _Codes(tuple(items[place] for place in chosen), code_type(self.n_items))
        first = 0
        for block in table.parts(kernel) if chosen else ():
            places = self.places[first : first + len(block[0])]
            for codes in block:
                rows = np.flatnonzero((codes >= 0) & (places >= 0))
                mark(found, codes[rows], places[rows])
            first += len(places)
        return found

    def __repr__(self) -> str:
        return f"ItemBlocks(rows={self.n_rows}, items={self.n_items}, columns={len(self.values)})"


def item_blocks(table: TableRows, how: Itemisation, rows: NDArray[np.int64], least: int = 1) -> ItemBlocks:
    """The items of a table in blocks, as `item_columns` makes them of one in memory.

    Args:
        table: The table.
        how: What the job says of items.
        rows: By position the row of the table, none of them twice; −1 for one that is absent.
        least: Items in fewer of the table's rows may be left out.
    """
    places = np.full(table.n_rows, -1, np.int32)
    here = np.flatnonzero(rows >= 0)
    places[rows[here]] = here
    packed = _packed(places)
    values, named = list[pa.Array](), []
    for column in table.column_names:
        texts, counts = table.value_counts(column)
        if column not in how.numeric:  # numbers of few rows are in intervals of many
            texts = texts.filter(pa.array(counts >= least))
        values.append(texts)
        named.append(named_values(column, texts.to_pylist(), partial(_held, table, column, texts, packed), how))
    found = ItemBlocks(*numbered(named), len(rows), table.only(table.column_names), tuple(values), places)
    return found.without(how.exclude).nameable()


@dataclass(frozen=True, eq=False, slots=True)
class _Codes:
    """The items of a block's cells, by column; −1 where there is none."""

    items: tuple[tuple[pa.Array, NDArray[np.int32]], ...]
    kind: type[np.signedinteger]

    def __call__(self, table: Table, _first: int) -> list[Codes]:
        return [
            _known(column, values, numbers).astype(self.kind)[column.codes]
            for column, (values, numbers) in zip(table.columns, self.items, strict=True)
        ]


@dataclass(frozen=True, eq=False, slots=True)
class _Held:
    """In how many rows of a block that count each value of its column is.

    Attributes:
        values: That are counted.
        here: A bit for each row of all blocks: whether it counts.
    """

    values: pa.Array
    here: NDArray[np.uint8]

    def __call__(self, table: Table, first: int) -> NDArray[np.int64]:
        (column,) = table.columns
        bits = np.unpackbits(self.here[first >> 3 : first + table.n_rows + 7 >> 3], bitorder="little")
        counted = bits[first & 7 :][: table.n_rows].astype(bool)
        held = np.bincount(column.codes[counted].astype(np.int64) + 1, minlength=len(column.values) + 1)[1:]
        found = np.zeros(len(self.values) + 1, np.int64)
        found[_known(column, self.values, np.arange(len(self.values), dtype=np.int32))[:-1]] += held
        return found[:-1]


def _held(table: TableRows, column: str, values: pa.Array, here: NDArray[np.uint8]) -> NDArray[np.int64]:
    """In how many rows that count each value of a column is."""
    found = np.zeros(len(values), np.int64)
    for part in table.only([column]).parts(_Held(values, here)):
        found += part
    return found


def _known(column: Column, values: pa.Array, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """By value of a block's column its number, −1 where it has none; the last one, that of an empty cell, is −1."""
    known = pc.index_in(column.values, value_set=values).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(np.append(numbers, np.int32(-1))[known], np.int32(-1))


def _items(values: pa.Array, numbers: NDArray[np.int32]) -> tuple[pa.Array, NDArray[np.int32]]:
    """The values that are items, and which ones."""
    held = numbers[:-1] >= 0
    return values.filter(pa.array(held)), numbers[:-1][held]


def _packed(places: NDArray[np.int32]) -> NDArray[np.uint8]:
    """A bit for each row: whether it has a position."""
    return np.packbits(places >= 0, bitorder="little")
