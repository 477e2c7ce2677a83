"""The privacy budget ε and powers of e in exact arithmetic, rounded to the safe side.

A channel whose probabilities are fractions can be checked without rounding errors. All mechanisms derive them from
`exp_below`, a fraction just below e^x, so that no ratio of probabilities exceeds e^ε.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Real
from typing import Final

from link.errors import ConfigurationError

LEAST_EPSILON: Final = 0.001
LARGEST_EPSILON: Final = 16.0

_DIGITS: Final = 60
_BELOW: Final = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
_ABOVE: Final = Context(prec=_DIGITS, rounding=ROUND_CEILING)
# The decimal module rounds `exp` and `ln` to the nearest number, whatever the context says.
_UNIT: Final = Decimal(10) ** (1 - _DIGITS)


def check_epsilon(epsilon: float) -> float:
    """The budget as a float, if it is one that mechanisms work with.

    Raises:
        ConfigurationError: It is no number, or outside 0.001 … 16.
    """
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | Real) or not math.isfinite(epsilon):
        raise ConfigurationError(f"the privacy budget epsilon must be a finite number, not {epsilon!r}")
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ConfigurationError(
            f"the privacy budget epsilon must lie between {LEAST_EPSILON:g} and {LARGEST_EPSILON:g}, not {epsilon:g}; "
            "less drowns every value in noise, more protects nothing"
        )
    return float(epsilon)


def float_below(epsilon: Decimal) -> float:
    """The largest float at or below a budget that was given as a decimal, so that shares of it add up to no more.

    The float that is nearest to 0.1 lies above it: three reports of that ε would spend more than 0.3.

    Args:
        epsilon: At least 0.001 where it is one that mechanisms work with; so is the result then.
    """
    nearest = float(epsilon)
    if Decimal(nearest) <= epsilon:
        return nearest
    below = math.nextafter(nearest, -math.inf)
    return nearest if below < LEAST_EPSILON <= nearest else below


def exp_below(exponent: float | Fraction) -> Fraction:
    """A fraction at most e^exponent, and less by at most one part in 10^58."""
    exact = Fraction(exponent)
    rounded = _BELOW.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return Fraction(_BELOW.multiply(_BELOW.exp(rounded), 1 - _UNIT))


def log_above(ratio: Fraction) -> float:
    """A float at or just above ln(ratio): the ε that two probabilities of this ratio cost; infinite for none over 0.

    Args:
        ratio: Positive.
    """
    rounded = _ABOVE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    logarithm = _ABOVE.add(_ABOVE.ln(rounded), _UNIT * 100)
    nearest = float(logarithm)
    return nearest if Decimal(nearest) >= logarithm else math.nextafter(nearest, math.inf)
