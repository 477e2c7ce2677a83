"""Transactions out of pieces of a source, so that only a piece of it lies in memory in a form that takes much room."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mining.data.arrow_arrays import as_numpy
from mining.data.transactions import Transactions, occurrence_keys, offsets_of, ranked, rows_of_keys


class Codes:
    """Numbers of texts in the order in which they are met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, texts: pa.Array) -> NDArray[np.int32]:
        """The numbers of some texts, none of which is null: Arrow's strings, not as a dictionary."""
        encoded = texts.dictionary_encode()
        numbers = self._numbers
        own = [numbers.setdefault(text, len(numbers)) for text in encoded.dictionary.to_pylist()]
        codes: NDArray[np.int32] = np.array(own, np.int32)[as_numpy(encoded.indices)]
        return codes

    @property
    def texts(self) -> list[str]:
        """The texts by their numbers."""
        return list(self._numbers)


class RowPieces:
    """Rows that come one after the other, in pieces."""

    def __init__(self) -> None:
        self._codes = Codes()
        self._pieces: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []

    def add(self, lengths: NDArray[np.integer], items: pa.Array) -> None:
        """Takes the next rows.

        Args:
            lengths: Items of each of them.
            items: Texts of all their items, in the order of the rows; an item may be repeated in a row.
        """
        self._pieces.append((lengths.astype(np.int32), self._codes.of(items)))

    def transactions(self) -> Transactions:
        """All rows; nothing can be added afterwards."""
        items, rank = ranked(self._codes.texts)
        indices = np.empty(sum(len(codes) for _, codes in self._pieces), np.int32)
        all_lengths = [np.empty(0, np.int64)]
        end = 0
        self._pieces.reverse()
        while self._pieces:
            lengths, codes = self._pieces.pop()
            keys = occurrence_keys(np.repeat(np.arange(len(lengths)), lengths), rank[codes], len(items))
            distinct, own = rows_of_keys(keys, len(items), len(lengths))
            all_lengths.append(distinct.astype(np.int64))
            indices[end : end + len(own)] = own
            end += len(own)
        if end < len(indices):
            indices = indices[:end].copy()
        return Transactions(items, offsets_of(np.concatenate(all_lengths)), indices)


class LongPieces:
    """Pairs of a row's id and an item, in any order, in pieces; rows are in the order in which their ids are met."""

    def __init__(self) -> None:
        self._codes = Codes()
        self._ids: list[pa.DictionaryArray] = []
        self._held: list[tuple[NDArray[np.bool_], NDArray[np.int32]]] = []

    def add(self, ids: pa.Array, items: pa.Array) -> None:
        """Takes the next pairs.

        Args:
            ids: Of one type in all pieces, none of them null; not as a dictionary.
            items: Texts; null and the empty text only make a row exist.
        """
        held = pc.fill_null(pc.not_equal(items, ""), False)
        self._ids.append(ids.dictionary_encode())
        self._held.append((held.to_numpy(zero_copy_only=False), self._codes.of(items.filter(held))))

    def transactions(self) -> Transactions:
        """All rows; nothing can be added afterwards."""
        if not self._ids:
            return Transactions.empty()
        rows = _numbered(pa.concat_arrays([ids.dictionary for ids in self._ids]))
        pieces: list[tuple[NDArray[np.integer], NDArray[np.integer]]] = []
        start = 0
        for ids, (held, codes) in zip(self._ids, self._held, strict=True):
            own = rows[start : start + len(ids.dictionary)]
            pieces.append((own[ids.indices.to_numpy()[held]], codes))
            start += len(own)
        self._ids.clear()
        self._held.clear()
        return Transactions.from_pieces(self._codes.texts, pieces, int(rows.max()) + 1 if len(rows) else 0)


def _numbered(ids: pa.Array) -> NDArray[np.int32]:
    """For each id its number in the order in which distinct ones come; by sorting, which takes less than hashing."""
    kind = ids.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        numbers: NDArray[np.int32] = ids.dictionary_encode().indices.to_numpy()
        return numbers
    order = pc.sort_indices(ids).to_numpy()  # stable, so that of equal ones the first comes first
    ordered = ids.take(pa.array(order))
    begins = np.ones(len(order), bool)
    begins[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    first = order[begins]
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    rows = np.empty(len(order), np.int32)
    rows[order] = np.repeat(rank, np.diff(np.append(np.flatnonzero(begins), len(order))))
    return rows
