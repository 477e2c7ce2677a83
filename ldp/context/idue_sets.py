"""IDUE-PS: input-discriminative LDP for sets of values, by padding and sampling.

A user with a set x samples one of its values with probability 1/max(|x|, l) each, and otherwise, if the set has less
than l, nothing: a dummy. What was sampled is reported by `ldp.context.idue`. Dummies need no bits of their own: the
report of one is that of a user who has no value, and no two dummies can be distinguished.

The budget of a set follows from those of its values. With η = |x|/max(|x|, l),

    Ω_x = ln((η/|x|)·Σ_{v ∈ x} e^ε_v + (1 − η)·e^ε_∅)

where ε_∅ is the dummy's: what one bit says, and so no more than the smallest of all budgets. For Pr[y | v] is at most
e^ε_v·Pr[y | v'] for every value or dummy v', the mean over x at most e^Ω_x·Pr[y | v'], and so is that of any other set.
The other way round, Pr[y | x'] is at least Σ_{v ∈ x} of (1/max(|x|, l))·e^−ε_v times that, and a harmonic mean is
smaller than the mean. So every two sets are protected from each other with the smaller Ω: MinID-LDP for sets.

Source: Gu, Li, Xiong and Cao, "Providing Input-Discriminative Protection for Local Differential Privacy", ICDE 2020,
section VI; Wang, Li and Jha, S&P 2018, on padding and sampling.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.context.idue import InputDiscriminativeUnaryEncoding
from ldp.domain import Codes, Domain, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats
from ldp.mechanism import Channel, Mechanism, Tally, some
from ldp.reports import Field, Reports
from link.errors import ConfigurationError, InputDataError

Sets: TypeAlias = Sequence[Collection[str | int]]
"""Each user's values, in any order, none of them twice; a set may be empty."""

_LARGEST_LENGTH: Final = 1 << 16
_LARGEST_ENUMERATED: Final = 5


