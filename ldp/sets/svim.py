"""SVIM, set-value item mining: the k most frequent items of users' sets, in three phases with different users.

    1  two fifths of the users report one item of their set (padding and sampling, l = 1): the 2·k best are candidates
    2  a tenth reports how many candidates its sets contain: L, the length that nine in ten do not exceed
    3  half report one of their candidates (padding and sampling, l = L), estimated for each

The estimates θ of the last phase miss what sets beyond L lost; it is added again: θ·(1 + u), see
`ldp.sets.size_histogram`. Every user answers in one phase, with all of ε.

Source: Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from ldp.domain import Domain, DomainLike
from ldp.estimate import Estimate
from ldp.sets.itemset_candidates import Candidates
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.plan import MiningPlan, Phase, Supports
from ldp.sets.size_histogram import SetSizes, check_treatment, lost_share, padding_length

SHARES: Final = (Fraction(2, 5), Fraction(1, 10), Fraction(1, 2))


class ItemMining(MiningPlan):
    """SVIM: the public plan of a search for the k most frequent items.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε of a user, who reports once.
        k: How many items are sought.
        treatment: How the estimated sizes are taken, one of `ldp.sets.size_histogram.TREATMENTS`.

    Raises:
        ConfigurationError: A parameter is out of range.
    """

    shares = SHARES

    def __init__(self, domain: DomainLike, epsilon: float, k: int, treatment: str = "shrunken") -> None:
        super().__init__(domain, epsilon, k)
        self.treatment = check_treatment(treatment)

    def phase(self, estimates: Sequence[Estimate]) -> Phase:
        """Items, then sizes, then the candidates' frequencies; arguments as of `MiningPlan.phase`."""
        number = len(estimates)
        mechanism: PaddingAndSampling | SetSizes
        if number == 0:
            mechanism = PaddingAndSampling(self.domain, self.epsilon, 1)
        elif number == 1:
            mechanism = SetSizes(self.domain, self.epsilon, most_frequent(estimates[0], 2 * self.k))
        else:
            candidates = most_frequent(estimates[0], 2 * self.k)
            mechanism = padded(self.domain, self.epsilon, candidates, estimates[1], self.treatment)
        return Phase(number, self.shares[number], mechanism)

    def supports(self, estimates: Sequence[Estimate]) -> Supports:
        """The k best candidates; arguments as of `MiningPlan.supports`."""
        mechanism = self.phase(estimates[:2]).mechanism
        assert isinstance(mechanism, PaddingAndSampling)
        return completed(mechanism, estimates[1], estimates[2], self.treatment).top(self.k)


def most_frequent(estimate: Estimate, most: int) -> Candidates:
    """The items with the highest estimates, of equal ones the first, as candidates.

    Args:
        estimate: Of all items.
        most: How many, if there are as many.
    """
    best = np.argsort(-estimate.counts, kind="stable")[:most]
    return tuple((item,) for item in np.sort(best).tolist())


def padded(
    domain: Domain, epsilon: float, candidates: Candidates, sizes: Estimate, treatment: str
) -> PaddingAndSampling:
    """Padding and sampling of candidates to the length that nine in ten of the sets with one do not exceed.

    Args:
        domain: The items.
        epsilon: The privacy budget ε.
        candidates: Of which frequencies are wanted.
        sizes: How many of them sets contain, by `SetSizes`.
        treatment: How these are taken.
    """
    length = padding_length(sizes, treatment)
    return PaddingAndSampling(domain, epsilon, length, candidates)


def completed(mechanism: PaddingAndSampling, sizes: Estimate, estimate: Estimate, treatment: str) -> Supports:
    """All candidates' frequencies with what long sets lost; u is taken for exact in the covariances.

    Args:
        mechanism: By which users reported.
        sizes: How many candidates sets contain, by `SetSizes`.
        estimate: From the reports.
        treatment: How sizes are taken.
    """
    assert mechanism.candidates is not None
    frequencies = estimate.frequencies
    lost = lost_share(sizes, mechanism.length, float(frequencies.sum()), treatment)
    covariances = mechanism.covariance(np.clip(frequencies, 0, 1), estimate.n)
    return Supports(mechanism.domain, mechanism.candidates, frequencies * (1 + lost), covariances * (1 + lost) ** 2)
