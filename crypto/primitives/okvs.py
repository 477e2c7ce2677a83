"""An oblivious key-value store: words in which the value of every key that was put in can be read off by XOR alone.

A store of capacity n ≥ 64 has 3·⌈1.3·n/3⌉ sparse rows in three thirds, and 40 dense ones. A key is read as the XOR of
one row of each third, and of those dense rows that its 40 dense bits name. Reading is linear: the XOR of two stores
holds the XOR of their values. To fill a store means to solve these equations:

    peel    a sparse row that one key alone reads can settle that key, whatever else it reads. So keys are taken off in
            rounds, all at once that have such a row, until every row that is left has two readers or none
    core    the keys that are left, mostly none: elimination over their sparse rows and the dense ones
    fill    all rows that settle no key are random; then the core's rows, then those of the rounds, last round first

So the rows are a uniform solution: with uniform values all rows are uniform, whichever the keys are (obliviousness).

Filling fails where keys' equations depend on each other: where some set of keys cancels out. In the sparse rows fewer
than a quarter of such sets are expected, fewer than 15/n of n keys, and a set that does cancels out in the dense bits,
too, with a chance of 2^-40. So no more than one store in 2^42 fails (`docs/protocols/oprf.md` derives it).

Source: Pinkas, Rosulek, Trieu and Yanai, "PSI from PaXoS", EUROCRYPT 2020 (sparse and dense rows); Garimella, Pinkas,
Rosulek, Trieu and Yanai, "Oblivious Key-Value Stores and Amplification for Private Set Intersection", CRYPTO 2021
(definition, three hashes); Raghuraman and Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE", CCS 2022.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.groups.point_hash import KEY_BYTES, Points, Words, words_of
from link.errors import InternalError
from link.randomness import RandomStream

DENSE: Final = 40
MOST_KEYS: Final = 1 << 17  # of a store; larger sets take several (`partition`)
_LEAST_KEYS: Final = 64  # for which a store has rows even where it need hold fewer
MOST_CORE: Final = 1 << 13  # keys whose elimination takes a second
ATTEMPTS: Final = 4
_RATE: Final = (13, 10)  # sparse rows for each key; peeling works from 1.222 on
_TABLE_BITS: Final = 10  # dense rows are read by tables of the sums of ten
_TABLES: Final = DENSE // _TABLE_BITS
_AT_ONCE: Final = 1 << 13  # keys: what is read for them stays in the cache
_SUM_BITS: Final = 40  # for the sum of the numbers of a row's readers: 2^16 of 2^24 keys
_ONE: Final = 1 << _SUM_BITS

Indices = NDArray[np.signedinteger[Any]]


class UnsolvableStore(Exception):
    """The keys' equations depend on each other, or too many keys are left to eliminate."""


