"""Context-aware privacy: IDUE under budgets of single values, and local information privacy under priors."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.budget import exp_below, log_above
from ldp.certify import satisfies
from ldp.context.idue import InputDiscriminativeUnaryEncoding
from ldp.context.lip import (
    checked_prior,
    direct_budget,
    information_epsilon,
    information_private,
    ldp_budget,
    satisfies_information_privacy,
)
from ldp.context.prior_response import OptimalResponse, PriorMatchedResponse, PriorResponse
from ldp.context.programs import PROGRAMS, Levels, objective, solve
from ldp.frequency_oracle import FrequencyOracle
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.local_hashing import OptimisedLocalHashing
from ldp.registry import oracle
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.ldp.contract import check_estimates, check_reports, check_sampler

pytestmark = pytest.mark.turn(6)

SKEWED = (0.5, 0.3, 0.2)
PRIORS = st.lists(st.floats(0.01, 1), min_size=2, max_size=5).map(lambda each: tuple(np.array(each) / sum(each)))
BUDGETS = st.floats(0.05, 4)


# -- input-discriminative unary encoding ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("program", "expected", "a", "b"),
    [
        ("opt0", 183.8532, (0.443339, 0.580640), (0.281721, 0.275623)),
        ("opt1", 192.5032, (0.585004, 0.658508), (0.414996, 0.341492)),
        ("opt2", 222.9892, (0.5, 0.5), (0.318205, 0.250818)),
    ],
)
def test_idue_check_values(program: str, expected: float, a: tuple[float, ...], b: tuple[float, ...]) -> None:
    levels = Levels((1.0, 2.0), (8, 56))
    found = solve(levels, program)
    assert objective(levels, *found) == pytest.approx(expected, abs=2e-4)
    assert found[0] == pytest.approx(a, abs=2e-6)
    assert found[1] == pytest.approx(b, abs=2e-6)


def test_one_budget_is_plain_unary_encoding() -> None:
    for program, name in (("opt1", "sue"), ("opt2", "oue")):
        alone, plain = InputDiscriminativeUnaryEncoding(64, [1.0] * 64, program), oracle(name, 64, 1.0)
        counts = np.arange(64.0)
        assert alone.variance(counts, 5_000) == pytest.approx(plain.variance(counts, 5_000), rel=1e-6)
    both = [objective(Levels((1.0,), (64,)), *solve(Levels((1.0,), (64,)), program)) for program in PROGRAMS]
    assert both == pytest.approx([236.6727, 250.7327, 236.6924], abs=1e-4)


@pytest.mark.parametrize("program", PROGRAMS)
@settings(max_examples=25)
@given(st.lists(st.sampled_from([0.1, 0.5, 1.0, 2.0, 6.0, 12.0]), min_size=2, max_size=5))
def test_every_pair_keeps_the_smaller_budget(program: str, budgets: list[float]) -> None:
    found = InputDiscriminativeUnaryEncoding(len(budgets), budgets, program)
    channel = found.channel()
    assert satisfies(channel, found.epsilon)
    for x, y in product(range(len(budgets)), repeat=2):
        if x != y:
            worst = max(one / other for one, other in zip(channel[x], channel[y], strict=True))
            limit = min(budgets[x], budgets[y])
            assert worst <= exp_below(limit)
            assert log_above(worst) <= found.pair_epsilon(x, y) <= limit
    assert found.exact_epsilon == max(
        found.pair_epsilon(x, y) for x, y in product(range(len(budgets)), repeat=2) if x != y
    )
    assert all(p > q for p, q in zip(found.p, found.q, strict=True))


@cache
def least(levels: Levels) -> dict[str, float]:
    return {program: objective(levels, *solve(levels, program)) for program in PROGRAMS}


@given(st.integers(0, 1 << 32))
def test_no_other_probabilities_within_the_budgets_are_better(seed: int) -> None:
    rng, levels = Randomness.from_seed(seed), Levels((0.5, 1.0, 3.0), (5, 1, 30))
    best = least(levels)
    draw = rng.uint64(6) / 2.0**64
    u, w = draw[:3] * 3, draw[3:] * 3
    # Any point is scaled until it just keeps all budgets.
    scale = min(levels.bound(i, j) / (u[i] + w[j]) for i, j in levels.pairs())
    b = -np.expm1(-w * scale) / (np.exp(u * scale) - np.exp(-w * scale))
    assert objective(levels, np.exp(u * scale) * b, b) >= best["opt0"] * (1 - 1e-9)
    tau = u * min(levels.bound(i, j) / (u[i] + u[j]) for i, j in levels.pairs())
    a = np.exp(tau) / (np.exp(tau) + 1)
    assert objective(levels, a, 1 - a) >= best["opt1"] * (1 - 1e-9)
    assert best["opt0"] <= min(best["opt1"], best["opt2"]) * (1 + 1e-9)


@pytest.mark.parametrize("program", PROGRAMS)
def test_idue_draws_and_estimates_rightly(program: str) -> None:
    for budgets in ([1.0, 2.0, 0.5, 2.0], [3.0, 0.3]):
        found = InputDiscriminativeUnaryEncoding(len(budgets), budgets, program)
        check_sampler(found, len(budgets), Randomness.from_seed(1), reports=20_000)
    counts = np.array([700, 0, 150, 90, 30, 20, 10, 0, 5, 1])
    check_estimates(
        InputDiscriminativeUnaryEncoding(10, [1.0, 2.0, 0.5, 4.0, 2.0] * 2, program), counts, Randomness.from_seed(2)
    )


def test_idue_reports_survive_their_bytes() -> None:
    for d in (2, 7, 300):
        found = InputDiscriminativeUnaryEncoding(d, [(1.0, 2.0, 5.0)[v % 3] for v in range(d)])
        check_reports(found, np.arange(500) % d, Randomness.from_seed(d))
        assert type(found)(**found.get_params()).fingerprint == found.fingerprint
        padded = found.privatise([0], Randomness.from_seed(d))
        padded.fields[0][:, -1] |= 0x80
        if found.levels.sizes[0] % 8:
            with pytest.raises(InputDataError):
                found.read(padded.to_bytes())


def test_idue_blanket_is_no_better_than_any_pair() -> None:
    found = InputDiscriminativeUnaryEncoding(4, [0.5, 1.0, 2.0, 2.0])
    blanket, channel = found.blanket(), found.channel()
    zeros = [found.q[level] for level in (0, 1, 2, 2)]
    base = [math.prod([q if y >> v & 1 else 1 - q for v, q in enumerate(zeros)]) for y in range(16)]
    assert all(row[y] >= blanket.weight * base[y] for row in channel for y in range(16))
    for grown in (Fraction(1), Fraction(3, 2), Fraction(5, 2)):
        bound = sum(atom.probability * max(atom.first - grown * atom.second, 0) for atom in blanket.atoms)
        for x, z in product(range(4), repeat=2):
            assert sum(max(channel[x][y] - grown * channel[z][y], 0) for y in range(16)) <= bound
    assert sum(atom.probability for atom in blanket.atoms) == 1
    assert sum(atom.probability * atom.first for atom in blanket.atoms) == 1


@pytest.mark.parametrize(
    ("domain", "budgets", "program"),
    [
        (3, [1.0, 2.0], "opt0"),
        (3, [1.0, 2.0, 0.0], "opt0"),
        (3, [1.0, 2.0, math.nan], "opt0"),
        (2, [1.0, 2.0], "opt3"),
        (33, list(np.arange(1, 34) / 10), "opt0"),
        (1, [1.0], "opt0"),
    ],
)
def test_wrong_budgets_of_values_are_refused(domain: int, budgets: list[float], program: str) -> None:
    with fails("E100"):
        InputDiscriminativeUnaryEncoding(domain, budgets, program)


def test_idue_on_a_large_domain() -> None:
    budgets = np.where(np.arange(100_000) < 10, 0.5, 3.0)
    found = InputDiscriminativeUnaryEncoding(100_000, list(budgets))
    estimate = Aggregator(found).add(found.privatise([0, 99_999], Randomness.from_seed(1))).estimate()
    assert np.isfinite(estimate.counts).all()
    assert (estimate.variances >= 0).all()
    # The few sensitive values do not drown the others, which gain as much as MinID-LDP lets them: about 2 · 0.5.
    plain = oracle("oue", 2, 0.5).variance(np.zeros(2), 1)[0]
    assert found.variance(np.zeros(100_000), 1)[99_999] == pytest.approx(plain / 4, rel=0.2)


# -- local information privacy ----------------------------------------------------------------------------------------
def test_lip_check_values() -> None:
    matched = PriorMatchedResponse(3, 1.0, SKEWED)
    assert float(matched.theta) == pytest.approx(0.5704295, abs=1e-7)  # and not e^-1
    accuracy = sum(p * float(row[x]) for x, (p, row) in enumerate(zip(SKEWED, matched.channel(), strict=True)))
    assert accuracy == pytest.approx(0.646334, abs=1e-6)
    assert OptimalResponse(3, 1.0, SKEWED).accuracy == pytest.approx(0.725799, abs=1e-6)
    binary = PriorMatchedResponse(2, 1.0, (0.6, 0.4)).channel()
    assert float(binary[0][1]) == pytest.approx(0.1471518, abs=1e-7)
    assert float(binary[1][0]) == pytest.approx(0.2207277, abs=1e-7)
    assert OptimalResponse(2, 1.0, (0.6, 0.4)).accuracy == pytest.approx(0.823418, abs=1e-6)


def test_the_common_theta_breaks_the_guarantee() -> None:
    theta, prior = Fraction(math.exp(-1)), checked_prior(SKEWED, 3)
    wrong = [[theta * p + (1 - theta if x == y else 0) for y, p in enumerate(prior)] for x in range(3)]
    assert information_epsilon(wrong, prior) > 1.25
    ratios = [wrong[2][2] / prior[2], PriorMatchedResponse(3, 1.0, SKEWED).channel()[2][2] / prior[2]]
    assert [math.log(each) for each in ratios] == pytest.approx([math.log(0.705696 / 0.2), 1.0], abs=1e-5)


@settings(max_examples=60)
@given(PRIORS, BUDGETS)
def test_matched_responses_keep_their_epsilon_exactly(prior: tuple[float, ...], epsilon: float) -> None:
    found = PriorMatchedResponse(len(prior), epsilon, prior)
    shares = checked_prior(prior, len(prior))
    channel = found.channel()
    assert satisfies_information_privacy(channel, shares, epsilon)
    spent = information_epsilon(channel, shares)
    assert spent == pytest.approx(found.exact_information_epsilon, rel=1e-12)
    assert epsilon - 1e-9 <= spent <= epsilon
    assert satisfies(channel, found.exact_epsilon)
    assert found.exact_epsilon <= 2 * epsilon + 1e-12
    marginal = [sum(p * row[y] for p, row in zip(shares, channel, strict=True)) for y in range(len(prior))]
    assert marginal == list(shares)


@settings(max_examples=40)
@given(PRIORS, BUDGETS)
def test_the_optimal_response_is_private_and_the_most_accurate(prior: tuple[float, ...], epsilon: float) -> None:
    try:
        found = OptimalResponse(len(prior), epsilon, prior)
    except ConfigurationError:  # a rare value is left out; see the next test
        reject()
    shares = checked_prior(prior, len(prior))
    assert satisfies_information_privacy(found.channel(), shares, epsilon)
    assert satisfies(found.channel(), found.exact_epsilon)
    assert epsilon - 1e-5 <= found.exact_information_epsilon <= epsilon
    for other in (
        PriorMatchedResponse(len(prior), epsilon, prior),
        information_private("grr", len(prior), epsilon, prior),
    ):
        accuracy = sum(float(p * row[x]) for x, (p, row) in enumerate(zip(shares, other.channel(), strict=True)))
        assert found.accuracy >= accuracy - 1e-6


def test_an_optimal_response_that_leaves_values_out_is_refused() -> None:
    with fails("E100"):
        OptimalResponse(3, 1.0, (0.9, 0.05, 0.05))


def test_the_largest_optimal_response() -> None:
    prior = np.full(64, 1 / 64)
    found = OptimalResponse(64, 4.5, list(prior))
    assert satisfies_information_privacy(found.channel(), checked_prior(list(prior), 64), 4.5)
    with fails("E100"):
        OptimalResponse(65, 4.5, [1 / 65] * 65)


@settings(max_examples=60)
@given(PRIORS, BUDGETS, st.sampled_from(["grr", "oue", "sue", "ss", "hr"]))
def test_oracles_with_the_derived_budget_are_information_private(
    prior: tuple[float, ...], epsilon: float, name: str
) -> None:
    shares, found = checked_prior(prior, len(prior)), information_private(name, len(prior), epsilon, prior)
    assert satisfies_information_privacy(found.channel(), shares, epsilon)
    assert found.epsilon >= min(epsilon, 16) - 1e-9
    if name in {"oue", "sue"} or (name == "grr" and found.epsilon < 16):
        assert information_epsilon(found.channel(), shares) == pytest.approx(
            epsilon, abs=1e-5
        )  # no larger one would do


@settings(max_examples=20)
@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=4), st.floats(0.1, 1.5))
def test_local_hashing_is_information_private_under_every_function(weights: list[float], epsilon: float) -> None:
    prior = tuple(np.array(weights) / sum(weights))
    shares, d = checked_prior(prior, len(prior)), len(prior)
    found = information_private("olh", d, epsilon, prior)
    assert isinstance(found, OptimisedLocalHashing)
    worst, bucket = 0.0, DirectEncoding(found.g, found.epsilon)
    for function in product(range(found.g), repeat=d):
        if any(y > max(function[:x], default=-1) + 1 for x, y in enumerate(function)):
            continue  # another function but for the names of buckets
        channel = [[bucket.p if y == function[x] else bucket.q for y in range(found.g)] for x in range(d)]
        assert satisfies_information_privacy(channel, shares, epsilon)
        worst = max(worst, information_epsilon(channel, shares))
    assert worst == pytest.approx(epsilon, abs=1e-9)


def test_derived_budgets_lie_between_once_and_twice_epsilon() -> None:
    even = checked_prior([0.5, 0.5], 2)
    assert ldp_budget(1.0, even) == pytest.approx(math.log(2 * math.e - 1))
    assert ldp_budget(1.0, checked_prior([0.999999, 0.000001], 2)) == pytest.approx(1.0, abs=1e-5)
    assert direct_budget(1.0, checked_prior(SKEWED, 3)) == pytest.approx(math.log(1 + (math.e - 1) / 0.5))
    assert direct_budget(12.0, checked_prior([1 / 64] * 64, 64)) == 16.0
    assert ldp_budget(16.0, even) == 16.0


RESPONSES = (PriorMatchedResponse(3, 1.0, SKEWED), OptimalResponse(3, 1.0, SKEWED))


@pytest.mark.parametrize("found", RESPONSES, ids=lambda found: found.name)
def test_responses_draw_and_estimate_rightly(found: PriorResponse) -> None:
    check_sampler(found, 3, Randomness.from_seed(1))
    check_estimates(found, np.array([700, 0, 50]), Randomness.from_seed(2))
    check_reports(found, np.arange(500) % 3, Randomness.from_seed(3))
    assert type(found)(**found.get_params()).fingerprint == found.fingerprint


@pytest.mark.parametrize("found", RESPONSES, ids=lambda found: found.name)
def test_lip_blankets_are_no_better_than_any_pair(found: PriorResponse) -> None:
    blanket, channel, sides = found.blanket(), found.channel(), range(3)
    base = [min(row[y] for row in channel) / blanket.weight for y in sides]
    assert sum(base) == 1 or found.name == "lip-matched"
    for grown in (Fraction(1), Fraction(3, 2), Fraction(5, 2)):
        bound = sum(atom.probability * max(atom.first - grown * atom.second, 0) for atom in blanket.atoms)
        for x, z in product(sides, repeat=2):
            assert sum(max(channel[x][y] - grown * channel[z][y], 0) for y in sides) <= bound
    for total in ("probability", "first", "second"):
        weights = [atom.probability * (1 if total == "probability" else getattr(atom, total)) for atom in blanket.atoms]
        assert sum(weights) == 1


def test_a_large_domain_with_a_zipf_prior() -> None:
    prior = 1 / np.arange(1, 20_001)
    prior /= prior.sum()
    found: FrequencyOracle = PriorMatchedResponse(20_000, 2.0, list(prior))
    estimate = Aggregator(found).add(found.privatise([0, 19_999], Randomness.from_seed(1))).estimate()
    assert np.isfinite(estimate.counts).all()
    assert estimate.counts.sum() == pytest.approx(2)


@pytest.mark.parametrize(
    "prior",
    [[0.5, 0.5], [0.5, 0.3, 0.3], [1.0, 0.0, 0.0], [1.5, -0.25, -0.25], [math.nan, 0.5, 0.5], [], [0.5, 0.5, 1e-300]],
)
def test_wrong_priors_are_refused(prior: list[float]) -> None:
    with fails("E100"):
        PriorMatchedResponse(3, 1.0, prior)
