"""Published bounds of amplification by shuffling whose proof does not hold in general: to compare with only."""

from __future__ import annotations

import math


def fmt23_closed_form(epsilon: float, n: int, delta: float) -> float:
    """The "stronger" closed form, withdrawn for general mechanisms by the erratum in arXiv 2208.04591. NOT a guarantee.

    ln(1 + (e^ε₀ − 1)·(4√(2·ln(4/δ))/√((e^ε₀ + 1)·n) + 4/n)). Its lemma 3.5 fails where the differing user's report is
    drawn from the two likeliest laws with less than 1/(e^ε₀ + 1), so that theorems 3.1 and 3.2 hold for a restricted
    class of mechanisms only.
    Source: Feldman, McMillan and Talwar, "Stronger Privacy Amplification by Shuffling for Rényi and Approximate
    Differential Privacy", SODA 2023.

    Args:
        epsilon: ε₀.
        n: Reports.
        delta: δ.

    Returns:
        Infinite where even the paper does not claim it: for ε₀ > ln(n / (8·ln(2/δ)) − 1).
    """
    most = n / (8 * math.log(2 / delta)) - 1
    if most <= 0 or epsilon > math.log(most):
        return math.inf
    grown = math.exp(epsilon)
    return math.log1p((grown - 1) * (4 * math.sqrt(2 * math.log(4 / delta) / ((grown + 1) * n)) + 4 / n))
