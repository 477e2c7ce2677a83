"""Concentrated and Rényi differential privacy, the currencies of Gaussian and Skellam noise, and (ε, δ) from them.

ρ-zCDP adds up over releases, and a Gaussian sum of standard deviation σ on data of sensitivity Δ₂ has ρ = Δ₂²/(2σ²).
Sources: Bun and Steinke, "Concentrated Differential Privacy", TCC 2016; Canonne, Kamath and Steinke, "The Discrete
Gaussian for Differential Privacy", NeurIPS 2020, corollary 13 (the conversion) and theorem 4 (discrete noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from ldp.accounting.shuffling import check_delta
from ldp.accounting.solving import crossing
from link.errors import ConfigurationError

_LARGEST_ORDER: Final = 4096
_UP: Final = 1 + 1e-12
_STEPS: Final = 200


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The ε of ρ-zCDP for δ: the least over all orders a of aρ + (ln(1/δ) + (a − 1)·ln(1 − 1/a) − ln a)/(a − 1).

    Args:
        rho: ρ, not negative.
        delta: δ.

    Raises:
        ConfigurationError: ρ is negative, or δ out of range.
    """
    _check_rho(rho)
    delta = check_delta(delta)
    if rho == 0:
        return 0.0

    def at(logarithm: float) -> float:
        order = 1 + math.exp(logarithm)
        return order * rho + _conversion(order, delta)

    # About 1 + √(ln(1/δ)/ρ) is the best order.
    near = math.log(math.log(1 / delta) / rho) / 2
    best = minimize_scalar(at, bounds=(near - 5, near + 5), method="bounded", options={"xatol": 1e-9})
    return max(float(best.fun), 0.0) * _UP


def zcdp_simple_epsilon(rho: float, delta: float) -> float:
    """The simple conversion ρ + 2√(ρ·ln(1/δ)), never less than `zcdp_epsilon`.

    Raises:
        ConfigurationError: ρ is negative, or δ out of range.
    """
    _check_rho(rho)
    return rho + 2 * math.sqrt(rho * math.log(1 / check_delta(delta)))


@lru_cache(256)
def zcdp_rho(epsilon: float, delta: float, conversion: Callable[[float, float], float] = zcdp_epsilon) -> float:
    """The largest ρ that has (ε, δ), rounded down.

    Args:
        epsilon: ε, above 0.
        delta: δ.
        conversion: `zcdp_epsilon` or `zcdp_simple_epsilon`.

    Raises:
        ConfigurationError: ε is not above 0, or δ out of range.
    """
    _check_epsilon(epsilon)
    low, high = 0.0, epsilon  # ε ≥ ρ in both conversions, for δ up to 1/2 and beyond
    while conversion(high, delta) <= epsilon:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if conversion(middle, delta) <= epsilon else (low, middle)
        if high - low <= 1e-12 * high:
            break
    return low


