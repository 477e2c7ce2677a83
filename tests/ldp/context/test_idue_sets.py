"""IDUE-PS: budgets of sets hold in the enumerated channel, and estimates of padded sets have the stated errors."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.budget import exp_below
from ldp.certify import satisfies, spent_epsilon
from ldp.context.idue_sets import InputDiscriminativeSets
from ldp.context.programs import PROGRAMS
from link.errors import ConfigurationError, InputDataError
from tests.examples import examples
from tests.ldp.contract import ERROR, check_reports, chi_square_p

pytestmark = pytest.mark.turn(6)


def members(number: int) -> list[int]:
    return [v for v in range(number.bit_length()) if number >> v & 1]


@pytest.mark.parametrize("program", PROGRAMS)
@examples(3, 12)
@given(st.lists(st.sampled_from([0.1, 0.5, 1.0, 3.0]), min_size=2, max_size=4), st.integers(1, 4))
def test_every_two_sets_keep_the_smaller_budget(program: str, budgets: list[float], length: int) -> None:
    found = InputDiscriminativeSets(len(budgets), budgets, length, program)
    channel = found.channel()
    assert satisfies(channel, found.epsilon)
    assert spent_epsilon(channel) <= found.exact_epsilon * (1 + 1e-12) <= found.epsilon * (1 + 1e-12)
    assert found.dummy_epsilon <= min(budgets)
    omegas = [found.set_epsilon(members(x)) for x in range(len(channel))]
    for x, z in product(range(len(channel)), repeat=2):
        worst = max(one / other for one, other in zip(channel[x], channel[z], strict=True))
        assert math.log(worst) <= min(omegas[x], omegas[z]) + 1e-12
        assert found.pair_epsilon(members(x), members(z)) == min(omegas[x], omegas[z])


def test_the_budget_of_a_set() -> None:
    found = InputDiscriminativeSets(4, [0.5, 1.0, 2.0, 2.0], 2)
    grown = [math.exp(each) for each in (0.5, 1.0, 2.0)]
    dummy = math.exp(found.dummy_epsilon)
    assert found.dummy_epsilon < 0.5
    assert found.set_epsilon([]) == pytest.approx(found.dummy_epsilon)
    assert found.set_epsilon([2]) == pytest.approx(math.log((grown[2] + dummy) / 2))
    assert found.set_epsilon([0, 2]) == pytest.approx(math.log((grown[0] + grown[2]) / 2))
    assert found.set_epsilon([0, 1, 2]) == pytest.approx(math.log(sum(grown) / 3))


def test_full_sets_spend_what_is_stated() -> None:
    found = InputDiscriminativeSets(4, [1.0] * 4, 2)
    assert spent_epsilon(found.channel()) == pytest.approx(found.exact_epsilon, rel=1e-12)
    assert found.exact_epsilon == pytest.approx(1.0, abs=1e-5)


def test_the_sampler_draws_from_the_channel() -> None:
    found, rng, n = InputDiscriminativeSets(3, [1.0, 0.5, 2.0], 2), Randomness.from_seed(1), 30_000
    for number, row in enumerate(found.channel()):
        reports = found.privatise([members(number)] * n, rng)
        observed = np.bincount(found.outcomes(reports), minlength=len(row))
        assert chi_square_p(observed, np.array([float(p) for p in row]) * n) > ERROR / 8


def test_estimates_are_unbiased_with_the_stated_variance() -> None:
    sets = [[0, 1, 2]] * 300 + [[0]] * 200 + [[3, 4]] * 100 + [[]] * 400
    found, n, runs = InputDiscriminativeSets(6, [1.0, 2.0, 0.5, 4.0, 2.0, 1.0], 3), 1_000, 400
    counts, rng = np.array([500, 300, 300, 100, 100, 0.0]), Randomness.from_seed(2)
    errors = [found.unbiased(found.tally(found.privatise(sets, rng)), n) - counts for _ in range(runs)]
    variance = found.variance(counts, n)
    assert np.abs(np.mean(errors, axis=0) / np.sqrt(variance / runs)).max() < stats.norm.isf(ERROR / 12)
    ratio = np.var(errors, axis=0, ddof=1) / variance
    low, high = (stats.chi2.ppf(tail, runs - 1) / (runs - 1) for tail in (ERROR / 12, 1 - ERROR / 12))
    assert np.all((0.9 * low < ratio) & (ratio < 1.1 * high))
    estimate = Aggregator(found).add(found.privatise(sets, rng)).estimate()
    assert estimate.variances.shape == (6,)


def test_larger_sets_count_less() -> None:
    found, n = InputDiscriminativeSets(5, [3.0] * 5, 2), 40_000
    counts = Aggregator(found).add(found.privatise([[0, 1, 2, 3]] * n, Randomness.from_seed(3))).estimate()
    deviation = np.sqrt(found.variance(np.full(5, n / 2.0), n))
    assert np.all(np.abs(counts.counts - np.array([n / 2] * 4 + [0])) < stats.norm.isf(ERROR / 10) * deviation)


def test_sets_are_read_in_many_forms() -> None:
    found = InputDiscriminativeSets(["bread", "milk", "tea"], [1.0, 2.0, 2.0], 2)
    for sets in ([["tea"], [], ("bread", "milk")], [{"tea"}, frozenset(), np.array(["milk"])], []):
        reports = found.privatise(sets)
        assert len(reports) == len(sets)
        assert len(found.read(reports.to_bytes())) == len(sets)
    numbered = InputDiscriminativeSets(300, [1.0] * 300, 4)
    check_reports(numbered, [[v % 300, (v + 1) % 300] for v in range(60)], Randomness.from_seed(4))  # type: ignore[arg-type]
    assert numbered.with_params(length=5).fingerprint != numbered.fingerprint
    assert type(numbered)(**numbered.get_params()).fingerprint == numbered.fingerprint


@pytest.mark.parametrize("sets", [[[0, 0]], [[5]], [[-1]], [[0.5]], ["ab"], [3], [None], [[math.nan]], [["a"]]])
def test_wrong_sets_are_refused(sets: list[list[int]]) -> None:
    with pytest.raises(InputDataError):
        InputDiscriminativeSets(4, [1.0] * 4, 2).privatise(sets)


@pytest.mark.parametrize(
    ("epsilons", "length", "program"),
    [([1.0, 1.0], 0, "opt0"), ([1.0], 1, "opt0"), ([1.0, math.nan], 1, "opt0"), ([1.0, 1.0], 1, "best")],
)
def test_wrong_parameters_are_refused(epsilons: list[float], length: int, program: str) -> None:
    with pytest.raises(ConfigurationError):
        InputDiscriminativeSets(2, epsilons, length, program)
    with pytest.raises(NotImplementedError):
        InputDiscriminativeSets(6, [1.0] * 6, 1).channel()


def test_the_blanket_bounds_every_two_sets() -> None:
    found = InputDiscriminativeSets(3, [0.5, 1.0, 2.0], 2)
    blanket, channel = found.blanket(), found.channel()
    assert all(row[y] >= blanket.weight * nobody for row in channel for y, nobody in enumerate(channel[0]))
    for grown in (exp_below(0.1), exp_below(0.5), exp_below(1.0)):
        bound = sum(atom.probability * max(atom.first - grown * atom.second, 0) for atom in blanket.atoms)
        for x, z in product(range(8), repeat=2):
            assert sum(max(p - grown * q, 0) for p, q in zip(channel[x], channel[z], strict=True)) <= bound
