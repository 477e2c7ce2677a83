"""SVIM, set-value item mining: the k most frequent items of users' sets, in three phases with different users.

    1  two fifths of the users report one item of their set (padding and sampling, l = 1): the 2·k best are candidates
    2  a tenth reports how many candidates its sets contain: L, the length that ranks best, see `padded`
    3  half report one of their candidates (padding and sampling, l = L), estimated for each

A small L has little noise, and takes much off the frequencies of what goes with large sets. The more users there are,
the larger an L is worth its noise. It is chosen for the ranking; intervals cover at any L, as what may be lost widens
them. What is lost all the same is estimated and added, see `ldp.sets.size_histogram`. Every user answers in one phase,
with all of ε.

Source: Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from ldp.bias_aware import deviations_with_bias
from ldp.domain import Domain, DomainLike
from ldp.estimate import Estimate
from ldp.sets.itemset_candidates import Candidates
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.plan import MiningPlan, Phase, Supports
from ldp.sets.size_histogram import (
    SetSizes,
    check_treatment,
    kept_share,
    lost_bound,
    lost_share,
    lost_square,
    size_classes,
)

SHARES: Final = (Fraction(2, 5), Fraction(1, 10), Fraction(1, 2))

_UNEVEN: Final = 1 / 12  # of b: by how much losses of candidates deviate that are as frequent as each other


class ItemMining(MiningPlan):
    """SVIM: the public plan of a search for the k most frequent items.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε of a user, who reports once.
        k: How many items are sought.
        treatment: How the estimated sizes are taken, one of `ldp.sets.size_histogram.TREATMENTS`.
        by_phase: As of `MiningPlan`.

    Raises:
        ConfigurationError: A parameter is out of range.
    """

    shares = SHARES

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        k: int,
        treatment: str = "shrunken",
        by_phase: Sequence[float] = (),
    ) -> None:
        super().__init__(domain, epsilon, k, by_phase)
        self.treatment = check_treatment(treatment)

    def phase(self, estimates: Sequence[Estimate]) -> Phase:
        """Items, then sizes, then the candidates' frequencies; arguments as of `MiningPlan.phase`."""
        number = len(estimates)
        epsilon = self.epsilon_of(number)
        mechanism: PaddingAndSampling | SetSizes
        if number == 0:
            mechanism = PaddingAndSampling(self.domain, epsilon, 1)
        elif number == 1:
            mechanism = sizes_of(self.domain, epsilon, most_frequent(estimates[0], 2 * self.k))
        else:
            candidates = most_frequent(estimates[0], 2 * self.k)
            users = estimates[1].n * float(self.shares[2] / self.shares[1])
            mechanism = padded(self.domain, epsilon, candidates, estimates[1], users)
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


def sizes_of(domain: Domain, epsilon: float, candidates: Candidates) -> SetSizes:
    """How users report how many of some candidates their sets contain: in classes.

    Args:
        domain: The items.
        epsilon: The privacy budget ε.
        candidates: What is counted.
    """
    return SetSizes(domain, epsilon, candidates, size_classes(len(candidates)))


def padded(domain: Domain, epsilon: float, candidates: Candidates, sizes: Estimate, users: float) -> PaddingAndSampling:
    """Padding and sampling of candidates to the length by which they are ranked with the least error.

    Of a frequency f about κ·f is found, so that its noise counts 1/κ² as much. And of two candidates that are equally
    frequent, the one that goes with longer sets loses more. By how much more, sizes do not show; it is at most b, and
    far less as a rule. In baskets of kosarak, msweb, retail, BMS-WebView-1 and 2, at lengths that matter, losses of
    the less frequent three quarters of the candidates deviated by .01 to .12 of b. A twelfth of b is taken. So a length
    is worth its noise if κ grows by it; and where noise falls, as users are many, b is what counts, and L grows.

    Args:
        domain: The items.
        epsilon: The privacy budget ε.
        candidates: Of which frequencies are wanted.
        sizes: How many of them sets contain, by `sizes_of`.
        users: About how many will report.
    """
    ends = size_classes(len(candidates))
    held = min(float(np.clip(sizes.frequencies, 0, 1) @ np.array(ends)) / len(candidates), 1.0)
    found = [PaddingAndSampling(domain, epsilon, length, candidates) for length in ends[1:]]
    noise = np.array([each.variance(np.array([held]), 1)[0] / users for each in found])
    kept = np.array([kept_share(sizes, ends, each.length) for each in found])
    lost = np.array([lost_square(sizes, ends, each.length) for each in found])
    return found[int(np.argmin(noise / kept**2 + lost * _UNEVEN**2))]


def completed(mechanism: PaddingAndSampling, sizes: Estimate, estimate: Estimate, treatment: str) -> Supports:
    """All candidates' frequencies with what long sets lost.

    Args:
        mechanism: By which users reported.
        sizes: How many candidates sets contain, by `sizes_of`.
        estimate: From the reports.
        treatment: How sizes are taken.

    Returns:
        With variances that are raised so that 95 % intervals cover whatever part of the loss is a candidate's own.
    """
    assert mechanism.candidates is not None
    ends = size_classes(len(mechanism.candidates))
    frequencies = estimate.frequencies
    lost = lost_share(sizes, ends, mechanism.length, float(frequencies.sum()), treatment)
    most = lost_bound(sizes, ends, mechanism.length)
    added = np.clip(lost * frequencies, 0, most)  # the truth is from 0 to `most` above what was found
    covariances = mechanism.covariance(np.clip(frequencies, 0, 1), estimate.n)
    widened = deviations_with_bias(np.sqrt(np.diagonal(covariances)), np.maximum(added, most - added))
    np.fill_diagonal(covariances, widened**2)
    return Supports(mechanism.domain, mechanism.candidates, frequencies + added, covariances)
