"""Means of several numbers a user: what estimates hold, and the mechanism that reports a few of them.

Source: Wang, Xiao, Yang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
ICDE 2019, section IV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ldp.estimate import two_sided
from ldp.mechanism import Tally
from ldp.numeric.attribute_sampling import AttributeSampling, check_attributes
from ldp.numeric.interval import Floats, Interval
from ldp.numeric.mean import NumericMechanism
from ldp.numeric.names import numeric


@dataclass(frozen=True, slots=True, eq=False)
class VectorEstimate:
    """Unbiased estimates of several attributes' means.

    Attributes:
        n: How many users have reported.
        means: Shape (d,); raw, so noise may carry them beyond the range.
        variances: Shape (d,): of `means`, by the mechanism's formula as in `MeanEstimate`.
        low: The range's lower end.
        high: The range's upper end.
    """

    n: int
    means: Floats
    variances: Floats
    low: float
    high: float

    def intervals(self, confidence: float = 0.95, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Normal confidence intervals, cut to the range.

        Args:
            confidence: The probability with which an interval covers the true mean.
            joint: That all d intervals cover together with this probability (Bonferroni), instead of each alone.

        Returns:
            Lower and upper ends, each of shape (d,).

        Raises:
            ConfigurationError: The confidence is not strictly between 0 and 1.
        """
        reach = two_sided(confidence, len(self.means) if joint else 1) * np.sqrt(self.variances)
        return np.clip(self.means - reach, self.low, self.high), np.clip(self.means + reach, self.low, self.high)


class SampledVector(AttributeSampling[VectorEstimate]):
    """Draws k of d numbers and reports each with ε/k by a mechanism for one number.

    Args:
        dimensions: d.
        epsilon: The privacy budget ε of a whole report.
        mechanism: For one number: `hm`, `pm`, `duchi` or `laplace`.
        low: The lower end of every number's range; not to be computed from the data.
        high: The upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.
    """

    name: ClassVar[str] = "sampled-vector"

    def __init__(
        self,
        dimensions: int,
        epsilon: float,
        mechanism: str = "hm",
        low: float = -1.0,
        high: float = 1.0,
        clip: bool = False,
    ) -> None:
        self.dimensions, self.mechanism = check_attributes(dimensions), mechanism
        self.low, self.high, self.clip = low, high, clip
        self.interval = Interval(low, high, clip)
        super().__init__(epsilon, dimensions)
        self._each: NumericMechanism = numeric(mechanism, self.share, low, high, clip)
        self._join([self._each] * dimensions, range(dimensions))

    def _columns(self, values: ArrayLike) -> list[Floats]:
        return list(self.interval.inside(values, self.dimensions).T)

    @property
    def worst_variance(self) -> float:
        """A bound of n times a mean's variance: that of d/k times a report's number, 0 where it has none."""
        rate = self.dimensions / self.k
        radius = self.interval.radius
        return self._each.worst_variance * rate + (rate - 1) * radius**2

    def estimate(self, tally: Tally, n: int) -> VectorEstimate:
        """The means over those who reported an attribute."""
        found = [self._each.estimate_of(part, reported, n) for part, reported in self._parts(tally, n)]
        means, variances = (np.array([getattr(each, part) for each in found]) for part in ("mean", "variance"))
        return VectorEstimate(n, means, variances, self.low, self.high)
