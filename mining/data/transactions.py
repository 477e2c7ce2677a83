"""Transactions in compressed rows: a dictionary of items and, per row, ascending item numbers."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from link.errors import InputDataError
from link.files.printable import is_text

_MAX_ITEMS = 2**31 - 1
AT_ONCE = 1 << 20  # occurrences

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")


@dataclass(frozen=True, eq=False, slots=True)
class Transactions:
    """Rows of items, each row a set.

    Attributes:
        items: The dictionary; distinct strings. Loaders give it in ascending order of UTF-8 bytes.
        offsets: Where each row starts in `indices`; n_rows + 1 numbers, the first 0.
        indices: Item numbers (positions in `items`), ascending and distinct inside a row.

    Example:
        >>> data = comine.Transactions.from_rows([["bread", "milk"], ["bread"], []])
        >>> data
        Transactions(rows=3, items=2, occurrences=3)
        >>> data.item_counts().tolist()
        [2, 1]
    """

    items: tuple[str, ...]
    offsets: NDArray[np.int64]
    indices: NDArray[np.int32]

    @classmethod
    def empty(cls) -> Transactions:
        """No rows and no items."""
        return cls((), np.zeros(1, np.int64), np.empty(0, np.int32))

    @classmethod
    def from_rows(cls, rows: Iterable[Iterable[str]]) -> Transactions:
        """Encode rows of item strings; a repeated item counts once, an empty row stays a row.

        The dictionary is in ascending order of UTF-8 bytes, which is the order of Python strings.
        """
        distinct = [set(row) for row in rows]
        items = _checked(tuple(sorted(set().union(*distinct))))
        number = {item: index for index, item in enumerate(items)}
        lengths = np.fromiter((len(row) for row in distinct), np.int64, len(distinct))
        flat = (index for row in distinct for index in sorted(number[item] for item in row))
        return cls(items, offsets_of(lengths), np.fromiter(flat, np.int32, int(lengths.sum())))

    @classmethod
    def from_occurrences(
        cls, items: Sequence[str], rows: NDArray[np.integer], codes: NDArray[np.integer], n_rows: int
    ) -> Transactions:
        """Encode (row, item) occurrences in any order, repeated or not.

        Args:
            items: Distinct item strings in any order; those that never occur are kept.
            rows: Row number of each occurrence, in [0, n_rows).
            codes: Position in `items` of each occurrence.
            n_rows: Number of rows, empty ones included.

        Returns:
            The transactions, their dictionary in ascending order of UTF-8 bytes.
        """
        return cls.from_pieces(items, [(rows, codes)], n_rows)

    @classmethod
    def from_pieces(
        cls, items: Sequence[str], pieces: list[tuple[NDArray[np.integer], NDArray[np.integer]]], n_rows: int
    ) -> Transactions:
        """`from_occurrences` of many; the list is emptied on the way, so that little lies in memory twice.

        Args:
            items: Distinct item strings in any order; those that never occur are kept.
            pieces: Row numbers and positions in `items` of occurrences.
            n_rows: Number of rows, empty ones included.
        """
        ordered, rank = ranked(items)
        keys = np.empty(sum(len(rows) for rows, _ in pieces), np.int64)
        end = len(keys)
        while pieces:
            rows, codes = pieces.pop()
            np.multiply(rows, len(items), out=keys[end - len(rows) : end], dtype=np.int64)
            keys[end - len(rows) : end] += rank[codes]
            end -= len(rows)
        lengths, indices = rows_of_keys(_distinct(keys), len(items), n_rows)
        return cls(ordered, offsets_of(lengths), indices)

    @property
    def n_rows(self) -> int:
        """Number of transactions, empty ones included."""
        return len(self.offsets) - 1

    @property
    def n_items(self) -> int:
        """Size of the dictionary."""
        return len(self.items)

    @property
    def n_occurrences(self) -> int:
        """Number of (row, item) pairs."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Bytes held by the encoded rows, the dictionary's strings not counted."""
        return self.offsets.nbytes + self.indices.nbytes

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of items of each row."""
        return np.diff(self.offsets)

    def row_numbers(self) -> NDArray[np.int32]:
        """Row number of each entry of `indices`."""
        return np.repeat(np.arange(self.n_rows, dtype=np.int32), self.lengths)

    def item_counts(self) -> NDArray[np.int64]:
        """Number of rows that hold each item of the dictionary."""
        return np.bincount(self.indices, minlength=self.n_items).astype(np.int64, copy=False)

    def onto(self, dictionary: Sequence[str]) -> Transactions:
        """Re-encode on another dictionary; items outside it are dropped, rows keep their number.

        Args:
            dictionary: Distinct items in the order that the result shall have. Items that occur in no row
                are allowed.
        """
        position = {item: index for index, item in enumerate(dictionary)}
        if len(position) != len(dictionary):
            raise ValueError("the dictionary holds an item twice")
        known = (position.get(item, -1) for item in self.items)
        return self.renumbered(np.fromiter(known, np.int32, self.n_items), tuple(dictionary))

    def without(self, patterns: Sequence[str]) -> Transactions:
        """The same rows without the items that match a pattern; a row that loses all its items stays, empty.

        Args:
            patterns: As in `fnmatch.fnmatchcase`.
        """
        removed = matching(self.items, patterns)
        if not removed:
            return self
        kept = tuple(item for item in self.items if item not in removed)
        return self.onto(kept)

    def renumbered(self, target: NDArray[np.int32], dictionary: tuple[str, ...]) -> Transactions:
        """Re-encode by a table of new item numbers.

        Args:
            target: New number of each item of this dictionary, distinct where not negative; negative drops it.
            dictionary: The new dictionary.
        """
        codes = target[self.indices]
        kept = codes >= 0
        seen = np.zeros(self.n_occurrences + 1, np.int64)
        np.cumsum(kept, out=seen[1:])
        offsets = seen[self.offsets]
        codes = codes[kept]
        surviving = target[target >= 0]
        if not np.all(surviving[1:] > surviving[:-1]):
            owner = np.repeat(np.arange(self.n_rows, dtype=np.int64), np.diff(offsets))
            keys = owner * len(dictionary) + codes
            keys.sort()
            codes = (keys - owner * len(dictionary)).astype(np.int32)
        return Transactions(dictionary, offsets, codes)

    def total(self, kernel: Callable[[Transactions], NDArray[N]]) -> NDArray[N]:
        """What a kernel gives for all rows; see `mining.data.rows.Rows`."""
        return kernel(self)

    def placed_total(self, kernel: Callable[[Transactions, int], NDArray[N]]) -> NDArray[N]:
        """The same, of a kernel that is told where its rows are; see `mining.data.rows.Rows`."""
        return kernel(self, 0)

    def parts(self, kernel: Callable[[Transactions, int], R]) -> Iterator[R]:
        """What a kernel gives for each block of rows, which here is one of all; see `mining.data.rows.Rows`."""
        yield kernel(self, 0)

    def between(self, start: int, stop: int) -> Transactions:
        """The rows [start, stop), sharing memory with these."""
        first, last = self.offsets[start], self.offsets[stop]
        return Transactions(self.items, self.offsets[start : stop + 1] - first, self.indices[first:last])

    def chosen(self, rows: NDArray[np.bool_]) -> Transactions:
        """Some of the rows, on the same dictionary.

        Args:
            rows: Shape (n_rows,): which.
        """
        return Transactions(self.items, offsets_of(self.lengths[rows]), self.indices[np.repeat(rows, self.lengths)])

    def digest(self) -> bytes:
        """A digest of the rows: equal where items and rows are equal, in the same order."""
        return digest_of_rows(self.items, self.n_rows, lambda: iter([self]))

    def __repr__(self) -> str:
        return f"Transactions(rows={self.n_rows}, items={self.n_items}, occurrences={self.n_occurrences})"


def digest_of_rows(items: Sequence[str], n_rows: int, blocks: Callable[[], Iterator[Transactions]]) -> bytes:
    """The digest of rows that come block by block, however they are cut.

    Args:
        items: The dictionary.
        n_rows: All rows.
        blocks: Gives them all, twice, on that dictionary; their own names of items do not matter.
    """
    whole = hashlib.blake2b(digest_size=32)
    for item in items:
        encoded = item.encode("utf-8", "surrogatepass")
        whole.update(len(encoded).to_bytes(8, "big") + encoded)
    whole.update((n_rows + 1).to_bytes(8, "big") + bytes(8))
    n_occurrences = 0
    for block in blocks():
        whole.update((block.offsets[1:] + n_occurrences).data)
        n_occurrences += block.n_occurrences
    whole.update(n_occurrences.to_bytes(8, "big"))
    for block in blocks():
        whole.update(np.ascontiguousarray(block.indices).data)
    return whole.digest()


def matching(items: Iterable[str], patterns: Sequence[str]) -> frozenset[str]:
    """The items that match at least one of the patterns, as `fnmatch.fnmatchcase` matches."""
    if not patterns:
        return frozenset()
    fits = re.compile("|".join(map(fnmatch.translate, patterns))).match
    return frozenset(item for item in items if fits(item))


def ranked(items: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Distinct items in ascending order of UTF-8 bytes, and for each of the given ones its place there."""
    if len(items) > _MAX_ITEMS:
        raise ValueError(f"{len(items)} distinct items do not fit 32-bit item numbers")
    order = sorted(range(len(items)), key=items.__getitem__)
    rank = np.empty(len(items), np.int32)
    rank[order] = np.arange(len(items), dtype=np.int32)
    return _checked(tuple(items[index] for index in order)), rank


