"""Histogram encodings: noise on each place of the value's one-hot vector.

    SHE   summation: the noisy vectors are sent and added up
    THE   thresholding: each place sends whether it exceeds θ, which is a unary encoding

Source: Wang, Blocki, Li and Jha, USENIX Security 2017, section 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic, bits_for
from ldp.arithmetic.noise import TruncatedGeometric
from ldp.arithmetic.sampling import Bits
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import Codes, DomainLike
from ldp.frequency_oracle import Floats, FrequencyOracle
from ldp.mechanism import Tally
from ldp.oracles.unary_encoding import UnaryEncoding
from ldp.reports import Field, Reports


class SummationHistogramEncoding(FrequencyOracle):
    """SHE: adds two-sided geometric noise with factor e^(ε/2) to each place of the one-hot vector.

    Two places differ between two values, each by one, so a report spends ε. The paper's Laplace noise of scale 2/ε has
    variance 8/ε²; the whole-number form has a little less.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
    """

    name: ClassVar[str] = "she"

    def __init__(self, domain: DomainLike, epsilon: float) -> None:
        super().__init__(domain, epsilon)
        self._noise = TruncatedGeometric(exp_below(Fraction(self.epsilon) / 2))

    @property
    def exact_epsilon(self) -> float:
        """Twice the largest log-ratio of one place."""
        least, most = self._extremes
        return 2 * log_above(max(most, 1 / least))

    @property
    def layout(self) -> tuple[Field, ...]:
        """Noisy places, d of them."""
        return (Field("int16", self.domain.size),)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes = self.domain.codes(values)
        vectors = np.zeros((len(codes), self.domain.size), dtype=np.bool_)
        vectors[np.arange(len(codes)), codes] = True
        return (self._noise.outputs(vectors, rng),)

    def _valid(self, reports: Reports) -> bool:
        places = reports.fields[0]
        return bool(np.all((places > -self._noise.reach) & (places <= self._noise.reach)))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One sum a value."""
        return (self.domain.size,)

    def tally(self, reports: Reports) -> Tally:
        """Sums of the places."""
        sums: Tally = reports.fields[0].sum(axis=0, dtype=np.int64)
        return sums

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """Sums minus what noise alone leads one to expect, over what a value moves its place."""
        without, own, _ = (float(each) for each in self._noise.moments)
        sums: Floats = tally.astype(np.float64)
        return (sums - n * without) / (own - without)

    def variance(self, counts: Floats, n: int) -> Floats:
        """N times that of one place, whatever the counts are."""
        without, own, variance = self._noise.moments
        return np.full(np.shape(counts), n * float(variance / (own - without) ** 2))

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values whose places are above 0."""
        found: Bits = np.greater(reports.fields[0][:, values], 0)
        return found

    def blanket(self) -> Blanket:
        """Noise alone, with weight e^(−ε/2): a place above 0 favours its value by e^(ε/2), another by the weight.

        So it is but for rounding of the noise; the two numbers are the ends of what there really is.
        """
        return Blanket.independent(*self._extremes)

    @cached_property
    def _extremes(self) -> tuple[Fraction, Fraction]:
        """How many times likelier an output of a place is with its value than without, at least and at most."""
        zero, one = self._noise.outcome(0), self._noise.outcome(1)
        ratios = [one[k] / zero[k] for k in zero]
        return min(ratios), max(ratios)


class ThresholdHistogramEncoding(UnaryEncoding):
    """THE: Laplace noise of scale 2/ε on each place, which sends whether it exceeds θ; θ has the least variance.

    The bits alone spend less than ε: 0.897 of 1. OUE uses all of it, and has the smaller variance.
    """

    name: ClassVar[str] = "the"

    @cached_property
    def threshold(self) -> float:
        """The θ in (1/2, 1) with the least variance."""
        epsilon = self.epsilon

        def variance(theta: float) -> float:
            p, q = _above(theta - 1, epsilon), _above(theta, epsilon)
            return q * (1 - q) / (p - q) ** 2

        return _least(variance, 0.5, 1)

    def _probabilities(self) -> tuple[Dyadic, Dyadic]:
        bits = bits_for(self.epsilon)
        p, q = _above(self.threshold - 1, self.epsilon), _above(self.threshold, self.epsilon)
        return Dyadic.floor(Fraction(p), bits), Dyadic.ceil(Fraction(q), bits)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that falls and then rises is least, by golden section; clients do without scipy."""
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-12:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if function(left) < function(right) else (left, high)
    return (low + high) / 2


def _above(distance: float, epsilon: float) -> float:
    """The probability that Laplace noise of scale 2/ε exceeds a distance."""
    tail = math.exp(-abs(distance) * epsilon / 2) / 2
    return tail if distance >= 0 else 1 - tail