@dataclass(frozen=True)
class Layout:
    """Where the rows of a store are.

    Attributes:
        capacity: The most keys.
        third: Rows of each third.
    """

    capacity: int
    third: int

    @classmethod
    def of(cls, capacity: int) -> Layout:
        """The layout for so many keys.

        Raises:
            ValueError: The capacity is not between 1 and `MOST_KEYS`.
        """
        if not 1 <= capacity <= MOST_KEYS:
            raise ValueError(f"a store has room for 1 to {MOST_KEYS} keys, not {capacity}")
        return cls(capacity, -(-max(capacity, _LEAST_KEYS) * _RATE[0] // (3 * _RATE[1])))

    @property
    def sparse(self) -> int:
        """Sparse rows, which come first."""
        return 3 * self.third

    @property
    def rows(self) -> int:
        """All rows."""
        return self.sparse + DENSE

    def places(self, points: Points, seed: bytes) -> Places:
        """What keys read.

        Args:
            points: The keys, shape (n, 2).
            seed: 16 bytes, public, independent of the keys.
        """
        words = words_of(points, seed, 4, "places")
        sparse = np.empty((3, len(points)), np.int64)
        np.remainder(words[:, :3].T, np.uint64(self.third), out=sparse, casting="unsafe")
        sparse += np.array([[0], [self.third], [2 * self.third]])
        return Places(sparse, words[:, 3] & np.uint64((1 << DENSE) - 1))


@dataclass(frozen=True)
class Places:
    """What keys read.

    Attributes:
        sparse: Shape (3, n): a row of each third.
        dense: Shape (n,): bits that name dense rows, the lowest the first.
    """

    sparse: Indices
    dense: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.dense)


@dataclass(frozen=True)
class Solution:
    """How the equations of some keys are solved, whatever their values are.

    Attributes:
        layout: Of the store.
        places: Of the keys.
        rounds: By round the keys that are settled in it, and the sparse rows that settle them.
        core: The keys that are left.
    """

    layout: Layout
    places: Places
    rounds: Sequence[tuple[Indices, Indices]]
    core: Indices


def solved(layout: Layout, points: Points, random: RandomStream) -> tuple[bytes, Solution]:
    """A fresh seed under which a store can hold the keys, and how.

    Args:
        layout: Of the store.
        points: The keys, all different, shape (n, 2); at most as many as the store has room for.
        random: Where seeds come from.

    Raises:
        InternalError: No seed served, which the same keys given twice would explain.
        ValueError: There are more keys than the store has room for.
    """
    if len(points) > layout.capacity:
        raise ValueError(f"a store with room for {layout.capacity} keys cannot hold {len(points)}")
    for _ in range(ATTEMPTS):
        seed = random.bytes(KEY_BYTES)
        solution = peeled(layout, layout.places(points, seed))
        if len(solution.core) <= MOST_CORE and eliminated(solution, np.zeros((len(points), 1), np.uint64)) is not None:
            return seed, solution
    raise InternalError(
        f"a key-value store of {len(points)} keys could not be filled under {ATTEMPTS} seeds; are keys given twice?"
    )


def peeled(layout: Layout, places: Places) -> Solution:
    """Takes keys off in rounds."""
    rounds, core = taken_off(layout.sparse, places.sparse)
    return Solution(layout, places, rounds, core)


def taken_off(number_of_rows: int, sparse: Indices) -> tuple[Sequence[tuple[Indices, Indices]], Indices]:
    """Takes keys off in rounds, each with a row that no other key reads any more.

    Args:
        number_of_rows: That keys read.
        sparse: By key, what it reads, shape (3, n); what takes memory has the type of these numbers.

    Returns:
        By round the keys that are settled in it, and the rows that settle them; and the keys that are left.
    """
    word, number = sparse.dtype, sparse.shape[1]
    readers = np.zeros(number_of_rows, np.int64)  # how many a row has, above the sum of their numbers
    for third in sparse:
        np.add.at(readers, third, np.arange(_ONE, _ONE + number))
    left, mark = np.ones(number, bool), np.empty(number, word)
    rounds: list[tuple[Indices, Indices]] = []
    rows = np.flatnonzero(readers >> _SUM_BITS == 1).astype(word)
    while len(rows):
        found = (readers[rows] & (_ONE - 1)).astype(word)
        numbers = np.arange(len(rows), dtype=word)
        mark[found] = numbers
        once = mark[found] == numbers  # of a key's rows that it alone reads, one settles it
        taken, rows = found[once], rows[once]
        left[taken] = False
        rounds.append((taken, rows))
        touched, gone = [third[taken] for third in sparse], taken.astype(np.int64) + _ONE
        for third in touched:
            np.subtract.at(readers, third, gone)
        rows = np.concatenate([third[readers[third] >> _SUM_BITS == 1] for third in touched])
    return rounds, np.flatnonzero(left)


def filled(solution: Solution, values: Words, random: RandomStream) -> Words:
    """A store in which every key has its value.

    Args:
        solution: From `solved`.
        values: Shape (n, w).
        random: Fills what no key settles.

    Returns:
        Shape (layout.rows, w).

    Raises:
        UnsolvableStore: The keys' equations depend on each other; never so with what `solved` gives.
    """
    layout, places, width = solution.layout, solution.places, values.shape[1]
    store = random.uint64(layout.rows * width).reshape(-1, width)
    _fill_core(solution, values, store)
    rest = np.ascontiguousarray(values).copy()
    _add_dense(_sums_of_dense(store[layout.sparse :]), places.dense, rest, np.empty_like(rest))
    for keys, rows in reversed(solution.rounds):
        store[rows] = 0
        value = np.take(rest, keys, axis=0, mode="clip")
        for third in places.sparse:
            value ^= np.take(store, third[keys], axis=0, mode="clip")
        store[rows] = value
    return store


def read(layout: Layout, store: Words, places: Places) -> Words:
    """What keys read in a store.

    Args:
        layout: Of the store.
        store: Shape (layout.rows, w).
        places: From `Layout.places`.

    Returns:
        Shape (n, w).
    """
    values = np.empty((len(places), store.shape[1]), np.uint64)
    for _ in read_in_pieces(layout, store, places, values):
        pass
    return values


def read_in_pieces(
    layout: Layout, store: Words, places: Places, values: Words | None = None
) -> Iterator[tuple[slice, Words]]:
    """The same for some keys after the others, while what they read is in the cache.

    Args:
        layout: As for `read`.
        store: As for `read`.
        places: As for `read`.
        values: Where what they read goes, shape (n, w); else it is there only until the next are asked for.

    Yields:
        Which keys, and what they read.
    """
    number, width = len(places), store.shape[1]
    buffers = np.empty((2, min(number, _AT_ONCE), width), np.uint64)
    tables = _sums_of_dense(store[layout.sparse : layout.rows])
    first, *others = places.sparse
    for start in range(0, number, _AT_ONCE):
        some = slice(start, min(start + _AT_ONCE, number))
        part, more = buffers[:, : some.stop - start]
        if values is not None:
            part = values[some]
        np.take(store, first[some], axis=0, out=part, mode="clip")
        for third in others:
            part ^= np.take(store, third[some], axis=0, out=more, mode="clip")
        _add_dense(tables, places.dense[some], part, more)
        yield some, part


def _sums_of_dense(rows: Words) -> Words:
    """All sums of each ten dense rows, shape (4, 1024, w)."""
    sums = np.zeros((_TABLES, 1 << _TABLE_BITS, rows.shape[1]), np.uint64)
    for table, some in zip(sums, rows.reshape(_TABLES, _TABLE_BITS, -1), strict=True):
        for bit, row in enumerate(some):
            np.bitwise_xor(table[: 1 << bit], row, out=table[1 << bit : 2 << bit])
    return sums


def _add_dense(tables: Words, bits: NDArray[np.uint64], values: Words, more: Words) -> None:
    """Adds to each key's value the dense rows that its bits name; `more` is for what is added."""
    for number, table in enumerate(tables):
        entries = (bits >> np.uint64(number * _TABLE_BITS)) & np.uint64((1 << _TABLE_BITS) - 1)
        values ^= np.take(table, entries.view(np.int64), axis=0, out=more, mode="clip")


# -- the core ----------------------------------------------------------------------------------------------------------
Equation = tuple[int, int]
"""The column that it settles, and its bits: columns from the lowest, above them the value."""


def eliminated(solution: Solution, values: Words) -> tuple[Indices, list[Equation]] | None:
    """The core's equations in echelon form, or None where they depend on each other.

    Returns:
        The store's rows that the columns stand for; and the equations, none of which reads the column that one before
        it settles.
    """
    sparse = solution.places.sparse[:, solution.core]
    rows, columns = np.unique(sparse, return_inverse=True)
    rows = np.concatenate([rows, solution.layout.sparse + np.arange(DENSE)])
    equations: list[Equation] = []
    by_key = zip(columns.reshape(3, -1).T.tolist(), solution.core.tolist(), strict=True)
    for key_columns, key in by_key:
        bits = int(solution.places.dense[key]) << (len(rows) - DENSE)
        bits |= int.from_bytes(values[key].tobytes(), "little") << len(rows)
        for column in key_columns:
            bits ^= 1 << column
        for settled, before in equations:
            if bits >> settled & 1:
                bits ^= before
        own = bits & ((1 << len(rows)) - 1)
        if not own:
            return None
        equations.append(((own & -own).bit_length() - 1, bits))
    return rows, equations


def _fill_core(solution: Solution, values: Words, store: Words) -> None:
    """Settles the rows of the core's equations, the last first; all others keep what they have."""
    form = eliminated(solution, values)
    if form is None:
        raise UnsolvableStore
    rows, equations = form
    for settled, bits in reversed(equations):
        others = [column for column in range(len(rows)) if bits >> column & 1 and column != settled]
        value = (bits >> len(rows)).to_bytes(8 * values.shape[1], "little")
        row = np.frombuffer(value, "<u8").copy()
        if others:
            row ^= np.bitwise_xor.reduce(store[rows[others]], axis=0)
        store[rows[settled]] = row
