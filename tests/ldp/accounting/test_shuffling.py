"""Bounds of amplification by shuffling: check values, exact enumeration below, monotone."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp.accounting.lower_bounds import Kinds, enumerated_delta, kinds_of
from ldp.accounting.shuffling import (
    ShuffledBlanket,
    amplified_delta,
    amplified_epsilon,
    bounds,
    clone_closed_form,
    largest_local_epsilon,
)
from ldp.accounting.unproved import fmt23_closed_form
from ldp.blanket import Atom, Blanket
from ldp.frequency_oracle import FrequencyOracle
from ldp.mechanism import Channel
from ldp.numeric.records import Attribute, Categorical, MixedRecords, Numeric
from ldp.oracles.histogram_encoding import ThresholdHistogramEncoding
from ldp.registry import oracle
from tests.errors import fails
from tests.examples import examples, slowly

pytestmark = pytest.mark.turn(6)

N, DELTA = 10_000, 1e-6
CLOSE = 5e-6


# -- check values -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("epsilon", "n", "delta", "expected", "closed"),
    [
        (1.0, N, DELTA, 0.053005, 0.214026),
        (2.0, N, DELTA, 0.155045, 0.500920),
        (4.0, 100_000, DELTA, 0.169770, 0.534634),
        (1.0, 1_000_000, 1e-8, 0.006125, 0.026775),
        (0.5, 1_000, 1e-5, 0.058267, 0.253842),
    ],
)
def test_clones(epsilon: float, n: int, delta: float, expected: float, closed: float) -> None:
    found = bounds(epsilon, n, delta)
    assert found["clone"] == pytest.approx(expected, abs=CLOSE)
    assert found["closed"] == pytest.approx(closed, abs=CLOSE)
    assert amplified_epsilon(epsilon, n, delta) == found["clone"]


def made(name: str, d: int, epsilon: float) -> FrequencyOracle:
    return oracle("hr", d, epsilon, blocks=1) if name == "hr" else oracle(name, d, epsilon)


@pytest.mark.parametrize(
    ("name", "d", "at_one", "at_two", "of_a_million"),
    [
        ("grr", 2, 0.043206, 0.114400, 0.005013),
        ("grr", 4, 0.034260, 0.101964, 0.003993),
        ("grr", 16, 0.018590, 0.067491, 0.002192),
        ("grr", 64, 0.009117, 0.036472, 0.001091),
        ("grr", 1024, 0.002026, 0.008667, 0.000250),
        ("ss", 64, 0.029924, None, 0.003495),  # at 2, sets of 7 are better than those of 8 here
        ("olh", 64, 0.029337, 0.079681, 0.003429),
        ("hr", 127, 0.029742, 0.078956, 0.003474),
        ("sue", 64, 0.030688, 0.087518, 0.003583),
        ("oue", 64, 0.029735, 0.078825, 0.003474),
    ],
)
def test_blankets(name: str, d: int, at_one: float, at_two: float | None, of_a_million: float) -> None:
    assert amplified_epsilon(made(name, d, 1.0), N, DELTA) == pytest.approx(at_one, abs=CLOSE)
    assert amplified_epsilon(made(name, d, 1.0), 1_000_000, 1e-8) == pytest.approx(of_a_million, abs=CLOSE)
    if at_two is not None:
        assert amplified_epsilon(made(name, d, 2.0), N, DELTA) == pytest.approx(at_two, abs=CLOSE)


def test_the_blanket_of_sets_of_eight() -> None:
    d, k, grown = 64, 8, Fraction(math.exp(2))
    g = d / (k * grown + d - k)
    one, both = Fraction(k * (d - k), d * (d - 1)), Fraction(k * (k - 1), d * (d - 1))
    high = grown * g
    atoms = (Atom(one, high, g), Atom(one, g, high), Atom(both, high, high), Atom(1 - 2 * one - both, g, g))
    assert ShuffledBlanket(Blanket(g, atoms)).epsilon(N, DELTA, 2.0) == pytest.approx(0.080356, abs=CLOSE)


@pytest.mark.parametrize(
    ("epsilon", "n", "expected"),
    [(1.0, 1_000, 2.72417), (1.0, 10_000, 4.79701), (1.0, 100_000, 7.07004), (0.5, N, 3.70242), (2.0, N, 5.63636)],
)
def test_largest_local_epsilon_of_clones(epsilon: float, n: int, expected: float) -> None:
    found = largest_local_epsilon(epsilon, DELTA, n)
    assert found == pytest.approx(expected, abs=6e-6)
    assert amplified_epsilon(found, n, DELTA) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("name", ["grr", "olh", "oue"])
def test_largest_local_epsilon_of_a_family(name: str) -> None:
    found = largest_local_epsilon(0.1, DELTA, N, lambda epsilon: oracle(name, 64, epsilon))
    assert found > largest_local_epsilon(0.1, DELTA, N)
    mechanism = oracle(name, 64, found)
    assert amplified_delta(mechanism, N, 0.1) <= DELTA
    assert amplified_epsilon(mechanism, N, DELTA) == pytest.approx(0.1, rel=1e-6)
    assert largest_local_epsilon(1.0, 0.9, 10**9) == 16


def test_variation_ratios() -> None:
    for epsilon, expected in ((1.0, 0.043206), (2.0, 0.114400)):
        grown = math.exp(epsilon)
        general = Kinds.of_ratios(grown, (grown - 1) / (grown + 1), grown)
        assert general.epsilon(N, DELTA) == pytest.approx(expected, abs=1e-6)
    e, root = math.e, math.exp(0.5)
    for beta, expected in (((e - 1) / (e + 3), 0.034256), ((e - 1) / (e + root), 0.039617)):
        assert Kinds.of_ratios(e, beta, e).epsilon(N, DELTA) == pytest.approx(expected, abs=1e-6)
    assert kinds_of(oracle("grr", 64, 1.0)).epsilon(N, DELTA) == pytest.approx(0.009116, abs=1e-6)


def test_what_is_not_proved() -> None:
    for epsilon, n, delta, expected in (
        (1.0, N, DELTA, 0.180006),
        (2.0, N, DELTA, 0.398157),
        (0.5, 1000, 1e-5, 0.230069),
    ):
        assert fmt23_closed_form(epsilon, n, delta) == pytest.approx(expected, abs=1e-6)
    assert fmt23_closed_form(8.0, 100, DELTA) == clone_closed_form(8.0, 100, DELTA) == math.inf
    assert "erratum" in str(fmt23_closed_form.__doc__)


# -- against exact enumeration ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("n", "ratio", "truth"),
    slowly([(60, 2.63227, 2.73871), (150, 2.36850, 2.43416), (300, 1.72910, 1.73625)], now=[0, 1]),
)
def test_the_counter_example_to_the_variation_ratio(n: int, ratio: float, truth: float) -> None:
    mechanism = oracle("grr", 4, 3.0)
    first, second, third, _ = mechanism.channel()
    kinds = kinds_of(mechanism)
    assert kinds.epsilon(n, DELTA) == pytest.approx(ratio, abs=1e-5)
    assert enumerated_delta(first, second, third, n, truth) == pytest.approx(DELTA, rel=1e-3)
    assert kinds.delta(n, truth) < DELTA
    assert amplified_delta(mechanism, n, truth) > DELTA
    assert amplified_epsilon(mechanism, n, DELTA) >= truth - 1e-5


@settings(max_examples=60)
@given(st.integers(2, 8), st.floats(0.1, 4), st.integers(1, 80), st.floats(0.02, 0.98))
def test_no_bound_of_direct_encoding_is_below_the_truth(d: int, alone: float, n: int, share: float) -> None:
    mechanism = oracle("grr", d, alone)
    rows = mechanism.channel()
    epsilon = share * alone
    truth = enumerated_delta(rows[0], rows[1], rows[-1], n, epsilon)
    upper = amplified_delta(mechanism, n, epsilon)
    assert truth <= upper * (1 + 1e-10)
    assert amplified_delta(alone, n, epsilon) >= upper
    if d > 2:
        assert kinds_of(mechanism).delta(n, epsilon) <= truth * (1 + 1e-9)


@pytest.mark.parametrize("d", [2, 3])
def test_no_bound_of_a_few_hundred_reports_is_below_the_truth(d: int) -> None:
    mechanism = oracle("grr", d, 3.0)
    rows = mechanism.channel()
    for epsilon in (0.0, 0.2, 0.6, 1.2, 1.8, 2.4):
        truth = enumerated_delta(rows[0], rows[1], rows[-1], 300, epsilon)
        assert 0 < truth <= amplified_delta(mechanism, 300, epsilon)


@pytest.mark.parametrize("name", ["ss", "sue", "oue", "hr"])
def test_three_kinds_are_below_the_upper_bound(name: str) -> None:
    for epsilon in (0.5, 1.0, 3.0):
        mechanism = made(name, 7, epsilon)
        for n in (20, 300, N):
            lower, upper = kinds_of(mechanism).epsilon(n, DELTA), amplified_epsilon(mechanism, n, DELTA)
            assert lower <= upper
            assert n < N or upper < 4 * lower


@pytest.mark.parametrize("name", ["ss", "sue", "oue", "hr"])
def test_three_kinds_have_the_probabilities_of_the_channel(name: str) -> None:
    mechanism = made(name, 4, 1.0)
    channel, kinds = mechanism.channel(), kinds_of(mechanism)
    third = channel[3 if name == "hr" else 2]  # in a Hadamard matrix the third row is the first two's product
    # A report is for x and not for x' where x gives it a larger probability.
    for_first = [y for y in range(len(channel[0])) if channel[0][y] > channel[1][y]]
    assert sum(channel[0][y] for y in for_first) == pytest.approx(kinds.own)
    assert sum(channel[1][y] for y in for_first) == pytest.approx(kinds.other)
    assert sum(third[y] for y in for_first) == pytest.approx(kinds.background)


def of_channel(channel: Channel) -> Blanket:
    """The blanket of the first two inputs, by definition."""
    masses: dict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
    for column in zip(*channel, strict=True):
        masses[column[0] / min(column), column[1] / min(column)] += min(column)
    return Blanket.of_masses(masses)


@settings(max_examples=60)
@given(st.data(), st.integers(2, 30), st.floats(0, 1.5))
def test_no_bound_of_any_channel_is_below_the_truth(data: st.DataObject, n: int, epsilon: float) -> None:
    rows = [data.draw(st.lists(st.integers(1, 40), min_size=4, max_size=4)) for _ in range(3)]
    channel = [[Fraction(each, sum(row)) for each in row] for row in rows]
    upper = ShuffledBlanket(of_channel(channel)).log_delta(n, epsilon)
    for first, second, third in ((0, 1, 2), (1, 0, 2), (0, 1, 1), (1, 0, 0)):
        truth = enumerated_delta(channel[first], channel[second], channel[third], n, epsilon)
        assert truth <= math.exp(upper) * (1 + 1e-10)


def test_losses_next_to_nothing() -> None:
    """Equal rows and an ε next to 0: what is lost are subnormal numbers."""
    channel = [[Fraction(1, 4)] * 4] * 2
    assert ShuffledBlanket(of_channel(channel)).log_delta(2, 2.220446049250313e-16) < -600


def exact_delta(blanket: Blanket, n: int, epsilon: float) -> float:
    """The blanket's bound by enumeration of how many draws each atom has."""
    rows = [[Fraction(0)], [Fraction(0)], [1 - blanket.weight]]
    for atom in blanket.atoms:
        mass = blanket.weight * atom.probability
        for row, each in zip(rows, (mass * atom.first, mass * atom.second, mass), strict=True):
            row.append(each)
    return enumerated_delta(*rows, n, epsilon) / float(blanket.weight)