def _checked(items: tuple[str, ...]) -> tuple[str, ...]:
    """The items, if all can be written as UTF-8, as they are sent, sorted and kept.

    Raises:
        InputDataError: One cannot.
    """
    if not is_text("".join(items)):
        raise InputDataError("an item holds half a character (a lone surrogate); correct or leave it out")
    return items


def occurrence_keys(rows: NDArray[np.integer], ranks: NDArray[np.integer], n_items: int) -> NDArray[np.int64]:
    """One ascending number for each distinct (row, item)."""
    return _distinct(rows.astype(np.int64) * n_items + ranks)


def _distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    if _ascend(keys):
        return keys
    keys.sort()
    return keys if _ascend(keys) else keys[np.concatenate([[True], keys[1:] != keys[:-1]])]


def _ascend(keys: NDArray[np.int64]) -> bool:
    starts = range(0, len(keys), AT_ONCE)
    return all(bool(np.all(np.diff(keys[start : start + AT_ONCE + 1]) > 0)) for start in starts)


def rows_of_keys(keys: NDArray[np.int64], n_items: int, n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Items of each row, and the items of all rows, of what `occurrence_keys` gave."""
    lengths, indices = np.zeros(n_rows, np.int64), np.empty(len(keys), np.int32)
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        owner = part // n_items
        indices[start : start + len(part)] = part - owner * n_items
        lengths[owner[0] : owner[-1] + 1] += np.bincount(owner - owner[0])
    return lengths, indices


def offsets_of(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each row starts, from the items of each row."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
