"""Frequency oracles: mechanisms that estimate how often each value of a domain occurs."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldp.arithmetic.sampling import Bits
from ldp.blanket import Blanket
from ldp.domain import Codes, Domain, DomainLike
from ldp.estimate import Estimate
from ldp.mechanism import Mechanism, Tally, some
from ldp.reports import Reports
from link.errors import ConfigurationError

Floats = NDArray[np.float64]


class FrequencyOracle(Mechanism[Estimate]):
    """A mechanism for one value a user out of a known domain.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.

    Example:
        >>> mechanism = oracle("olh", 1024, epsilon=1.0)
        >>> isinstance(mechanism, FrequencyOracle), mechanism.domain.size
        (True, 1024)
    """

    def __init__(self, domain: DomainLike, epsilon: float) -> None:
        super().__init__(epsilon)
        self.domain = Domain.of(domain)

    @abstractmethod
    def variance(self, counts: Floats, n: int) -> Floats:
        """The exact variances of the estimated counts, over clients' randomness, if `counts` are the true ones.

        Args:
            counts: Shape (d,): true counts of the values.
            n: How many users.

        Returns:
            Shape (d,).
        """

    def supports(self, reports: Reports, values: Codes) -> Bits:  # noqa: ARG002 (most oracles do)
        """Whether each report is likelier from a user who has a value than from one who has not.

        It is what attackers craft, what defenders count, and by what auditors distinguish inputs.

        Args:
            reports: n reports of this oracle.
            values: Shape (k,): numbers of values.

        Returns:
            Shape (n, k).

        Raises:
            ConfigurationError: The oracle's reports support no values.
        """
        raise ConfigurationError(f"a report of {self.name} does not say which values it supports; take another oracle")

    @abstractmethod
    def blanket(self) -> Blanket:
        """What amplification by shuffling is computed from."""

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Unbiased counts and their variances."""
        some(n)
        counts = self.unbiased(tally, n)
        return Estimate(self.domain, n, counts, self.variance(np.clip(counts, 0, n), n))

    @abstractmethod
    def unbiased(self, tally: Tally, n: int) -> Floats:
        """Unbiased estimates of the counts, shape (d,)."""


class PureOracle(FrequencyOracle):
    """An oracle under which a report supports its user's value with probability p and each other value with q.

    Source: Wang, Blocki, Li and Jha, "Locally Differentially Private Protocols for Frequency Estimation", USENIX
    Security 2017, section 3: estimator (3), variance (4); the tally is the number of reports that support each value.

    Example:
        >>> mechanism = oracle("oue", 4, epsilon=1.0)
        >>> float(mechanism.p), round(float(mechanism.q), 3)
        (0.5, 0.269)
    """

    p: Fraction
    q: Fraction

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a value."""
        return (self.domain.size,)

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """(C_v − n·q) / (p − q)."""
        supports: Floats = tally.astype(np.float64)
        return (supports - n * float(self.q)) / float(self.p - self.q)

    def variance(self, counts: Floats, n: int) -> Floats:
        """n·q(1 − q)/(p − q)² + c_v·(1 − p − q)/(p − q): of the others' bits and of the user's own, which differ."""
        p, q = self.p, self.q
        common = n * float(q * (1 - q) / (p - q) ** 2)
        return common + np.asarray(counts, dtype=np.float64) * float((1 - p - q) / (p - q))


def nearest_integers(value: float, least: int, most: int) -> tuple[int, ...]:
    """The whole numbers next to a real optimum, within limits: a convex function is least at one of them."""
    return tuple(sorted({min(max(each, least), most) for each in (math.floor(value), math.ceil(value))}))