@pytest.mark.parametrize(
    ("k", "alone", "n"), [(2, 6.0, 60), (4, 1.0, 40), (4, 3.0, 40), (64, 0.3, 40), (1024, 3.0, 40)]
)
def test_a_blanket_is_evaluated_tightly_and_never_below(k: int, alone: float, n: int) -> None:
    blanket = oracle("grr", k, alone).blanket()
    for share in (0.05, 0.3, 0.6, 0.9, 0.99):
        truth = exact_delta(blanket, n, share * alone)
        found = math.exp(ShuffledBlanket(blanket).log_delta(n, share * alone))
        assert truth * (1 - 1e-10) <= found <= truth * (1.01 if truth > 1e-30 else 1.1)


def test_one_report_hides_nothing() -> None:
    assert bounds(1.0, 1, DELTA) == {"local": 1.0}
    assert amplified_epsilon(oracle("grr", 4, 1.0), 1, DELTA) == oracle("grr", 4, 1.0).exact_epsilon
    assert amplified_delta(1.0, 1, 1.0) == 0


# -- monotone ---------------------------------------------------------------------------------------------------------
@examples(5, 25)
@given(
    st.sampled_from(["clone", "grr", "sue", "hr"]),
    st.floats(0.05, 5),
    st.integers(2, 10**7),
    st.floats(-40, -1),
    st.tuples(*[st.floats(1.01, 2)] * 3),
)
def test_more_reports_less_epsilon_and_more_delta_cost_less(
    name: str, alone: float, n: int, log_delta: float, factors: tuple[float, float, float]
) -> None:
    def spent(epsilon: float, reports: int, delta: float) -> float:
        return amplified_epsilon(epsilon if name == "clone" else made(name, 16, epsilon), reports, delta)

    delta, tolerance = math.exp(log_delta), 1 + 1e-5
    found = spent(alone, n, delta)
    assert 0 <= found <= alone
    assert spent(alone, math.ceil(n * factors[0]), delta) <= found * tolerance
    assert spent(alone, n, min(delta * factors[1], 0.5)) <= found * tolerance
    assert spent(alone * factors[2], n, delta) * tolerance >= found


