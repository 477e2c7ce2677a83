"""Frequency oracles with a kept answer and a fresh perturbation of it in every report.

    L-GRR    direct encoding in both rounds
    L-OSUE   optimised unary encoding, then a symmetric flip of each bit

Both rounds together are again direct and unary encoding, and so are estimators and variances; the second round is set
so that a single report spends ε1 exactly.
Source: Arcolezi, Couchot, Al Bouna and Xiao, "Improving the Utility of Locally Differentially Private Protocols for
Longitudinal and Multidimensional Frequency Estimates", Digital Communications and Networks, 2022, section 3.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.packed import coin_rows
from ldp.budget import LARGEST_EPSILON, exp_below, log_above
from ldp.domain import Domain, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import PureOracle
from ldp.longitudinal.memoised import MemoisedMechanism, permanent_budget
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.unary_encoding import OptimisedUnaryEncoding, UnaryEncoding
from ldp.reports import Field


class TwoRounds(MemoisedMechanism[Estimate], PureOracle):
    """An oracle whose first round is one with ε∞, and whose second one perturbs the first one's report.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: ε1, of a single report.
        permanent_epsilon: ε∞, of all reports of a value together; by default 2·ε1, and 16 at most.

    Attributes:
        first: The first round.
    """

    _first_round: ClassVar[type[PureOracle]]

    def __init__(self, domain: DomainLike, epsilon: float, permanent_epsilon: float | None = None) -> None:
        self.permanent_epsilon = permanent_epsilon
        self.first = self._first_round(Domain.of(domain).size, permanent_budget(epsilon, permanent_epsilon))
        super().__init__(domain, epsilon)

    @property
    def exact_permanent_epsilon(self) -> float:
        """That of the first round."""
        return self.first.exact_epsilon

    @property
    def answer_layout(self) -> Field:
        """A report of the first round."""
        return self.first.layout[0]

    def keys(self, values: ArrayLike, traits: NDArray[Any]) -> NDArray[np.int64]:  # noqa: ARG002 (users have none)
        """The values' numbers."""
        return self.domain.codes(values)

    def answers(self, keys: NDArray[np.int64], traits: NDArray[Any], rng: Randomness) -> NDArray[Any]:  # noqa: ARG002
        """Reports of the first round."""
        return self.first.privatise(keys, rng).fields[0]


class LongitudinalDirectEncoding(TwoRounds, DirectEncoding):
    """L-GRR: direct encoding with ε∞, kept, and direct encoding of what was kept in each report.

    A report is a given other value if one round replaces the value by it and the other keeps it, or by way of each of
    the d − 2 third values. The published calibration forgets the latter, and so adds far more noise than ε1 asks for.

    Arguments are those of `TwoRounds`.

    Attributes:
        second: The second round.
    """

    name: ClassVar[str] = "l-grr"
    _first_round: ClassVar = DirectEncoding

    def __init__(self, domain: DomainLike, epsilon: float, permanent_epsilon: float | None = None) -> None:
        super().__init__(domain, epsilon, permanent_epsilon)
        d = self.domain.size
        kept, other = self.first.p, self.first.q
        # Over both rounds P = 1 − (d − 1)·Q and Q = q1 + (p1 − q1)·q2; this is the q2 for which P = e^ε1·Q.
        grown = exp_below(self.epsilon)
        q2 = (kept - grown * other) / ((kept - other) * (d - 1 + grown))
        self.second = DirectEncoding(d, _direct_budget(d, q2))
        self.q = other + (kept - other) * self.second.q
        self.p = 1 - (d - 1) * self.q

    def respond(
        self,
        answers: NDArray[Any],
        traits: NDArray[Any],  # noqa: ARG002
        rng: Randomness,
    ) -> tuple[NDArray[Any], ...]:
        """Direct encoding of the kept answers."""
        return self.second.privatise(answers, rng).fields


def _direct_budget(d: int, other: Fraction) -> float:
    """The largest ε, 16 at most, under which direct encoding takes each other value with at least this probability."""
    if other <= 0:
        return LARGEST_EPSILON
    above = log_above(1 / other - (d - 1))
    return min(math.nextafter(math.nextafter(above, 0), 0), LARGEST_EPSILON)


class LongitudinalUnaryEncoding(TwoRounds, UnaryEncoding):
    """L-OSUE: optimised unary encoding with ε∞, kept, and a flip of each of its bits in each report.

    Over both rounds it is optimised unary encoding with ε1.

    Arguments are those of `TwoRounds`.

    Attributes:
        flip: The probability that the second round flips a bit.
    """

    name: ClassVar[str] = "l-osue"
    _first_round: ClassVar = OptimisedUnaryEncoding

    def _probabilities(self) -> tuple[Dyadic, Dyadic]:
        q1 = self.first.q
        # Over both rounds Q = q1·(1 − r) + (1 − q1)·r for a flip with probability r, and P stays at 1/2.
        flip = (1 / (exp_below(self.epsilon) + 1) - q1) / (1 - 2 * q1)
        self.flip = Dyadic.ceil(max(flip, Fraction(0)), PRECISE_BITS)
        q = q1 + (1 - 2 * q1) * self.flip.fraction
        return Dyadic(1, 1), Dyadic.ceil(q, 2 * PRECISE_BITS)

    def respond(
        self,
        answers: NDArray[Any],
        traits: NDArray[Any],  # noqa: ARG002
        rng: Randomness,
    ) -> tuple[NDArray[Any], ...]:
        """Each kept bit, flipped with the same probability."""
        return (answers ^ coin_rows(self.flip, len(answers), self.domain.size, rng),)
