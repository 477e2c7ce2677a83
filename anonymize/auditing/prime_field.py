"""The answered sums modulo one secret prime: what the next answer would determine, at the cost of t² for t answers.

Q is the 0/1 matrix of answered queries, shape (t, n), rows independent modulo p. A record is determined modulo p if and
only if its coordinate is 0 in every vector z with Q z = 0. A random one of these vectors decides: where z_i is not 0,
record i is not determined. Where it is 0 by accident (probability 1/p), a second one has to agree.

Random null vectors are made from the inverse of t columns of Q, the pivots: z is random elsewhere and solved for there.
A new query borders the inverse by a row and a column.
"""

from __future__ import annotations

import gmpy2
import numpy as np
from numpy.typing import NDArray

from anonymize.auditing.state import StateReader, StateWriter
from crypto.primitives.randomness import Randomness

Residues = NDArray[np.uint64]

_POOL = 4  # null vectors that are made at once
_BLOCK = 8  # rows of the inverse that are changed at a time: they stay in the processor's cache
_SETS = 256  # that are summed over at a time
_ROWS = 64  # of the inverse that are multiplied at a time
_TRIES = 16  # columns that are tried for a pivot before all are
_PIECE_BITS = 8  # of a factor, so that products of 39 bits, 2^14 of them, fit the 53 bits of a float


def random_prime(random: Randomness) -> int:
    """A secret prime of 31 bits; there are about 5·10⁷."""
    while True:
        prime = int(gmpy2.next_prime((1 << 30) + random.below(1 << 30)))
        if prime < 1 << 31:
            return prime


