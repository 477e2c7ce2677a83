"""What no accountant of shuffled reports can undercut: the exact δ or ε of two concrete neighbouring batches.

In both batches all users but one have the same value; the last one has x in the one and x' in the other. The shuffled
reports are the counts of outputs, and the exact δ of these two batches is a lower bound of the mechanism's.

The variation ratio (Wang et al., "Privacy Amplification via Shuffling: Unified, Simplified, and Tightened", VLDB 2024)
has been published as an upper bound, which it is not: for k-ary randomised response it is the δ of two such batches, of
which only three kinds of reports are distinguished. Its reduction rests on a lemma of Feldman, McMillan and Talwar,
SODA 2023, that their erratum (arXiv 2208.04591) restricts. With k = 4, ε₀ = 3, n = 60 and δ = 10^-6 it gives 2.63227,
while two concrete batches have ε = 2.73871.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, gammaln, xlogy
from scipy.stats import binom

from ldp.accounting.rounding import Floats
from ldp.accounting.shuffling import check_batch, check_delta
from ldp.accounting.solving import crossing
from ldp.frequency_oracle import FrequencyOracle
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.oracles.subset_selection import SubsetSelection
from ldp.oracles.unary_encoding import UnaryEncoding
from link.errors import ConfigurationError

_REACH: Final = 12.0  # standard deviations of a binomial number that are summed over
_MOST_KINDS: Final = 5
_MOST_COUNTS: Final = 10**8


@dataclass(frozen=True, slots=True)
class Kinds:
    """Reports seen only as "for x, not x'", "for x', not x", or neither.

    Attributes:
        own: The probability that a user's report is for their own value of the two.
        other: That it is for the other one of the two.
        background: That the report of somebody with a third value is for x, and the same for x'.
    """

    own: float
    other: float
    background: float

    def __post_init__(self) -> None:
        inside = 0 <= self.other <= self.own and self.background > 0 and self.own + self.other <= 1 + 1e-12
        if not inside or 2 * self.background > 1 + 1e-12:
            raise ConfigurationError("three kinds of reports have probabilities that add up to 1, the own kind most")

    @classmethod
    def of_ratios(cls, p: float, beta: float, q: float) -> Kinds:
        """From the parameters of the variation-ratio reduction.

        For k-ary randomised response, p = q = e^ε₀ and β = (e^ε₀ − 1)/(e^ε₀ + k − 1), these are the kinds of reports
        that there are. For other mechanisms the background is less than anybody's; the number is then a bound of
        nothing, as for local hashing, where it lies above a proved upper bound.

        Args:
            p: The largest ratio between the two inputs' probabilities of a report; above 1.
            beta: Their total variation.
            q: The largest ratio between theirs and anybody else's.
        """
        other = beta / (p - 1)
        return cls(other * p, other, other * p / q)

    def delta(self, n: int, epsilon: float) -> float:
        """δ of the numbers of the three kinds among n reports; sums are cut where that lowers it.

        Args:
            n: Reports, the differing one among them.
            epsilon: ε.
        """
        grown, share = math.exp(epsilon), 2 * self.background
        rest = 1 - self.own - self.other
        # Of the n reports, as if all were drawn by the others' law, c are of the two kinds, and a of these for x. Then
        # the first batch's probability minus e^ε times the second's is n draws' mean of `gain·a + loss·(c − a) + same`.
        gain = (self.own - grown * self.other) / self.background
        loss = (self.other - grown * self.own) / self.background
        same = rest * (1 - grown) / (1 - share) if share < 1 else 0.0
        middle, deviation = n * share, math.sqrt(n * share * (1 - share))
        least = max(0, math.floor(middle - _REACH * deviation))
        c = np.arange(least, min(n, math.ceil(middle + _REACH * deviation)) + 1, dtype=np.int64)
        base = loss * c + same * (n - c)
        # The first a for which gain·a + loss·(c − a) + … is positive.
        first = np.clip(np.floor(-base / (gain - loss)) + 1, 0, c + 1)
        mean = base * _tail(first, c) + (gain - loss) * c / 2 * _tail(first - 1, np.maximum(c - 1, 0))
        return float(binom.pmf(c, n, share) @ np.maximum(mean, 0)) / n

    def epsilon(self, n: int, delta: float) -> float:
        """ε of the numbers of the three kinds among n reports.

        Args:
            n: Reports.
            delta: δ.

        Raises:
            ConfigurationError: n or δ is out of range.
        """
        n, target = check_batch(n), math.log(check_delta(delta))

        def excess(epsilon: float) -> float:
            found = self.delta(n, epsilon)
            return math.log(found) - target if found > 0 else -math.inf

        most = math.log(self.own / self.other) if self.other else 700.0
        found = crossing(excess, 0.0, most, most / math.sqrt(n))
        return found * (1 - 1e-7)


@singledispatch
def kinds_of(oracle: FrequencyOracle) -> Kinds:
    """The kinds of an oracle's reports, for two values and a third one.

    They are known for "grr", "sue", "oue", "ss", and "hr" of one block, there for a third value whose row is not the
    product of the two others.

    Raises:
        ConfigurationError: They are not known, or the domain has two values only.
    """
    raise ConfigurationError(f"the kinds of {oracle.name}'s reports are not known here")


@kinds_of.register
def _(oracle: DirectEncoding) -> Kinds:
    _third(oracle)
    return Kinds(float(oracle.p), float(oracle.q), float(oracle.q))


@kinds_of.register
def _(oracle: UnaryEncoding) -> Kinds:
    p, q = oracle.p, oracle.q
    _third(oracle)
    return Kinds(float(p * (1 - q)), float(q * (1 - p)), float(q * (1 - q)))


@kinds_of.register
def _(oracle: SubsetSelection) -> Kinds:
    d, k, p = _third(oracle), oracle.k, oracle.p
    pairs = (d - 1) * (d - 2)
    third = p * Fraction((k - 1) * (d - k), pairs) + (1 - p) * Fraction(k * (d - 1 - k), pairs)
    return Kinds(float(p * Fraction(d - k, d - 1)), float((1 - p) * Fraction(k, d - 1)), float(third))


@kinds_of.register
def _(oracle: HadamardResponse) -> Kinds:
    if not oracle.one_block or oracle.domain.size < 4:
        raise ConfigurationError("the kinds of Hadamard response are known here for one block and four values or more")
    ratio = math.exp(oracle.exact_epsilon)
    return Kinds(ratio / (ratio + 1) / 2, 1 / (ratio + 1) / 2, 1 / 4)


def enumerated_delta(
    first: Sequence[Fraction], second: Sequence[Fraction], others: Sequence[Fraction], n: int, epsilon: float
) -> float:
    """The exact δ of two batches by enumeration of all counts, for small n and few outputs that differ.

    Args:
        first: The probabilities of outputs of the differing user's value in the first batch.
        second: Of their value in the second batch.
        others: Of everybody else's value; all positive.
        n: Reports, the differing one among them.
        epsilon: ε.

    Raises:
        ConfigurationError: There are too many counts to enumerate.
    """
    merged: dict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
    for a, b, other in zip(first, second, others, strict=True):
        merged[a / other, b / other] += other
    if len(merged) > _MOST_KINDS or math.comb(n + len(merged) - 1, n) > _MOST_COUNTS:
        raise ConfigurationError(f"counts of {len(merged)} kinds among {n:,} reports are too many to enumerate")
    losses = np.zeros(max(len(merged), 3))
    masses = np.zeros(max(len(merged), 3))
    for place, ((a, b), mass) in enumerate(merged.items()):
        losses[place], masses[place] = float(a) - math.exp(epsilon) * float(b), float(mass)
    total = 0.0
    for head in product(range(n + 1), repeat=len(losses) - 3):
        left = n - sum(head)
        if left >= 0:
            # Where one ≥ two run over all pairs, the three kinds behind the head have two, one − two and the rest.
            one, two = np.tril_indices(left + 1)
            heads = (np.full(two.size, each) for each in head)
            counts = np.vstack([*heads, two, one - two, left - one]).astype(np.float64)
            logs = gammaln(n + 1) + (xlogy(counts, masses[:, None]) - gammaln(counts + 1)).sum(axis=0)
            total += float(np.exp(logs) @ np.maximum(losses @ counts, 0.0))
    return total / n


def _third(oracle: FrequencyOracle) -> int:
    """The size of a domain with a third value."""
    if oracle.domain.size < 3:
        raise ConfigurationError("three kinds of reports need a domain of at least three values")
    return oracle.domain.size


def _tail(first: Floats, c: NDArray[np.int64]) -> Floats:
    """The probability that at least `first` of c fair coins show heads."""
    found: Floats = bdtrc(first - 1, c, 0.5)
    return found
