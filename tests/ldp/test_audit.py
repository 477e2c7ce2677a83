"""Auditing: above the true ε only as rarely as stated, near it where a mechanism is tight, and lies are found."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic
from ldp.audit import Audit, audit, by_likelihood, epsilon_bound
from ldp.context.idue import InputDiscriminativeUnaryEncoding
from ldp.context.prior_response import OptimalResponse, PriorMatchedResponse
from ldp.frequency_oracle import FrequencyOracle
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.unary_encoding import OptimisedUnaryEncoding
from ldp.registry import ORACLES, oracle
from link.errors import ConfigurationError, InputDataError
from tests.examples import slowly
from tests.ldp.contract import ERROR

pytestmark = pytest.mark.turn(3)

SKETCHES = {name: {"functions": 64} for name in ("flh", "cms", "hcms")}


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_bound_is_near_the_true_epsilon_and_not_above(name: str, epsilon: float) -> None:
    found = oracle(name, 20, epsilon, **SKETCHES.get(name, {}))
    result = audit(found, 3, 17, 60_000, ERROR, Randomness.from_seed(1))
    assert not result.refuted
    assert result.epsilon <= epsilon
    # At an error of 10^-7 and with 60,000 reports, a rate is known to within a tenth, or a third where it is small.
    assert result.epsilon > found.exact_epsilon - 0.35


def test_the_bound_exceeds_the_truth_as_rarely_as_stated() -> None:
    found, alpha, audits = DirectEncoding(4, 1.0), 0.2, 1_000
    above = sum(
        audit(found, 0, 1, 500, alpha, Randomness.from_seed(seed)).epsilon > found.exact_epsilon
        for seed in range(audits)
    )
    assert stats.binom.sf(above - 1, audits, alpha) > ERROR


@pytest.mark.parametrize(
    ("name", "trials"), slowly([("grr", 400_000), ("olh", 400_000), ("oue", 5_000), ("hr", 400_000)], now=[0, 1, 3])
)
def test_large_domains(name: str, trials: int) -> None:
    found = oracle(name, 100_000, 2.0)
    result = audit(found, 99_999, 5, trials, 0.01, Randomness.from_seed(2))
    assert not result.refuted
    if name != "grr":  # where only one report in 13,000 is the value itself
        assert result.epsilon > 1.5


class NeverClears(OptimisedUnaryEncoding):
    """A client that keeps every 1, as one of a published library's does, and claims ε."""

    def _probabilities(self) -> tuple[Dyadic, Dyadic]:
        _, q = super()._probabilities()
        return Dyadic(1 << q.bits, q.bits), q

    @property
    def exact_epsilon(self) -> float:
        return self.epsilon


class OneDummy(DirectEncoding):
    """Direct encoding with the budget that sampling would amplify, where it does not: l = 4 and one shared dummy."""

    def __init__(self, domain: int, epsilon: float) -> None:
        super().__init__(domain, math.log(4 * (math.exp(epsilon) - 1) + 1))
        self.epsilon = epsilon

    @property
    def exact_epsilon(self) -> float:
        return self.epsilon


@pytest.mark.parametrize("liar", [NeverClears(50, 1.0), OneDummy(10, 1.0)], ids=["clears", "dummy"])
def test_false_claims_are_refuted(liar: OptimisedUnaryEncoding | OneDummy) -> None:
    result = audit(liar, 0, 1, 50_000, ERROR, Randomness.from_seed(3))
    assert result.refuted
    assert result.epsilon > 1.2


def test_an_attacker_by_likelihood_needs_no_knowledge_of_the_family() -> None:
    for name in ("grr", "oue", "ss", "hr"):
        found = oracle(name, 5, 1.0)
        by_channel = audit(found, 0, 3, 40_000, 0.01, Randomness.from_seed(4), by_likelihood(found, 0, 3))
        by_support = audit(found, 0, 3, 40_000, 0.01, Randomness.from_seed(4))
        assert by_channel == by_support


@pytest.mark.parametrize(
    ("found", "first", "second"),
    [
        (InputDiscriminativeUnaryEncoding(6, [0.5, 0.5, 3.0, 3.0, 3.0, 3.0]), 2, 5),
        (PriorMatchedResponse(3, 1.0, (0.5, 0.3, 0.2)), 2, 0),
        (OptimalResponse(3, 1.0, (0.5, 0.3, 0.2)), 2, 0),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_context_aware_mechanisms(found: FrequencyOracle, first: int, second: int) -> None:
    result = audit(found, first, second, 60_000, ERROR, Randomness.from_seed(7))
    assert not result.refuted
    assert result.epsilon > 0.6 * found.exact_epsilon


def test_sensitive_values_are_told_apart_less() -> None:
    found = InputDiscriminativeUnaryEncoding(60, [0.5, *[3.0] * 59])
    sensitive, other = (audit(found, *pair, 60_000, 0.01, Randomness.from_seed(8)) for pair in ((0, 3), (2, 3)))
    assert sensitive.epsilon <= found.pair_epsilon(0, 3) <= 0.5
    assert 0.7 < other.epsilon <= found.pair_epsilon(2, 3)


def test_labels() -> None:
    result = audit(oracle("oue", ["bread", "milk", "tea"], 2.0), "tea", "milk", 20_000, 0.01, Randomness.from_seed(5))
    assert 1.7 < result.epsilon < 2


@given(st.integers(1, 10_000), st.data())
def test_bounds_are_clopper_and_pearsons(trials: int, data: st.DataObject) -> None:
    true, false = (data.draw(st.integers(0, trials)) for _ in range(2))
    found = epsilon_bound(true, false, trials, 0.05)
    low = stats.binomtest(true, trials).proportion_ci(0.95).low
    high = stats.binomtest(false, trials).proportion_ci(0.95).high
    assert found >= 0
    assert math.isfinite(found)
    if low > high:
        assert found == pytest.approx(math.log(low / high), rel=1e-6, abs=1e-9)
    else:
        assert found == 0
    assert found <= epsilon_bound(true, max(false - 1, 0), trials, 0.05)


def test_a_mechanism_that_tells_nothing_apart() -> None:
    result = audit(DirectEncoding(2, 0.001), 0, 1, 1_000, 0.01, Randomness.from_seed(6))
    assert result.epsilon == 0
    assert isinstance(result, Audit)


def test_what_cannot_be_audited_is_refused() -> None:
    found = DirectEncoding(4, 1.0)
    for wrong in ({"trials": 0}, {"alpha": 0.0}, {"alpha": 1.0}, {"alpha": math.nan}):
        with pytest.raises(ConfigurationError):
            audit(found, 0, 1, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputDataError):
        audit(found, 0, 4)
