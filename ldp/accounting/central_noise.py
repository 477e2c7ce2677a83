"""Noise in a sum that several parties add shares of: how much for a budget, and what can be read from noisy counts.

Neighbouring data differ in one record, which is added or removed. A record adds 1 to each candidate that it contains,
at most M of them after truncation: Δ∞ = 1, Δ₁ = M, Δ₂ = √M. Without truncation, M is the number of candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from scipy.special import ndtri

from ldp.accounting.concentrated import summed_gaussian_rho, zcdp_rho
from ldp.accounting.shuffling import check_delta
from ldp.accounting.solving import crossing
from link.errors import ConfigurationError

_GRID: Final = 1 << 16
_DIMENSIONS: Final = 10**6


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """The noise of one level of queries.

    Attributes:
        rho: ρ that the level spends, against anyone who knows the colluding parties' shares.
        parameter: The parameter s² of the discrete Gaussian that each party adds to each sum.
        parties: How many add noise.
        colluding: How many of these may give their shares to who sees the sum.
    """

    rho: float
    parameter: Fraction
    parties: int
    colluding: int

    @property
    def sigma(self) -> float:
        """Standard deviation of all noise in a sum."""
        return math.sqrt(self.parameter * self.parties)


def sigma_for(
    epsilon: float,
    delta: float,
    shares: Sequence[float],
    most: Sequence[int],
    parties: int = 1,
    colluding: int = 0,
    dimensions: int = _DIMENSIONS,
) -> tuple[SharedNoise, ...]:
    """The noise of each level so that all levels together have (ε, δ).

    (ε, δ) allows a ρ, of which each level gets its share. σ = √(M/(2ρ)) must be left without the colluding parties'
    noise, so each party adds a variance of σ²/(n − t), rounded up to a multiple of 2^-16 and never below 1. A party
    that drops out after it has committed itself takes its noise with it: count only those whose share has arrived, or
    abort.

    Args:
        epsilon: ε of all levels together.
        delta: δ.
        shares: Each level's part of the budget; they add up to at most 1.
        most: For each level, M: the most candidates that a record counts for after truncation.
        parties: n, how many parties add noise.
        colluding: t < n, of these, those who may give their noise to who sees the sum; the analyst's own included.
        dimensions: The most candidates of a level.

    Raises:
        ConfigurationError: A parameter is out of range.
    """
    if not 0 <= colluding < parties:
        raise ConfigurationError(f"of {parties} parties, {colluding} cannot collude: one at least must be honest")
    if (
        not shares
        or len(shares) != len(most)
        or min(shares) <= 0
        or sum(map(Fraction, shares)) > 1 + Fraction(1, 10**9)
    ):
        raise ConfigurationError("each level needs a share of the budget above 0, all together at most 1, and its M")
    if min(most) < 1 or dimensions < 1:
        raise ConfigurationError("a record counts for at least one candidate, and there is one at least")
    rho = zcdp_rho(epsilon, delta) / max(1.0, math.fsum(shares))
    honest = parties - colluding
    levels = []
    for share, m in zip(shares, most, strict=True):
        parameter = _parameter(share * rho, honest, dimensions, math.sqrt(m))
        levels.append(
            SharedNoise(
                summed_gaussian_rho(float(parameter), honest, dimensions, math.sqrt(m)), parameter, parties, colluding
            )
        )
    return tuple(levels)


def _parameter(rho: float, honest: int, dimensions: int, l2: float) -> Fraction:
    """The least variance of each honest party's noise with which their sum has ρ."""
    central = l2**2 / (2 * rho * honest)

    def excess(variance: float) -> float:
        return summed_gaussian_rho(variance, honest, dimensions, l2) / rho - 1

    needed = (
        1.0 if central < 1 and excess(1.0) <= 0 else crossing(excess, 1.0, max(4 * central, 64.0), max(central, 1.0))
    )
    return Fraction(math.ceil(needed * _GRID), _GRID)


def confident_threshold(threshold: float, sigma: float, candidates: int, beta: float) -> float:
    """What a noisy count must reach so that no count below the threshold does, with probability 1 − β.

    T + σ·Φ⁻¹(1 − β/m). Comparing noisy counts is post-processing: it costs nothing.

    Args:
        threshold: T, the wanted support.
        sigma: Standard deviation of the noise.
        candidates: m, how many counts are compared.
        beta: β, the probability that some count passes wrongly.

    Raises:
        ConfigurationError: β is out of range, or there is no candidate.
    """
    if not 0 < beta < 1 or candidates < 1:
        raise ConfigurationError(
            f"beta lies between 0 and 1, for at least one candidate; {beta} and {candidates} do not"
        )
    return threshold - sigma * float(ndtri(beta / candidates))


def partition_threshold(sigma: float, most: int, delta: float) -> float:
    """From which noisy count on an item may be named at all where the list of items is not public.

    1 + σ·Φ⁻¹((1 − δ')^(1/M)): of the M items that nobody but one record has, none passes, but for a probability of δ',
    which adds to δ. All parties must apply it before anything is opened. For discrete Gaussian noise add 1, since that
    reaches m no more often than a Gaussian m − 1 (Canonne, Kamath and Steinke, NeurIPS 2020, proposition 25).
    Source: Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin, "Differentially Private Set Union", ICML 2020.

    Args:
        sigma: Standard deviation of all noise in a count, colluding parties' included: more noise passes more easily.
        most: M, how many items a record has at most after truncation.
        delta: δ'.

    Raises:
        ConfigurationError: δ' is out of range, or M below 1.
    """
    if most < 1:
        raise ConfigurationError(f"a record has at least one item, not {most}")
    return 1 - sigma * float(ndtri(-math.expm1(math.log1p(-check_delta(delta)) / most)))
