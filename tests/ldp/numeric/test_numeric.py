"""Means of numbers: exact guarantees on grids, unbiased estimates, exact variances, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.budget import exp_below
from ldp.numeric.duchi import Duchi
from ldp.numeric.geometric import FineGeometric
from ldp.numeric.hybrid import THRESHOLD, Hybrid
from ldp.numeric.interval import LARGEST_GRID, Interval, randomly_rounded
from ldp.numeric.laplace import DiscreteLaplace
from ldp.numeric.mean import NumericMechanism
from ldp.numeric.names import NUMERIC, numeric
from ldp.numeric.piecewise import Piecewise
from ldp.numeric.windows import Windows
from ldp.reports import Reports
from link.errors import InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR, check_privacy, check_reports, chi_square_p

pytestmark = pytest.mark.turn(5)

EPSILONS = [0.01, 0.5, 1.0, 2.0, 5.0, 10.0, 16.0]
VALUES = np.array([-1.0, 1.0, 0.0, 0.25, -0.7, 1 / 3, 0.999, *np.linspace(-1, 0.5, 33)])


def on_small_grid(name: str, epsilon: float, grid: int = 8) -> NumericMechanism:
    return numeric(name, epsilon, **({} if name == "duchi" else {"grid": grid}))


@pytest.fixture(params=NUMERIC)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# -- privacy ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("grid", [2, 6])
def test_no_ratio_of_probabilities_exceeds_its_epsilon(name: str, epsilon: float, grid: int) -> None:
    check_privacy(on_small_grid(name, epsilon, grid), tight=1e-9)


@pytest.mark.parametrize("epsilon", [0.001, *EPSILONS])
def test_the_fine_grid_costs_next_to_nothing_of_epsilon(name: str, epsilon: float) -> None:
    assert epsilon - 1e-12 <= numeric(name, epsilon).exact_epsilon <= epsilon


def test_the_sampler_draws_from_the_channel(name: str) -> None:
    for epsilon in (0.4, 1.0, 4.0):
        mechanism, reports = on_small_grid(name, epsilon), 30_000
        for value, row in zip(mechanism.points(), mechanism.channel(), strict=True):
            drawn = mechanism.privatise(np.full(reports, value), Randomness.from_seed(2))
            observed = np.bincount(mechanism.outcomes(drawn), minlength=len(row))
            assert chi_square_p(observed, np.array([float(p) for p in row]) * reports) > ERROR / len(row)


@given(st.integers(2, 16), st.floats(0.05, 16))
def test_noise_of_data_in_a_range_keeps_the_factor(span: int, epsilon: float) -> None:
    factor = exp_below(epsilon)
    noise = FineGeometric(span, factor)
    longest = (len(noise.coarse) + 2) * span
    law = [noise.probability(k) for k in range(longest)]
    assert all(later <= sooner for sooner, later in pairwise(law))
    assert all(law[k] <= factor * law[k + span] for k in range(longest - span))
    assert law[0] + 2 * sum(law[1:]) + 2 * noise.tail(longest) == 1
    assert all(noise.tail(k) - noise.tail(k + 1) == law[k] for k in range(1, longest - 1, 1 + longest // 9))


@given(st.floats(0.001, 16))
def test_weights_fall_on_the_finest_grid_too(epsilon: float) -> None:
    noise = FineGeometric(LARGEST_GRID, exp_below(epsilon))
    assert (np.diff(noise.fine) <= 0).all()
    assert noise.fine[-1] > 0
    # From the last place of a range to the first one of the next, also where the table starts anew.
    for q in range(len(noise.coarse) + 1):
        assert noise.probability((q + 1) * noise.span - 1) >= noise.probability((q + 1) * noise.span)
    assert noise.worst_ratio <= noise.factor


def test_the_noise_has_the_stated_variance() -> None:
    for epsilon, grid in ((0.5, 8), (3.0, 50), (16.0, 300)):
        noise = FineGeometric(grid, exp_below(epsilon))
        summed = 2 * math.fsum(k**2 * float(noise.probability(k)) for k in range(1, math.ceil(60 / epsilon) * grid))
        assert math.isclose(summed, float(noise.variance), rel_tol=1e-9)


def test_noise_on_the_finest_grid_follows_its_law() -> None:
    for epsilon in (0.3, 1.0, 8.0):
        noise = FineGeometric(LARGEST_GRID, exp_below(epsilon))
        drawn = noise.draw(200_000, Randomness.from_seed(4))
        ranges = np.minimum(np.abs(drawn) // noise.span, 9)
        tails = [float(2 * noise.tail(k * noise.span)) for k in range(1, 10)]
        expected = -np.diff([1.0, *tails, 0.0]) * len(drawn)
        assert chi_square_p(np.bincount(ranges, minlength=10), expected) > ERROR
        assert abs(np.count_nonzero(drawn > 0) - np.count_nonzero(drawn < 0)) < 6 * math.sqrt(len(drawn))


# -- windows ----------------------------------------------------------------------------------------------------------
@given(st.integers(1, 30), st.integers(1, 30), st.floats(0.01, 10), st.integers(0, 1000))
def test_windows_multiply_like_their_channel(steps: int, width: int, epsilon: float, seed: int) -> None:
    windows, rng = Windows(steps, width, exp_below(epsilon)), np.random.default_rng(seed)
    dense = np.array([[float(p) for p in row] for row in windows.channel()])
    assert dense.shape == windows.shape
    theta, weights = rng.random(steps + 1), rng.random(windows.cells)
    assert np.allclose(windows.forward(theta), theta @ dense)
    assert np.allclose(windows.backward(weights), dense @ weights)


@given(st.integers(1, 20), st.integers(1, 20), st.floats(0.01, 10))
def test_a_window_moves_the_mean_in_equal_steps_and_the_variance_by_a_square(s: int, w: int, epsilon: float) -> None:
    windows = Windows(s, w, exp_below(epsilon))
    for i, row in enumerate(windows.channel()):
        places = [2 * y - (windows.cells - 1) for y in range(windows.cells)]
        mean = sum(p * z for p, z in zip(row, places, strict=True))
        centre, shrinking = 2 * i - s, windows.shrinking
        assert mean == shrinking * centre
        variance = sum(p * z * z for p, z in zip(row, places, strict=True)) - mean**2
        assert variance == windows.centred_variance() + (shrinking - shrinking**2) * centre**2


# -- estimates --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 6.0])
@pytest.mark.parametrize("grid", [4, LARGEST_GRID])
def test_estimates_are_unbiased_with_the_stated_variance(name: str, epsilon: float, grid: int) -> None:
    parameters = {} if name == "duchi" else {"grid": grid}
    mechanism, runs = numeric(name, epsilon, low=10, high=30, **parameters), 1000
    values = 20 + 10 * VALUES
    variance = mechanism.variance(values).sum() / len(values) ** 2
    reports = mechanism.privatise(np.tile(values, runs), Randomness.from_seed(5))
    means = np.array(
        [
            Aggregator(mechanism).add(reports[start : start + len(values)]).estimate().mean
            for start in range(0, len(reports), len(values))
        ]
    )
    assert abs(means.mean() - values.mean()) < stats.norm.isf(ERROR / 2) * math.sqrt(variance / runs)
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / 2, 1 - ERROR / 2))
    # A tenth is left for what is not normal in sums over 40 users.
    assert 0.9 * low < means.var(ddof=1) / variance < 1.1 * high


def test_variances_by_enumeration(name: str) -> None:
    for epsilon in (0.3, 1.0, 5.0, 16.0):
        mechanism = on_small_grid(name, epsilon)
        channel = mechanism.channel()
        means = [_told(mechanism, code) for code in range(len(channel[0]))]
        for value, row in zip(mechanism.points(), channel, strict=True):
            mean = math.fsum(float(p) * m for p, m in zip(row, means, strict=True))
            square = math.fsum(float(p) * m**2 for p, m in zip(row, means, strict=True))
            assert math.isclose(mean, value, abs_tol=1e-7)  # the enumeration cuts Laplace noise at 66 ranges
            assert math.isclose(square - mean**2, float(mechanism.variance([value])[0]), rel_tol=1e-5)


def _told(mechanism: NumericMechanism, code: int) -> float:
    """What a single report of an enumerated output estimates."""
    if isinstance(mechanism, DiscreteLaplace):
        code += mechanism.grid - 66 * mechanism.grid
    reports = Reports(mechanism.fingerprint, (np.array([code], mechanism.layout[0].dtype),))
    return mechanism.estimate(mechanism.tally(reports), 1).mean


@pytest.mark.parametrize("spread", [0.01, 0.4, 1.0])
def test_the_estimated_variance_is_the_true_one_or_a_little_more(name: str, spread: float) -> None:
    values = np.linspace(-spread, spread, 40_000)
    for epsilon in (0.5, 1.0, 5.0):
        mechanism = numeric(name, epsilon)
        found = Aggregator(mechanism).add(mechanism.privatise(values, Randomness.from_seed(6))).estimate().variance
        true = mechanism.variance(values).sum() / len(values) ** 2
        told = name != "duchi"
        assert true * (0.95 if told else 1 - 1e-9) < found < true * 1.05 + (0 if told else 1 / len(values))


def test_intervals_cover(name: str) -> None:
    mechanism, values, runs = numeric(name, 1.0), np.full(500, 0.2), 400
    rng = Randomness.from_seed(7)
    covered = 0
    for _ in range(runs):
        low, high = Aggregator(mechanism).add(mechanism.privatise(values, rng)).estimate().interval(0.9)
        covered += low <= 0.2 <= high
    # The tails of a binomial with p = 0.9, a hundredth less for what is not normal.
    assert stats.binom.ppf(ERROR, runs, 0.89) <= covered <= stats.binom.ppf(1 - ERROR, runs, 0.91)


def test_subsamples_of_a_population_have_the_spread_of_its_values(name: str) -> None:
    rng, mechanism = np.random.default_rng(1), numeric(name, 16.0)
    population = np.repeat([-1.0, 1.0], [300, 700])
    found = []
    for run in range(400):
        told = rng.permutation(population)[:250]
        reports = mechanism.privatise(told, Randomness.from_seed(run))
        found.append(mechanism.estimate_of(mechanism.tally(reports), len(told), len(population)))
    means, variances = (np.array([getattr(each, part) for each in found]) for part in ("mean", "variance"))
    low, high = (stats.chi2.ppf(tail, len(found) - 1) / (len(found) - 1) for tail in (ERROR / 2, 1 - ERROR / 2))
    assert low < means.var(ddof=1) / variances.mean() < high


# -- published values -------------------------------------------------------------------------------------------------
def test_check_values() -> None:
    duchi, pm, hm = Duchi(1.0), Piecewise(1.0), Hybrid(1.0)
    assert float(duchi.bound) == pytest.approx(2.1639534, abs=1e-7)
    assert duchi.variance([0, 1, -1]) == pytest.approx([4.682694, 3.682694, 3.682694], abs=1e-6)
    assert pm.variance([0, 1, -1]) == pytest.approx([3.682103, 5.223597, 5.223597], rel=3e-6)
    assert hm.variance([0, 0.3, 1]) == pytest.approx([4.288992] * 3, rel=3e-6)
    assert DiscreteLaplace(1.0).variance([0, 0.3]) == pytest.approx([8, 8], rel=1e-6)
    assert pytest.approx(0.6093525, abs=1e-7) == THRESHOLD


def test_which_mechanism_is_best() -> None:
    assert Piecewise(1.2896).worst_variance > Duchi(1.2896).worst_variance  # they meet at 1.2897847
    assert Piecewise(1.2899).worst_variance < Duchi(1.2899).worst_variance
    for epsilon in (0.1, THRESHOLD, 0.7, 1.29, 3.0, 8.0):
        hybrid = Hybrid(epsilon).worst_variance
        assert hybrid <= min(kind(epsilon).worst_variance for kind in (Piecewise, Duchi)) * (1 + 1e-4)
        assert hybrid < DiscreteLaplace(epsilon).worst_variance
    assert Hybrid(THRESHOLD).alpha == 0
    assert Hybrid(1.0).alpha == pytest.approx(1 - math.exp(-0.5), abs=1e-9)


def test_grids_change_the_variance_by_what_is_stated() -> None:
    fine, coarse = Piecewise(1.0), Piecewise(1.0, grid=64)
    between = 1 / 64 + np.linspace(-1, 1, 65)[:-1]
    added = coarse.variance(between) - (float(coarse.constant) + float(coarse.slope) * between**2)
    assert added == pytest.approx(float(1 + coarse.slope) / 64**2)
    assert fine.worst_variance - float(fine.constant + fine.slope) < 3e-9


# -- data and parameters ----------------------------------------------------------------------------------------------
@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.integers(1, LARGEST_GRID), st.integers(0, 99))
def test_values_go_to_a_neighbouring_point(shares: list[float], steps: int, seed: int) -> None:
    array = np.array(shares)
    points = randomly_rounded(array, steps, Randomness.from_seed(seed))
    assert points.min() >= 0
    assert points.max() <= steps
    assert (np.abs(points - array * steps) <= 1).all()
    on_grid = array * steps == np.floor(array * steps)
    assert (points[on_grid] == (array * steps)[on_grid]).all()


def test_rounding_has_no_bias() -> None:
    n = 100_000
    for share in (0.1, 0.25, 1 / 3, 0.999):
        ups = randomly_rounded(np.full(n, share), 1, Randomness.from_seed(8)).sum()
        assert stats.binomtest(int(ups), n, share).pvalue > ERROR


def test_reports_and_states_survive_their_bytes(name: str) -> None:
    check_reports(numeric(name, 1.0), np.linspace(-1, 1, 301), Randomness.from_seed(9))


@pytest.mark.parametrize(("name", "size"), [("duchi", 1), ("pm", 2), ("hm", 2), ("laplace", 4)])
def test_reports_are_short(name: str, size: int) -> None:
    assert numeric(name, 1.0).report_bytes == size


@pytest.mark.parametrize("name", ["duchi", "pm", "hm"])
def test_codes_that_nobody_sends_are_refused(name: str) -> None:
    mechanism = numeric(name, 3.0)
    reports = mechanism.privatise(VALUES, Randomness.from_seed(1))
    reports.fields[0][3] = np.iinfo(reports.fields[0].dtype).max
    with fails("E101"):
        mechanism.read(reports.to_bytes())


@pytest.mark.parametrize("epsilon", [THRESHOLD + 1e-6, 16.0])
def test_hybrid_codes_fit_sixteen_bits(epsilon: float) -> None:
    hybrid = Hybrid(epsilon)
    assert hybrid.alpha > 0
    assert hybrid.cells + 2 <= 1 << 16


@pytest.mark.parametrize("wrong", [[math.nan], [math.inf], [-math.inf], ["1"], [None], [[0.5]], 0.5, [1.01], [True]])
def test_wrong_values_are_refused(name: str, wrong: object) -> None:
    with pytest.raises(InputDataError):
        numeric(name, 1.0).privatise(wrong)  # type: ignore[arg-type]


def test_clipping_is_for_those_who_ask(name: str) -> None:
    with fails("E101"):
        numeric(name, 1.0, 0, 10).privatise([10.5])
    clipping = numeric(name, 16.0, 0, 10, clip=True)
    found = Aggregator(clipping).add(clipping.privatise(np.full(20_000, 99.0), Randomness.from_seed(1))).estimate()
    assert abs(found.mean - 10) < 6 * math.sqrt(found.variance)
    with fails("E101"):
        clipping.privatise([math.inf])


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), (-1e308, 1e308), ("0", "1"), (None, 1)])
def test_wrong_ranges_are_refused(name: str, ends: tuple[float, float]) -> None:
    with fails("E100"):
        numeric(name, 1.0, *ends)


@pytest.mark.parametrize("grid", [0, 1, 7, LARGEST_GRID + 2])
def test_wrong_grids_are_refused(grid: int) -> None:
    for kind in (Piecewise, Hybrid, DiscreteLaplace):
        with fails("E100"):
            kind(1.0, grid=grid)


def test_empty_input_gives_no_report_and_no_estimate(name: str) -> None:
    mechanism = numeric(name, 1.0)
    assert len(mechanism.privatise([])) == 0
    with fails("E101"):
        Aggregator(mechanism).add(mechanism.privatise([])).estimate()


def test_parameters_read_back(name: str) -> None:
    mechanism = numeric(name, 1.0, 0, 10, clip=True)
    again = type(mechanism)(**mechanism.get_params())
    assert again.fingerprint == mechanism.fingerprint
    assert mechanism.with_params(high=11.0).fingerprint != mechanism.fingerprint
    with fails("E100"):
        numeric("magic", 1.0)
    with fails("E100"):
        numeric(name, -1.0)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_shares_lie_within_the_range(low: float, width: float, places: list[float]) -> None:
    interval = Interval(low, low + width)
    values = np.clip(low + width * np.array(places), interval.low, interval.high)
    shares: NDArray[np.float64] = interval.shares(values)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert interval.shares([interval.low, interval.high]).tolist() == [0, 1]


def test_fractions_are_exact() -> None:
    windows = Windows(6, 3, exp_below(2.0))
    assert isinstance(windows.p, Fraction)
    assert all(sum(row) == 1 for row in windows.channel())
