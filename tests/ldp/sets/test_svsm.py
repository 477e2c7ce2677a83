"""SVSM: candidates by best-first search, phases, and what is found of planted and of reference baskets."""

from __future__ import annotations

import math
import pathlib
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from ldp.certify import satisfies, spent_epsilon
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.sets.itemset_candidates import best_itemsets, largest_itemset
from ldp.sets.metrics import f1, ncr
from ldp.sets.padding import PaddingAndSampling, amplified
from ldp.sets.plan import MiningServer
from ldp.sets.size_histogram import SetSizes
from ldp.sets.svsm import ItemsetMining
from link.errors import ConfigurationError
from tests.errors import fails
from tests.examples import in_turn
from tests.ldp.contract import ERROR, chi_square_p
from tests.ldp.sets.baskets import most_frequent_itemsets, planted, reference

pytestmark = pytest.mark.turn(6)

ITEMSETS = [((0, 1, 2), 0.3), ((3, 4), 0.3), ((0,), 0.3), ((5,), 0.25)]


def guess(itemset: tuple[int, ...], frequencies: dict[int, float]) -> float:
    return math.prod(0.9 * frequencies[item] / max(frequencies.values()) for item in itemset)


@settings(max_examples=80)
@given(
    st.dictionaries(st.integers(0, 60), st.floats(0.01, 1.0), min_size=1, max_size=9),
    st.integers(1, 60),
    st.integers(2, 5),
)
def test_candidates_are_those_with_the_highest_guesses(frequencies: dict[int, float], most: int, largest: int) -> None:
    found = best_itemsets(frequencies, most, largest)
    every = list(chain.from_iterable(combinations(sorted(frequencies), size) for size in range(2, largest + 1)))
    assert list(found) == sorted(set(found))
    assert set(found) <= set(every)
    assert len(found) == min(most, len(every))
    guesses = sorted((guess(each, frequencies) for each in every), reverse=True)[: len(found)]
    assert sorted((guess(each, frequencies) for each in found), reverse=True) == pytest.approx(guesses, rel=1e-9)


def test_guessed_frequencies() -> None:
    frequencies = {0: 0.4, 1: 0.3, 2: 0.2}
    assert guess((0, 1), frequencies) == pytest.approx(0.9 * 0.675) == pytest.approx(0.6075)
    assert best_itemsets(frequencies, 1, 5) == ((0, 1),)
    assert best_itemsets(frequencies, 9, 5) == ((0, 1), (0, 1, 2), (0, 2), (1, 2))
    assert best_itemsets(frequencies, 9, 2) == ((0, 1), (0, 2), (1, 2))
    assert best_itemsets({0: 0.4, 1: -0.3, 2: 0.0}, 9, 5) == ()
    assert best_itemsets({}, 9, 5) == ()


def test_the_search_looks_at_few_itemsets() -> None:
    found = best_itemsets({item: 1 / (1 + item) for item in range(1_000)}, 2_000, 10)  # of 10^23
    assert len(found) == 2_000


def test_the_largest_itemset_among_k() -> None:
    assert [largest_itemset(k) for k in (1, 2, 3, 6, 7, 31, 32, 63, 64)] == [1, 1, 2, 2, 3, 5, 5, 6, 6]


def test_phases() -> None:
    plan, baskets = ItemsetMining(50, 3.0, 6), planted(ITEMSETS, 50, 40_000, Randomness.from_seed(1))
    server, rng, phases = MiningServer(plan), Randomness.from_seed(2), []
    while not server.finished:
        phases.append(server.phase)
        server.add(server.phase.mechanism.privatise(baskets, rng))
        server.advance()
        assert MiningServer.from_bytes(server.to_bytes(), plan).to_bytes() == server.to_bytes()
    shares = [0.7 * 0.4, 0.7 * 0.1, 0.7 * 0.5, 0.3 * 0.2, 0.3 * 0.8]
    assert [float(each.share) for each in phases] == pytest.approx(shares)
    assert sum(plan.shares) == 1
    n = 100_000
    assert chi_square_p(np.bincount(plan.assign(n, rng), minlength=5), n * np.array(shares)) > ERROR
    assert all(each.mechanism.epsilon == 3.0 >= each.mechanism.exact_epsilon for each in phases)
    sizes, last = phases[3].mechanism, phases[4].mechanism
    assert isinstance(sizes, SetSizes)
    assert isinstance(last, PaddingAndSampling)
    assert sizes.candidates == last.candidates
    assert last.candidates is not None
    assert len(last.candidates) == 12
    assert all(len(each) == 2 for each in last.candidates)  # ⌊log₂ 7⌋
    assert {(0, 1), (0, 2), (1, 2), (3, 4)} <= set(last.candidates)
    for phase in phases:
        assert plan.announced(phase.announcement).fingerprint == phase.mechanism.fingerprint


