"""Parameters as the decimals they are written in, so that a limit is met or missed exactly."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import Written
from link.errors import ConfigurationError

Rational = int | float | str | Decimal | Fraction

TOLERANCE: Final = 1e-9
"""By how much a sum of logarithms may miss its limit: what rounding can do, and less than any record changes."""

_LARGEST: Final = 1 << 62


def exact(value: Rational, what: str) -> Fraction:
    """The number that is written: 0.1 is one tenth, not the float nearest to it.

    Raises:
        ConfigurationError: It is no finite number; `what` names the parameter.
    """
    try:
        return Fraction(repr(value) if isinstance(value, float) else value)
    except (ValueError, OverflowError, TypeError, ZeroDivisionError):
        raise ConfigurationError(f"{what} is {value}; it must be a finite number.") from None


def written(value: Rational) -> Written:
    """A parameter as JSON holds it without changing it: a number, or the text of a fraction that no decimal writes."""
    number = exact(value, "A parameter")
    if number.denominator == 1:
        return int(number)
    return float(number) if Fraction(repr(float(number))) == number else str(number)


def whole(value: int, what: str, least: int = 1) -> None:
    """Checks a whole number.

    Raises:
        ConfigurationError: It is none, or below `least`; `what` names the parameter.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ConfigurationError(f"{what} is {value}; it must be a whole number of at least {least}.")


def at_most(left: NDArray[np.int64], limit: Fraction, right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where left ≤ limit · right, by integers; shapes broadcast, all numbers are at least 0 but `left`."""
    a, b = _scaled(left, limit.denominator), _scaled(right, limit.numerator)
    return np.asarray(a <= b, bool)


def below(left: NDArray[np.int64], limit: Fraction, right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where left < limit · right, by integers; shapes broadcast, all numbers are at least 0 but `left`."""
    a, b = _scaled(left, limit.denominator), _scaled(right, limit.numerator)
    return np.asarray(a < b, bool)


def fits(bound: int) -> bool:
    """Whether whole numbers up to a bound can be computed with as 64-bit integers."""
    return bound < _LARGEST


def _scaled(numbers: NDArray[np.int64], factor: int) -> NDArray[np.int64]:
    """The product; in Python's integers where 64 bits would not hold it."""
    largest = max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
    return numbers * factor if fits(max(largest, 1) * factor) else numbers.astype(object) * factor
