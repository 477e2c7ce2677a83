"""The collision mechanism, Wheel's simpler successor: a random function sends the set's elements to some of t buckets.

A report is the function and one bucket z. With V the buckets that the set of m elements is sent to, at most m of t,

    Pr[z | s] = p for each z in V,  (1 − |V|·p) / (t − |V|) for each other one,  p = e^ε / (m·e^ε + t − m)

so that no bucket is more than e^ε times likelier from one set than from another. A report supports the elements that
its function sends to z: those of the set with probability p, others with q = 1/t. It takes some 10 bytes for any
domain.

The literature proposes t = m·e^ε + 2m − 1, rounded down. The least total variance is at a t that is a little off, and
up to 5 % lower; `criterion="variance"` finds it.

Functions are taken as random: their values at any m + 1 elements must look independent. Strongly universal functions,
as local hashing has them, are not enough, since |V| depends on m values at once. Privacy does not rest on that.

Source: Wang, Qian, Du, Yang, Huang and Xu, "Set-Valued Data Publication with Local Privacy: Tight Error Bounds and
Efficient Mechanisms", PVLDB 13(8), 2020 (Wheel); Wang, Li, Li, Li, Yang and Yan, "Differentially Private Numerical
Vector Analyses in the Local and Shuffle Model", 2023 (Collision).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import DomainLike
from ldp.mechanism import Channel, Tally
from ldp.reports import Field, Reports
from ldp.sets.baskets import Baskets
from ldp.sets.random_functions import RandomFunctions
from ldp.sets.set_oracle import SetOracle, complete, members_of, total_variance
from link.errors import ConfigurationError

_MOST_BUCKETS: Final = 1 << 31
_LARGEST_ENUMERATED: Final = 6


class Wheel(SetOracle):
    """Reports a random function and a bucket, which is one of the set's own with a probability of m·p at most.

    Args:
        domain: The items, their number, or their texts.
        epsilon: The privacy budget ε: of any two sets, whatever they hold.
        length: m; a set that is larger is cut.
        criterion: What t is chosen by: "variance" for the least total variance, of m items that are held and d that are
            not; "published" for m·e^ε + 2m − 1, rounded down.

    Attributes:
        t: Number of buckets.

    Raises:
        ConfigurationError: There would be more than 2^31 buckets, or a parameter is wrong.
    """

    name: ClassVar[str] = "wheel"

    def __init__(self, domain: DomainLike, epsilon: float, length: int, criterion: str = "variance") -> None:
        super().__init__(domain, epsilon, length, criterion)
        m, grown = length, exp_below(self.epsilon)
        self.t = _best_buckets(self.domain.size, m, math.exp(self.epsilon), criterion)
        if self.t > _MOST_BUCKETS:
            raise ConfigurationError(
                "so long sets and so large a budget need more than 2^31 buckets; lower one of them"
            )
        self.functions = RandomFunctions(self.t)
        self._own = Dyadic.floor(grown / (m * grown + self.t - m), PRECISE_BITS)
        self.p, self.q = self._own.fraction, Fraction(1, self.t)

    @property
    def exact_epsilon(self) -> float:
        """Of one of m buckets against one of the t − m others; no set has a bucket that is rarer than those."""
        return log_above(self.p / self.other_buckets(self.length))

    def other_buckets(self, buckets: int) -> Fraction:
        """The probability of each bucket that the set is not sent to, if it is sent to so many."""
        return (1 - buckets * self.p) / (self.t - buckets)

    def both(self, held: int) -> Fraction:
        """The probability that a report supports two given elements, if `held` (0, 1 or 2) of them are in the set."""
        return self.q * (self.p if held else self.q)

    @property
    def layout(self) -> tuple[Field, ...]:
        """A function and a bucket."""
        return (Field("uint64"), Field(np.min_scalar_type(self.t - 1).name))

    def _perturb(self, values: Any, rng: Randomness) -> tuple[NDArray[Any], ...]:
        full = complete(Baskets.of(values, self.domain), self.length, rng)
        seeds = self.functions.draw(len(full), rng)
        own = np.sort(self.functions.buckets(seeds[:, None], full), axis=1)
        return seeds, self.reported(own, rng)

    def reported(self, own: NDArray[np.int64], rng: Randomness) -> NDArray[np.int64]:
        """A bucket for each row of m buckets, some of which may be equal; sorted."""
        repeated = np.zeros(own.shape, dtype=np.bool_)
        repeated[:, 1:] = own[:, 1:] == own[:, :-1]
        buckets = self.length - repeated.sum(axis=1)
        # The i-th of the set's different buckets has the i-th piece of the words, all others the rest.
        chosen = (rng.uint64(len(own)) // np.uint64(self._own.numerator)).astype(np.int64)
        reported = np.empty(len(own), dtype=np.int64)
        hit = chosen < buckets
        place = np.cumsum(~repeated, axis=1) - 1
        reported[hit] = own[hit][(place[hit] == chosen[hit, None]) & ~repeated[hit]]
        for number in np.unique(buckets[~hit]).tolist():
            users = np.flatnonzero(~hit & (buckets == number))
            reported[users] = self._outside(own[users], repeated[users], rng.integers(self.t - number, len(users)))
        return reported

    @staticmethod
    def _outside(own: NDArray[np.int64], repeated: NDArray[Any], drawn: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Numbers among the buckets that are not the row's own as numbers among all."""
        found = drawn.astype(np.int64)
        for bucket, again in zip(own.T, repeated.T, strict=True):  # in ascending order
            found += (found >= bucket) & ~again
        return found

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[1] < self.t))

    def tally(self, reports: Reports) -> Tally:
        """How many reports support each element."""
        seeds, buckets = reports.fields
        return self.functions.supporters(seeds, buckets, self.elements)

    def channel(self) -> Channel:
        """Of the bucket, given a function that sends element v to bucket v mod t.

        Rows are all 2^d sets, as numbers with the first item's bit lowest.
        """
        d, m, t = self.domain.size, self.length, self.t
        if d > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"the sets of {d} items are not enumerated")
        channel = []
        for number in range(1 << d):
            cuts = [{v % t for v in each} for each in members_of(number, d, m)]
            rows = [[self.p if y in own else self.other_buckets(len(own)) for y in range(t)] for own in cuts]
            channel.append([sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)])
        return channel

    def blanket(self) -> Blanket:
        """A function and a uniform bucket, between the rarest and the likeliest."""
        return Blanket.between(self.t * self.other_buckets(self.length), self.t * self.p)


def _best_buckets(d: int, m: int, grown: float, criterion: str) -> int:
    """The published number of buckets, or the one with the least total variance.

    Args:
        d: Number of items.
        m: Number of elements in a set.
        grown: e^ε.
        criterion: One of `CRITERIA`.
    """
    published = m * grown + 2 * m - 1
    if criterion == "published":
        return int(published)

    def variance(t: int) -> float:
        p, q = np.array(grown / (m * grown + t - m)), np.array(1 / t)
        return float(total_variance(p, q, d, m, criterion))

    low, high = m + 1, math.ceil(4 * published)
    while low < high:  # the variance falls up to the best number, and rises from there
        middle = (low + high) // 2
        if variance(middle) <= variance(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low
