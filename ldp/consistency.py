"""Post-processing: what is known of frequencies, that none is negative and that they add up to 1, put into estimates.

It costs no privacy and reduces errors, but most methods add bias: keep the raw estimates for sums over many values, and
take `norm_sub` or `power_ns` where single values are looked at. Every function takes frequencies of shape (d,), raw
estimates in the order of the domain, and returns new ones.

Source: Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li, "Locally Differentially Private Frequency Estimation with
Consistency", NDSS 2020; where its authors' published code does something else, the function says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import zeta

from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle, PureOracle
from link.errors import ConfigurationError

Floats = NDArray[np.float64]


def base(frequencies: Floats) -> Floats:
    """Base: the raw estimates; unbiased."""
    return np.array(frequencies, dtype=np.float64)


def base_pos(frequencies: Floats) -> Floats:
    """Base-Pos: negative estimates become 0."""
    return np.maximum(frequencies, 0.0)


def post_pos(frequencies: Floats, values: NDArray[np.int64]) -> float:
    """Post-Pos: the answer to one query, the sum over some values, which becomes 0 where it is negative.

    Args:
        frequencies: Raw estimates, shape (d,).
        values: The numbers of the values that the query adds up.
    """
    return max(float(frequencies[values].sum()), 0.0)


def base_cut(frequencies: Floats, deviation: float, alpha: float = 0.05) -> Floats:
    """Base-Cut: estimates that noise alone could explain become 0.

    Args:
        frequencies: Raw estimates, shape (d,).
        deviation: Standard deviation of the estimate of a value that nobody has.
        alpha: The expected number of such values that are kept; α/d is the chance of each.

    Raises:
        ConfigurationError: α is not between 0 and d/2, where the threshold would be 0.
    """
    d = len(frequencies)
    if not 0 < alpha < d / 2:
        raise ConfigurationError(f"alpha must lie between 0 and half the number of values, {d / 2:g}, not at {alpha:g}")
    threshold = NormalDist().inv_cdf(1 - alpha / d) * deviation
    return np.where(frequencies < threshold, 0.0, frequencies)


def norm(frequencies: Floats) -> Floats:
    """Norm: adds the same number to all, so that they add up to 1; unbiased, may be negative."""
    shifted: Floats = frequencies + (1.0 - frequencies.sum()) / len(frequencies)
    return shifted


def norm_mul(frequencies: Floats) -> Floats:
    """Norm-Mul: negative estimates become 0, and the rest is scaled to add up to 1; uniform if none is positive."""
    kept: Floats = base_pos(frequencies)
    total = float(kept.sum())
    return kept / total if total > 0 else np.full(len(kept), 1.0 / len(kept))


def norm_sub(frequencies: Floats) -> Floats:
    """Norm-Sub: subtracts the same number from all and cuts at 0, so that they add up to 1.

    This is the Euclidean projection on the simplex, exact by sorting (Held, Wolfe and Crowder, 1974).
    """
    falling = np.sort(frequencies)[::-1]
    surplus = (np.cumsum(falling) - 1.0) / np.arange(1, len(falling) + 1)
    shift = float(surplus[np.flatnonzero(falling > surplus)[-1]])
    return np.maximum(frequencies - shift, 0.0)


def norm_cut(frequencies: Floats) -> Floats:
    """Norm-Cut as in the paper: keeps the largest estimates whose sum is at most 1; the rest becomes 0."""
    return _largest(frequencies, overshoot=False)


def norm_cut_rescaled(frequencies: Floats) -> Floats:
    """Norm-Cut as in the authors' code: keeps estimates until their sum passes 1, and scales it to 1.

    Where the positive estimates add up to 1 at most there is nothing to cut, and nothing is scaled.
    """
    kept = _largest(frequencies, overshoot=True)
    total = kept.sum()
    return kept / total if total > 1 else kept


def _largest(frequencies: Floats, *, overshoot: bool) -> Floats:
    positive = base_pos(frequencies)
    order = np.argsort(-positive, kind="stable")
    before = np.cumsum(positive[order])
    # Sums of decimals meet 1 but for rounding; where they do, the authors' code goes on.
    within = (before - positive[order] if overshoot else before) <= 1.0 + 1e-12
    # Once an estimate is left out, smaller ones are too.
    within &= np.logical_and.accumulate(within)
    kept = np.zeros(len(positive))
    kept[order[within]] = positive[order[within]]
    return kept


def mle_apx(frequencies: Floats, p: float, q: float, *, direct: bool = False) -> Floats:
    """MLE-Apx: the most likely non-negative frequencies that add up to 1, in the normal approximation.

    Values whose solution is negative are dropped, and the rest is solved again.

    Args:
        frequencies: Raw estimates, shape (d,).
        p: The oracle's probability that a report supports the user's value.
        q: The same for another value.
        direct: The form for direct encoding, where supports add up to n.
    """
    observed = frequencies * (p - q) + q
    support = frequencies > 0
    if not support.any():
        return norm_sub(frequencies)
    result = np.zeros(len(frequencies))
    while True:
        seen, size = observed[support], int(support.sum())
        if direct:
            solved = (seen / seen.sum() * (size * q + p - q) - q) / (p - q)
        else:
            own, other = p * (1 - p), q * (1 - q)
            shift = (seen.sum() - p - (size - 1) * q) / (own + (size - 1) * other)
            solved = (seen - q - other * shift) / (p - q + (own - other) * shift)
        if (solved >= 0).all() or size == 1:
            result[support] = np.maximum(solved, 0.0)
            return result
        support[np.flatnonzero(support)[solved < 0]] = False


def power(frequencies: Floats, n: int, deviation: float) -> Floats:
    """Power: the posterior means under a power law of counts, P(c) ∝ c^−α on 1 … n, and normal noise.

    α is the one under which the mean count is the observed one; 1.01 where that is below 1.

    Args:
        frequencies: Raw estimates, shape (d,).
        n: How many users.
        deviation: Standard deviation of a frequency's estimate.
    """
    mean = float(frequencies.mean()) * n
    grid = _support(n)
    exponent = _exponent(mean, n)
    # The grid is finer than the noise; a cell carries the probability of all counts in it.
    weight = np.log(grid.counts) * -exponent + np.log(grid.widths)
    means = np.empty(len(frequencies))
    step = max(1, (1 << 22) // len(grid.counts))
    for start in range(0, len(frequencies), step):
        observed = frequencies[start : start + step, None]
        score = weight - np.square((observed - grid.counts / n) / deviation) / 2
        score -= score.max(axis=1, keepdims=True)
        likely = np.exp(score)
        means[start : start + step] = (likely @ grid.counts) / likely.sum(axis=1) / n
    return means


def power_ns(frequencies: Floats, n: int, deviation: float) -> Floats:
    """PowerNS: Power, then Norm-Sub."""
    return norm_sub(power(frequencies, n, deviation))


class _support:  # noqa: N801 (a record of two arrays)
    """Counts 1 … n, every one up to 1,024 and then cells that grow by a thousandth."""

    def __init__(self, n: int) -> None:
        edges = np.arange(1, min(n, 1024) + 2, dtype=np.float64)
        if n > 1024:
            cells = int(np.ceil(np.log((n + 1) / edges[-1]) / np.log(1.001)))
            edges = np.concatenate([edges[:-1], np.geomspace(edges[-1], n + 1.0, cells + 1)])
        self.widths = np.diff(edges)
        self.counts = (edges[:-1] + edges[1:] - 1) / 2


def _exponent(mean: float, n: int) -> float:
    """The α for which a power law on 1 … n has a mean."""
    if mean < 1:
        return 1.01

    def excess(alpha: float) -> float:
        return _power_sum(alpha - 1, n) / _power_sum(alpha, n) - mean

    low, high = 1.0001, 20.0
    if excess(low) <= 0:
        return 1.01
    return high if excess(high) >= 0 else float(brentq(excess, low, high))


def _power_sum(alpha: float, n: int) -> float:
    """Σ x^−α over 1 … n."""
    if alpha > 1:
        return float(zeta(alpha) - zeta(alpha, n + 1))
    head = np.arange(1, min(n, 10_000) + 1, dtype=np.float64)
    total = float((head**-alpha).sum())
    if n > 10_000:  # Euler–Maclaurin: the integral and half of both ends
        low, high = 10_000.0, float(n)
        integral = np.log(high / low) if alpha == 1 else (high ** (1 - alpha) - low ** (1 - alpha)) / (1 - alpha)
        total += float(integral + (high**-alpha - low**-alpha) / 2)
    return total


METHODS: Final = (
    "base",
    "base-pos",
    "base-cut",
    "norm",
    "norm-mul",
    "norm-sub",
    "norm-cut",
    "norm-cut-rescaled",
    "mle-apx",
    "power",
    "power-ns",
)


def consistent(estimate: Estimate, oracle: FrequencyOracle, method: str = "norm-sub") -> Estimate:
    """An estimate with its counts post-processed; the variances stay those of the raw counts.

    Args:
        estimate: Raw estimates.
        oracle: Where they come from.
        method: One of `METHODS`.

    Raises:
        ConfigurationError: There is no such method, or it does not fit the oracle.
    """
    n, raw = estimate.n, estimate.frequencies
    deviation = float(np.sqrt(oracle.variance(np.zeros(estimate.domain.size), n).mean())) / n
    plain: dict[str, Callable[[Floats], Floats]] = {
        "base": base,
        "base-pos": base_pos,
        "base-cut": lambda found: base_cut(found, deviation),
        "norm": norm,
        "norm-mul": norm_mul,
        "norm-sub": norm_sub,
        "norm-cut": norm_cut,
        "norm-cut-rescaled": norm_cut_rescaled,
        "power": lambda found: power(found, n, deviation),
        "power-ns": lambda found: power_ns(found, n, deviation),
    }
    if method == "mle-apx":
        if not isinstance(oracle, PureOracle):
            raise ConfigurationError(f"mle-apx fits oracles with one p and one q, and {oracle.name} has others")
        found = mle_apx(raw, float(oracle.p), float(oracle.q), direct=oracle.name == "grr")
    elif method in plain:
        found = plain[method](raw)
    else:
        raise ConfigurationError(f"there is no post-processing '{method}'; take one of {', '.join(METHODS)}")
    return replace(estimate, counts=found * n)
