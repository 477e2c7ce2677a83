"""A table's cells as items: `column=value`, or `column=interval` where a job puts a column's numbers into intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError, shareable
from mining.data.coded_cells import Codes
from mining.data.items.bitmaps import Bitmaps, mark, words
from mining.data.items.discretisation import Cuts, interval_names, interval_of, number_of, quantile_cuts
from mining.data.tables import Table
from mining.data.transactions import matching
from mining.limits import MAX_ITEM_BYTES

AT_ONCE: Final = 1 << 18  # rows
AT_ONCE_BYTES: Final = 32 << 20  # of bitmaps

I = TypeVar("I", bound=np.signedinteger[Any])  # noqa: E741 - of integers


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
class ItemRows(ABC):
    """Rows of items in columns: of each column, a row has one item or none.

    Attributes:
        items: Distinct, in ascending order of UTF-8 bytes.
        columns: By item, the column of the table that it is of.
        numbers: By column of the table, the position in `items` of the item of each of its values, −1 where it has
            none; the last one, which is that of an empty cell, is −1.
        n_rows: Number of rows, those without items among them.
    """

    items: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: tuple[NDArray[np.int32], ...]
    n_rows: int

    @property
    def n_items(self) -> int:
        """Number of items, those that no row holds among them."""
        return len(self.items)

    @abstractmethod
    def counts(self) -> NDArray[np.int64]:
        """Number of rows that hold each item."""

    @abstractmethod
    def bitmaps(self) -> Bitmaps:
        """Shape (n_items, words(n_rows)): bit r of an item's row says whether row r holds the item.

        Takes an eighth of a byte for each item and row: `select` the frequent items first.
        """

    def select(self, numbers: NDArray[np.int64]) -> Self:
        """The same rows with some of the items only.

        Args:
            numbers: Positions in `items`, ascending.
        """
        target = np.full(self.n_items + 1, -1, np.int32)
        target[numbers] = np.arange(len(numbers), dtype=np.int32)
        chosen = numbers.tolist()
        return replace(
            self,
            items=tuple(self.items[number] for number in chosen),
            columns=tuple(self.columns[number] for number in chosen),
            numbers=tuple(target[each] for each in self.numbers),
        )

    def without(self, patterns: Sequence[str]) -> Self:
        """The same rows without the items that match a pattern, as in `fnmatch.fnmatchcase`."""
        removed = matching(self.items, patterns)
        if not removed:
            return self
        kept = (number for number, item in enumerate(self.items) if item not in removed)
        return self.select(np.fromiter(kept, np.int64))

    def nameable(self) -> Self:
        """The same rows without items whose names are longer than any that may be named."""
        kept = [number for number, item in enumerate(self.items) if len(item.encode()) <= MAX_ITEM_BYTES]
        return self if len(kept) == self.n_items else self.select(np.array(kept, np.int64))


@dataclass(frozen=True, eq=False, slots=True)
class ItemColumns(ItemRows):
    """Rows of items in memory.

    The cells stay where the table has them, whatever rows and items are chosen: millions of rows are read in batches.

    Attributes:
        cells: By column of the table, the code of each of the table's rows.
        rows: Which of the table's rows these are, in their order, −1 for one that is absent; None: all.
    """

    cells: tuple[Codes, ...]
    rows: NDArray[np.int64] | None

    @classmethod
    def of(cls, items: tuple[str, ...], columns: tuple[str, ...], codes: NDArray[np.int32]) -> ItemColumns:
        """From the positions of items, shape (columns of the table, rows)."""
        numbers = np.append(np.arange(len(items), dtype=np.int32), np.int32(-1))
        return cls(items, columns, (numbers,) * len(codes), codes.shape[1], tuple(codes), None)

    def codes(self) -> NDArray[np.int32]:
        """Shape (columns of the table, rows): the position in `items` of a cell's item; −1 where it has none."""
        found = np.empty((len(self.cells), self.n_rows), np.int32)
        for part in _parts(self.n_rows, AT_ONCE):
            for place in range(len(self.cells)):
                found[place, part] = self._numbers(place, part)
        return found

    def counts(self) -> NDArray[np.int64]:
        """Number of rows that hold each item."""
        found = np.zeros(self.n_items, np.int64)
        for cells, numbers in zip(self.cells, self.numbers, strict=True):
            held = _held(cells, self.rows, len(numbers) - 1)
            np.add.at(found, numbers[:-1][numbers[:-1] >= 0], held[numbers[:-1] >= 0])
        return found

    def at(self, rows: NDArray[np.int64]) -> ItemColumns:
        """The same items over other rows.

        Args:
            rows: Positions of rows, in any order; −1 for a row that is absent, which holds nothing.
        """
        here = rows if self.rows is None else _taken(self.rows, rows)
        return replace(self, rows=here, n_rows=len(rows))

    def bitmaps(self) -> Bitmaps:
        """Which row holds which item; see `ItemRows`."""
        packed = np.zeros((self.n_items, words(self.n_rows)), np.uint64)
        at_once = max(1, AT_ONCE_BYTES // (8 * max(self.n_items, 1)))  # words
        at_once = min(at_once, AT_ONCE // 64) * 64
        for part in _parts(self.n_rows, at_once):
            some = np.zeros((self.n_items, words(part.stop - part.start)), np.uint64)
            for place in range(len(self.cells)):
                numbers = self._numbers(place, part)
                rows = np.flatnonzero(numbers >= 0)
                mark(some, numbers[rows], rows)
            packed[:, part.start // 64 : words(part.stop)] = some
        return packed

    def _numbers(self, place: int, part: slice) -> NDArray[np.int32]:
        """The items of some rows in one column, −1 for none."""
        cells = self.cells[place]
        return self.numbers[place][cells[part] if self.rows is None else _taken(cells, self.rows[part])]

    def __repr__(self) -> str:
        return f"ItemColumns(rows={self.n_rows}, items={self.n_items}, columns={len(self.cells)})"


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
    named = [
        named_values(
            column.name, column.values.to_pylist(), partial(_held, column.codes, rows, len(column.values)), how
        )
        for column in table.columns
    ]
    n_rows = table.n_rows if rows is None else len(rows)
    found = ItemColumns(*numbered(named), n_rows, tuple(column.codes for column in table.columns), rows)
    return found.without(how.exclude).nameable()


class NamedValues(NamedTuple):
    """The items that the values of a column make.

    Attributes:
        column: Its name.
        names: What stands behind the equals sign, distinct.
        places: By value, which of the names it has, −1 for none.
    """

    column: str
    names: list[str]
    places: NDArray[np.int32]


def named_values(
    column: str, values: list[str], held: Callable[[], NDArray[np.int64]], how: Itemisation
) -> NamedValues:
    """What the values of a column make: themselves, or intervals where the job puts its numbers into some.

    Args:
        column: Its name.
        values: Distinct.
        held: Gives in how many rows each value is.
        how: What the job says of items.
    """
    if column not in how.numeric:
        return NamedValues(column, values, np.arange(len(values), dtype=np.int32))
    read = [number_of(text) for text in values]
    is_number = np.array([number is not None for number in read], bool)
    numbers = [Decimal(0) if number is None else number for number in read]  # counted for no row where it is none
    cuts = how.cuts.get(column)
    if cuts is None:
        cuts = quantile_cuts(numbers, held() * is_number, how.quantiles[column])
    table = np.fromiter((interval_of(number, cuts) for number in numbers), np.int32, len(numbers))
    return NamedValues(column, interval_names(cuts), np.where(is_number, table, np.int32(-1)))


def numbered(
    named: Sequence[NamedValues],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[NDArray[np.int32], ...]]:
    """Items of columns, in ascending order: `items`, `columns` and `numbers` of `ItemRows`."""
    names = [f"{each.column}={name}" for each in named for name in each.names]
    columns = [each.column for each in named for _ in each.names]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.full(len(names) + 1, -1, np.int32)  # its last is that of none
    rank[order] = np.arange(len(names), dtype=np.int32)
    numbers = list[NDArray[np.int32]]()
    start = 0
    for each in named:
        numbers.append(np.append(rank[np.where(each.places < 0, -1, each.places + start)], np.int32(-1)))
        start += len(each.names)
    return tuple(names[place] for place in order), tuple(columns[place] for place in order), tuple(numbers)


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


def _parts(rows: int, at_once: int) -> Iterator[slice]:
    for start in range(0, rows, at_once):
        yield slice(start, min(start + at_once, rows))


def _taken(codes: NDArray[I], rows: NDArray[np.int64]) -> NDArray[I]:
    """Codes at positions; −1 at −1."""
    if not len(codes):
        return np.full(len(rows), -1, codes.dtype)
    found = np.take(codes, rows)
    found[rows < 0] = -1
    return found


def _held(codes: Codes, rows: NDArray[np.int64] | None, values: int) -> NDArray[np.int64]:
    """How many rows have each code."""
    held = np.zeros(values + 1, np.int64)
    for part in _parts(len(codes) if rows is None else len(rows), AT_ONCE):
        some = codes[part] if rows is None else _taken(codes, rows[part])
        held += np.bincount(some.astype(np.int64) + 1, minlength=values + 1)
    return held[1:]
