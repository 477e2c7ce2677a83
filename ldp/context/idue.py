"""Input-discriminative LDP: values with privacy budgets of their own, and the unary encoding that makes use of them.

Under MinID-LDP two values x and x' are protected from each other with the smaller of their budgets:
Pr[y | x] ≤ e^min(ε_x, ε_x')·Pr[y | x'] for every output y. So a few sensitive values do not drown the others in noise.

IDUE, the input-discriminative unary encoding, sends one bit a value: 1 with probability a_i at the user's own value and
b_i at another, where i is the value's level, all values of one budget. `ldp.context.programs` finds a and b; here they
are rounded so that every pair's budget holds in exact arithmetic.

Source: Gu, Li, Xiong and Cao, "Providing Input-Discriminative Protection for Local Differential Privacy", ICDE 2020,
sections IV and V.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic, bits_for
from ldp.arithmetic.packed import bits_at, clean, coin_rows, column_sums, row_bytes, set_bits
from ldp.arithmetic.sampling import Bits, coin_flips
from ldp.blanket import Blanket
from ldp.budget import check_epsilon, exp_below, log_above
from ldp.context.programs import Levels, solve
from ldp.domain import Codes, Domain, DomainLike
from ldp.frequency_oracle import Floats, FrequencyOracle
from ldp.mechanism import Channel, Tally
from ldp.reports import Field, Reports
from link.errors import ConfigurationError, InternalError

_MOST_LEVELS: Final = 32
_LARGEST_ENUMERATED: Final = 8


class InputDiscriminativeUnaryEncoding(FrequencyOracle):
    """IDUE: unary encoding whose probabilities differ from level to level, by an optimisation.

    Its plain LDP guarantee is `exact_epsilon`, the worst over all pairs of values; `pair_epsilon` is that of a pair.

    Attributes:
        levels: The budgets and how many values have each.
        level_of: Shape (d,): the level of each value.
        place_of: Shape (d,): the number of each value's bit among those of its level.
        p: Of each level, the probability a of a 1 at the user's own value.
        q: The same, b, at another value.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilons: The budget of each value, in the order of the domain; at most 32 different ones.
        program: What is minimised. "opt0": the total variance in the worst case of the data, over all a and b; "opt1":
            the same with a + b = 1, as RAPPOR has it; "opt2": with a = 1/2, as OUE has it.
    """

    name: ClassVar[str] = "idue"

    def __init__(self, domain: DomainLike, epsilons: Sequence[float], program: str = "opt0") -> None:
        known = Domain.of(domain)
        self.epsilons = tuple(check_epsilon(epsilon) for epsilon in epsilons)
        if len(self.epsilons) != known.size:
            raise ConfigurationError(f"each of the {known.size} values needs a budget; {len(self.epsilons)} are given")
        super().__init__(known, max(self.epsilons))
        self.program = program
        budgets, self.level_of = np.unique(self.epsilons, return_inverse=True)
        if len(budgets) > _MOST_LEVELS:
            raise ConfigurationError(
                f"budgets take {len(budgets)} different values, more than {_MOST_LEVELS}; group them into fewer levels"
            )
        self.levels = Levels(tuple(float(each) for each in budgets), tuple(np.bincount(self.level_of).tolist()))
        self._columns = [np.flatnonzero(self.level_of == level) for level in range(len(budgets))]
        self.place_of = np.empty(known.size, dtype=np.int64)
        for columns in self._columns:
            self.place_of[columns] = np.arange(len(columns))
        self._own, self._other = _dyadic(self.levels, *solve(self.levels, program))
        own, other = ([each.fraction for each in found] for found in (self._own, self._other))
        self.p, self.q = own, other

    @property
    def exact_epsilon(self) -> float:
        """The largest `pair_epsilon`."""
        return log_above(max(_ratio(self.p, self.q, i, j) for i, j in self.levels.pairs()))

    def pair_epsilon(self, first: int, second: int) -> float:
        """The ε that protects two values, given by their numbers, from each other."""
        i, j = int(self.level_of[first]), int(self.level_of[second])
        return log_above(max(_ratio(self.p, self.q, i, j), _ratio(self.p, self.q, j, i)))

    @property
    def layout(self) -> tuple[Field, ...]:
        """The bits of each level's values."""
        return tuple(Field("uint8", row_bytes(size)) for size in self.levels.sizes)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return self.bits(self.domain.codes(values), rng)

    def bits(self, codes: Codes, rng: Randomness) -> tuple[NDArray[np.uint8], ...]:
        """The fields of one report for each value's number, or for −1, of nobody's value: all bits are another's."""
        fields, level_of = [], np.where(codes < 0, -1, self.level_of[codes])
        for level, (own, other) in enumerate(zip(self._own, self._other, strict=True)):
            rows = coin_rows(other, len(codes), self.levels.sizes[level], rng)
            users = np.flatnonzero(level_of == level)
            theirs = rows[users]
            set_bits(theirs, self.place_of[codes[users]], coin_flips(own, len(users), rng))
            rows[users] = theirs
            fields.append(rows)
        return tuple(fields)

    def ratios(self) -> list[tuple[Fraction, Fraction]]:
        """Of each level, how many times likelier a 1 and a 0 of a value's bit is from its user than from nobody."""
        return [(a / b, (1 - a) / (1 - b)) for a, b in zip(self.p, self.q, strict=True)]

    def _valid(self, reports: Reports) -> bool:
        return all(clean(rows, size) for rows, size in zip(reports.fields, self.levels.sizes, strict=True))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a value."""
        return (self.domain.size,)

    def tally(self, reports: Reports) -> Tally:
        """How often each value's bit is set."""
        sums = np.empty(self.domain.size, dtype=np.int64)
        for rows, columns in zip(reports.fields, self._columns, strict=True):
            sums[columns] = column_sums(rows, len(columns))
        return sums

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """(C_v − n·b) / (a − b) with the a and b of the value's level."""
        a, b = self.rates()
        supports: Floats = tally.astype(np.float64)
        return (supports - n * b) / (a - b)

    def variance(self, counts: Floats, n: int) -> Floats:
        """n·b(1 − b)/(a − b)² + c_v·(1 − a − b)/(a − b) with the a and b of the value's level."""
        a, b = self.rates()
        return np.asarray(n * b * (1 - b) / (a - b) ** 2 + counts * (1 - a - b) / (a - b), dtype=np.float64)

    def channel(self) -> Channel:
        """Over all 2^d strings of bits, the first value's bit lowest."""
        d = self.domain.size
        if d > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"2^{d} outputs are not enumerated")
        return [[self.likelihood(x, bits) for bits in range(1 << d)] for x in range(d)]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The strings of bits as numbers."""
        numbers = np.zeros(len(reports), dtype=np.int64)
        for rows, columns in zip(reports.fields, self._columns, strict=True):
            bits = np.unpackbits(rows, axis=1, count=len(columns), bitorder="little")
            numbers += (bits.astype(np.int64) << columns).sum(axis=1)
        return numbers

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values whose bits are set."""
        found = np.empty((len(reports), len(values)), dtype=np.bool_)
        for level, rows in enumerate(reports.fields):
            here = self.level_of[values] == level
            found[:, here] = bits_at(rows, self.place_of[values[here]])
        return found

    def blanket(self) -> Blanket:
        """All bits drawn as if nobody had their values; at least as bad as that of any pair of values.

        Against it a value's likelihood is a/b where its bit is 1 and (1 − a)/(1 − b) where it is 0, of mean 1. With
        the largest of the former and the least of the latter it spreads more than each value's, and every convex
        function of it, as an accountant takes, has a larger mean.
        """
        ones, zeros = zip(*self.ratios(), strict=True)
        return Blanket.independent(min(zeros), max(ones))

    def rates(self) -> tuple[Floats, Floats]:
        """The a and b of every value, each of shape (d,)."""
        a, b = (np.array([float(each) for each in found])[self.level_of] for found in (self.p, self.q))
        return a, b

    def likelihood(self, x: int, bits: int) -> Fraction:
        """Of a string of bits, as a number, if x, or with −1 nothing, is the user's value."""
        result = Fraction(1)
        for v, level in enumerate(self.level_of):
            one = self.p[level] if v == x else self.q[level]
            result *= one if bits >> v & 1 else 1 - one
        return result