def test_planted_itemsets_are_found() -> None:
    baskets = planted(ITEMSETS, 50, 60_000, Randomness.from_seed(1))
    true, k = most_frequent_itemsets(baskets, 11), 11
    assert {(0, 1, 2), (3, 4)} <= set(true)
    for seed in range(5):
        found = ItemsetMining(50, 4.0, k).find(baskets, Randomness.from_seed(seed))
        assert [each.frequency for each in found] == sorted((each.frequency for each in found), reverse=True)
        # The last of them are nearly as frequent as those that come after.
        assert f1([each.items for each in found], true) >= 9 / k
        for each in found:
            if each.items in true:
                # What sets beyond L lose is the same for all only nearly; that is within a tenth here.
                assert abs(each.frequency - true[each.items]) < 6 * each.deviation + 0.1 * true[each.items]


def test_covariances_of_different_users_are_none() -> None:
    baskets, plan = planted(ITEMSETS, 50, 20_000, Randomness.from_seed(1)), ItemsetMining(50, 4.0, 11)
    server, groups = MiningServer(plan), plan.assign(len(baskets), Randomness.from_seed(2))
    while not server.finished:
        asked = baskets[groups == server.phase.number]
        server.add(server.phase.mechanism.privatise(asked, Randomness.from_seed(3)))
        server.advance()
    supports = server.supports()
    single = np.array([len(each) == 1 for each in supports.itemsets])
    assert np.all(supports.covariances[np.ix_(single, ~single)] == 0)
    assert np.all(supports.covariances[np.ix_(single, single)] != 0)
    assert np.all(np.diag(supports.covariances) > 0)


def test_noise_alone_gives_no_error() -> None:
    """Where nothing is told from noise, candidates are some pairs of what was found."""
    for seed in range(20):
        rng = Randomness.from_seed(seed)
        found = ItemsetMining(4, 0.01, 3).find([[], [0]] * 60, rng)
        assert len(found) == 3


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 2},
        {"k": 100_000},
        {"domain": 2},
        {"epsilon": 0},
        {"item_share": 0},
        {"item_share": 1.5},
        {"treatment": ""},
    ],
)
def test_wrong_plans_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        ItemsetMining(**{"domain": 30, "epsilon": 1.0, "k": 4, **parameters})  # type: ignore[arg-type]


def test_more_itemsets_than_items() -> None:
    sets = [[0, 1, 2, 3]] * 3_000
    found = ItemsetMining(4, 8.0, 15, Fraction(1, 2)).find(sets, Randomness.from_seed(1))
    assert {each.items for each in found} == {each for size in (1, 2, 3, 4) for each in combinations(range(4), size)}


@pytest.mark.costly
@pytest.mark.parametrize(
    ("epsilon", "least_f1", "least_ncr"), in_turn([(1.0, 0.094, 0.172), (2.0, 0.406, 0.608), (4.0, 0.656, 0.822)], 3)
)
def test_better_than_the_published_code_on_the_reference_baskets(
    shared_data: pathlib.Path, epsilon: float, least_f1: float, least_ncr: float
) -> None:
    """Of the published code, F1 and NCR at ε = 1, 2, 4; with one dummy it spends more than it says."""
    users, k, seeds = reference(shared_data, "kosarak36k"), 32, 6
    true = most_frequent_itemsets(users, k)
    plan, scores = ItemsetMining(users.size, epsilon, k), []
    for seed in range(seeds):
        found = [each.items for each in plan.find(users, Randomness.from_seed(seed))]
        scores.append((f1(found, true), ncr(found, list(true))))
    assert np.all(np.mean(scores, axis=0) > (least_f1, least_ncr)), scores
    for length in (4, 8):
        assert satisfies(PaddingAndSampling(3, epsilon, length, oracle="grr").channel(), epsilon)
        assert spent_epsilon(DirectEncoding(4, amplified(epsilon, length)).channel()) > epsilon + 1


def test_the_most_items_of_an_itemset_can_be_bounded() -> None:
    sets = [[0, 1, 2]] * 3000
    plan = ItemsetMining(6, 8.0, 15, largest=2)
    found = plan.find(sets, Randomness.from_seed(1))
    assert {len(each.items) for each in found} == {1, 2}
    assert (0, 1, 2) in {each.items for each in ItemsetMining(6, 8.0, 15).find(sets, Randomness.from_seed(1))}
    assert ItemsetMining(6, 1.0, 15, largest=9).largest == 4
    with fails("E100"):
        ItemsetMining(6, 1.0, 15, largest=1)
