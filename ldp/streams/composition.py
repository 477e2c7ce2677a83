"""How budgets add up, and how secret sampling stretches them.

Budgets are exact fractions. What is handed out lies on a grid of 2^-48: such a number is a float as well, so a
mechanism gets exactly the budget that a ledger has noted, and never one that was rounded up.
Sources: Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, theorem 3.16 (sums); Li, Qardaji
and Su, "On Sampling, Anonymization, and Differential Privacy", ASIACCS 2012, theorem 1 (sampling).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from ldp.budget import exp_below, log_above
from link.errors import ConfigurationError

GRID: Final = 1 << 48
"""A budget on the grid is a whole number of 2^-48. Of ε between 0.001 and 16, the grid takes 4·10^-12 of it at most."""

# `exp_below` is less than the power by at most one part in 10^58.
_EXP_SLACK: Final = 1 - Fraction(1, 10**58)


def exact(epsilon: float | Fraction) -> Fraction:
    """A budget as the fraction that it is.

    Raises:
        ConfigurationError: It is no finite number, or negative.
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | Fraction) or not math.isfinite(epsilon):
        raise ConfigurationError(f"a budget must be a finite number, not {epsilon!r}")
    if epsilon < 0:
        raise ConfigurationError(f"a budget cannot be negative, as {float(epsilon):g} is")
    return Fraction(epsilon)


def rounded_down(epsilon: Fraction) -> Fraction:
    """The largest budget on the grid that does not exceed the given one."""
    return Fraction(math.floor(epsilon * GRID), GRID)


def sequential(epsilons: Iterable[float | Fraction]) -> Fraction:
    """What several reports of one user spend together, whatever each depends on: the sum.

    Raises:
        ConfigurationError: One of them is no finite number, or negative.
    """
    return sum(map(exact, epsilons), Fraction(0))


def amplified(epsilon: float, rate: float | Fraction) -> float:
    """What a report of ε spends if it is made with a small probability only, and nobody learns who made one.

    ln(1 + g·(e^ε − 1)), rounded up. It does not hold where the absence of a report shows, as it does to anyone who
    receives reports from known senders.

    Args:
        epsilon: ε of the report.
        rate: g, the probability of being sampled, independent of the value.

    Raises:
        ConfigurationError: The budget is no finite number, or the rate is not above 0 and at most 1.
    """
    grown = exp_below(exact(epsilon)) / _EXP_SLACK
    return log_above(1 + _rate(rate) * (grown - 1))


def before_sampling(epsilon: float, rate: float | Fraction) -> float:
    """The ε that a sampled report may have so that it spends `epsilon` at most: the inverse of `amplified`.

    ln(1 + (e^ε − 1)/g), rounded down.

    Raises:
        ConfigurationError: The budget is no finite number, or the rate is not above 0 and at most 1.
    """
    ratio = 1 + (exp_below(exact(epsilon)) - 1) / _rate(rate)
    return max(-log_above(1 / ratio), 0.0)


def covered(epsilon: float, rate: float | Fraction, values: int) -> float:
    """What a report of ε spends if it is of the user's value with probability g only, and of a uniform one otherwise.

    ln(1 + g·x/(1 + (1 − g)·x/d)) with x = e^ε − 1, rounded up; `amplified` is its limit for many values. It holds
    against anyone who sees the report: if y is x' + 1 ≤ e^ε times as likely from some value as from the one from which
    it is least likely, a uniform value yields it 1 + x'/d times as likely as the latter, at least.

    Args:
        epsilon: ε of the report.
        rate: g, the secret probability with which it is of the user's value.
        values: d, the number of values.

    Raises:
        ConfigurationError: The budget is no finite number, or the rate is not above 0 and at most 1.
    """
    grown, g = exp_below(exact(epsilon)) / _EXP_SLACK - 1, _rate(rate)
    return log_above(1 + g * grown / (1 + (1 - g) * grown / values))


def before_covering(epsilon: float, rate: float | Fraction, values: int) -> float:
    """The ε that a covered report may have so that it spends `epsilon` at most: the inverse of `covered`.

    ln(1 + y/(g − (1 − g)·y/d)) with y = e^ε − 1, rounded down; infinite where the coin alone hides the value well
    enough.

    Raises:
        ConfigurationError: The budget is no finite number, or the rate is not above 0 and at most 1.
    """
    wanted, g = exp_below(exact(epsilon)) - 1, _rate(rate)
    left = g - (1 - g) * wanted / values
    return max(-log_above(1 / (1 + wanted / left)), 0.0) if left > 0 else math.inf


def _rate(rate: float | Fraction) -> Fraction:
    if isinstance(rate, bool) or not isinstance(rate, int | float | Fraction) or not 0 < rate <= 1:
        raise ConfigurationError(f"a sampling rate lies above 0 and is 1 at most; {rate!r} does not")
    return Fraction(rate)
