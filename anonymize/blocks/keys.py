"""Tuples of codes as words of 62 bits: counted in little memory, and found again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.blocks.table import changed
from anonymize.fulldomain.frequency import SensitiveCounts
from anonymize.grouping import LARGEST_KEY

_HELD: Final = 1 << 20  # tuples that are added before they are merged, beyond those that are known

Words = NDArray[np.int64]
Counts = NDArray[np.int64]


class Packing:
    """How columns share words, in mixed radix, so that words are in the order of tuples.

    Args:
        sizes: How many codes each column has.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = tuple(max(size, 1) for size in sizes)
        self._word_of: list[int] = []
        room, word = LARGEST_KEY, -1
        for size in self._sizes:
            if word < 0 or room < size:
                room, word = LARGEST_KEY, word + 1
            room //= size
            self._word_of.append(word)

    @property
    def columns(self) -> int:
        """How many there are."""
        return len(self._sizes)

    def pack(self, columns: Sequence[NDArray[np.int32]]) -> Words:
        """Codes of columns, shape (rows,) each, as words, shape (words, rows)."""
        words = np.zeros((self._word_of[-1] + 1, len(columns[0])), np.int64)
        for word, size, codes in zip(self._word_of, self._sizes, columns, strict=True):
            words[word] *= size
            words[word] += codes
        return words

    def column(self, words: Words, place: int) -> NDArray[np.int32]:
        """The codes of one column, shape (rows,)."""
        word, behind = self._word_of[place], 1
        for other in range(place + 1, len(self._sizes)):
            behind *= self._sizes[other] if self._word_of[other] == word else 1
        return np.asarray(words[word] // behind % self._sizes[place], np.int32)


def distinct(words: Words, counts: Counts | None = None) -> tuple[Words, Counts]:
    """Distinct tuples in ascending order, and the sums of their counts; each counts once if none are given."""
    if not words.shape[1]:
        return words, np.zeros(0, np.int64)
    order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words[::-1])
    ordered = words[:, order]
    new = np.ones(len(order), bool)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    first = np.flatnonzero(new)
    ordered = ordered[:, first]
    if counts is None:
        return ordered, np.diff(first, append=len(order))
    return ordered, np.add.reduceat(counts[order], first)


class TupleSums:
    """Sums of counts by tuple, of tuples that come in parts.

    Args:
        packing: Of their columns.
    """

    def __init__(self, packing: Packing) -> None:
        self.packing = packing
        self._held: list[tuple[Words, Counts]] = []
        self._known = 0

    def add(self, words: Words, counts: Counts) -> None:
        """Adds distinct tuples, and how often each is counted."""
        self._held.append((words, counts))
        if sum(len(counts) for _, counts in self._held) > self._known + max(_HELD, self._known // 2):
            self.merge()

    def merge(self) -> tuple[Words, Counts]:
        """The distinct tuples so far in ascending order, and the sum of each; there is a part at least."""
        words = np.concatenate([each for each, _ in self._held], axis=1)
        counts = np.concatenate([each for _, each in self._held])
        self._held = []
        words, counts = distinct(words, counts)
        self._held, self._known = [(words, counts)], len(counts)
        return words, counts

    def by_tuple(self, domain: int) -> SensitiveCounts:
        """Of tuples whose last column is a value: how often each value occurs with each tuple of the other columns.

        Args:
            domain: How many values there are.
        """
        words, counts = self.merge()
        columns = self.packing.columns - 1
        new = np.zeros(len(counts), bool)  # pairs are in the order of their tuples, and no tuple is without one
        for place in range(columns):
            codes = self.packing.column(words, place)
            new[1:] |= codes[1:] != codes[:-1]
        values = self.packing.column(words, columns).astype(np.int64)
        return SensitiveCounts(np.cumsum(new), values, counts, domain)


class Index:
    """Finds tuples among known ones.

    Args:
        words: Distinct and in ascending order, shape (words, u).
    """

    def __init__(self, words: Words) -> None:
        self._before: list[Counts] = []  # by word but the first, the known keys of all words before it
        self._own: list[Counts] = []  # and the known values of the word
        keys = words[0]
        for word in words[1:]:
            self._before.append(np.unique(keys))
            self._own.append(np.unique(word))
            keys = self._joined(len(self._own) - 1, keys, word)
        self._keys = keys

    def find(self, words: Words) -> Counts:
        """The place of each tuple, shape (rows,).

        Raises:
            InputDataError: One is not known, so that the source has changed.
        """
        keys = words[0]
        for place, word in enumerate(words[1:]):
            keys = self._joined(place, keys, word)
        return _places(self._keys, keys)

    def _joined(self, place: int, keys: Counts, word: Counts) -> Counts:
        before, own = self._before[place], self._own[place]
        return _places(before, keys) * len(own) + _places(own, word)


def _places(known: Counts, keys: Counts) -> Counts:
    asked, inverse = np.unique(keys, return_inverse=True)
    places = np.searchsorted(known, asked)
    if len(asked) and (places[-1] >= len(known) or not np.array_equal(known[places], asked)):
        raise changed()
    return places[inverse.reshape(-1)]
