"""LDPMiner: frequent items in two phases with the same users, half of ε in each; a baseline for SVIM.

    1  users report one item of their set (padding and sampling): the 2·k best are candidates
    2  users report one of the candidates they have, padded to 2·k, so that every candidate is drawn with 1/(2·k)

Since a user's budget is halved and sets are padded to all candidates, SVIM finds more, and estimates it better.

Source: Qin, Yang, Yu, Khalil, Xiao and Ren, "Heavy Hitter Estimation over Set-Valued Data with Local Differential
Privacy", CCS 2016. Their first phase reports by a succinct histogram, their second by RAPPOR; here both do by what
padding and sampling offers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ldp.domain import DomainLike
from ldp.estimate import Estimate
from ldp.sets.padding import PaddingAndSampling
from ldp.sets.plan import MiningPlan, Phase, Supports
from ldp.sets.svim import most_frequent


class LDPMiner(MiningPlan):
    """LDPMiner: the public plan of a search for the k most frequent items.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε of a user, half of which is spent in each phase.
        k: How many items are sought.
        length: l, to which whole sets are padded in the first phase; one that most do not exceed.
        oracle: As of `PaddingAndSampling`.

    Raises:
        ConfigurationError: A parameter is out of range.
    """

    divides_users: ClassVar[bool] = False
    shares = (Fraction(1), Fraction(1))

    def __init__(self, domain: DomainLike, epsilon: float, k: int, length: int, oracle: str = "olh") -> None:
        super().__init__(domain, epsilon, k)
        self.phase_epsilon = self.epsilon / 2
        self.length, self.oracle = length, oracle
        self._first = PaddingAndSampling(self.domain, self.phase_epsilon, length, oracle=oracle)

    def phase(self, estimates: Sequence[Estimate]) -> Phase:
        """All items, then the candidates; arguments as of `MiningPlan.phase`."""
        if not estimates:
            return Phase(0, self.shares[0], self._first)
        candidates = most_frequent(estimates[0], 2 * self.k)
        mechanism = PaddingAndSampling(self.domain, self.phase_epsilon, len(candidates), candidates, self.oracle)
        return Phase(1, self.shares[1], mechanism)

    def supports(self, estimates: Sequence[Estimate]) -> Supports:
        """The k best candidates; arguments as of `MiningPlan.supports`."""
        mechanism = self.phase(estimates[:1]).mechanism
        assert isinstance(mechanism, PaddingAndSampling)
        assert mechanism.candidates is not None
        frequencies = estimates[1].frequencies
        covariances = mechanism.covariance(np.clip(frequencies, 0, 1), estimates[1].n)
        return Supports(self.domain, mechanism.candidates, frequencies, covariances).top(self.k)
