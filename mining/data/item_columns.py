"""A table's cells as items: `column=value`, or `column=interval` where a job puts a column's numbers into intervals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError, shareable
from mining.data.bitmaps import Bitmaps, mark, words
from mining.data.discretisation import Cuts, interval_names, interval_of, number_of, quantile_cuts
from mining.data.tables import Column, Table
from mining.data.transactions import matching
from mining.limits import MAX_ITEM_BYTES


@dataclass(frozen=True, slots=True)
class Itemisation:
    """How a job turns cells into items.

    Attributes:
        cuts: By column, where its numbers are cut.
        quantiles: By column, into how many intervals of about as many rows its numbers are put; where it is cut follows
            from the rows, and is disclosed with the names of items.
        exclude: Patterns of items that are left out, as in `fnmatch.fnmatchcase`.
    """

    cuts: Mapping[str, Cuts] = field(default_factory=dict)
    quantiles: Mapping[str, int] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()

    @property
    def numeric(self) -> frozenset[str]:
        """The columns whose cells have to be numbers."""
        return frozenset((*self.cuts, *self.quantiles))


@dataclass(frozen=True, eq=False, slots=True)
class ItemColumns:
    """Rows of items in columns: of each column, a row has one item or none.

    Attributes:
        items: Distinct, in ascending order of UTF-8 bytes.
        columns: By item, the column of the table that it is of.
        codes: Shape (columns of the table, rows): the position in `items` of a cell's item; −1 where it has none.
    """

    items: tuple[str, ...]
    columns: tuple[str, ...]
    codes: NDArray[np.int32]

    @property
    def n_rows(self) -> int:
        """Number of rows, those without items among them."""
        return int(self.codes.shape[1])

    @property
    def n_items(self) -> int:
        """Number of items, those that no row holds among them."""
        return len(self.items)

    def counts(self) -> NDArray[np.int64]:
        """Number of rows that hold each item."""
        found = np.zeros(self.n_items + 1, np.int64)  # the last one counts empty cells
        for column in self.codes:
            found += np.bincount(column.view(np.uint32).clip(max=self.n_items), minlength=self.n_items + 1)
        return found[:-1]

    def at(self, rows: NDArray[np.int64]) -> ItemColumns:
        """The same items over other rows.

        Args:
            rows: Positions of rows, in any order; −1 for a row that is absent, which holds nothing.
        """
        return ItemColumns(self.items, self.columns, _taken(self.codes, rows))

    def select(self, numbers: NDArray[np.int64]) -> ItemColumns:
        """The same rows with some of the items only.

        Args:
            numbers: Positions in `items`, ascending.
        """
        target = np.full(self.n_items + 1, -1, np.int32)
        target[numbers] = np.arange(len(numbers), dtype=np.int32)
        chosen = numbers.tolist()
        return ItemColumns(
            tuple(self.items[number] for number in chosen),
            tuple(self.columns[number] for number in chosen),
            target[self.codes],
        )

    def without(self, patterns: Sequence[str]) -> ItemColumns:
        """The same rows without the items that match a pattern, as in `fnmatch.fnmatchcase`."""
        removed = matching(self.items, patterns)
        if not removed:
            return self
        kept = (number for number, item in enumerate(self.items) if item not in removed)
        return self.select(np.fromiter(kept, np.int64))

    def nameable(self) -> ItemColumns:
        """The same rows without items whose names are longer than any that may be named."""
        kept = [number for number, item in enumerate(self.items) if len(item.encode()) <= MAX_ITEM_BYTES]
        return self if len(kept) == self.n_items else self.select(np.array(kept, np.int64))

    def bitmaps(self) -> Bitmaps:
        """Shape (n_items, words(n_rows)): bit r of an item's row says whether row r holds the item.

        Takes an eighth of a byte for each item and row: `select` the frequent items first.
        """
        packed = np.zeros((self.n_items, words(self.n_rows)), np.uint64)
        for column in self.codes:
            rows = np.flatnonzero(column >= 0)
            mark(packed, column[rows], rows)
        return packed

    def __repr__(self) -> str:
        return f"ItemColumns(rows={self.n_rows}, items={self.n_items}, columns={len(self.codes)})"


def item_columns(table: Table, how: Itemisation, rows: NDArray[np.int64] | None = None) -> ItemColumns:
    """The items of a table.

    A cell makes no item where it is no number, in a column that the job puts into intervals, or where the item's name
    would be longer than any that may be named. To refuse either would reveal a row, and the job chooses the columns.

    Args:
        table: The table.
        how: What the job says of items. It may name columns that other parties have.
        rows: Positions of rows, in any order; −1 for a row that is absent, which holds nothing and is no part of
            quantiles. All rows in their order by default.
    """
    names: list[str] = []
    columns: list[str] = []
    parts: list[NDArray[np.int32]] = []
    for column in table.columns:
        codes = column.codes if rows is None else _taken(column.codes, rows)
        values, codes = (
            _intervals(column, codes, how) if column.name in how.numeric else (column.values.to_pylist(), codes)
        )
        parts.append(np.where(codes < 0, np.int32(-1), codes + np.int32(len(names))))
        names += [f"{column.name}={value}" for value in values]
        columns += [column.name] * len(values)
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.full(len(names) + 1, -1, np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    n_rows = table.n_rows if rows is None else len(rows)
    codes = np.empty((len(parts), n_rows), np.int32)
    for place, part in enumerate(parts):
        codes[place] = rank[part]
    found = ItemColumns(tuple(names[index] for index in order), tuple(columns[index] for index in order), codes)
    return found.without(how.exclude).nameable()


def check_columns(columns: Mapping[str, Collection[str]], numeric: Iterable[str]) -> None:
    """Refuses tables that a vertical job cannot join, where the columns of all parties are known.

    Args:
        columns: By party, the names of its columns without those of ids.
        numeric: The columns that the job puts into intervals.

    Raises:
        ConfigurationError: Two parties have a column of one name, or nobody has a column that the job names.
    """
    holder: dict[str, str] = {}
    for party, names in columns.items():
        for name in names:
            other = holder.setdefault(name, party)
            if other != party:
                raise shareable(
                    ConfigurationError(
                        f"{other} and {party} both have the column '{name}'; in a vertical job every column is at one "
                        'party: leave it out at one of them, or use partition = "horizontal"'
                    )
                )
    for name in numeric:
        if name not in holder:
            raise shareable(
                ConfigurationError(
                    f"the job puts numbers of the column '{name}' into intervals, and no party has that column; "
                    "check the spelling"
                )
            )


def _taken(codes: NDArray[np.int32], rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Codes at positions along the last axis; −1 at −1."""
    if not codes.shape[-1]:
        return np.full((*codes.shape[:-1], len(rows)), -1, np.int32)
    found = np.take(codes, rows, axis=-1)
    found[..., rows < 0] = -1
    return found


def _intervals(column: Column, codes: NDArray[np.int32], how: Itemisation) -> tuple[list[str], NDArray[np.int32]]:
    """The intervals of a column of numbers, and which one each row's cell is in."""
    read = [number_of(text) for text in column.values.to_pylist()]
    is_number = np.array([number is not None for number in read], bool)
    held = np.bincount(codes[codes >= 0], minlength=len(read)) * is_number
    numbers = [Decimal(0) if number is None else number for number in read]  # counted for no row where it is none
    cuts = how.cuts.get(column.name)
    if cuts is None:
        cuts = quantile_cuts(numbers, held, how.quantiles[column.name])
    table = np.fromiter((interval_of(number, cuts) for number in numbers), np.int32, len(numbers))
    table = np.where(is_number, table, np.int32(-1))
    return interval_names(cuts), np.append(table, np.int32(-1))[codes]
