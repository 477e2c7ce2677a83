"""Association rules from estimates: Fieller's interval covers, and rules on noise are not stated."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.domain import Domain
from ldp.sets.plan import MiningServer, Supports
from ldp.sets.rules import estimated_rules, fieller
from ldp.sets.svsm import ItemsetMining
from link.errors import ConfigurationError
from tests.ldp.contract import ERROR
from tests.ldp.sets.baskets import planted

pytestmark = pytest.mark.turn(3)


def supports(frequencies: list[float], deviation: float) -> Supports:
    itemsets = ((0,), (0, 1), (0, 1, 2), (1,), (1, 2))
    return Supports(Domain(3), itemsets, np.array(frequencies), np.eye(5) * deviation**2)


def test_fieller_covers_as_often_as_it_says() -> None:
    """a and b with correlation, b at 3.5 deviations only: the delta method's symmetric interval would not do."""
    covariance, n = np.array([[0.04, 0.01], [0.01, 0.08]]), 4_000
    words = (Randomness.from_seed(1).uint64(2 * n).reshape(n, 2).astype(np.float64) + 0.5) / 2.0**64
    drawn = stats.norm.ppf(words) @ np.linalg.cholesky(covariance).T + [0.6, 1.0]
    covered = told = 0
    for above, below in drawn.tolist():
        ends = fieller(above, below, 0.04, 0.08, 0.01, 1.96)
        if ends is None:
            assert below**2 <= 1.96**2 * 0.08 or below <= 0
            covered += (above - 0.6 * below) ** 2 <= 1.96**2 * (0.04 - 2 * 0.6 * 0.01 + 0.36 * 0.08)
        else:
            told += 1
            assert ends[0] <= above / below <= ends[1]
            covered += ends[0] <= 0.6 <= ends[1]
    assert told > 0.9 * n
    assert abs(covered / n - 0.95) < stats.norm.isf(ERROR / 2) * math.sqrt(0.95 * 0.05 / n)


def test_without_noise_there_is_no_interval() -> None:
    assert fieller(0.3, 0.6, 0.0, 0.0, 0.0, 1.96) == pytest.approx((0.5, 0.5))
    assert fieller(0.3, -0.6, 0.0, 0.0, 0.0, 1.96) is None
    small = fieller(0.3, 0.6, 1e-6, 1e-6, 0.0, 2.0)
    assert small is not None
    # Where noise is small, it is the delta method's: sd = √(Var a + ρ²·Var b)/b.
    assert (small[1] - small[0]) / 2 == pytest.approx(2 * math.sqrt(1e-6 * (1 + 0.25)) / 0.6, rel=1e-4)


def test_rules_of_known_frequencies() -> None:
    rules = estimated_rules(supports([0.8, 0.4, 0.2, 0.5, 0.25], 1e-6))
    found = {(rule.antecedent, rule.consequent): rule.confidence for rule in rules}
    assert found == pytest.approx(
        {
            ((0,), (1,)): 0.5,
            ((1,), (0,)): 0.8,
            ((1,), (2,)): 0.5,
            ((0,), (1, 2)): 0.25,
            ((1,), (0, 2)): 0.4,
            ((0, 1), (2,)): 0.5,
            ((1, 2), (0,)): 0.8,
        }
    )
    assert [rule.confidence_low for rule in rules] == sorted((rule.confidence_low for rule in rules), reverse=True)
    assert len(estimated_rules(supports([0.8, 0.4, 0.2, 0.5, 0.25], 1e-6), min_confidence=0.6)) == 2
    for rule in rules:
        assert rule.support_deviation == pytest.approx(1e-6)
        assert rule.confidence_low < rule.confidence < rule.confidence_high


def test_rules_on_noise_are_not_stated() -> None:
    rules = estimated_rules(supports([0.8, 0.4, 0.2, 0.1, -0.2], 0.1))
    assert {rule.antecedent for rule in rules} == {(0,), (0, 1)}
    for rule in estimated_rules(supports([0.3, 0.5, -0.1, 0.4, 0.2], 0.05)):
        assert 0 <= rule.confidence_low <= rule.confidence <= rule.confidence_high <= 1


@pytest.mark.parametrize("interval", [0.0, 1.0, 2.0])
def test_wrong_intervals_are_refused(interval: float) -> None:
    with pytest.raises(ConfigurationError):
        estimated_rules(supports([0.5] * 5, 0.1), interval=interval)


def test_planted_rules_are_found() -> None:
    """Sets have item 0 with 0.6, and then item 1 with 2/3; intervals cover in nearly all searches."""
    baskets, covered, runs = planted([((0, 1), 0.4), ((0,), 1 / 3)], 30, 40_000, Randomness.from_seed(1)), 0, 40
    counts = baskets.counts()
    true = counts[1] / counts[0]
    for run in range(runs):
        plan, rng = ItemsetMining(30, 3.0, 3), Randomness.from_seed(run)
        server, groups = MiningServer(plan), plan.assign(len(baskets), rng)
        while not server.finished:
            server.add(server.phase.mechanism.privatise(baskets[groups == server.phase.number], rng))
            server.advance()
        (rule,) = (each for each in estimated_rules(server.supports()) if each.antecedent == (0,))
        assert rule.consequent == (1,)
        covered += rule.confidence_low <= true <= rule.confidence_high
    assert covered >= stats.binom.ppf(1e-4, runs, 0.95)
