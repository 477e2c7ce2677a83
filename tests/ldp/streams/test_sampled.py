"""Secret sampling with cover reports: what it spends, exactly, and what its estimates are."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.budget import LEAST_EPSILON
from ldp.certify import spent_epsilon
from ldp.documents import document, mechanism_of
from ldp.domain import Domain
from ldp.registry import ORACLES, oracle
from ldp.streams.composition import amplified, before_covering, covered
from ldp.streams.sampled import Sampled, check_probability
from link.errors import InputDataError
from tests.errors import fails
from tests.examples import slowly

pytestmark = pytest.mark.turn(3)

FRESH = tuple(name for name in ORACLES if not name.startswith("l-"))
QUARTER = Fraction(1, 4)
ERROR = 1e-9  # the probability with which a test below fails by chance, over all that it looks at

dyadics = st.integers(1, 10).flatmap(lambda bits: st.integers(1, (1 << bits) - 1).map(lambda k: Fraction(k, 1 << bits)))


# -- what it spends ---------------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FRESH), st.integers(2, 5), st.floats(0.05, 4), dyadics)
def test_a_report_spends_what_is_stated_at_most(name: str, size: int, epsilon: float, probability: Fraction) -> None:
    assume(covered(epsilon, probability, size) >= LEAST_EPSILON)
    mechanism = Sampled(size, oracle(name, size, epsilon), probability)
    assert mechanism.epsilon == covered(epsilon, probability, size) <= epsilon
    assert mechanism.exact_epsilon <= mechanism.epsilon
    try:
        channel = mechanism.channel()
    except NotImplementedError:
        return
    assert all(sum(row) == 1 for row in channel)
    assert spent_epsilon(channel) <= mechanism.exact_epsilon


def test_with_direct_encoding_it_spends_all_of_it() -> None:
    mechanism = Sampled.for_budget("grr", 5, 1.0, Fraction(1, 2))
    assert spent_epsilon(mechanism.channel()) == pytest.approx(1.0, abs=1e-12)


@given(st.floats(0.001, 8), dyadics, st.integers(2, 1 << 24))
def test_covering_and_its_inverse_are_rounded_to_the_safe_side(epsilon: float, rate: Fraction, values: int) -> None:
    inner = before_covering(epsilon, rate, values)
    if math.isinf(inner):
        # However exact a told value is, the coin hides it: ln(1 + g·d/(1 − g)) at most.
        assert math.log1p(float(rate * values / (1 - rate))) <= epsilon * (1 + 1e-12)
        return
    if inner <= 100:
        assert covered(inner, rate, values) <= epsilon
        assert covered(inner, rate, values) == pytest.approx(epsilon, rel=1e-6)
        assert covered(inner, rate, values) <= amplified(inner, rate)


def test_covering_has_the_check_values() -> None:
    assert covered(1.0, Fraction(1, 2), 2) == pytest.approx(math.log1p(0.5 * (math.e - 1) / (1 + 0.25 * (math.e - 1))))
    assert covered(1.0, Fraction(1, 10), 1 << 24) == pytest.approx(amplified(1.0, 0.1), abs=1e-7)
    assert covered(1.0, 1, 7) == pytest.approx(1.0, abs=1e-15)
    assert before_covering(4.0, Fraction(1, 8), 3) == math.inf


def test_without_cover_the_collector_would_gain_all() -> None:
    """Why who is not sampled reports, too: a blank that shows leaves the others' ε as it was."""
    rows = oracle("grr", 4, 2.0).channel()
    blank = [[QUARTER * p for p in row] + [1 - QUARTER] for row in rows]
    assert spent_epsilon(blank) == pytest.approx(2.0)
    assert amplified(2.0, QUARTER) < 1


