"""Uniqueness in a population of which only a sample is at hand, estimated from the sizes of the sample's classes.

Rows that are alone in their class of the sample may have doubles in the population. Two estimators, of the many there
are (Dankar, El Emam, Neisa and Roffey 2012 compare them): Zayatz's takes the sample's sizes for the population's;
Pitman's fits a distribution of sizes. Neither is a bound: report both, and the sampling fraction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import gammaln

from link.errors import ConfigurationError


def _sizes(sizes: ArrayLike, population: int) -> NDArray[np.int64]:
    f = np.asarray(sizes, dtype=np.int64).reshape(-1)
    if f.size == 0 or (f < 1).any() or population < f.sum():
        raise ConfigurationError(
            f"Population uniqueness needs classes of one row at least, and a population of {int(f.sum())} rows or more."
        )
    return f


def zayatz(sizes: ArrayLike, population: int) -> float:
    """Population uniques after Zayatz (1991), as a share of the population.

    The chance that a sample unique is one of the population is taken from Bayes' rule, the population's class sizes
    being distributed as the sample's: P(F = 1 | f = 1) = (n/N) D_1 / Σ_j D_j H(1; N, j, n), with D_j the share of
    classes of size j and H the hypergeometric chance that one of j rows is among n of N. A population unique is in the
    sample with chance n/N.

    Args:
        sizes: Rows of each class of the sample.
        population: N.

    Raises:
        ConfigurationError: There is no class, an empty one, or more rows than N.
    """
    f = _sizes(sizes, population)
    n, total = int(f.sum()), population
    j, counts = np.unique(f, return_counts=True)
    if j[0] != 1:
        return 0.0
    # ln H(1; N, j, n) = ln [j C(N − j, n − 1)/C(N, n)]; 0 where fewer than n − 1 rows are left.
    possible = total - j >= n - 1
    logs = np.full(len(j), -np.inf)
    left, rest = total - j[possible], n - 1
    logs[possible] = (
        np.log(j[possible])
        + (gammaln(left + 1) - gammaln(rest + 1) - gammaln(left - rest + 1))
        - (gammaln(total + 1) - gammaln(n + 1) - gammaln(total - n + 1))
    )
    shares = counts / counts.sum()
    chance = (n / total) * shares[0] / float((shares * np.exp(logs)).sum())
    return int(counts[0]) * min(float(chance), 1.0) / n


def pitman(sizes: ArrayLike, population: int) -> float:
    """Population uniques by Pitman's sampling formula (Hoshino 2001), as a share of the population.

    θ and α are fitted by maximum likelihood; in a population of N rows Γ(θ + 1)/Γ(θ + α) · N^α are expected to be
    unique. It suits samples of many small classes.

    Args:
        sizes: Rows of each class of the sample.
        population: N.

    Raises:
        ConfigurationError: There is no class, an empty one, or more rows than N.
    """
    f = _sizes(sizes, population)
    n, u = int(f.sum()), f.size
    if u == n:  # nobody shares a class: the likelihood grows without bound towards α = 1
        return 1.0
    j, counts = np.unique(f, return_counts=True)

    def cost(parameters: NDArray[np.float64]) -> float:
        alpha, theta = 1 / (1 + np.exp(-parameters[0])), np.exp(parameters[1])
        groups = (u - 1) * np.log(alpha) + gammaln(theta / alpha + u) - gammaln(theta / alpha + 1)
        rows = gammaln(theta + n) - gammaln(theta + 1)
        members = float((counts * (gammaln(j - alpha) - gammaln(1 - alpha))).sum())
        return -float(groups - rows + members)

    bounds = [(-12.0, 12.0), (-12.0, 25.0)]
    found = minimize(cost, np.array([0.0, np.log(max(u / 2, 1.0))]), method="L-BFGS-B", bounds=bounds)
    alpha, theta = 1 / (1 + np.exp(-found.x[0])), np.exp(found.x[1])
    uniques = np.exp(gammaln(theta + 1) - gammaln(theta + alpha) + alpha * np.log(population))
    return float(min(1.0, uniques / population))
