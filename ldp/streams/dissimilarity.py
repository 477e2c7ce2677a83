"""How far a stream has moved since the last release, and how far off a fresh release would be.

All errors are means over the d values. An estimate from n users drawn out of N is off for two reasons: what they add to
hide their values, which the mechanism's exact variance gives; and that others could have been drawn, which adds
f(1 − f)/n·(N − n)/(N − 1) to the variance of a frequency f. LDP-IDS leaves out the second, and prints the first
for direct encoding as (d − 2 + e^ε)/(n(e^ε − 1)²) + (d − 2)/(n(e^ε − 1)) where the second term lacks its factor 1/d.
Source: Ren et al., "LDP-IDS: Local Differential Privacy for Infinite Data Streams", SIGMOD 2022, section 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle

Floats = NDArray[np.float64]


def mean_variance(oracle: FrequencyOracle, n: int) -> float:
    """The mean variance of the frequencies that n users' reports give.

    In pure protocols it does not depend on what the users have, as counts add up to n. For others it is that of values
    that are all as common.
    """
    d = oracle.domain.size
    return float(oracle.variance(np.full(d, n / d), n).mean()) / n**2


def drawing_factor(n: int, users: int) -> float:
    """(N − n)/(n(N − 1)): times f(1 − f), the variance of a frequency among n users drawn out of N; 0 for all of them.

    Args:
        n: How many were drawn, at least 1.
        users: N.
    """
    return (users - n) / (n * (users - 1)) if n < users else 0.0


def drawn_variances(estimate: Estimate, users: int) -> Floats:
    """By how much frequencies vary with who was drawn, shape (d,): f(1 − f) times `drawing_factor`.

    Of f, a share of four more users of whom two have the value is taken, or a rare value that nobody has who was drawn
    would seem to vary not at all.
    Source: Agresti and Coull, "Approximate Is Better than 'Exact' for Interval Estimation of Binomial Proportions", The
    American Statistician 52(2), 1998.

    Args:
        estimate: Of the frequencies of some users, drawn out of N.
        users: N.
    """
    shares = (np.clip(estimate.frequencies, 0, 1) * estimate.n + 2) / (estimate.n + 4)
    varying: Floats = shares * (1 - shares) * drawing_factor(estimate.n, users)
    return varying


def concentration(estimate: Estimate, variance: float, users: int) -> float:
    """An unbiased estimate of Σf², which is 1/d for values that are all as common and 1 for a single one.

    Args:
        estimate: Of the frequencies f of some users, drawn out of N.
        variance: Its mean variance by the mechanism.
        users: N.
    """
    factor = drawing_factor(estimate.n, users)
    square = float(np.square(estimate.frequencies).sum())
    # E[Σf̂²] = Σf² + d·variance + (1 − Σf²)·factor.
    return (square - estimate.domain.size * variance - factor) / (1 - factor) if factor < 1 else 1.0


def drawing_variance(concentrated: float, n: int, users: int, d: int) -> float:
    """The mean of f(1 − f)·(N − n)/(n(N − 1)) over the d values, given Σf²."""
    return (1 - concentrated) / d * drawing_factor(n, users)


def dissimilarity(estimate: Estimate, released: Floats, oracle: FrequencyOracle, users: int) -> float:
    """An unbiased estimate of the mean squared difference of the true frequencies and the last release.

    Args:
        estimate: Of the present frequencies; independent of the last release.
        released: The last release, shape (d,).
        oracle: What made the reports behind the estimate.
        users: How many users there are, asked or not.

    Returns:
        It may be negative.
    """
    apart = float(np.square(estimate.frequencies - released).mean())
    variance = mean_variance(oracle, estimate.n)
    concentrated = concentration(estimate, variance, users)
    return apart - variance - drawing_variance(concentrated, estimate.n, users, estimate.domain.size)
