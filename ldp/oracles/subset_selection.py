"""Subset selection (ω-subset mechanism): a set of k values that holds the true one with a higher probability.

It has the least variance of all oracles here for every ε, and reports as long as unary encoding's.
Source: Ye and Barg, "Optimal Schemes for Discrete Distribution Estimation under Locally Differential Privacy", IEEE
Transactions on Information Theory 64(8), 2018; Wang et al., "Mutual Information Optimally Local Private Discrete
Distribution Estimation", 2016.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.packed import bits_at, clean, column_sums, row_bytes
from ldp.arithmetic.sampling import Bits, coin_flips
from ldp.arithmetic.subsets import around, put_own_value, resize, subset_lists, subset_rows
from ldp.blanket import Atom, Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import Codes, DomainLike
from ldp.frequency_oracle import PureOracle, nearest_integers
from ldp.mechanism import Channel, Tally
from ldp.reports import Field, Reports

_LONGEST_LIST: Final = 64
_LARGEST_ENUMERATED: Final = 8


class SubsetSelection(PureOracle):
    """Reports k values: the true one with probability k·e^ε / (k·e^ε + d − k), the rest uniform among the others.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.

    Attributes:
        k: How many values a report has.
        listed: Whether a report lists them, in their order; otherwise it has a bit for each value of the domain.
    """

    name: ClassVar[str] = "ss"

    def __init__(self, domain: DomainLike, epsilon: float) -> None:
        super().__init__(domain, epsilon)
        d, grown = self.domain.size, exp_below(self.epsilon)
        sizes = nearest_integers(d / (math.exp(self.epsilon) + 1), 1, d - 1)
        self.k = min(sizes, key=lambda k: self._variance_of(k, grown))
        self._held = _held(d, self.k, grown)
        self.p, self.q = self._held.fraction, _supported(d, self.k, self._held.fraction)
        self.listed = self.k <= _LONGEST_LIST and self.k * self._code_type.itemsize <= row_bytes(d)

    @property
    def exact_epsilon(self) -> float:
        """Of a set with the true value against one without it."""
        return log_above(self.p / (1 - self.p) * Fraction(self.domain.size - self.k, self.k))

    @property
    def layout(self) -> tuple[Field, ...]:
        """K values if they are short, otherwise d bits."""
        if self.listed:
            return (Field(self._code_type.name, self.k),)
        return (Field("uint8", row_bytes(self.domain.size)),)

    @property
    def _code_type(self) -> np.dtype[Any]:
        return np.min_scalar_type(self.domain.size - 1)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes, d = self.domain.codes(values), self.domain.size
        n = len(codes)
        held = coin_flips(self._held, n, rng)
        if self.listed:
            lists = around(subset_lists(self.k, n, d - 1, rng), codes)
            put_own_value(lists, codes, held, rng)
            return (np.sort(lists, axis=1),)
        # The last column is that of the value that the row leaves out; it is then moved to its place.
        rows = subset_rows(self.k, n, d - 1, rng)
        resize(rows, self.k - held.astype(np.int64), d - 1, rng)
        return (_insert(rows, codes, held, d),)

    def _valid(self, reports: Reports) -> bool:
        sets, d = reports.fields[0], self.domain.size
        if self.listed:
            ordered = self.k == 1 or bool(np.all(sets[:, 1:] > sets[:, :-1]))
            return ordered and bool(np.all(sets < d))
        return clean(sets, d) and bool(np.all(np.bitwise_count(sets).sum(axis=1, dtype=np.int64) == self.k))

    def tally(self, reports: Reports) -> Tally:
        """How many sets have each value."""
        sets, d = reports.fields[0], self.domain.size
        if self.listed:
            return np.bincount(sets.ravel(), minlength=d).astype(np.int64, copy=False)
        return column_sums(sets, d)

    def channel(self) -> Channel:
        """Over all sets of k values, in lexicographic order."""
        d, k = self.domain.size, self.k
        if d > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"the subsets of {d} values are not enumerated")
        within, without = self.p / math.comb(d - 1, k - 1), (1 - self.p) / math.comb(d - 1, k)
        return [[within if v in each else without for each in combinations(range(d), k)] for v in range(d)]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """Numbers of the sets in lexicographic order."""
        d, sets = self.domain.size, reports.fields[0]
        weights = sets[:, 0] if not self.listed else (1 << sets.astype(np.int64)).sum(axis=1)
        numbers = {sum(1 << v for v in each): place for place, each in enumerate(combinations(range(d), self.k))}
        return np.array([numbers[int(weight)] for weight in weights], dtype=np.int64)

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values in the set."""
        sets = reports.fields[0]
        if self.listed:
            return np.stack([(sets == value).any(axis=1) for value in values], axis=1)
        return bits_at(sets, values)

    def blanket(self) -> Blanket:
        """Uniform over the sets, with weight d / (k·e^ε + d − k) but for rounding."""
        d, k = self.domain.size, self.k
        of_others = (1 - self.p) * Fraction(d, d - k)
        of_held = self.p * Fraction(d, k)
        one, both = Fraction(k * (d - k), d * (d - 1)), Fraction(k * (k - 1), d * (d - 1))
        atoms = [Atom(one, of_held, of_others), Atom(one, of_others, of_held)]
        atoms += [Atom(both, of_held, of_held), Atom(1 - 2 * one - both, of_others, of_others)]
        return Blanket(of_others, tuple(atom for atom in atoms if atom.probability))

    def _variance_of(self, k: int, grown: Fraction) -> float:
        p = _held(self.domain.size, k, grown).fraction
        q = _supported(self.domain.size, k, p)
        return float(q * (1 - q) / (p - q) ** 2)


def _held(d: int, k: int, grown: Fraction) -> Dyadic:
    return Dyadic.floor(k * grown / (k * grown + d - k), PRECISE_BITS)


def _supported(d: int, k: int, p: Fraction) -> Fraction:
    """The probability that a report has a given other value."""
    return (p * (k - 1) + (1 - p) * k) / (d - 1)


def _insert(rows: NDArray[np.uint8], codes: NDArray[np.int64], held: NDArray[np.bool_], d: int) -> NDArray[np.uint8]:
    """Rows of d bits from rows of d − 1: the bit at each row's own value moves to the end, to make place for `held`."""
    widened = np.zeros((len(rows), row_bytes(d)), dtype=np.uint8)
    widened[:, : rows.shape[1]] = rows
    place, last = np.arange(len(rows)), d - 1
    byte, mask = codes >> 3, (1 << (codes & 7)).astype(np.uint8)
    moved = (widened[place, byte] & mask) != 0
    widened[place[moved], last >> 3] |= 1 << (last & 7)
    # Where the own value is the last one, the column was empty: there is nothing to move.
    cleared = widened[place, byte] & ~mask
    widened[place, byte] = np.where(held, cleared | mask, cleared)
    return widened
