"""Exact sampling of the shifted, truncated discrete Laplace distribution: noise for kinds of jobs that are added."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from link.randomness import RandomStream

_BITS: Final = 128
_CONTEXT: Final = Context(prec=80)
_MAX_SHIFT: Final = 1 << 16


@dataclass(frozen=True)
class TruncatedDiscreteLaplace:
    """Numbers k in 0 … 2·shift with P(k) proportional to exp(−ε·|k − shift|).

    Added to a count with sensitivity 1 the number gives (ε, δ)-differential privacy, with `delta` below: inside the
    common range of two shifted copies the ratio is at most e^ε, and each copy has one outcome that the other lacks.

    Sampling compares one uniform 128-bit word with the cumulative probabilities, rounded to 2^-128: the total
    variation distance to the stated distribution is at most (2·shift + 1)·2^-128, that is below 2^-110.

    Args:
        epsilon: ε > 0, as an exact fraction.
        shift: Half the range, from 1 to 65,536; also the mean.

    Attributes:
        cumulative: The thresholds that a word is compared with.
    """

    epsilon: Fraction
    shift: int
    cumulative: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ValueError("epsilon must be positive")
        if not 1 <= self.shift <= _MAX_SHIFT:
            raise ValueError(f"shift must lie between 1 and {_MAX_SHIFT}")
        weights = [self._weight(abs(k - self.shift)) for k in range(2 * self.shift + 1)]
        total = Decimal(0)
        partial = []
        for weight in weights:
            total = _CONTEXT.add(total, weight)
            partial.append(total)
        scale = _CONTEXT.divide(Decimal(1 << _BITS), total)
        # The last threshold, 2^128, lies above every word and needs no entry.
        thresholds = tuple(int(_CONTEXT.to_integral_value(_CONTEXT.multiply(p, scale))) for p in partial[:-1])
        object.__setattr__(self, "cumulative", thresholds)

    @classmethod
    def for_delta(cls, epsilon: Fraction, delta: Fraction) -> TruncatedDiscreteLaplace:
        """The distribution with the least shift whose `delta` is at most the given one.

        Raises:
            ValueError: No shift up to 65,536 suffices.
        """
        low, high = 1, _MAX_SHIFT
        limit = _CONTEXT.divide(Decimal(delta.numerator), Decimal(delta.denominator))
        if _delta(epsilon, high) > limit:
            raise ValueError("epsilon and delta together need a range beyond 131,072")
        while low < high:
            middle = (low + high) // 2
            if _delta(epsilon, middle) <= limit:
                high = middle
            else:
                low = middle + 1
        return cls(epsilon, low)

    @property
    def delta(self) -> float:
        """P(0), the probability of the outcome that distinguishes two neighbouring counts."""
        return float(_delta(self.epsilon, self.shift))

    def sample(self, random: RandomStream) -> int:
        """Draw one number in 0 … 2·shift; two holders of equal streams draw the same."""
        return bisect_right(self.cumulative, random.below(1 << _BITS))

    def _weight(self, distance: int) -> Decimal:
        return _decay(self.epsilon, distance)


def _decay(epsilon: Fraction, distance: int) -> Decimal:
    exponent = _CONTEXT.divide(Decimal(epsilon.numerator * distance), Decimal(epsilon.denominator))
    return _CONTEXT.exp(-exponent)


def _delta(epsilon: Fraction, shift: int) -> Decimal:
    """exp(−ε·t) / Σ_{|x| ≤ t} exp(−ε·|x|), the sum in closed form: (1 + q − 2·q^(t+1)) / (1 − q) with q = exp(−ε)."""
    q = _decay(epsilon, 1)
    total = (1 + q - 2 * _decay(epsilon, shift + 1)) / (1 - q)
    return _decay(epsilon, shift) / total