def rdp_epsilon(curve: Callable[[int], float], delta: float) -> float:
    """The ε for δ of a mechanism with a known Rényi curve; curves add up over releases.

    Args:
        curve: The Rényi divergence bound of a whole order from 2 on.
        delta: δ.

    Raises:
        ConfigurationError: δ is out of range.
    """
    delta = check_delta(delta)
    orders = [*range(2, 65), *(round(64 * 1.05**step) for step in range(1, 86))]
    return max(min(curve(order) + _conversion(order, delta) for order in orders if order <= _LARGEST_ORDER), 0.0) * _UP


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    """The exact δ of one release with continuous Gaussian noise: Φ(Δ/2σ − εσ/Δ) − e^ε·Φ(−Δ/2σ − εσ/Δ).

    Source: Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018, theorem 8.

    Args:
        epsilon: ε.
        sigma: Standard deviation of the noise in every coordinate.
        sensitivity: Δ₂.
    """
    half, reach = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    first, second = float(log_ndtr(half - reach)), float(log_ndtr(-half - reach)) + epsilon
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The least standard deviation of one continuous Gaussian release with (ε, δ), rounded up.

    Args:
        epsilon: ε, above 0.
        delta: δ.
        sensitivity: Δ₂.

    Raises:
        ConfigurationError: ε is not above 0, or δ out of range.
    """
    _check_epsilon(epsilon)
    target = math.log(check_delta(delta))

    def excess(sigma: float) -> float:
        spent = gaussian_delta(epsilon, sigma)
        return math.log(spent) - target if spent > 0 else -math.inf

    known = 1 / math.sqrt(2 * zcdp_rho(epsilon, delta))  # what zCDP asks for is enough
    return sensitivity * crossing(excess, 0.0, known * _UP, known * 0.9)


def skellam_rdp(order: int, mu: float, l1: float, l2: float) -> float:
    """The Rényi divergence of Skellam noise of variance μ, bounded.

    aΔ₂²/(2μ) + min(((2a − 1)Δ₂² + 6Δ₁)/(4μ²), 3Δ₁/(2μ)).
    Source: Agarwal, Kairouz and Liu, "The Skellam Mechanism for Differentially Private Federated Learning", NeurIPS
    2021, theorem 3.

    Args:
        order: a, a whole number from 2 on.
        mu: The variance of all noise in a coordinate.
        l1: Δ₁, by how much a record moves all coordinates together.
        l2: Δ₂, their Euclidean distance.
    """
    more = min(((2 * order - 1) * l2**2 + 6 * l1) / (4 * mu**2), 3 * l1 / (2 * mu))
    return order * l2**2 / (2 * mu) + more


def skellam_epsilon(mu: float, l1: float, l2: float, delta: float) -> float:
    """The ε of Skellam noise of variance μ for δ.

    Args:
        mu: The variance of all noise in a coordinate.
        l1: Δ₁.
        l2: Δ₂.
        delta: δ.

    Raises:
        ConfigurationError: δ is out of range.
    """
    return rdp_epsilon(lambda order: skellam_rdp(order, mu, l1, l2), delta)


def summed_gaussian_rho(variance: float, parties: int, dimensions: int, l2: float) -> float:
    """ρ of a sum of discrete Gaussians, which is not quite a discrete Gaussian.

    With h parties' noise of parameter s² each, in d coordinates, τ = 10·Σ_{k<h} e^(−2π²s²k/(k + 1)) and
    ε = min(√(Δ₂²/(h·s²) + τd/2), Δ₂/(√h·s) + τ√d), it is ε²/2. From s = 2 on, τ is below 10^-15.
    Source: Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure
    Aggregation", ICML 2021, proposition 14.

    Args:
        variance: s², the parameter of each party's noise.
        parties: h, how many parties' noise is not known to those who see the sum.
        dimensions: d, the number of sums.
        l2: Δ₂.

    Raises:
        ConfigurationError: s is below 1, where the sum's steps would show.
    """
    if variance < 1 or parties < 1:
        raise ConfigurationError(
            f"each party's noise needs a standard deviation of at least 1, not {math.sqrt(max(variance, 0)):.3g}; "
            "spend less, or let fewer parties share it"
        )
    tau = discreteness(variance, parties)
    central = l2**2 / (parties * variance)
    epsilon = min(math.sqrt(central + tau * dimensions / 2), math.sqrt(central) + tau * math.sqrt(dimensions))
    return epsilon**2 / 2


def discreteness(variance: float, parties: int) -> float:
    """τ, by how much a sum of discrete Gaussians of this parameter each differs from one."""
    return 10 * sum(math.exp(-2 * math.pi**2 * variance * k / (k + 1)) for k in range(1, parties))


def gumbel_rho(k: int, epsilon: float) -> float:
    """ρ of the k largest of counts with Gumbel(1/ε₀) noise each, drawn at once: k·ε₀²/8.

    Each of the k picks is an exponential mechanism on counts that a record raises by at most 1, none lowers: ε₀-bounded
    range. By how many counts a record moves does not enter. Gumbel noise is not divisible: one trusted place adds it.
    Sources: Durfee and Rogers, "Practical Differentially Private Top-k Selection with Pay-what-you-get Composition",
    NeurIPS 2019; Cesar and Rogers, "Bounding, Concentrating, and Truncating", ALT 2021.

    Args:
        k: How many are picked.
        epsilon: ε₀ of each pick.

    Raises:
        ConfigurationError: k is below 1, or ε₀ not above 0.
    """
    _check_epsilon(epsilon)
    if k < 1:
        raise ConfigurationError(f"at least one count is picked, not {k}")
    return k * epsilon**2 / 8


def _conversion(order: float, delta: float) -> float:
    return (math.log(1 / delta) + (order - 1) * math.log1p(-1 / order) - math.log(order)) / (order - 1)


def _check_rho(rho: float) -> None:
    if not 0 <= rho < math.inf:
        raise ConfigurationError(f"rho is a finite number from 0 on, not {rho!r}")


def _check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon < math.inf:
        raise ConfigurationError(f"epsilon is a finite number above 0, not {epsilon!r}")
