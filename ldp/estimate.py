"""Estimated counts of a domain's values, with their exact variances and confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ldp.domain import Domain
from link.errors import ConfigurationError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Unbiased estimates: raw, so some may be negative and their sum need not be n (see `ldp.consistency`).

    Attributes:
        domain: The d values.
        n: How many reports.
        counts: Shape (d,): estimated numbers of users with each value.
        variances: Shape (d,): of `counts`, by the mechanism's exact formula with the estimates, where not negative, in
            the place of the true counts.

    Example:
        >>> mechanism = oracle("grr", ["bread", "milk", "tea"], epsilon=16.0)
        >>> estimate = Aggregator(mechanism).add(mechanism.privatise(["milk"] * 100)).estimate()
        >>> estimate.n, estimate.top(1)[0][0], estimate.counts.shape
        (100, 'milk', (3,))
    """

    domain: Domain
    n: int
    counts: Floats
    variances: Floats

    @property
    def frequencies(self) -> Floats:
        """`counts` as shares of n."""
        return self.counts / self.n

    @property
    def frequency_variances(self) -> Floats:
        """Variances of `frequencies`."""
        return self.variances / self.n**2

    def intervals(self, confidence: float = 0.95, *, joint: bool = False) -> tuple[Floats, Floats]:
        """Normal confidence intervals of the counts, cut to 0 … n.

        Args:
            confidence: The probability with which an interval covers the true count.
            joint: That all d intervals cover together with this probability (Bonferroni), instead of each alone.

        Returns:
            Lower and upper ends, each of shape (d,).

        Raises:
            ConfigurationError: The confidence is not strictly between 0 and 1.
        """
        reach = two_sided(confidence, self.domain.size if joint else 1) * np.sqrt(self.variances)
        return np.clip(self.counts - reach, 0, self.n), np.clip(self.counts + reach, 0, self.n)

    def top(self, k: int) -> list[tuple[str, float]]:
        """The k values with the largest estimates, largest first, and these."""
        names = self.domain.names()
        order = np.argsort(-self.counts, kind="stable")[:k]
        return [(names[code], float(self.counts[code])) for code in order]


def two_sided(confidence: float, intervals: int = 1) -> float:
    """How many standard deviations to each side an interval reaches; all of several, jointly (Bonferroni).

    Raises:
        ConfigurationError: The confidence is not strictly between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ConfigurationError(f"a confidence lies between 0 and 1, not at {confidence}")
    return NormalDist().inv_cdf(1 - (1 - confidence) / intervals / 2)
