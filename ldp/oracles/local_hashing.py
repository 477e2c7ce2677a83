"""Local hashing: a random function maps the domain to g buckets, and the value's bucket is perturbed directly.

    BLH   binary local hashing, g = 2
    OLH   optimised local hashing: the whole g next to e^ε + 1 with the least variance

A report is 9 bytes or so for any domain; the server tests every value of the domain against every report.
Source: Wang, Blocki, Li and Jha, USENIX Security 2017, section 4.4.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.hashing import HashFamily
from ldp.arithmetic.sampling import Bits
from ldp.blanket import Atom, Blanket
from ldp.domain import Codes, DomainLike
from ldp.frequency_oracle import PureOracle, nearest_integers
from ldp.mechanism import Channel, Tally
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.reports import Field, Reports
from link.errors import ConfigurationError


class LocalHashing(PureOracle):
    """Local hashing to g buckets: a report supports the values that its function sends to its bucket.

    The function is drawn independently of the value, so all ε is spent on the bucket, by direct encoding over [g]. A
    report supports another value with q = 1/g, whichever bucket it names, since functions are pairwise independent.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        g: Number of buckets, at least 2.

    Attributes:
        family: The functions that users draw from.
    """

    name: ClassVar[str] = "lh"

    def __init__(self, domain: DomainLike, epsilon: float, g: int) -> None:
        super().__init__(domain, epsilon)
        if not 2 <= g <= 1 << 31:
            raise ConfigurationError(f"local hashing takes between 2 and 2^31 buckets, not {g}")
        self.g = g
        self.family = HashFamily(self.domain.size, g)
        self._bucket = DirectEncoding(g, epsilon)
        self.p, self.q = self._bucket.p, Fraction(1, g)

    @property
    def exact_epsilon(self) -> float:
        """That of direct encoding over the buckets."""
        return self._bucket.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """A function and a bucket."""
        return (Field(self.family.dtype.name, 2), *self._bucket.layout)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes = self.domain.codes(values)
        seeds = self.family.draw(len(codes), rng)
        return seeds, self._bucket.privatise(self.family.buckets(seeds, codes), rng).fields[0]

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[1] < self.g))

    def tally(self, reports: Reports) -> Tally:
        """How many reports support each value."""
        seeds, buckets = reports.fields
        return self.family.supporters(seeds, buckets)

    def channel(self) -> Channel:
        """Of the bucket, given a function that sends value v to bucket v mod g."""
        p, other = self._bucket.p, self._bucket.q
        return [[p if y == v % self.g else other for y in range(self.g)] for v in range(self.domain.size)]

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values that its function sends to its bucket."""
        seeds, buckets = reports.fields
        found: Bits = np.equal(self.family.buckets(seeds[:, None, :], values), buckets[:, None])
        return found

    def blanket(self) -> Blanket:
        """A function and a uniform bucket."""
        return hashed_blanket(self._bucket)


class BinaryLocalHashing(LocalHashing):
    """BLH: local hashing to two buckets."""

    name: ClassVar[str] = "blh"

    def __init__(self, domain: DomainLike, epsilon: float) -> None:
        super().__init__(domain, epsilon, 2)


class OptimisedLocalHashing(LocalHashing):
    """OLH: local hashing to the number of buckets with the least variance, next to e^ε + 1.

    The variance (e^ε − 1 + g)² / ((e^ε − 1)²(g − 1)) is convex in g. Libraries that round e^ε + 1, or cut it off, use
    another g than this one and each other.
    """

    name: ClassVar[str] = "olh"

    def __init__(self, domain: DomainLike, epsilon: float) -> None:
        super().__init__(domain, epsilon, best_buckets(epsilon))


def best_buckets(epsilon: float) -> int:
    """The whole number of buckets with the least variance of local hashing."""
    grown = math.exp(epsilon) if isinstance(epsilon, int | float) and -1 < epsilon < 20 else 1.0  # refused later
    return min(nearest_integers(grown + 1, 2, 1 << 31), key=lambda g: (grown - 1 + g) ** 2 / (g - 1))


def hashed_blanket(bucket: DirectEncoding) -> Blanket:
    """A uniform bucket, if functions are pairwise independent: they send two values to two buckets, or both to one.

    Args:
        bucket: The perturbation of buckets.
    """
    share, weight = Fraction(1, bucket.domain.size), bucket.blanket().weight
    likely = bucket.domain.size * bucket.p
    return Blanket(
        weight,
        (
            Atom(share * (1 - share), likely, weight),
            Atom(share * (1 - share), weight, likely),
            Atom(share * share, likely, likely),
            Atom((1 - share) * (1 - share), weight, weight),
        ),
    )
