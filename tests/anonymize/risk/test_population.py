"""Population uniqueness: exact cases, and simulation of the model that an estimator fits."""

from __future__ import annotations

import numpy as np
import pytest

from anonymize.risk.population import pitman, zayatz
from link.errors import ConfigurationError

pytestmark = pytest.mark.turn(3)


def restaurant(n: int, alpha: float, theta: float, rng: np.random.Generator) -> list[int]:
    """Class sizes by Pitman's sampling formula: a row begins a class with chance (θ + u α)/(θ + i)."""
    sizes: list[int] = []
    for i in range(n):
        weights = np.array([size - alpha for size in sizes] + [theta + len(sizes) * alpha]) / (theta + i)
        place = int(rng.choice(len(weights), p=weights))
        if place == len(sizes):
            sizes.append(0)
        sizes[place] += 1
    return sizes


def test_the_whole_population_as_a_sample() -> None:
    assert zayatz([1, 1, 2, 4], 8) == pytest.approx(0.25)
    assert zayatz([2, 3], 5) == 0
    assert pitman([1, 1, 1], 3) == 1


def test_zayatz_by_hand() -> None:
    """Sizes 1 and 2 in equal shares, n = 3 of N = 6: H(1; 6, 1, 3) = 1/2, H(1; 6, 2, 3) = 2·C(4, 2)/C(6, 3) = 3/5."""
    chance = 0.5 * 0.5 / (0.5 * 0.5 + 0.5 * 0.6)
    assert zayatz([1, 2], 6) == pytest.approx(1 * chance * 2 / 6)


def test_pitman_finds_the_uniques_of_its_own_model() -> None:
    """Populations of 2,000 by Pitman's formula with α = .5, θ = 20; samples of 500.

    About 200 are unique. The ratio of estimate and truth had a standard deviation of .15 in 60 runs, so the mean of ten
    has .05, and .25 is five of these: failure with probability below 1e-6.
    """
    rng = np.random.default_rng(3)
    ratios = []
    for _ in range(10):
        sizes = np.array(restaurant(2000, 0.5, 20, rng))
        sample = np.bincount(rng.permutation(np.repeat(np.arange(len(sizes)), sizes))[:500])
        ratios.append(pitman(sample[sample > 0], 2000) / ((sizes == 1).sum() / 2000))
    assert np.mean(ratios) == pytest.approx(1, abs=0.25)


@pytest.mark.parametrize("estimate", [zayatz, pitman])
def test_larger_populations_have_fewer_uniques(estimate: object) -> None:
    sample = [1] * 30 + [2] * 10 + [5] * 4 + [30]
    shares = [estimate(sample, n) for n in (100, 1_000, 100_000)]  # type: ignore[operator]
    assert 1 >= shares[0] > shares[1] > shares[2] > 0


@pytest.mark.parametrize("estimate", [zayatz, pitman])
def test_refusals(estimate: object) -> None:
    for sizes, population in (([], 5), ([0, 1], 5), ([3, 3], 5)):
        with pytest.raises(ConfigurationError):
            estimate(sizes, population)  # type: ignore[operator]