def _dyadic(levels: Levels, a: Floats, b: Floats) -> tuple[list[Dyadic], list[Dyadic]]:
    """Dyadic probabilities that keep the budgets in exact arithmetic: a lowered and b raised by as little as will do.

    Both make every ratio a_i(1 − b_j) / (b_i(1 − a_j)) smaller.
    """
    bits = bits_for(levels.budgets[-1])
    limits = {pair: exp_below(levels.bound(*pair)) for pair in levels.pairs()}
    unit, step = Fraction(1, 1 << bits), 0
    while True:
        own = [Dyadic.floor(max(Fraction(each) - step * unit, Fraction(0)), bits) for each in a]
        other = [Dyadic.ceil(min(Fraction(each) + step * unit, Fraction(1)), bits) for each in b]
        p, q = [each.fraction for each in own], [each.fraction for each in other]
        if any(p_i <= q_i for p_i, q_i in zip(p, q, strict=True)):
            raise InternalError("no probabilities were found that keep the budgets")
        if all(_ratio(p, q, i, j) <= limit for (i, j), limit in limits.items()):
            return own, other
        step = 2 * step or 1


def _ratio(p: list[Fraction], q: list[Fraction], i: int, j: int) -> Fraction:
    """How many times likelier a value of level i makes its own 1 and a 0 at one of level j, than that value does."""
    return p[i] * (1 - q[j]) / (q[i] * (1 - p[j]))
