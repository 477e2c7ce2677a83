"""How guarantees (ε, δ) add up over collections, and what secret sampling makes of them.

Pure budgets add up exactly in `ldp.streams.composition`. Here are guarantees with a δ, such as those of shuffled
batches and of noisy sums.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from ldp.accounting.rounding import Floats, float_above
from ldp.accounting.solving import crossing
from ldp.streams import composition
from link.errors import ConfigurationError

_GRID: Final = 1 << 14
_SLACK: Final = 1 + 1e-9  # more than probabilities from floating point can be off by, relatively


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(ε, δ)-differential privacy: but for a probability of δ, no output is e^ε times likelier for one input.

    Attributes:
        epsilon: ε, from 0 on.
        delta: δ, from 0 to 1.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.epsilon < math.inf and 0 <= self.delta <= 1):
            raise ConfigurationError(
                "a guarantee has a finite epsilon from 0 on and a delta from 0 to 1, "
                f"not {self.epsilon} and {self.delta}"
            )


def sequential(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What several releases about one user spend together, by the basic theorem: the sums, rounded up.

    Raises:
        ConfigurationError: The δs add up to more than 1.
    """
    parts = list(guarantees)
    epsilon = composition.sequential(each.epsilon for each in parts)
    delta = sum((Fraction(each.delta) for each in parts), Fraction(0))
    return Guarantee(float_above(epsilon), float_above(delta))


def parallel(guarantees: Iterable[Guarantee]) -> Guarantee:
    """What several releases spend if every user is in one of them only, chosen without regard to their value.

    Raises:
        ConfigurationError: There is none.
    """
    parts = list(guarantees)
    if not parts:
        raise ConfigurationError("there is no release to compose; give at least one guarantee")
    return Guarantee(max(each.epsilon for each in parts), max(each.delta for each in parts))


def optimal(guarantees: Sequence[Guarantee], delta: float) -> Guarantee:
    """The least ε that several releases about one user have for δ, each chosen with knowledge of those before.

    No smaller ε follows from the guarantees alone where all are equal. Different ε are rounded up to one grid, by a
    share of 1/16384 of their sum at most each, since the exact answer is hard to compute.
    Sources: Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", ICML 2015, theorem 3.3;
    Murtagh and Vadhan, "The Complexity of Computing the Optimal Composition of Differential Privacy", TCC 2016.

    Args:
        guarantees: Of each release.
        delta: δ of all together.

    Returns:
        Never more than `sequential`'s ε.

    Raises:
        ConfigurationError: There is none, or δ is not more than what the releases spend of it already.
    """
    if not guarantees:
        raise ConfigurationError("there is no release to compose; give at least one guarantee")
    own = sum(math.log1p(-each.delta) if each.delta < 1 else -math.inf for each in guarantees)
    left = -math.expm1(math.log1p(-delta) - own) * (1 - 1e-12) if 0 < delta < 1 and own > -math.inf else 0.0
    most = sequential(Guarantee(each.epsilon) for each in guarantees).epsilon
    if left <= 0:
        if delta >= float_above(sum((Fraction(each.delta) for each in guarantees), Fraction(0))):
            return Guarantee(most, delta)
        raise ConfigurationError(
            f"a delta of {delta:g} is less than what the releases spend of it, about {-math.expm1(own):.3g}; raise it"
        )
    if most == 0:
        return Guarantee(0.0, delta)
    losses, masses = _losses([each.epsilon for each in guarantees if each.epsilon])

    def excess(epsilon: float) -> float:
        spent = float(masses @ -np.expm1(np.minimum(epsilon - losses, 0))) * _SLACK
        return math.log(spent / left) if spent > 0 else -math.inf

    return Guarantee(crossing(excess, 0.0, most, most / math.sqrt(len(guarantees))) if excess(0.0) > 0 else 0.0, delta)


def _losses(epsilons: Sequence[float]) -> tuple[Floats, Floats]:
    """The privacy losses of independent randomised responses, and their probabilities under the first input.

    Randomised response of ε is the worst of all mechanisms of ε, and of ε' ≤ ε.
    """
    from scipy.stats import binom  # heavy, and only this needs it: nodes import the module at once

    step = epsilons[0] if len(set(epsilons)) == 1 else math.fsum(epsilons) / _GRID
    law = np.ones(1)
    for units, number in Counter(math.ceil(epsilon / step) for epsilon in epsilons).items():
        group = np.zeros(units * number + 1)
        group[::units] = binom.pmf(np.arange(number + 1), number, 1 / (1 + math.exp(-units * step)))
        law = np.convolve(law, group)
    losses: Floats = step * _SLACK * np.arange(1.0 - len(law), len(law), 2)
    return losses, law


def sampled(guarantee: Guarantee, rate: float | Fraction) -> Guarantee:
    """What a release spends if each user is in it with a small probability only, and nobody learns who is.

    ln(1 + g·(e^ε − 1)) and g·δ, rounded up.

    Args:
        guarantee: Of the release.
        rate: g, above 0 and at most 1.

    Raises:
        ConfigurationError: The rate is out of range.
    """
    epsilon = composition.amplified(guarantee.epsilon, rate)
    return Guarantee(epsilon, float_above(Fraction(guarantee.delta) * Fraction(rate)))
