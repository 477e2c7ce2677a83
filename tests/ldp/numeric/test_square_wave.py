"""Square wave: the wave's width, its guarantee, and distributions by EM and EMS."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.expectation import bayes_steps
from ldp.numeric.square_wave import MOST_BINS, DistributionEstimate, SquareWave, optimal_half_width
from link.errors import InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR, check_privacy, check_reports, check_sampler

pytestmark = pytest.mark.turn(3)


def test_check_values() -> None:
    assert optimal_half_width(1.0) == pytest.approx(0.2560829, abs=1e-7)
    assert optimal_half_width(0.001) == pytest.approx(0.4996667777, abs=1e-9)
    assert optimal_half_width(0.0099999) == pytest.approx(optimal_half_width(0.01), abs=1e-6)
    assert optimal_half_width(16.0) == pytest.approx(8.440154e-7, rel=1e-6)
    wave = SquareWave(1.0, bins=4096)
    # Densities over the range's width from probabilities of cells.
    assert float(wave.windows.p) * wave.bins == pytest.approx(1.1363051, abs=5e-4)
    assert float(wave.windows.q) * wave.bins == pytest.approx(0.4180233, abs=2e-4)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 5.0, 10.0, 16.0])
@pytest.mark.parametrize("bins", [2, 9])
def test_no_ratio_of_probabilities_exceeds_its_epsilon(epsilon: float, bins: int) -> None:
    check_privacy(SquareWave(epsilon, bins=bins), tight=1e-9)


def test_the_sampler_draws_from_the_channel() -> None:
    for epsilon, bins in ((1.0, 5), (4.0, 12)):
        # Bin x holds the whole numbers up to x + 1, of which x is the lower end.
        check_sampler(SquareWave(epsilon, 0, bins, bins=bins), bins, Randomness.from_seed(bins))


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_distributions_come_back(epsilon: float) -> None:
    values = np.random.default_rng(1).beta(5, 2, 100_000)
    for smooth in (True, False):
        wave = SquareWave(epsilon, smooth=smooth)
        found = Aggregator(wave).add(wave.privatise(values, Randomness.from_seed(2))).estimate()
        assert found.shares.min() >= 0
        assert found.shares.sum() == pytest.approx(1)
        true = np.bincount(wave.binned(values), minlength=wave.bins) / len(values)
        # Wasserstein distance: below a hundredth of the range; for one user's report alone it would be near b.
        assert np.abs(np.cumsum(found.shares - true)).mean() < 0.012 / epsilon
        assert abs(found.mean - values.mean()) < 0.01
        assert np.abs(found.quantiles([0.25, 0.5, 0.75]) - np.quantile(values, [0.25, 0.5, 0.75])).max() < 0.02
        assert np.abs(found.cumulative([0.5, 0.8]) - [(values <= x).mean() for x in (0.5, 0.8)]).max() < 0.03


def test_smoothing_keeps_spikes_away() -> None:
    values = np.random.default_rng(3).beta(5, 2, 50_000)
    errors = {}
    for smooth in (True, False):
        wave = SquareWave(1.0, smooth=smooth)
        found = Aggregator(wave).add(wave.privatise(values, Randomness.from_seed(4))).estimate()
        errors[smooth] = np.abs(found.shares - np.bincount(wave.binned(values), minlength=256) / len(values)).sum()
    assert errors[True] < errors[False] / 2


def test_the_unsmoothed_estimate_is_nearly_the_likeliest() -> None:
    wave = SquareWave(2.0, bins=32, smooth=False)
    values = np.random.default_rng(5).random(20_000) ** 2
    tally = wave.tally(wave.privatise(values, Randomness.from_seed(6)))
    shares = wave.estimate(tally, len(values)).shares
    best = next(islice(bayes_steps(wave.windows, tally), 3000, None)).log_likelihood
    reached = tally @ np.log(wave.windows.forward(shares))
    true = tally @ np.log(wave.windows.forward(np.bincount(wave.binned(values), minlength=32) / len(values)))
    # The truth lacks half a chi-square of 31 degrees of freedom.
    assert reached > true
    assert best - reached < stats.chi2.isf(ERROR, 31) / 2


def test_distributions_tell_quantiles() -> None:
    estimate = DistributionEstimate(10, np.linspace(0, 4, 5), np.array([0.5, 0.0, 0.25, 0.25]))
    assert estimate.quantiles([0, 0.25, 0.5, 0.625, 1]).tolist() == [0, 0.5, 1, 2.5, 4]
    assert estimate.cumulative([0, 1, 1.5, 2.5, 4]).tolist() == [0, 0.5, 0.5, 0.625, 1]
    assert estimate.mean == pytest.approx(0.25 + 0.625 + 0.875)
    assert DistributionEstimate(1, np.linspace(0, 6, 4), np.full(3, 1 / 3)).variance == pytest.approx(3.0)
    with fails("E100"):
        estimate.quantiles([1.5])


def test_scales_do_not_matter() -> None:
    values = np.random.default_rng(7).random(5000)
    one, other = SquareWave(1.0), SquareWave(1.0, -10, 30)
    shares = [
        Aggregator(wave).add(wave.privatise(scaled, Randomness.from_seed(8))).estimate().shares
        for wave, scaled in ((one, values), (other, 40 * values - 10))
    ]
    assert np.abs(shares[0] - shares[1]).max() < 1e-3
    assert other.binned([-10, 30]).tolist() == [0, 255]


def test_reports_and_states_survive_their_bytes() -> None:
    check_reports(SquareWave(1.0), np.linspace(0, 1, 301), Randomness.from_seed(9))
    wave = SquareWave(1.0)
    reports = wave.privatise([0.5])
    reports.fields[0][0] = 60_000
    with fails("E101"):
        wave.read(reports.to_bytes())


@pytest.mark.parametrize("wrong", [[math.nan], [2.0], [-0.1], ["a"], [[0.5]]])
def test_wrong_values_are_refused(wrong: object) -> None:
    with pytest.raises(InputDataError):
        SquareWave(1.0).privatise(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("bins", [0, 1, MOST_BINS + 1])
def test_wrong_numbers_of_bins_are_refused(bins: int) -> None:
    with fails("E100"):
        SquareWave(1.0, bins=bins)


def test_parameters_read_back() -> None:
    wave = SquareWave(1.0, 0, 10, bins=16)
    assert SquareWave(**wave.get_params()).fingerprint == wave.fingerprint
    assert wave.with_params(bins=17).fingerprint != wave.fingerprint
    for bins in (2, MOST_BINS):
        assert SquareWave(0.001, bins=bins).windows.cells <= 1 << 16
