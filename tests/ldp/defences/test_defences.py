"""Defences: check values, no false alarms but with a stated probability, and what they take back from an attack."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.attacks.poisoning import MaximalGain, RandomItem, RandomPerturbedValue
from ldp.defences.detection import abnormal_count, detect, fake_probability, null_law, thin
from ldp.defences.normalisation import normalise
from ldp.defences.recovery import malicious_sum, recover
from ldp.frequency_oracle import PureOracle
from ldp.heavy_hitters.bit_strings import Integers
from ldp.heavy_hitters.prefix_extending import PrefixHashing
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.local_hashing import LocalHashing
from ldp.registry import oracle
from ldp.reports import Reports
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.examples import slowly
from tests.ldp.attacks.test_poisoning import pure
from tests.ldp.contract import ERROR

pytestmark = pytest.mark.turn(6)

ESTIMATES = hnp.arrays(np.float64, st.integers(2, 40), elements=st.floats(-2, 2, width=32))


def zipf(n: int, d: int) -> NDArray[np.int64]:
    """Values of n users, the v-th in proportion to 1/v."""
    weights = 1 / np.arange(1, d + 1)
    return np.searchsorted(np.cumsum(weights / weights.sum()), (np.arange(n) + 0.5) / n)


def poisoned(
    attacked: PureOracle, n: int, m: int, targets: list[int], seed: int
) -> tuple[Reports, NDArray[np.float64], Randomness]:
    """Reports of n genuine and m fake users, and the true frequencies of the genuine ones."""
    rng, values = Randomness.from_seed(seed), zipf(n, attacked.domain.size)
    fake = MaximalGain(tries=200).craft(attacked, targets, m, rng)
    true = np.bincount(values, minlength=attacked.domain.size) / n
    return Reports.concatenated([attacked.privatise(values, rng), fake]), true, rng


# -- normalisation ----------------------------------------------------------------------------------------------------
def test_normalisation_check_value() -> None:
    found = normalise(np.array([0.5, 0.3, 0.1, -0.05, 0.3]))
    assert found == pytest.approx([0.392857, 0.25, 0.107143, 0, 0.25], abs=1e-6)


@given(ESTIMATES)
def test_normalised_frequencies_are_frequencies_in_the_same_order(frequencies: NDArray[np.float64]) -> None:
    found = normalise(frequencies)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert (np.diff(found[np.argsort(frequencies, kind="stable")]) >= 0).all()


def test_normalisation_lowers_the_gain() -> None:
    attacked, targets = pure("grr", 256, 1.0), [200, 201]
    reports, true, _ = poisoned(attacked, 19_000, 1_000, targets, 1)
    raw = Aggregator(attacked).add(reports).estimate().frequencies
    gains = [found[targets].sum() - true[targets].sum() for found in (raw, normalise(raw))]
    assert 0 < gains[1] < 0.1 * gains[0]


# -- detection --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("d", "expected"),
    [
        (None, [13700, 3755, 1047, 301, 92, 31, 12, 6, 3]),
        (128, [13959, 3942, 1166, 374, 137, 60, 32, 20, 14]),
        (1024, [14045, 4004, 1207, 401, 154, 72, 40, 26, 20]),
    ],
)
def test_thresholds(d: int | None, expected: list[int]) -> None:
    p, q = 0.5, 1 / (math.e + 1)
    found = [
        abnormal_count(100_000, p * q ** (z - 1), 0.01 / (1 if d is None else math.comb(d, z))) for z in range(2, 11)
    ]
    assert found == expected


@given(st.integers(1, 2_000), st.floats(0.001, 0.999), st.floats(1e-9, 0.5))
def test_a_threshold_is_the_least_one_that_will_do(n: int, rate: float, error: float) -> None:
    found = abnormal_count(n, rate, error)
    assert stats.binom.sf(found - 1, n, rate) <= error * (1 + 1e-9)
    assert stats.binom.sf(found - 2, n, rate) >= error * (1 - 1e-9)


@pytest.mark.parametrize("name", ["oue", "sue", "ss"])
def test_no_genuine_report_supports_an_itemset_more_often(name: str) -> None:
    found = pure(name, 5, 1.0)
    subsets = [set(each) for each in combinations(range(5), found.k)] if name == "ss" else []  # type: ignore[attr-defined]
    for size in (2, 3):
        wanted = set(range(size))
        rates = [
            sum(
                p
                for y, p in enumerate(row)
                if (wanted <= subsets[y] if name == "ss" else all(y >> v & 1 for v in wanted))
            )
            for row in found.channel()
        ]
        assert max(rates) <= null_law(found, Randomness.from_seed(0))(tuple(range(size)), 0.01)[0] * (1 + 1e-12)


def test_regular_itemsets_are_hashed_together_more_often_than_chance() -> None:
    """Values at equal distances: three of them meet in a bucket twice as often as independent ones would."""
    hashing, rng, n = LocalHashing(1024, 1.0, 4), Randomness.from_seed(1), 100_000
    regular, spread, independent = (100, 101, 102), (3, 500, 811), float(hashing.p * hashing.q**2)
    reports = hashing.privatise(np.full(n, 100), rng)
    together = hashing.supports(reports, np.array(regular)).all(axis=1).mean()
    assert together > 1.5 * independent
    null = null_law(hashing, rng)
    assert together < null(regular, ERROR)[0]
    assert null(spread, 0.01)[0] == pytest.approx(independent, rel=0.5)


@pytest.mark.turn(5)
@pytest.mark.parametrize("name", ["oue", "sue", "olh", "blh", "ss"])
def test_without_an_attack_nothing_is_abnormal(name: str) -> None:
    attacked, rng = pure(name, 64, 1.0), Randomness.from_seed(2)
    for values in (zipf(8_000, 64), np.full(8_000, 3)):
        found = detect(attacked, attacked.privatise(values, rng), eta=ERROR, rng=rng)
        assert found.itemsets == ()
        assert not found.fake.any()


@pytest.mark.turn(6)
@pytest.mark.parametrize("name", ["oue", "ss"])
@pytest.mark.parametrize("r", [4, 10, 14])
def test_fake_users_are_found_and_the_gain_goes(name: str, r: int) -> None:
    attacked, n, m, targets = pure(name, 128, 1.0), 38_000, 2_000, list(range(50, 50 + r))
    reports, true, _ = poisoned(attacked, n, m, targets, 3)
    found = detect(attacked, reports)
    assert set(found.itemsets[0].values) <= set(targets)
    assert len(found.itemsets[0].values) == min(r, 10)
    assert found.itemsets[0].count >= found.itemsets[0].threshold
    assert found.fake[n:].all()
    assert found.fake[:n].mean() < 2 * float(attacked.p * attacked.q ** (min(r, 10) - 1)) + 1e-4
    before, after = (
        Aggregator(attacked).add(each).estimate().frequencies[targets].sum() - true[targets].sum()
        for each in (reports, reports[~found.fake])
    )
    assert before > 0.4
    assert abs(after) < 0.25 * before


def test_fake_users_of_local_hashing() -> None:
    attacked, n, m = pure("olh", 1024, 1.0), 38_000, 2_000
    targets = [3, 111, 150, 402, 433, 507, 700, 764, 900, 1001]
    reports, true, rng = poisoned(attacked, n, m, targets, 4)
    found = detect(attacked, reports, rng=rng)
    # Functions that were sought to send the targets to one bucket send other values there too.
    assert len({value for each in found.itemsets for value in each.values} & set(targets)) >= 7
    assert found.fake[n:].mean() > 0.6
    assert found.fake[:n].mean() < 0.01 * 1.2
    gains = [
        Aggregator(attacked).add(each).estimate().frequencies[targets].sum() - true[targets].sum()
        for each in (reports, reports[~found.fake])
    ]
    assert abs(gains[1]) < 0.4 * gains[0]


@pytest.mark.parametrize("loss", slowly([0.002, 0.05], now=[0]))
def test_no_more_genuine_hashed_reports_are_lost_than_asked(loss: float) -> None:
    attacked, n, m = pure("olh", 256, 1.0), 19_000, 1_000
    for targets in ([7, 100, 201, 250], list(range(9))):
        reports, _, rng = poisoned(attacked, n, m, targets, 11)
        found = detect(attacked, reports, loss=loss, rng=rng)
        assert found.itemsets
        # The bar is a quantile of 2^16 simulated reports, and what is lost a binomial count.
        deviation = np.sqrt(loss * (1 - loss) * (1 / n + 2**-16))
        assert found.fake[:n].mean() < loss * 1.1 + stats.norm.isf(ERROR) * deviation
        assert found.fake[n:].mean() > 10 * loss


def test_who_keeps_to_the_protocol_is_not_found() -> None:
    attacked, rng = pure("oue", 128, 1.0), Randomness.from_seed(5)
    honest = RandomItem().craft(attacked, [1, 2, 3], 2_000, rng)
    reports = Reports.concatenated([attacked.privatise(zipf(20_000, 128), rng), honest])
    assert not detect(attacked, reports, eta=ERROR).fake.any()


def test_detection_of_small_inputs() -> None:
    attacked = pure("oue", 2, 1.0)
    found = detect(attacked, attacked.privatise([0, 1, 1], Randomness.from_seed(6)))
    assert found.fake.shape == (3,)
    for wrong in (
        {"eta": 0.0},
        {"eta": 1.0},
        {"largest": 1},
        {"watched": 1},
        {"width": 0},
        {"loss": 0.0},
        {"loss": 1.0},
    ):
        with pytest.raises(ConfigurationError):
            detect(attacked, attacked.privatise([0, 1]), **wrong)
    with fails("E101"):
        detect(attacked, attacked.privatise([]))
    rounds = PrefixHashing(Integers(8), 1.0, 0, 4, (0,))
    with fails("E100"):
        detect(rounds, rounds.privatise([1, 2]))
    with fails("E100"):
        detect(DirectEncoding(4, 1.0), DirectEncoding(4, 1.0).privatise([1, 2]))


# -- one target -------------------------------------------------------------------------------------------------------
def test_bayes_rule_of_a_single_target() -> None:
    found = pure("oue", 64, 1.0)
    assert fake_probability(found, 0.05, 0.01) == pytest.approx(0.05 / (0.05 + 0.95 * (0.005 + 0.99 * 0.2689414)))
    assert fake_probability(found, 0.0, 0.5) == 0
    for wrong in ((1.0, 0.1), (-0.1, 0.1), (0.1, 1.1), (math.nan, 0.1)):
        with fails("E100"):
            fake_probability(found, *wrong)


@pytest.mark.parametrize("name", ["grr", "oue", "olh", "ss"])
def test_thinning_takes_a_single_target_back(name: str) -> None:
    attacked, n, m, target = pure(name, 64, 1.0), 19_000, 1_000, 40
    reports, true, rng = poisoned(attacked, n, m, [target], 7)
    kept = thin(attacked, reports, target, m / (n + m), float(true[target]), rng)
    assert len(kept) < len(reports)
    for each, gain in ((reports, 0.06), (kept, 0.0)):
        estimate = Aggregator(attacked).add(each).estimate()
        error, deviation = estimate.frequencies[target] - true[target], np.sqrt(estimate.frequency_variances[target])
        assert error > gain if gain else abs(error) < stats.norm.isf(ERROR) * 1.5 * deviation


# -- recovery ---------------------------------------------------------------------------------------------------------
def test_recovery_check_values() -> None:
    direct = pure("grr", 8, 1.0)
    frequencies = np.array([0.30, 0.25, 0.20, 0.15, 0.10, 0.05, -0.02, -0.03])
    found = recover(frequencies, direct, 5 / 95)
    assert found == pytest.approx([0.29825, 0.24561, 0.19298, 0.14035, 0.08772, 0.03509, 0, 0], abs=1e-5)
    assert malicious_sum(direct, 1) == pytest.approx(1)
    unary = pure("oue", 8, 1.0)
    assert malicious_sum(unary, 1) == pytest.approx(-4.98372, abs=1e-5)
    assert malicious_sum(unary) == pytest.approx(1)
    assert malicious_sum(unary, float(unary.p + 7 * unary.q)) == pytest.approx(1)
    assert malicious_sum(pure("olh", 8, 1.0), 8 / 4) == pytest.approx(0)


@pytest.mark.parametrize("name", ["grr", "oue"])
def test_known_targets_are_recovered_without_bias(name: str) -> None:
    """What fake reports add is known exactly then; only the projection and noise are left."""
    attacked, n, m, targets = pure(name, 32, 2.0), 47_500, 2_500, [20, 25, 30]
    reports, true, _ = poisoned(attacked, n, m, targets, 8)
    raw = Aggregator(attacked).add(reports).estimate()
    found = recover(raw.frequencies, attacked, m / n, targets=targets)
    assert np.square(found - true).sum() < 0.05 * np.square(raw.frequencies - true).sum()
    deviation = np.sqrt(raw.frequency_variances.max())
    assert np.abs(found - true).max() < stats.norm.isf(ERROR / 64) * 2 * deviation


def test_an_unknown_attack_that_spreads_is_recovered() -> None:
    attacked, n, m, rng = pure("grr", 8, 2.0), 40_000, 10_000, Randomness.from_seed(9)
    values = zipf(n, 8)
    true = np.bincount(values) / n
    fake = RandomPerturbedValue().craft(attacked, [0], m, rng)
    raw = Aggregator(attacked).add(attacked.privatise(values, rng)).add(fake).estimate().frequencies
    assert np.square(recover(raw, attacked, m / n) - true).sum() < 0.1 * np.square(raw - true).sum()


@given(ESTIMATES, st.floats(0, 1), st.booleans())
def test_recovered_frequencies_are_frequencies(frequencies: NDArray[np.float64], ratio: float, known: bool) -> None:
    d = len(frequencies)
    found = recover(frequencies, pure("oue", d, 1.0), ratio, targets=[0, d - 1] if known else None)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)


def test_wrong_recovery_is_refused() -> None:
    found, frequencies = pure("oue", 4, 1.0), np.full(4, 0.25)
    for ratio, supported in product((-0.1, math.nan, math.inf), (None,)):
        with fails("E100"):
            recover(frequencies, found, ratio, supported)
    for supported in (-1.0, 5.0, math.nan):
        with fails("E100"):
            recover(frequencies, found, 0.1, supported)
    for wrong in (np.full(3, 0.3), np.array([0.5, 0.5, 0, math.nan])):
        with fails("E101"):
            recover(wrong, found, 0.1)
    with pytest.raises(InputDataError):
        recover(frequencies, found, 0.1, targets=[7])
    assert oracle("oue", 4, 1.0).fingerprint == found.fingerprint