class AnsweredSets:
    """The sets of records of the answered queries, in one array.

    A set of more than half of all records is kept by what it leaves out.

    Args:
        n: How many records there are.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._flat = np.empty(1024, np.int32)
        self._starts = [0]
        self._left_out: list[bool] = []

    def __len__(self) -> int:
        return len(self._left_out)

    def append(self, query: NDArray[np.int64]) -> None:
        """Adds a set."""
        left_out = 2 * len(query) > self.n
        kept = np.setdiff1d(np.arange(self.n), query, assume_unique=True) if left_out else query
        end = self._starts[-1] + len(kept)
        if end > len(self._flat):
            self._flat = np.concatenate([self._flat, np.empty(max(end, len(self._flat)), np.int32)])
        self._flat[self._starts[-1] : end] = kept
        self._starts.append(end)
        self._left_out.append(left_out)

    def extend(self, more: int) -> None:
        """Adds records that are in none of the sets."""
        sets = [self._members(number) for number in range(len(self))] if any(self._left_out) else []
        self.n += more
        if sets:  # what a set leaves out is another thing now
            self._flat, self._starts, self._left_out = np.empty(1024, np.int32), [0], []
            for each in sets:
                self.append(each)

    def write(self, state: StateWriter) -> None:
        """Writes the sets."""
        state.numbers(self.n, len(self))
        state.array(np.array(self._starts, np.int64))
        state.array(np.array(self._left_out, bool))
        state.array(self._flat[: self._starts[-1]])

    @classmethod
    def read(cls, state: StateReader) -> AnsweredSets:
        """Sets that were written.

        Raises:
            InputDataError: They are damaged.
        """
        n, t = state.numbers(2)
        sets = cls(n)
        sets._starts = state.array(np.empty(t + 1, np.int64)).tolist()
        sets._left_out = state.array(np.empty(t, bool)).tolist()
        sets._flat = state.array(np.empty(sets._starts[-1], np.int32))
        return sets

    def _members(self, number: int) -> NDArray[np.int64]:
        kept = self._flat[self._starts[number] : self._starts[number + 1]].astype(np.int64)
        return np.setdiff1d(np.arange(self.n), kept, assume_unique=True) if self._left_out[number] else kept

    def column(self, record: int) -> NDArray[np.bool_]:
        """Which sets hold a record, shape (t,)."""
        at = np.flatnonzero(self._flat[: self._starts[-1]] == record)
        held = np.zeros(len(self), bool)
        held[np.searchsorted(self._starts, at, side="right") - 1] = True
        held ^= np.array(self._left_out, bool)
        return held

    def times(self, vector: Residues) -> Residues:
        """Q g: the sums of a vector of residues below 2^31 over each set; shape (t,), below 2^63."""
        sums, starts = np.empty(len(self), np.uint64), np.array(self._starts)
        for first in range(0, len(self), _SETS):
            here = starts[first : first + _SETS + 1]
            running = np.zeros(here[-1] - here[0] + 1, np.uint64)
            np.cumsum(vector[self._flat[here[0] : here[-1]]], out=running[1:])
            sums[first : first + _SETS] = running[here[1:] - here[0]] - running[here[:-1] - here[0]]
        return np.where(np.array(self._left_out, bool), vector.sum() - sums, sums)

    def combined(self, weights: Residues) -> Residues:
        """W Q: for each record the sum of the weights of the sets that hold it; shape (n,), below 2^63."""
        sizes, left_out = np.diff(self._starts), np.array(self._left_out, bool)
        signed = np.where(left_out, -weights.astype(np.int64), weights.astype(np.int64))
        found = np.full(self.n, int(weights[left_out].sum()), np.int64)
        np.add.at(found, self._flat[: self._starts[-1]], np.repeat(signed, sizes))
        return found.astype(np.uint64)


class PrimeField:
    """The answered sums modulo one prime.

    Args:
        sets: The answered queries; shared by the fields of an auditor, which adds to them.
        prime: Secret.
        random: For null vectors; secret.
    """

    def __init__(self, sets: AnsweredSets, prime: int, random: Randomness) -> None:
        self._sets, self.prime, self._random = sets, prime, random
        self._inverse = _square(64)
        self._pivots = np.empty(64, np.int64)
        self._pivot_of = np.full(sets.n, -1, np.int64)
        self._null = [random.integers(prime, sets.n) for _ in range(_POOL)]

    def spans(self, query: NDArray[np.int64]) -> bool:
        """Whether the query is a combination of the answered ones, so that its answer is known already."""
        return self._dot(query, self._null[0]) == 0

    def hidden_after(self, query: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which records would not be determined if a query that is no combination were answered too; shape (n,).

        A record that would be hidden is missed with probability 1/p² at most.
        """
        found = np.zeros(self._sets.n, bool)
        for after in self._projected(query)[:2]:
            found |= after != 0
        return found

    def answer(self, query: NDArray[np.int64]) -> None:
        """Takes a query in that is no combination; to be called before the sets get it."""
        t, prime = len(self._sets), self.prime
        self._grow(t + 1)
        inverse = self._inverse[:t, :t]
        place = self._pivot_of[query]
        weights = inverse[place[place >= 0]].sum(axis=0, dtype=np.uint64) % np.uint64(prime)
        record, rest = self._pivot(query, weights)
        held = self._sets.column(record)
        image = inverse[:, held].sum(axis=1, dtype=np.uint64) % np.uint64(prime)
        scale = pow(rest, -1, prime)
        row = (prime - weights) * np.uint64(scale) % np.uint64(prime)  # −w / s
        _add_product(inverse, image, (prime - row) % np.uint64(prime), prime)  # + u w / s
        self._inverse[t, :t] = row
        self._inverse[:t, t] = (prime - image) * np.uint64(scale) % np.uint64(prime)
        self._inverse[t, t] = scale
        self._pivots[t], self._pivot_of[record] = record, t
        self._null = self._projected(query)

    def refill(self) -> None:
        """Makes null vectors, where few are left; to be called once the sets have the query."""
        if len(self._null) >= 3:
            return
        t, prime = len(self._sets), np.uint64(self.prime)
        fresh = [self._random.integers(self.prime, self._sets.n) for _ in range(_POOL)]
        for vector in fresh:
            vector[self._pivots[:t]] = 0
        wanted = np.stack([self._sets.times(vector) % prime for vector in fresh], axis=1)
        solved = _product(self._inverse[:t, :t], (prime - wanted) % prime, self.prime)
        for vector, part in zip(fresh, solved.T, strict=True):
            vector[self._pivots[:t]] = part
        self._null += fresh

    def extend(self, more: int) -> None:
        """Adds records that are in no query so far; to be called once the sets know them."""
        self._pivot_of = np.concatenate([self._pivot_of, np.full(more, -1, np.int64)])
        self._null = [np.concatenate([vector, self._random.integers(self.prime, more)]) for vector in self._null]

    def write(self, state: StateWriter) -> None:
        """Writes the field without its sets."""
        t = len(self._sets)
        state.numbers(self.prime, len(self._inverse), len(self._null))
        state.array(self._pivots[:t])
        state.array(self._inverse[:t, :t])
        for vector in self._null:
            state.array(vector)

    @classmethod
    def read(cls, state: StateReader, sets: AnsweredSets, random: Randomness) -> PrimeField:
        """A field that was written.

        Args:
            state: Where it comes next.
            sets: Its own.
            random: For null vectors from now on; secret, and never that of before.

        Raises:
            InputDataError: It is damaged.
        """
        prime, capacity, vectors = state.numbers(3)
        field, t = cls(sets, prime, random), len(sets)
        field._inverse, field._pivots = _square(capacity), np.empty(capacity, np.int64)
        field._pivot_of[state.array(field._pivots[:t])] = np.arange(t)
        state.array(field._inverse[:t, :t])
        field._null = [state.array(np.empty(sets.n, np.uint64)) for _ in range(vectors)]
        return field

    def _dot(self, query: NDArray[np.int64], vector: Residues) -> int:
        return int(vector[query].sum()) % self.prime

    def _projected(self, query: NDArray[np.int64]) -> list[Residues]:
        """Null vectors of the queries with this one: z − (q·z / q·z₀) z₀ for every z but the first."""
        first, *others = self._null
        scale = pow(self._dot(query, first), -1, self.prime)
        prime = np.uint64(self.prime)
        found = []
        for vector in others:
            factor = np.uint64((self.prime - self._dot(query, vector)) * scale % self.prime)
            found.append((vector + first * factor % prime) % prime)
        return found

    def _pivot(self, query: NDArray[np.int64], weights: Residues) -> tuple[int, int]:
        """A record in which the query differs from the combination with these weights, and by how much."""
        free = query[self._pivot_of[query] < 0]
        if len(free):
            for at in self._random.integers(len(free), _TRIES).tolist():
                held = self._sets.column(int(free[at]))
                rest = (1 - int(weights[held].sum())) % self.prime
                if rest:
                    return int(free[at]), rest
        left = (np.uint64(self.prime) - self._sets.combined(weights) % np.uint64(self.prime)) % np.uint64(self.prime)
        left[query] = (left[query] + np.uint64(1)) % np.uint64(self.prime)
        record = int(np.flatnonzero(left)[0])  # there is one, since the query is no combination
        return record, int(left[record])

    def _grow(self, t: int) -> None:
        """Grows in place: beside a second array, both fields would not fit where one fits."""
        size = len(self._inverse)
        if t > size:
            capacity = size + max(size // 16, 64)
            cells = self._inverse.base
            assert cells is not None
            self._inverse = np.empty((0, 0), np.uint32)
            cells.resize(capacity * capacity, refcheck=False)  # nothing else looks at it
            for row in range(size - 1, 0, -1):
                cells[row * capacity : row * capacity + size] = cells[row * size : (row + 1) * size]
            self._inverse = cells.reshape(capacity, capacity)
            self._pivots = np.concatenate([self._pivots, np.empty(capacity - size, np.int64)])


def _square(size: int) -> NDArray[np.uint32]:
    """Zeros in a flat array, which can grow."""
    return np.zeros(size * size, np.uint32).reshape(size, size)


def _add_product(matrix: NDArray[np.uint32], column: Residues, row: Residues, prime: int) -> None:
    """Matrix += column · row modulo p, in place."""
    modulus = np.uint64(prime)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        sums = column[start : start + _BLOCK, None] * row
        sums += block
        quotients = sums // modulus  # by one number numpy divides many times as fast as it takes remainders
        quotients *= modulus
        sums -= quotients
        block[:] = sums


def _product(matrix: NDArray[np.uint32], vectors: Residues, prime: int) -> Residues:
    """Matrix · vectors modulo p, by exact products of floats: factors are cut into pieces of 8 bits.

    Args:
        matrix: Shape (t, t), t up to 2^14.
        vectors: Shape (t, m).
        prime: p < 2^31.
    """
    pieces = [(vectors >> np.uint64(shift)) & np.uint64(0xFF) for shift in range(0, 32, _PIECE_BITS)]
    factors = np.concatenate(pieces, axis=1).astype(np.float64)
    m, found = vectors.shape[1], np.empty(vectors.shape, np.uint64)
    for start in range(0, len(matrix), _ROWS):
        sums = (matrix[start : start + _ROWS].astype(np.float64) @ factors).astype(np.uint64) % np.uint64(prime)
        total = np.zeros((len(sums), m), np.uint64)
        for number in range(len(pieces)):
            weight = np.uint64(pow(2, number * _PIECE_BITS, prime))
            total += sums[:, number * m : (number + 1) * m] * weight % np.uint64(prime)
        found[start : start + _ROWS] = total % np.uint64(prime)
    return found