# -- what its estimates are -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", slowly(FRESH, now=[place for place, name in enumerate(FRESH) if name != "cms"]))
def test_estimates_are_unbiased_and_as_exact_as_stated(name: str) -> None:
    """Means of many estimates within normal bounds, mean squares within chi-square's; `ERROR` over all values."""
    domain = Domain(4, list("abcd"))
    mechanism = Sampled.for_budget(name, domain, 1.0, Fraction(1, 2))
    many = 40 if name == "hcms" else 400  # whose decoding is slow
    values, true = ["a"] * 300 + ["b"] * 100, np.array([300.0, 100, 0, 0])
    runs = np.array(
        [
            Aggregator(mechanism).add(mechanism.privatise(values, Randomness.from_seed(run))).estimate().counts
            for run in range(many)
        ]
    )
    variances = mechanism.variance(true, 400)
    reach = NormalDist().inv_cdf(1 - ERROR / 16)
    sketches = 1.02 if name in ("flh", "cms", "hcms") else 1.0  # whose law is not quite normal
    assert (np.abs(runs.mean(axis=0) - true) <= sketches * reach * np.sqrt(variances / many)).all()
    spread = np.square(runs - true).mean(axis=0) / variances
    assert (np.abs(spread - 1) <= reach * math.sqrt(2 / many)).all(), spread


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(FRESH), dyadics, st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(0, 99))
def test_parts_add_up_and_reports_come_back(name: str, probability: Fraction, values: list[int], seed: int) -> None:
    assume(covered(1.0, probability, 6) >= LEAST_EPSILON)
    mechanism = Sampled(6, oracle(name, 6, 1.0), probability)
    reports = mechanism.read(mechanism.privatise(values, Randomness.from_seed(seed)).to_bytes())
    whole, cut = Aggregator(mechanism).add(reports), seed % (len(values) + 1)
    parts = Aggregator(mechanism).add(reports[:cut]).merge(Aggregator(mechanism).add(reports[cut:]))
    np.testing.assert_array_equal(whole.estimate().counts, parts.estimate().counts)
    assert (whole.estimate().variances >= 0).all()
    again = mechanism_of(document(mechanism))
    assert again.fingerprint == mechanism.fingerprint


def test_a_cover_report_looks_like_any_other() -> None:
    """Reports of both kinds have the same fields, lengths and fingerprint; only the client's coin tells them apart."""
    mechanism = Sampled.for_budget("olh", 64, 1.0, QUARTER)
    reports = mechanism.privatise([5] * 100, Randomness.from_seed(3))
    assert mechanism.layout == mechanism.oracle.layout
    assert len({len(reports[place : place + 1].to_bytes()) for place in range(100)}) == 1


# -- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "probability", [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(1, 1 << 33), Fraction(3, 2)]
)
def test_only_coins_that_bits_hit_are_taken(probability: Fraction) -> None:
    with fails("E100"):
        check_probability(probability)
    with fails("E100"):
        Sampled(4, oracle("grr", 4, 1.0), probability)


def test_oracles_that_do_not_fit_are_refused() -> None:
    inner = Sampled(4, oracle("grr", 4, 1.0), QUARTER)
    for wrong in (oracle("l-grr", 4, 1.0), inner, "grr"):
        with fails("E100"):
            Sampled(4, wrong, QUARTER)  # type: ignore[arg-type]
    for wrong_domain in (oracle("grr", 5, 1.0), oracle("grr", Domain(4, list("abcd")), 1.0)):
        with fails("E100"):
            Sampled(4, wrong_domain, QUARTER)
    with fails("E100"):
        Sampled.for_budget("grr", 1024, 12.0, Fraction(1, 1024))
    with fails("E100"):
        Sampled.for_budget("grr", 3, 4.0, Fraction(1, 8))


def test_hostile_documents_are_refused() -> None:
    content = json.loads(document(Sampled.for_budget("grr", 4, 0.5, QUARTER)))
    for changes in (
        {"probability": {"fraction": "1/3"}},
        {"probability": "1/4"},
        {"oracle": content},
        {"oracle": {"behind": content}},
        {"oracle": {"behind": {"mechanism": "grr", "parameters": {"domain": {"domain": 5, "labelled": False}}}}},
        {"oracle": {"behind": []}},
    ):
        wrong = {**content, "parameters": {**content["parameters"], **changes}}
        with pytest.raises(InputDataError):
            mechanism_of(json.dumps(wrong).encode())
    deep = b'{"mechanism":"sampled","parameters":{"oracle":{"behind":' * 50_000
    with pytest.raises(InputDataError):
        mechanism_of(deep + b"1" + b"}}}" * 50_000)
