"""Probabilities that bits can hit exactly: whole multiples of a power of two.

Mironov, CCS 2012, showed what rounding does to a mechanism's guarantee. Here a mechanism's probabilities *are* what its
sampler draws: the estimator, the variance and the guarantee are all computed from the dyadic numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

PRECISE_BITS: Final = 64
FAST_BITS: Final = 32

# Beyond this ε, 32 bits would cost a visible part of it: OUE loses 3·10^-6 at ε = 10.
_FAST_EPSILON: Final = 8.0


@dataclass(frozen=True, slots=True)
class Dyadic:
    """The probability numerator / 2^bits."""

    numerator: int
    bits: int

    def __post_init__(self) -> None:
        if not 0 <= self.numerator <= 1 << self.bits:
            raise ValueError("a probability lies between 0 and 1")

    @classmethod
    def floor(cls, probability: Fraction, bits: int) -> Dyadic:
        """The largest multiple of 2^-bits that is at most `probability`."""
        return cls(math.floor(probability * (1 << bits)), bits)

    @classmethod
    def ceil(cls, probability: Fraction, bits: int) -> Dyadic:
        """The least multiple of 2^-bits that is at least `probability`."""
        return cls(math.ceil(probability * (1 << bits)), bits)

    @property
    def fraction(self) -> Fraction:
        """The exact value."""
        return Fraction(self.numerator, 1 << self.bits)

    @property
    def complement(self) -> Dyadic:
        """One minus it."""
        return Dyadic((1 << self.bits) - self.numerator, self.bits)

    def threshold(self) -> int:
        """The number t ≤ 2^64 for which a uniform 64-bit word lies below t with this probability."""
        return self.numerator << (PRECISE_BITS - self.bits)


def bits_for(epsilon: float) -> int:
    """How many bits a probability takes so that rounding costs less than 10^-6 of ε: 32, or 64 above ε = 8."""
    return FAST_BITS if epsilon <= _FAST_EPSILON else PRECISE_BITS