@settings(max_examples=30)
@given(st.floats(0.05, 5), st.integers(2, 10**6), st.floats(0, 1))
def test_delta_and_epsilon_are_inverse(alone: float, n: int, share: float) -> None:
    delta = amplified_delta(alone, n, share * alone)
    if 1e-300 < delta < 1:
        assert amplified_epsilon(alone, n, delta) <= share * alone * (1 + 1e-7) + 1e-9


# -- many atoms, wrong parameters -------------------------------------------------------------------------------------
def test_blankets_of_many_atoms() -> None:
    schema: list[Attribute] = [Numeric("age", 0, 120), Categorical("job", 30), Categorical("town", 500)]
    records = MixedRecords(schema, 5.0, frequency="grr")
    found = bounds(records, N, DELTA)
    assert found["blanket"] < found["clone"] / 2
    weights = np.random.default_rng(1).dirichlet(np.ones(120), size=3)
    channel = [[Fraction(each) + Fraction(1, 120) for each in row] for row in weights.tolist()]
    channel = [[each / sum(row) for each in row] for row in channel]
    blanket = of_channel(channel)
    assert len(blanket.atoms) == 120
    assert 0 < ShuffledBlanket(blanket).epsilon(N, DELTA, 8.0) < 0.2


def test_a_mechanism_is_never_worse_than_its_epsilon() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        for mechanism in (oracle("olh", 100, epsilon), ThresholdHistogramEncoding(50, epsilon)):
            assert amplified_epsilon(mechanism, N, DELTA) <= amplified_epsilon(mechanism.exact_epsilon, N, DELTA)


def test_wrong_parameters() -> None:
    for n in (0, -1, 1.5, True):
        with fails("E100"):
            amplified_epsilon(1.0, n, DELTA)  # type: ignore[arg-type]
    for delta in (0.0, 1.0, -1e-6, math.nan):
        with fails("E100"):
            amplified_epsilon(1.0, N, delta)
    for epsilon in (0.0, math.nan, 100.0):
        with fails("E100"):
            amplified_epsilon(epsilon, N, DELTA)
    with fails("E100"):
        amplified_delta(1.0, N, -0.1)
    with fails("E100"):
        kinds_of(oracle("grr", 2, 1.0))
    with fails("E100"):
        kinds_of(oracle("olh", 20, 1.0))
    with fails("E100"):
        kinds_of(oracle("hr", 64, 3.0, blocks=4))
    with fails("E100"):
        enumerated_delta(*oracle("grr", 4, 1.0).channel()[:3], 10_000, 0.1)
    with fails("E100"):
        Kinds(0.5, 0.6, 0.1)
