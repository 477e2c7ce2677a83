"""Risk figures against the literature's numbers, integrals and simulation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nbinom

from anonymize.risk.background import attribute_disclosure, exclusions_to_reach, posterior
from anonymize.risk.high_dimension import attributes_to_identify, coincidence, coincidence_bound, reidentify
from anonymize.risk.individual import individual_risk
from anonymize.risk.nearest import distance_linkage
from anonymize.risk.reidentification import journalist, marketer, prosecutor, uniqueness
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError
from tests.errors import fails

SAMPLE, POPULATION = (1, 1, 2, 3, 5), (4, 10, 8, 9, 20)


def test_prosecutor() -> None:
    risk = prosecutor(SAMPLE, threshold=0.2)
    assert risk.highest == 1
    assert risk.average == pytest.approx(0.416667, abs=1e-6)
    assert risk.above == pytest.approx(0.583333, abs=1e-6)
    assert risk.unique == pytest.approx(0.166667, abs=1e-6)
    assert uniqueness(SAMPLE) == risk.unique


def test_journalist_and_marketer() -> None:
    risk = journalist(SAMPLE, POPULATION)
    assert risk.highest == 0.25
    assert marketer(SAMPLE, POPULATION) == pytest.approx(0.098611, abs=1e-6)
    assert marketer(SAMPLE, SAMPLE) == prosecutor(SAMPLE).average


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 50)), min_size=1, max_size=9))
def test_a_population_protects(classes: list[tuple[int, int]]) -> None:
    f = [size for size, _ in classes]
    population = [size + more for size, more in classes]
    assert journalist(f, population).highest <= prosecutor(f).highest
    assert journalist(f, population).above <= prosecutor(f).above
    assert marketer(f, population) <= prosecutor(f).average + 1e-12


@pytest.mark.parametrize(("sizes", "population"), [([2], [1]), ([1, 1], [3]), ([0], [1]), ([], [])])
def test_journalist_refuses(sizes: list[int], population: list[int]) -> None:
    with pytest.raises(ConfigurationError):
        journalist(sizes, population)


@pytest.mark.parametrize(("f", "pi", "risk"), [(1, 0.1, 0.255843), (2, 0.1, 0.082684), (3, 0.1, 0.046368)])
def test_individual_risk(f: int, pi: float, risk: float) -> None:
    assert individual_risk([f], pi) == pytest.approx([risk], abs=1e-6)


@given(st.integers(1, 40), st.floats(0.05, 1.0))
def test_individual_risk_is_the_mean_of_one_by_a_negative_binomial(f: int, pi: float) -> None:
    beyond = np.arange(20_000)
    expected = float((nbinom.pmf(beyond, f, pi) / (f + beyond)).sum())
    assert individual_risk([f], [pi])[0] == pytest.approx(expected, rel=1e-6)


def test_individual_risk_of_large_classes_is_finite() -> None:
    risk = individual_risk([10_000], [0.01])
    assert risk == pytest.approx([1e-6], rel=2e-2)
    with pytest.raises(ConfigurationError):
        individual_risk([1], [0])


def test_what_an_attacker_concludes_who_rules_values_out() -> None:
    counts = {"breast cancer": 1, "fracture": 1, "HIV": 1}
    assert posterior(counts)["HIV"] == pytest.approx(1 / 3)
    assert posterior(counts, ["breast cancer", "fracture"]) == {"breast cancer": 0, "fracture": 0, "HIV": 1}
    with fails("E100"):
        posterior(counts, list(counts))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5).filter(any), st.sampled_from([0.3, 0.5, 0.9, 1.0]))
def test_least_exclusions_equal_brute_force(counts: list[int], threshold: float) -> None:
    def reached(x: int) -> bool:
        return any(
            counts[kept] >= threshold * (sum(counts) - sum(counts[i] for i in out)) - 1e-12
            for out in combinations(range(len(counts)), x)
            for kept in set(range(len(counts))) - set(out)
            if counts[kept]
        )

    expected = next(x for x in range(len(counts)) if reached(x))
    assert exclusions_to_reach([counts], threshold).tolist() == [expected]


def test_homogeneity() -> None:
    found = attribute_disclosure([[2, 1], [3, 0]])
    assert found.highest == 1
    assert found.average == pytest.approx(5 / 6)
    assert (found.homogeneous_classes, found.homogeneous_rows) == (1, 0.5)


def test_distance_linkage() -> None:
    x = [(20, 50), (25, 60), (40, 55), (60, 80)]
    published = [(22.5, 55), (22.5, 55), (50, 67.5), (50, 67.5)]
    found = distance_linkage(x, published)
    assert found.expected_links == pytest.approx(0.375)
    assert found.nearest.tolist() == [2, 2, 2, 2]
    assert found.right.tolist() == [True, True, False, True]
    assert distance_linkage(x, x).expected_links == 1


def test_distance_linkage_of_rows_in_another_order_and_of_suppressed_ones() -> None:
    x = np.array([(0.0, 1.0), (5.0, 2.0), (9.0, 7.0)])
    found = distance_linkage(x, x[[2, 0]], owners=[2, 0])
    assert found.right.tolist() == [True, False, True]
    with fails("E100"):
        distance_linkage(x, x[:2], owners=[0, 3])


@pytest.mark.parametrize(("b", "values", "bound", "exact"), [(20, 2, 0.009537, 0.009491), (8, 5, 0.0256, 0.025275)])
def test_coincidence_of_known_attributes(b: int, values: int, bound: float, exact: float) -> None:
    assert coincidence_bound(10_000, b, values) == pytest.approx(bound, abs=1e-6)
    assert coincidence(10_000, b, values) == pytest.approx(exact, abs=1e-6)


def test_attributes_that_identify() -> None:
    assert attributes_to_identify(10_000, 2) == 20
    assert attributes_to_identify(10_000, 5) == 9


@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(2, 10))
def test_coincidence_is_a_chance_below_its_bound(n: int, b: int, values: int) -> None:
    chance = coincidence(n, b, values)
    assert 0 <= chance <= min(1.0, coincidence_bound(n, b, values) * (1 + 1e-12))


def test_reidentification_of_baskets() -> None:
    """400 targets among n = 2,000 baskets of fair coins, B = 12: others agree with chance 1 − (1 − 2^−12)^1999 = .386.

    The share of unique targets is a mean of dependent indicators; pairs of targets are independent given disjoint sets
    of rows, and its standard error is below .03: five of these is .15, exceeded with probability below 1e-6.
    """
    bits = np.unpackbits(np.frombuffer(Randomness.from_seed(1).bytes(2_000 * 8), np.uint8).reshape(2_000, 8), axis=1)
    found = reidentify(bits, 12, Randomness.from_seed(2), targets=400)
    assert found.unique == pytest.approx(1 - coincidence(1_999, 12), abs=0.15)
    assert found.candidates.min() >= 1
    assert found.unique <= found.expected <= 1


def test_more_knowledge_never_protects() -> None:
    codes = np.array([[1, 0, 2], [1, 0, 2], [1, 1, 0], [0, 1, 0]])
    nothing = reidentify(codes, 0, Randomness.from_seed(3))
    assert nothing.candidates.tolist() == [4, 4, 4, 4]
    everything = reidentify(codes, 3, Randomness.from_seed(3))
    assert dict(zip(everything.targets.tolist(), everything.candidates.tolist(), strict=True)) == {
        0: 2,
        1: 2,
        2: 1,
        3: 1,
    }
    seen = reidentify(codes, 3, Randomness.from_seed(3), knowledge="present")
    assert dict(zip(seen.targets.tolist(), seen.candidates.tolist(), strict=True)) == {0: 2, 1: 2, 2: 1, 3: 2}


def test_reidentification_refuses() -> None:
    with pytest.raises(ConfigurationError):
        reidentify(np.zeros((0, 3)), 1, Randomness.from_seed(1))
    assert math.isclose(coincidence(5, 0), 1)
