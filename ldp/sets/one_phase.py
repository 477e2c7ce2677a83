"""Frequent items in one phase: every user reports a perturbed set, by PrivSet or the wheel mechanism, with all of ε.

No candidates are looked for first, so that one round is enough; with many items a search in phases (`svim`) finds more.

Source: Wang, Huang, Nie et al., "PrivSet: Set-Valued Data Analyses with Locale Differential Privacy", INFOCOM 2018;
Wang et al., "Set-valued Data Publication with Local Privacy: Tight Error Bounds and Efficient Mechanisms", VLDB 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from ldp.domain import DomainLike
from ldp.estimate import Estimate
from ldp.sets.plan import MiningPlan, Phase, Supports
from ldp.sets.privset import PrivSet
from ldp.sets.wheel import Wheel

WholeSet = Literal["privset", "wheel"]


class WholeSetMining(MiningPlan):
    """The public plan of a search for the k most frequent items by reports of whole sets.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε of a user, who reports once.
        k: How many items are sought.
        length: m, to which sets are cut; items of a larger one count for m/|s| each.
        kind: Which mechanism.

    Raises:
        ConfigurationError: A parameter is out of range.
    """

    divides_users: ClassVar[bool] = True
    shares = (Fraction(1),)

    def __init__(self, domain: DomainLike, epsilon: float, k: int, length: int, kind: WholeSet) -> None:
        super().__init__(domain, epsilon, k)
        self.length, self.kind = length, kind
        self._mechanism: PrivSet | Wheel = _mechanism(kind)(self.domain, self.epsilon, length)

    def phase(self, estimates: Sequence[Estimate]) -> Phase:  # noqa: ARG002 - there is but one
        """The one phase; arguments as of `MiningPlan.phase`."""
        return Phase(0, self.shares[0], self._mechanism)

    def supports(self, estimates: Sequence[Estimate]) -> Supports:
        """The k best items; arguments as of `MiningPlan.supports`. Covariances between items are left out."""
        (estimate,) = estimates
        best = np.argsort(-estimate.frequencies, kind="stable")[: self.k]
        return Supports(
            self.domain,
            tuple((item,) for item in best.tolist()),
            estimate.frequencies[best],
            np.diag(estimate.frequency_variances[best]),
        ).top(self.k, among=self.domain.size)


def _mechanism(kind: WholeSet) -> type[PrivSet] | type[Wheel]:
    return PrivSet if kind == "privset" else Wheel
