"""What holds for every mechanism that perturbs whole sets, as functions for the tests of each."""

from __future__ import annotations

import numpy as np
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.sets.baskets import Baskets
from ldp.sets.set_oracle import SetOracle
from tests.ldp.contract import ERROR, chi_square_p


def members(number: int) -> list[int]:
    """A set from its number, the first item's bit lowest."""
    return [v for v in range(number.bit_length()) if number >> v & 1]


def check_set_sampler(mechanism: SetOracle, rng: Randomness, reports: int = 20_000) -> None:
    """What is drawn follows the channel: a chi-square test for each set, together at `ERROR`."""
    channel = mechanism.channel()
    for number, row in enumerate(channel):
        drawn = mechanism.privatise([members(number)] * reports, rng)
        observed = np.bincount(mechanism.outcomes(drawn), minlength=len(row))
        assert chi_square_p(observed, np.array([float(p) for p in row]) * reports) > ERROR / len(channel)


def check_set_estimates(mechanism: SetOracle, sets: list[list[int]], rng: Randomness, runs: int = 400) -> None:
    """Over repeated runs, estimates of all items and sizes have the right means and variances, at 2 · `ERROR` each."""
    baskets = Baskets.of(sets, mechanism.domain)
    n, m = len(baskets), mechanism.length
    shares = np.bincount(baskets.sizes, minlength=m + 1) / n
    found = [Aggregator(mechanism).add(mechanism.privatise(baskets, rng)).estimate() for _ in range(runs)]
    counts = baskets.counts()
    check_moments(np.array([each.counts for each in found]) - counts, mechanism.variance(counts, n))
    check_moments(np.array([each.sizes for each in found]) - shares, mechanism.size_variances(shares, n))
    # What is stated with an estimate is near the exact variance.
    stated = np.mean([each.variances for each in found], axis=0)
    assert np.allclose(stated, mechanism.variance(counts, n), rtol=0.15)
    stated = np.mean([each.size_variances for each in found], axis=0)
    assert np.allclose(stated, mechanism.size_variances(shares, n), rtol=0.2)


def check_moments(errors: np.ndarray, variance: np.ndarray) -> None:
    """Errors of repeated runs, shape (runs, k), have mean 0 and the given variances, together at 2 · `ERROR`."""
    runs, k = errors.shape
    z = errors.mean(axis=0) / np.sqrt(variance / runs)
    assert np.all(np.abs(z) < stats.norm.isf(ERROR / k / 2)), z
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / k / 2, 1 - ERROR / k / 2))
    ratio = errors.var(axis=0, ddof=1) / variance
    assert np.all((0.95 * low < ratio) & (ratio < 1.05 * high)), ratio
