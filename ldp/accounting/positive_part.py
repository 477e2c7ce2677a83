"""The mean positive part E[S⁺] of a sum of many independent draws, never below the truth.

It is what every bound of amplification by shuffling comes down to. With the law of one draw tilted by e^(θL),

    E[S⁺] = M(θ)^n · (1/2π) ∫ φ(t)^n / (θ + it)² dt,   M(θ) = E e^(θL),  φ(t) = E[e^((θ+it)L)] / M(θ),  θ > 0,

by Fourier inversion of s⁺·e^(−θs). It is computed so that every error has the sign of an upper bound:

- Z ~ N(0, τ²) is added to S, with τ small beside the spread. The positive part is convex, so E[(S + Z)⁺] ≥ E[S⁺],
  and the integrand now falls like e^(−τ²t²/2), whatever the law and n are.
- The integral becomes a sum over multiples of 2π/P. By Poisson's formula that is the sum over all m of the mean of
  (S + mP)⁺·e^(−θ(S + mP)): no term is negative, and the one with m = 0 is wanted.
- That all draws are 0 is taken out of the law, for it adds nothing to S⁺, but would to (S + Z)⁺.
- The terms left out are bounded by |φ| ≤ 1, those computed by what floating point can have changed in φ, and added.

θ is near the saddle point, so that all this is small beside the result, however small that is. The work does not depend
on n.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ldp.accounting.rounding import Floats

_ROUNDING: Final = 2.0**-50  # eight times what one operation in double precision can be off by
_LEAST_SMOOTHING: Final = 200.0  # the spread of the sum over that of the noise added: costs 10^-5 of ε
_MOST_SMOOTHING: Final = 1000.0  # which costs half a millionth
_CUT: Final = 7.5  # of the noise's transform, in its standard deviations
_ALIASES: Final = 25.0  # e^-25 of the result is what the neighbours in Poisson's formula may add
_MOST_ALIASES: Final = 60.0  # the same for laws with a tail lighter than e^-60 where the neighbours are
_VANISHING: Final = -800.0  # below the logarithm of any double, the simple bound will do
_TINY: Final = 1e-300  # values that a double has but 1 / value may not be one
_NEGLIGIBLE: Final = -45.0  # logarithm of what a term's size is taken for the term below


def log_mean_positive_part(values: Floats, masses: Floats, n: int) -> float:
    """The logarithm of an upper bound of E[(L_1 + … + L_n)⁺].

    The values and masses are taken as they are. Where they replace exact ones they must not be less: the result does
    not fall with either. A bound is too large by a share of some 10^-5; by more where different draws often add up to 0
    exactly.

    Args:
        values: Shape (k,): what a draw can be.
        masses: Shape (k,): their positive probabilities, which may add up to a little more than 1.
        n: How many draws.

    Returns:
        −∞ if no value is positive.
    """
    largest = float(values.max())
    if largest <= 0:
        return -math.inf
    if largest < _TINY:
        return math.log(n) + math.log(largest) + n * _ROUNDING * (len(values) + 4)
    theta = _saddle_point(values, masses, n)
    tilted, log_moment = _tilted(values, masses, theta)
    rounding = n * _ROUNDING * (len(values) + 4 + abs(log_moment) + theta * float(np.abs(values).max()))
    if n * log_moment < _VANISHING:
        return n * log_moment - math.log(math.e * theta) + rounding  # for s⁺ ≤ e^(θs)/(eθ)
    idle = _idle(values, tilted, n)
    mean, square = float(tilted @ values), float(tilted @ values**2)
    seen = n * mean / -math.expm1(idle)
    variance = n * (square - mean**2 + n * mean**2) / -math.expm1(idle) - seen**2  # given that some draw is not 0
    spread = math.sqrt(max(variance, 0.0) + 1 / theta**2)
    period = max((_ALIASES + min(max(-n * log_moment, 0.0), _MOST_ALIASES)) / theta, 9 * spread)
    # So little that it is nothing beside what one draw more or less would change.
    noise = spread / min(max(_LEAST_SMOOTHING, 20 * math.sqrt(n)), _MOST_SMOOTHING)
    integral = _integral(values, tilted, n, theta, noise, 2 * math.pi / period, math.exp(idle - rounding))
    return n * log_moment + math.log(integral) + rounding


def _integral(values: Floats, tilted: Floats, n: int, theta: float, noise: float, step: float, idle: float) -> float:
    """The sum for the integral over 2π, with bounds of all that is left out or wrong.

    The case that all draws are 0, with a probability of at least `idle`, is taken out: noise alone would be positive.
    """
    last = math.ceil(_CUT / noise / step)
    t, transform = _transform(values, tilted, step, last)
    size = np.abs(transform)
    wrong = _ROUNDING * (2 + len(values) + 2 * float(tilted @ np.abs(values)) * t)
    kernel = np.exp(noise**2 * (theta**2 - t**2) / 2) / (theta**2 + t**2)
    exponent = n * np.log(np.minimum(size + wrong, 1.0))
    bound = kernel * np.exp(exponent)
    terms = bound.copy()
    idle = idle if idle > math.exp(_NEGLIGIBLE) else 0.0
    (near,) = np.nonzero((exponent > _NEGLIGIBLE) | (idle > 0))
    exponent = n * np.log(np.maximum(size[near], 1e-300))
    power = kernel[near] * np.exp(exponent)
    turn = noise**2 * theta * t[near] - 2 * np.arctan2(t[near], theta)
    turned = n * np.angle(transform[near]) + turn
    lost = _ROUNDING * (64 + np.abs(exponent) + np.abs(turned)) * (power + idle * kernel[near])
    signed = power * np.cos(turned) - idle * kernel[near] * np.cos(turn)
    terms[near] = signed + np.abs(bound[near] - power) + lost
    terms[1:] *= 2  # those of −t
    # Those beyond the last are a falling function's, so at most its integral from there.
    end = last * step
    beyond = math.exp(noise**2 * (theta**2 - end**2) / 2) / (math.pi * end)
    return float(terms.sum()) * step / (2 * math.pi) + beyond


def _idle(values: Floats, law: Floats, n: int) -> float:
    """The logarithm of the probability that all draws are 0."""
    busy = float(law @ (values != 0))
    return n * math.log1p(-busy) if busy < 1 else -math.inf


def _transform(values: Floats, tilted: Floats, step: float, last: int) -> tuple[Floats, NDArray[np.complex128]]:
    """All t = 0, step, …, last·step, and φ(t): as products of the powers for blocks of t and within a block."""
    rows = math.isqrt(last) + 1
    within: NDArray[np.complex128] = np.exp(1j * np.outer(step * np.arange(rows), values))
    blocks: NDArray[np.complex128] = np.exp(1j * np.outer(values, step * rows * np.arange(last // rows + 1)))
    t: Floats = step * np.arange(last + 1.0)
    found: NDArray[np.complex128] = (within * tilted @ blocks).T.ravel()[: last + 1]
    return t, found


def _saddle_point(values: Floats, masses: Floats, n: int) -> float:
    """The θ that makes M(θ)^n / θ² least: any would do, near this one the integrand does not oscillate."""

    def slope(logarithm: float) -> float:
        theta = math.exp(logarithm)
        tilted, _ = _tilted(values, masses, theta)
        return n * theta * float(tilted @ values) / -math.expm1(_idle(values, tilted, n)) - 2

    low = high = -math.log(float(values.max()))
    while slope(low) > 0:
        low -= 2
    while slope(high) < 0:
        high += 2
    return math.exp(brentq(slope, low, high, xtol=1e-3))


def _tilted(values: Floats, masses: Floats, theta: float) -> tuple[Floats, float]:
    """The law with weights e^(θ·value), normalised, and the logarithm of what it was divided by."""
    exponents = theta * values
    top = float(exponents.max())
    weights = masses * np.exp(exponents - top)
    total = float(weights.sum())
    return weights / total, math.log(total) + top