class InputDiscriminativeSets(Mechanism[Estimate]):
    """IDUE-PS: estimates how many users' sets hold each value.

    Estimates are l times those of what was sampled: without bias if no set has more than l values; a larger one counts
    l/|x| for each of its values. Take an l that most sets do not exceed; the variance grows with l².

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilons: The budget of each value, in the order of the domain; at most 32 different ones.
        length: l, to which sets are padded.
        program: What IDUE minimises, one of `ldp.context.programs.PROGRAMS`.

    Attributes:
        single: How what was sampled is reported.

    Raises:
        ConfigurationError: A budget or l is out of range.
    """

    name: ClassVar[str] = "idue-ps"

    def __init__(self, domain: DomainLike, epsilons: Sequence[float], length: int, program: str = "opt0") -> None:
        if not 1 <= length <= _LARGEST_LENGTH:
            raise ConfigurationError(f"sets are padded to between 1 and {_LARGEST_LENGTH:,} values, not to {length}")
        self.single = InputDiscriminativeUnaryEncoding(domain, epsilons, program)
        super().__init__(self.single.epsilon)
        self.domain: Domain = self.single.domain
        self.epsilons, self.length, self.program = self.single.epsilons, length, program

    @property
    def exact_epsilon(self) -> float:
        """Of l values whose bits are 1 against l others whose bits are 0, at most."""
        levels = self.single.level_of
        ones, zeros = zip(*self.single.ratios(), strict=True)
        most = sorted((ones[level] for level in levels), reverse=True)[: self.length]
        least = sorted(zeros[level] for level in levels)[: self.length]
        dummies = self.length - len(most)
        return log_above((sum(most) + dummies) / (sum(least) + dummies))

    @property
    def dummy_epsilon(self) -> float:
        """ε_∅: what protects a dummy and a value from each other."""
        return log_above(self._dummy_ratio())

    def set_epsilon(self, values: Collection[str | int]) -> float:
        """Ω_x, the budget of a set.

        Args:
            values: The set.

        Raises:
            InputDataError: A value is not in the domain, or twice in the set.
        """
        codes, sizes = self._codes([values])
        places = max(int(sizes[0]), self.length)
        grown = sum((exp_below(self.epsilons[code]) for code in codes.tolist()), Fraction(0))
        return log_above((grown + (places - len(codes)) * self._dummy_ratio()) / places)

    def pair_epsilon(self, first: Collection[str | int], second: Collection[str | int]) -> float:
        """The ε that protects two sets from each other: the smaller Ω; arguments and errors as of `set_epsilon`."""
        return min(self.set_epsilon(first), self.set_epsilon(second))

    def _dummy_ratio(self) -> Fraction:
        return max(max(one, 1 / zero) for one, zero in self.single.ratios())

    @property
    def layout(self) -> tuple[Field, ...]:
        """The bits of each level's values."""
        return self.single.layout

    def privatise(self, values: ArrayLike | Sets, rng: Randomness | None = None) -> Reports:
        """Samples of each user's set, and perturbs what was sampled.

        Args:
            values: The users' sets.
            rng: The source of randomness; by default the operating system's. Seeded ones are for simulations.

        Raises:
            InputDataError: A value is not in the domain, or twice in a set.
        """
        return super().privatise(cast("ArrayLike", values), rng)  # sets are ragged, which no array is

    def _perturb(self, values: Any, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return self.single.bits(self.sample(values, rng), rng)

    def sample(self, sets: Sets, rng: Randomness) -> Codes:
        """Pads and samples: for each set the number of one of its values, or −1 for a dummy; shape (n,)."""
        codes, sizes = self._codes(sets)
        places = np.maximum(sizes, self.length)
        drawn = np.empty(len(sizes), dtype=np.int64)
        for size in np.unique(places).tolist():
            users = np.flatnonzero(places == size)
            drawn[users] = rng.integers(size, len(users))
        real = drawn < sizes
        sampled = np.full(len(sizes), -1, dtype=np.int64)
        sampled[real] = codes[(np.cumsum(sizes) - sizes)[real] + drawn[real]]
        return sampled

    def _codes(self, sets: Sets) -> tuple[Codes, NDArray[np.int64]]:
        """The numbers of all sets' values, one set behind the other, and the sets' sizes."""
        if any(isinstance(each, str | bytes) or not isinstance(each, Collection | np.ndarray) for each in sets):
            raise InputDataError("each user's values must be a list or a set of values")
        sizes = np.fromiter(map(len, sets), np.int64, len(sets))
        values = list(chain.from_iterable(sets))
        codes = self.domain.codes(np.array(values, dtype=None if self.domain.labels is None else object))
        owners = np.repeat(np.arange(len(sizes)), sizes)
        if len(np.unique(owners * self.domain.size + codes)) < len(codes):
            raise InputDataError("a value is named twice in one user's set; name each value of a set once")
        return codes, sizes

    def _valid(self, reports: Reports) -> bool:
        return self.single._valid(reports)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a value."""
        return self.single.tally_shape

    def tally(self, reports: Reports) -> Tally:
        """How often each value's bit is set."""
        return self.single.tally(reports)

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """l·(C_v − n·b) / (a − b)."""
        return self.length * self.single.unbiased(tally, n)

    def variance(self, counts: Floats, n: int) -> Floats:
        """The exact variances over sampling and bits, if `counts` users' sets, of l values at most, hold each value.

        (l/(a − b))²·(c_v·r(1 − r) + (n − c_v)·b(1 − b)) with r = b + (a − b)/l, the probability of a holder's 1.
        """
        a, b = self.single.rates()
        held = b + (a - b) / self.length
        noise = counts * held * (1 - held) + (n - np.asarray(counts)) * b * (1 - b)
        return np.asarray((self.length / (a - b)) ** 2 * noise, dtype=np.float64)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """How many sets hold each value; raw, with variances."""
        some(n)
        counts = self.unbiased(tally, n)
        return Estimate(self.domain, n, counts, self.variance(np.clip(counts, 0, n), n))

    def blanket(self) -> Blanket:
        """That of IDUE: a set is no worse than the values and dummies that are drawn from it."""
        return self.single.blanket()

    def channel(self) -> Channel:
        """From all 2^d sets, as numbers with the first value's bit lowest, to all 2^d strings of bits."""
        d = self.domain.size
        if d > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"the sets of {d} values are not enumerated")
        rows = {x: [self.single.likelihood(x, bits) for bits in range(1 << d)] for x in range(-1, d)}
        channel = []
        for number in range(1 << d):
            members = [v for v in range(d) if number >> v & 1]
            places = max(len(members), self.length)
            shown = [*members, *[-1] * (places - len(members))]
            channel.append([sum((rows[x][y] for x in shown), Fraction(0)) / places for y in range(1 << d)])
        return channel

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The strings of bits as numbers."""
        return self.single.outcomes(reports)
