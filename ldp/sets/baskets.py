"""Many users' sets of items as two arrays, so that no loop over users is needed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.domain import Codes, Domain
from link.errors import InputDataError


@dataclass(frozen=True, slots=True, eq=False)
class Baskets:
    """A set of items for each of n users, in compressed rows.

    Attributes:
        offsets: Shape (n + 1,): user i's items are `codes[offsets[i]:offsets[i + 1]]`; a set may be empty.
        codes: Numbers of items, 0 … size − 1, ascending and distinct within a set.
        size: d, how many items there are.

    Raises:
        InputDataError: Offsets do not fit the codes, a set is not ascending and distinct, or an item is out of range.
    """

    offsets: NDArray[np.int64]
    codes: Codes
    size: int

    def __post_init__(self) -> None:
        offsets, codes = self.offsets, self.codes
        if offsets.ndim != 1 or not offsets.size or offsets[0] != 0 or offsets[-1] != len(codes):
            raise InputDataError("the sets' offsets must run from 0 to the number of all their items")
        if np.any(np.diff(offsets) < 0):
            raise InputDataError("the sets' offsets must not fall")
        if len(codes) and not 0 <= codes.min() <= codes.max() < self.size:
            raise InputDataError(f"a set holds an item that is not one of the numbers 0 to {self.size - 1}")
        within = np.ones(len(codes), dtype=np.bool_)
        within[offsets[:-1][offsets[:-1] < len(codes)]] = False
        if np.any(np.diff(codes, prepend=-1)[within] <= 0):
            raise InputDataError("the items of a set must be in ascending order, none of them twice")

    @classmethod
    def of(cls, sets: Sets, domain: Domain) -> Baskets:
        """Baskets as they are, or from lists.

        Raises:
            InputDataError: The baskets are of another number of items, or as `of_lists` says.
        """
        if not isinstance(sets, Baskets):
            return cls.of_lists(sets, domain)
        if sets.size != domain.size:
            raise InputDataError(f"the sets are of {sets.size:,} items, and the mechanism is for {domain.size:,}")
        return sets

    @classmethod
    def of_lists(cls, sets: Sequence[Collection[Any]], domain: Domain) -> Baskets:
        """From one collection of items a user; an item that is named twice in a set counts once.

        Args:
            sets: Texts, or numbers where the domain has no labels; a collection may be empty.
            domain: The items.

        Raises:
            InputDataError: A user's items are no collection, or an item is not in the domain.
        """
        if not isinstance(sets, Sequence | np.ndarray) or isinstance(sets, str | bytes):
            raise InputDataError("sets must come as a list with the items of each user")
        if any(isinstance(each, str | bytes) or not isinstance(each, Collection | np.ndarray) for each in sets):
            raise InputDataError("each user's items must be a list or a set of items")
        sizes = np.fromiter(map(len, sets), np.int64, len(sets))
        items = list(chain.from_iterable(sets))
        codes = domain.codes(np.array(items, dtype=None if domain.labels is None else object))
        return cls.of_occurrences(np.repeat(np.arange(len(sizes)), sizes), codes, len(sizes), domain.size)

    @classmethod
    def of_occurrences(cls, owners: NDArray[np.int64], codes: Codes, n: int, size: int) -> Baskets:
        """From who holds what, in any order; what is named twice counts once.

        Args:
            owners: Shape (k,): numbers of users, 0 … n − 1.
            codes: Shape (k,): numbers of items.
            n: How many users.
            size: d, how many items there are.
        """
        named = np.sort(owners * size + codes)  # numpy's `unique` hashes, which takes 40 times as long
        distinct = named[np.diff(named, prepend=-1) > 0]
        sizes = np.bincount(distinct // size, minlength=n)
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), distinct % size, size)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, users: slice | NDArray[Any]) -> Baskets:
        """Some users' sets, in the order asked for."""
        chosen = np.arange(len(self))[users]
        sizes = self.sizes[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Baskets(offsets, self.codes[places], self.size)

    def cut(self, length: int, rng: Randomness) -> Baskets:
        """The same sets, but of each larger one a uniform choice of `length` items."""
        owners = self.owners
        large = np.flatnonzero(self.sizes[owners] > length)
        if not large.size:
            return self
        # A random order within each set; its first `length` items stay.
        order = large[np.lexsort((rng.permutation(large.size), owners[large]))]
        place = np.arange(large.size) - np.searchsorted(owners[large], owners[large])
        kept = np.ones(len(owners), dtype=np.bool_)
        kept[order[place >= length]] = False
        offsets = np.concatenate([[0], np.cumsum(np.minimum(self.sizes, length))]).astype(np.int64)
        return Baskets(offsets, self.codes[kept], self.size)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many items each set has, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> NDArray[np.int64]:
        """Whose item each of `codes` is."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def counts(self) -> NDArray[np.int64]:
        """How many sets hold each item, shape (d,)."""
        return np.bincount(self.codes, minlength=self.size).astype(np.int64, copy=False)


Sets: TypeAlias = Baskets | Sequence[Collection[Any]]
"""Baskets, or each user's items as a list or a set."""
