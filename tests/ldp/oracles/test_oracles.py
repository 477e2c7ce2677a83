"""Every frequency oracle of the registry keeps the contract of all."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.frequency_oracle import FrequencyOracle
from ldp.heavy_hitters.bit_strings import Integers
from ldp.heavy_hitters.fragment_puzzle import SequenceFragmentPuzzle
from ldp.mechanism import plain
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.registry import ORACLES, oracle
from ldp.streams.sampled import Sampled
from link.errors import InputDataError
from tests.errors import fails
from tests.examples import slowly
from tests.ldp.contract import check_estimates, check_privacy, check_reports, check_sampler

pytestmark = pytest.mark.turn(8)

# What an oracle's guarantee leaves unused at a small domain, besides rounding.
SLACK: dict[str, float] = {"the": 9.0}
ENUMERATED = tuple(name for name in ORACLES if name not in {"she", "cms"})
# Local hashing enumerates its channel given a function only; test_local_hashing.py looks at what it draws.
SAMPLED = tuple(name for name in ENUMERATED if name not in {"blh", "olh", "flh", "hcms"})
# A sketch's work grows with its functions and buckets.
FEWER = {"flh": {"functions": 64}, "cms": {"functions": 64, "buckets": 64}, "hcms": {"functions": 64, "buckets": 64}}


@pytest.fixture(params=ORACLES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", ENUMERATED)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 5.0, 10.0])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_no_ratio_of_probabilities_exceeds_its_epsilon(name: str, epsilon: float, d: int) -> None:
    check_privacy(oracle(name, d, epsilon), tight=SLACK.get(name, 1e-5))


@pytest.mark.parametrize("name", SAMPLED)
def test_the_sampler_draws_from_the_channel(name: str) -> None:
    for d, epsilon in ((2, 1.0), (4, 0.5), (5, 3.0)):
        check_sampler(oracle(name, d, epsilon), d, Randomness.from_seed(d))


@pytest.mark.parametrize("epsilon", slowly([0.5, 2.0, 5.0], now=[0]))
def test_estimates_are_unbiased_with_the_stated_variance(name: str, epsilon: float) -> None:
    counts = np.array([700, 0, 150, 90, 30, 20, 10, 0, 5, 1])
    found = oracle(name, len(counts), epsilon, **FEWER.get(name, {}))
    check_estimates(found, counts, Randomness.from_seed(3))


def test_reports_and_states_survive_their_bytes(name: str) -> None:
    for d in (2, 7, 300):
        check_reports(oracle(name, d, 1.0), np.arange(500) % d, Randomness.from_seed(d))


def test_reports_beyond_memory_are_refused() -> None:
    unary = oracle("oue", 1_000_000, 1.0)
    with fails("E103"):
        unary.privatise(np.zeros(50_000, np.int64))


def test_parameters_read_back(name: str) -> None:
    found = oracle(name, ["a", "b", "c"], 1.0)
    again = type(found)(**found.get_params())
    assert again.fingerprint == found.fingerprint
    assert found.with_params(epsilon=2.0).fingerprint != found.fingerprint


def test_reports_of_other_parameters_are_refused(name: str) -> None:
    found: FrequencyOracle = oracle(name, 4, 1.0)
    other = oracle(name, 4, 2.0).privatise([1, 2])
    with pytest.raises(InputDataError):
        Aggregator(found).add(other)
    with pytest.raises(InputDataError):
        Aggregator(found).merge(Aggregator(oracle(name, 4, 2.0)))
    with pytest.raises(InputDataError):
        found.read(other.to_bytes())


def test_an_unknown_name_is_refused() -> None:
    with fails("E100"):
        oracle("magic", 4, 1.0)


def test_seeds_repeat_and_the_default_does_not(name: str) -> None:
    found, values = oracle(name, 16, 1.0), np.arange(64) % 16
    one, two = (found.privatise(values, Randomness.from_seed(7)).to_bytes() for _ in range(2))
    assert one == two
    assert found.privatise(values).to_bytes() != found.privatise(values).to_bytes()


@pytest.mark.parametrize("name", ["oue", "olh", "hr", "ss"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_estimated_variances_are_right_with_more_values_than_reports(name: str, epsilon: float) -> None:
    """Their mean is within a quarter of the exact one's: cut at 0, noisy counts add up to far more than n."""
    found, n = oracle(name, 3000, epsilon), 600
    values = np.repeat([5, 2999], n // 2)
    estimate = Aggregator(found).add(found.privatise(values, Randomness.from_seed(4))).estimate()
    exact = found.variance(np.bincount(values, minlength=3000).astype(np.float64), n)
    assert estimate.variances.mean() == pytest.approx(exact.mean(), rel=0.25)
    assert (estimate.variances > 0).all()


def test_what_reports_mean_is_part_of_the_fingerprint() -> None:
    """Several blocks of Hadamard response are filled otherwise than before: such reports must not mix with these.

    All other mechanisms keep the fingerprints that they had, or running collections would end.
    """
    several, one = HadamardResponse(64, 4.0, blocks=4), HadamardResponse(64, 1.0, blocks=1)
    before = {
        each: hashlib.sha256(json.dumps([each.name, each.get_params()], default=plain, sort_keys=True).encode())
        for each in (several, one, oracle("olh", 64, 1.0))
    }
    old = {each: digest.digest()[:16] for each, digest in before.items()}
    assert [each.fingerprint == old[each] for each in old] == [False, True, True]
    puzzles = [SequenceFragmentPuzzle(Integers(16), epsilon, 4) for epsilon in (1.0, 8.0)]
    assert [each.fragment.one_block for each in puzzles] == [True, False]
    assert [each.mapping for each in puzzles] == [1, 2]
    nested = Sampled(64, several, Fraction(1, 2))
    assert b"4}, 2]" in json.dumps(plain(nested), default=plain).encode()
    with fails("E101"):
        several.read(type(several.privatise([1]))(old[several], several.privatise([1]).fields).to_bytes())
