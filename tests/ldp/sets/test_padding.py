"""Padding and sampling: what it spends, enumerated; its estimates' errors; which candidates sets contain."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.budget import exp_below
from ldp.certify import satisfies, spent_epsilon
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.sets.baskets import Baskets
from ldp.sets.itemset_candidates import Candidates, contained
from ldp.sets.padding import PaddingAndSampling, SetMechanism, amplified, direct_is_better
from ldp.sets.size_histogram import SetSizes
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR, check_privacy, check_reports, chi_square_p

pytestmark = pytest.mark.turn(8)

SETS = [[0, 1, 2]] * 300 + [[0]] * 200 + [[3, 4]] * 100 + [[]] * 400
COUNTS = np.array([500, 300, 300, 100, 100, 0])
ITEMSETS: Candidates = ((0,), (0, 1), (0, 1, 2), (1, 3), (3,))


@pytest.mark.parametrize(
    ("oracle", "epsilon"),
    [*(("grr", each) for each in (0.01, 1.0, 4.0, 10.0)), *(("olh", each) for each in (0.01, 1.0, 3.0))],
)
@pytest.mark.parametrize(("d", "length"), [(2, 1), (4, 1), (4, 2), (3, 5), (6, 4), (5, 8)])
def test_no_ratio_of_probabilities_exceeds_its_epsilon(oracle: str, epsilon: float, d: int, length: int) -> None:
    found = PaddingAndSampling(d, epsilon, length, oracle=oracle)
    channel = found.channel()
    assert len(channel) == 1 << d
    assert satisfies(channel, epsilon)
    assert spent_epsilon(channel) <= found.exact_epsilon <= epsilon
    if oracle == "grr":
        assert spent_epsilon(channel) == found.exact_epsilon > epsilon - 1e-12


def test_different_dummies_spend_what_is_said_and_one_dummy_for_all_does_not() -> None:
    """The published code has one dummy: its empty set reports one value for certain."""
    assert PaddingAndSampling(6, 1.0, 4, oracle="grr").exact_epsilon == pytest.approx(1.0, abs=1e-15)
    assert spent_epsilon(PaddingAndSampling(6, 1.0, 4, oracle="grr").channel()) == pytest.approx(1.0, abs=1e-15)
    rows = DirectEncoding(6 + 1, amplified(1.0, 4)).channel()
    shown = [[*each, *[6] * (4 - len(each))] for size in range(7) for each in combinations(range(6), size)]
    one_dummy = [[sum((rows[x][y] for x in each), Fraction(0)) / len(each) for y in range(7)] for each in shown]
    assert spent_epsilon(one_dummy) == pytest.approx(2.0634554, abs=1e-7)
    assert not satisfies(one_dummy, 1.0)


@pytest.mark.parametrize("oracle", ["grr", "olh"])
def test_itemsets_as_candidates_spend_no_more(oracle: str) -> None:
    found = PaddingAndSampling(4, 1.0, 2, ITEMSETS, oracle)
    assert satisfies(found.channel(), 1.0)
    assert spent_epsilon(found.channel()) <= found.exact_epsilon
    with pytest.raises(NotImplementedError):
        PaddingAndSampling(9, 1.0, 2).channel()


@given(st.floats(0.001, 16), st.integers(1, 500))
def test_the_larger_budget_is_the_largest_that_keeps_epsilon(epsilon: float, length: int) -> None:
    found, most = amplified(epsilon, length), length * (exp_below(epsilon) - 1) + 1
    assert exp_below(found) <= most
    assert found <= 16
    assert found == 16 or exp_below(math.nextafter(math.nextafter(found, 99), 99)) > most


def test_check_values() -> None:
    assert amplified(1.0, 4) == pytest.approx(2.0634554, abs=1e-7)
    assert amplified(1.0, 8) == pytest.approx(2.6909891, abs=1e-7)
    for length, bound in ((1, 9.15), (4, 164.10), (8, 675.13)):
        assert direct_is_better(math.floor(bound), length, 1.0)
        assert not direct_is_better(math.ceil(bound), length, 1.0)
    direct, hashed = (PaddingAndSampling(64, 1.0, 4, oracle=oracle) for oracle in ("auto", "olh"))
    assert direct.single.name == "grr"
    assert direct.variance(np.zeros(64), 1)[0] == pytest.approx(25.0206, abs=1e-4)
    assert hashed.variance(np.zeros(64), 1)[0] == pytest.approx(16 * 3.691655, abs=1e-4)  # 58.9 for a real g
    assert PaddingAndSampling(200, 1.0, 4).single.name == "olh"


def test_the_sampler_draws_from_the_channel() -> None:
    found: SetMechanism
    for found in (
        PaddingAndSampling(3, 1.0, 2, oracle="grr"),
        PaddingAndSampling(4, 2.0, 3, ITEMSETS, "grr"),
        SetSizes(3, 2.0),
    ):
        rng, n = Randomness.from_seed(found.width), 20_000
        for members, row in zip(found.all_sets(), found.channel(), strict=True):
            observed = np.bincount(found.outcomes(found.privatise([members] * n, rng)), minlength=len(row))
            assert chi_square_p(observed, np.array([float(p) for p in row]) * n) > ERROR / 16


@pytest.mark.parametrize("oracle", ["grr", "olh"])
@pytest.mark.parametrize("length", [3, 5])
def test_estimates_are_unbiased_with_the_stated_variance(oracle: str, length: int) -> None:
    found, n, runs = PaddingAndSampling(6, 1.0, length, oracle=oracle), len(SETS), 400
    rng, baskets = Randomness.from_seed(length), Baskets.of(SETS, PaddingAndSampling(6, 1.0, 1).domain)
    errors = [found.unbiased(found.tally(found.privatise(baskets, rng)), n) - COUNTS for _ in range(runs)]
    check_errors(np.array(errors), found.variance(COUNTS.astype(float), n))


def check_errors(errors: NDArray[np.float64], variance: NDArray[np.float64]) -> None:
    runs, d = errors.shape
    assert np.abs(errors.mean(axis=0) / np.sqrt(variance / runs)).max() < stats.norm.isf(ERROR / d / 2)
    ratio = errors.var(axis=0, ddof=1) / variance
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / d / 2, 1 - ERROR / d / 2))
    assert np.all((0.9 * low < ratio) & (ratio < 1.1 * high)), ratio


@pytest.mark.parametrize("oracle", ["grr", "olh"])
def test_covariances_are_those_of_users_drawn_from_many(oracle: str) -> None:
    found, n, runs = PaddingAndSampling(4, 3.0, 3, ((0,), (0, 1), (1,), (2,)), oracle), 300, 2_000
    kinds = Baskets.of([[0, 1], [0], [2], [0, 1], []], found.domain)
    shares = found.held(kinds).counts() / len(kinds)
    rng, stated = Randomness.from_seed(3), found.covariance(shares, n)
    drawn = kinds[rng.integers(len(kinds), runs * n).astype(np.int64)]
    reports = found.privatise(drawn, rng)
    estimates = [found.unbiased(found.tally(reports[run * n : (run + 1) * n]), n) / n for run in range(runs)]
    observed = np.cov(np.array(estimates).T)
    # Of nearly normal estimates, a sample covariance has this variance.
    deviation = np.sqrt((np.outer(np.diag(stated), np.diag(stated)) + stated**2) / (runs - 1))
    assert np.abs((observed - stated) / deviation).max() < 1.05 * stats.norm.isf(ERROR / 20)
    assert np.abs(np.mean(estimates, axis=0) - shares).max() < stats.norm.isf(ERROR / 8) * np.sqrt(
        np.diag(stated).max() / runs
    )


def test_larger_sets_count_less_and_what_is_no_candidate_takes_no_place() -> None:
    n = 40_000
    found = PaddingAndSampling(9, 3.0, 2, ((0,), (2,), (4,), (6,)), "grr")
    for members, shares in (([0, 1, 2, 3, 4, 5, 6], [0.5] * 4), ([1, 2, 3, 5, 7, 8, 6], [0, 1, 0, 1])):
        estimate = Aggregator(found).add(found.privatise([members] * n, Randomness.from_seed(3))).estimate()
        deviation = np.sqrt(found.variance(np.full(4, n / 2.0), n))
        assert np.all(np.abs(estimate.counts - n * np.array(shares)) < stats.norm.isf(ERROR / 8) * deviation)


@settings(max_examples=60)
@given(
    st.lists(st.sets(st.integers(0, 6)), max_size=12),
    st.sets(st.sets(st.integers(0, 6), min_size=1, max_size=4).map(lambda each: tuple(sorted(each))), min_size=2),
)
def test_contained_candidates_are_those_whose_items_are_all_there(
    sets: list[set[int]], itemsets: set[tuple[int, ...]]
) -> None:
    candidates = sorted(itemsets)
    found = contained(Baskets.of(sets, PaddingAndSampling(7, 1.0, 1).domain), candidates)
    assert [found[slice(user, user + 1)].codes.tolist() for user in range(len(sets))] == [
        [number for number, each in enumerate(candidates) if set(each) <= members] for members in sets
    ]


def test_many_sets_are_looked_at_in_parts() -> None:
    sets = Baskets(np.arange(0, 400_001, 2), np.tile([0, 1, 1, 2], 100_000), 3)
    found = contained(sets, [(0, 1), (1, 2)])
    assert np.array_equal(found.codes, np.tile([0, 1], 100_000))
    assert np.array_equal(found.sizes, np.ones(200_000))


@pytest.mark.parametrize("length", [1, 3, 300])
@pytest.mark.parametrize("oracle", ["grr", "olh"])
def test_reports_and_states_survive_their_bytes(length: int, oracle: str) -> None:
    found = PaddingAndSampling(300, 1.0, length, oracle=oracle)
    check_reports(found, [[v % 300, (v + 1) % 300] for v in range(60)], Randomness.from_seed(4))  # type: ignore[arg-type]
    assert type(found)(**found.get_params()).fingerprint == found.fingerprint
    assert found.with_params(length=length + 1).fingerprint != found.fingerprint
    assert found.with_params(candidates=((0,), (1,))).fingerprint != found.fingerprint


def test_lists_and_baskets_are_the_same() -> None:
    found = PaddingAndSampling(["bread", "milk", "tea"], 1.0, 2)
    sets = [["tea"], [], ("bread", "milk", "bread"), {"tea"}]
    baskets = Baskets.of(sets, found.domain)
    one, other = (found.privatise(each, Randomness.from_seed(1)).to_bytes() for each in (sets, baskets))
    assert one == other
    assert found.privatise(sets).to_bytes() != found.privatise(sets).to_bytes()
    assert len(found.privatise([])) == 0


@pytest.mark.parametrize("sets", [[[5]], [[-1]], [[0.5]], ["ab"], [3], [None], [[math.nan]], [["a"]]])
def test_wrong_sets_are_refused(sets: list[list[int]]) -> None:
    for found in (PaddingAndSampling(4, 1.0, 2), SetSizes(4, 1.0)):
        with pytest.raises(InputDataError):
            found.privatise(sets)
        with pytest.raises(InputDataError):
            found.privatise(Baskets.of([[0]], PaddingAndSampling(5, 1.0, 2).domain))


@pytest.mark.parametrize(
    "parameters",
    [
        {"length": 0},
        {"length": True},
        {"length": 1 << 20},
        {"epsilon": math.nan},
        {"oracle": "best"},
        {"candidates": ()},
        {"candidates": ((0,),)},
        {"candidates": ((1,), (0,))},
        {"candidates": ((0,), (0,))},
        {"candidates": ((0,), (2, 1))},
        {"candidates": ((), (1,))},
        {"candidates": ((0,), (4,))},
        {"candidates": (0, 1)},
        {"candidates": ((0,), ("1",))},
        {"candidates": ((0,), (1.5,))},
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        PaddingAndSampling(**{"domain": 4, "epsilon": 1.0, "length": 2, **parameters})  # type: ignore[arg-type]


def test_reports_that_nobody_sends_are_refused() -> None:
    found: SetMechanism
    for found in (PaddingAndSampling(4, 1.0, 2, oracle="grr"), SetSizes(4, 3.0)):
        reports = found.privatise([[1]])
        reports.fields[0][:] = 6
        with fails("E101"):
            found.read(reports.to_bytes())


@pytest.mark.parametrize("oracle", ["grr", "olh"])
def test_the_blanket_bounds_every_two_sets(oracle: str) -> None:
    found = PaddingAndSampling(3, 1.5, 2, oracle=oracle)
    blanket, channel = found.blanket(), found.channel()
    assert all(sum(map(min, zip(one, other, strict=True))) >= blanket.weight for one in channel for other in channel)
    for grown in (exp_below(0.1), exp_below(0.5), exp_below(1.0)):
        bound = sum(atom.probability * max(atom.first - grown * atom.second, 0) for atom in blanket.atoms)
        for one in channel:
            for other in channel:
                apart = sum(max(p - grown * q, 0) for p, q in zip(one, other, strict=True))
                if oracle == "grr":  # the channel of local hashing is for one function, the blanket over all
                    assert apart <= bound


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_sizes_are_private_and_unbiased(epsilon: float) -> None:
    check_privacy(SetSizes(4, epsilon), tight=1e-5)
    assert SetSizes(4, epsilon).blanket() == SetSizes(4, epsilon).single.blanket()
    found, n, runs = SetSizes(6, epsilon, ((0,), (0, 2), (1,))), len(SETS), 300
    true, rng = np.array([500.0, 200, 0, 300]), Randomness.from_seed(5)
    reports = [Aggregator(found).add(found.privatise(SETS, rng)).estimate() for _ in range(runs)]
    check_errors(np.array([each.counts - true for each in reports]), found.single.variance(true, n))
