"""BLENDER: both groups keep their budgets in exact arithmetic, estimates are unbiased, and the blend beats both."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.blending.blender import Blender, best_blend
from ldp.blending.curator import Curator, Frequencies
from ldp.blending.head_list import OTHER, HeadList, Record
from ldp.blending.metrics import l1, ndcg
from ldp.blending.two_stages import TwoStageEncoding
from ldp.certify import satisfies
from ldp.oracles.direct_encoding import DirectEncoding
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.examples import in_turn
from tests.ldp.contract import ERROR, check_estimates, check_privacy, check_reports, check_sampler
from tests.ldp.sets.contract import check_moments
from tests.ldp.test_blankets import bound, check_sums, shuffled

pytestmark = pytest.mark.turn(8)

SIZES = [(1, 1), (2, 1), (3, 1, 1), (2, 5, 1), (3, 3), (10, 2, 1)]


# -- clients -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("sizes", SIZES)
def test_clients_spend_epsilon_and_no_more(sizes: tuple[int, ...], epsilon: float) -> None:
    found = TwoStageEncoding(sum(sizes), epsilon, sizes)
    check_privacy(found, tight=epsilon)
    if len(sizes) > 2 and max(sizes) >= 5:  # ... nor much less, since the second stage takes all that is left
        assert found.exact_epsilon > epsilon - 1e-6


@settings(max_examples=40)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=4), st.floats(0.1, 8), st.floats(0.05, 0.95))
def test_no_split_of_the_budget_overspends(sizes: list[int], epsilon: float, share: float) -> None:
    found = TwoStageEncoding(sum(sizes), epsilon, sizes, share)
    assert satisfies(found.channel(), epsilon)
    assert found.exact_epsilon <= epsilon


def test_what_the_exact_account_gains() -> None:
    found = TwoStageEncoding(13, 4.0, (10, 2, 1), query_share=0.85)
    assert found.query.epsilon == pytest.approx(3.4)
    assert found.url[10].epsilon == pytest.approx(0.696, abs=1e-3)  # instead of 0.6
    assert found.url[2].epsilon == pytest.approx(2.327, abs=1e-3)


@pytest.mark.costly
def test_the_sampler_draws_from_the_channel() -> None:
    for seed, sizes in in_turn(enumerate(SIZES), 3):
        check_sampler(TwoStageEncoding(sum(sizes), 2.0, sizes), sum(sizes), Randomness.from_seed(seed), 20_000)


@pytest.mark.parametrize(("sizes", "epsilon"), [((4, 1, 4, 1), 1.0), ((4, 1, 4, 1), 4.0), ((3, 3, 4), 3.0)])
def test_clients_estimates_are_unbiased(sizes: tuple[int, ...], epsilon: float) -> None:
    counts = np.array([400, 100, 0, 50, 200, 60, 40, 0, 10, 140])
    check_estimates(TwoStageEncoding(10, epsilon, sizes), counts, Randomness.from_seed(3))


def test_one_stage_is_direct_encoding() -> None:
    """Every query has one URL: k-RR with the first stage's budget, and the figures of the literature for k = 10."""
    found = TwoStageEncoding(10, 1.0, (1,) * 10, query_share=0.999999)
    single = DirectEncoding(10, 0.999999)
    counts = np.arange(10) * 100
    assert found.variance(counts, 4500) == pytest.approx(single.variance(counts, 4500))
    t, other = float(single.p), float(single.q)
    assert t == pytest.approx(0.2319693, abs=1e-6)
    assert (0.2 - other) / (t - other) == pytest.approx(0.7819767, abs=1e-5)
    tally = np.array([20, *[80 // 8] * 8, 0])
    n = tally.sum()
    frequencies, variances = found.query_frequencies(tally, n)
    assert frequencies[0] == pytest.approx(0.7819767, abs=1e-5)
    assert variances[0] * (n - 1) == pytest.approx(7.4414755, rel=1e-5)
    assert found.unbiased(tally, n)[0] / n == pytest.approx(frequencies[0])
    assert found.population_variances(tally, n)[0] == pytest.approx(variances[0])


def test_variances_over_users_and_noise() -> None:
    """Users drawn from a population: estimates of frequencies and of their variances, over repeated runs."""
    found, rng, n, runs = TwoStageEncoding(7, 3.0, (4, 2, 1)), Randomness.from_seed(4), 1_000, 200
    population = np.array([0.4, 0.1, 0.05, 0.05, 0.2, 0.1, 0.1])
    bounds = np.cumsum(population)[:-1]
    tallies = []
    for _ in range(runs):
        users = np.searchsorted(bounds, rng.uint64(n) / 2**64)
        tallies.append(found.tally(found.privatise(users, rng)))
    errors = np.array([found.unbiased(each, n) / n for each in tallies]) - population
    stated = np.mean([found.population_variances(each, n) for each in tallies], axis=0)
    check_moments(errors, stated)
    by_query = [found.query_frequencies(each, n) for each in tallies]
    true = np.array([0.6, 0.3, 0.1])
    check_moments(np.array([each for each, _ in by_query]) - true, np.mean([each for _, each in by_query], axis=0))


def test_reports_and_states_survive_their_bytes() -> None:
    for sizes in ((2, 1), (300, 1, 7)):
        check_reports(TwoStageEncoding(sum(sizes), 1.0, sizes), np.arange(200) % sum(sizes), Randomness.from_seed(1))


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (2, 2)])
def test_shuffled_reports_are_as_private_as_the_blanket_says(sizes: tuple[int, ...]) -> None:
    found = TwoStageEncoding(sum(sizes), 2.0, sizes)
    check_sums(found.blanket())
    for grown in (1.0, 1.3, 2.0):
        assert shuffled(found.channel(), 2, grown) <= bound(found.blanket(), 2, grown) * (1 + 1e-9)


def test_wrong_clients_parameters_are_refused() -> None:
    for sizes, share in (((10,), 0.8), ((5, 4), 0.8), ((10, 0), 0.8), ((5, 5), 1.0), ((5, 5), 0.0), ((5, 5), 0.9999)):
        with pytest.raises(ConfigurationError):
            TwoStageEncoding(10, 1.0, sizes, share)


# -- the curator -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12])
def test_the_threshold_is_the_least_that_keeps_delta(epsilon: float, delta: float) -> None:
    found = Curator(epsilon, delta)
    assert found.exact_delta <= delta * (1 + 1e-12)
    assert found.threshold == 2 or found.noise.tail(found.threshold - 2) > delta
    assert found.exact_epsilon <= epsilon
    assert found.exact_epsilon > epsilon - 1e-6


def test_the_curators_guarantee_in_exact_arithmetic() -> None:
    """The probability of being told, for counts 0, 1, 2 …: two records change by one, hockey-stick divergence ≤ δ'."""
    found = Curator(1.0, 1e-3)
    low, high = found.threshold, found.threshold + 80

    def law(count: int) -> list[Fraction]:
        """Of what is told of a record: nothing, a noisy count τ … high − 1, or more."""
        if count == 0:
            return [Fraction(1), *[Fraction(0)] * (high - low + 1)]
        told = [found.noise.probability(value - count) for value in range(low, high)]
        more = found.noise.tail(high - count)
        return [1 - sum(told) - more, *told, more]

    grown, delta = Fraction(math.exp(1.0)), found.noise.tail(found.threshold - 1)
    for one, other in ((0, 0), (0, 3), (3, 0), (2, 5)):  # neighbours: (one + 1, other) and (one, other + 1)
        laws = [law(count) for count in (one + 1, other, one, other + 1)]
        for a, b, c, d in (laws, (laws[2], laws[3], laws[0], laws[1])):
            lost = sum(
                max(p * q - grown * r * s, Fraction(0))
                for p, r in zip(a, c, strict=True)
                for q, s in zip(b, d, strict=True)
            )
            assert lost <= delta * (1 + Fraction(1, 10**12))


def test_rare_records_are_not_told() -> None:
    """1,000 records of one user each: all of them stay untold with a probability above 1 − 1000·δ'."""
    found, rng = Curator(1.0, 1e-10), Randomness.from_seed(5)
    records = [("common", "page")] * 500 + [(f"secret {i}", "page") for i in range(1_000)]
    head = found.head_list(records, rng)
    assert head.queries == ("common",)
    assert head.records == (("common", "page"), ("common", OTHER), (OTHER, OTHER))


def test_the_most_frequent_are_told_in_their_order() -> None:
    records = [("a", "x")] * 900 + [("b", "y")] * 700 + [("a", "z")] * 500 + [("c", "x")] * 300
    found = Curator(2.0, 1e-5)
    head = found.head_list(records, Randomness.from_seed(6), most=3)
    assert (head.queries, head.urls) == (("a", "b"), (("x", "z"), ("y",)))
    assert head.sizes == (3, 2, 1)
    with fails("E100"):
        found.head_list([("a", "x")], Randomness.from_seed(1))


def test_the_curators_frequencies() -> None:
    """Over users drawn from a population and noise: means and variances of frequencies, and of sums."""
    found, rng, n, runs = Curator(0.5, 1e-5), Randomness.from_seed(7), 400, 300
    head = HeadList({"a": ["x", "y"], "b": []})
    pool = [("a", "x")] * 50 + [("a", "y")] * 20 + [("a", "q")] * 10 + [("b", "x")] * 15 + [("c", "x")] * 5
    population = np.bincount(head.codes(pool), minlength=5) / 100
    estimates, sums = [], []
    for _ in range(runs):
        users = [pool[i] for i in rng.integers(100, n).tolist()]
        counts = found.counts(users, head, rng)
        estimates.append(found.frequencies(counts, n))
        sums.append(found.frequencies(np.array([counts[:3].sum()]), n, np.array([3])))
    for runs_of, true in ((estimates, population), (sums, np.array([0.8]))):
        stated = np.mean([each.variances for each in runs_of], axis=0)
        check_moments(np.array([each.frequencies for each in runs_of]) - true, stated)


def test_wrong_curators_parameters_are_refused() -> None:
    for delta in (0.0, 0.5, -1e-5, math.nan):
        with pytest.raises(ConfigurationError):
            Curator(1.0, delta)
    with pytest.raises(InputDataError):
        Curator(1.0, 1e-5).counts([("a", "x")], HeadList({"a": []}), Randomness.from_seed(1))


# -- head lists --------------------------------------------------------------------------------------------------------


def test_records_are_found_in_the_list() -> None:
    head = HeadList({"a": ["x", "y"], "b": []})
    assert head.records == (("a", "x"), ("a", "y"), ("a", OTHER), ("b", OTHER), (OTHER, OTHER))
    codes = head.codes([("a", "y"), ("b", "x"), ("c", "x"), ("a", "q"), (OTHER, OTHER), ("a", "x"), ("", "")])
    assert codes.tolist() == [1, 3, 4, 2, 4, 0, 4]
    assert head.domain.size == 5


@pytest.mark.parametrize("wrong", [{}, {"a": ["x", "x"]}, {OTHER: []}, {"a": [OTHER]}])
def test_wrong_lists_are_refused(wrong: dict[str, list[str]]) -> None:
    with pytest.raises(ConfigurationError):
        HeadList(wrong)


@pytest.mark.parametrize("wrong", [[("a", "x"), ("b",)], ["ab"], [3], [("a", ["x"])], None])
def test_wrong_records_are_refused(wrong: list[Record]) -> None:
    with pytest.raises(InputDataError):
        HeadList({"a": []}).codes(wrong)


# -- both --------------------------------------------------------------------------------------------------------------


def test_the_best_weights() -> None:
    """By hand: variances 1 and 3 give weights 3/4 and 1/4, and 3/4 as the variance."""
    one, other = Frequencies(np.array([0.2]), np.array([1.0])), Frequencies(np.array([0.6]), np.array([3.0]))
    found = best_blend(("q",), one, other)
    assert found.weights.tolist() == [0.75]
    assert found.blended.frequencies == pytest.approx([0.3])
    assert found.blended.variances == pytest.approx([0.75])


QUERIES, URLS = 12, 4


def law() -> tuple[list[Record], list[float]]:
    """The records that `log` draws more than once, any other, and how likely each is."""
    records: list[Record] = [(f"query {q}", f"url {q}.{u}") for q in range(QUERIES) for u in range(URLS)]
    by_query, by_url = (1 / np.arange(1, size + 1) for size in (QUERIES, URLS))
    shares = 0.95 * np.outer(by_query / by_query.sum(), by_url / by_url.sum())
    return [*records, ("own", "page")], [*shares.ravel().tolist(), 0.05]


def log(n: int, rng: Randomness) -> list[Record]:
    """Records with frequencies that fall like 1/rank, queries and URLs alike; a twentieth occurs once."""
    ranks = [np.cumsum(1 / np.arange(1, size + 1)) for size in (QUERIES, URLS)]
    drawn = [np.searchsorted(each / each[-1], rng.uint64(n) / 2**64) for each in ranks]
    unique = rng.uint64(n) / 2**64 < 0.05
    return [
        (f"own {i}", "page") if alone else (f"query {q}", f"url {q}.{u}")
        for i, (q, u, alone) in enumerate(zip(*(each.tolist() for each in drawn), unique.tolist(), strict=True))
    ]


def test_the_blend_beats_both() -> None:
    """60,000 users, 5 % opted in, ε = 4: L1 over queries and over records, the mean of six runs."""
    blender, errors, ranks = Blender(4.0, 1e-5, most=40), [], []
    for seed in range(6):
        rng = Randomness.from_seed(seed)
        opted_in, clients = log(3_000, rng), log(57_000, rng)
        found = blender.simulate(opted_in, clients, rng)
        records, shares = law()
        population = np.bincount(found.head.codes(records), shares, len(found.head.records))
        by_query = np.add.reduceat(population, np.cumsum((0, *found.head.sizes[:-1])))
        row = []
        for each, true in ((found.records, population), (found.queries, by_query)):
            row += [l1(part.frequencies, true) for part in (each.opt_in, each.clients, each.blended)]
            z = (each.blended.frequencies - true) / np.sqrt(each.blended.variances)
            assert np.mean(np.abs(z) < 3) > 0.9
        errors.append(row)
        ranks.append(ndcg(found.queries.blended.frequencies[:-1], by_query[:-1]))
        # All that was told is of several users.
        counts = Counter(opted_in)
        assert all(counts[record] > 1 for record in found.head.records if OTHER not in record)
    own, local, blended, query_own, query_local, query_blended = np.mean(errors, axis=0)
    assert blended < 0.95 * min(own, local)
    assert query_blended < min(query_own, query_local)
    assert min(ranks) > 0.98


def test_a_collection_in_parts() -> None:
    """What a service does, by the single steps, and with sums that were merged, gives the same."""
    blender, rng = Blender(3.0, most=5), Randomness.from_seed(1)
    head, counts, number = blender.ask_opted_in(log(4_000, rng), rng)
    mechanism = blender.clients_mechanism(head)
    reports = mechanism.privatise(head.codes(log(10_000, rng)), rng)
    whole = blender.blend(head, counts, number, mechanism.tally(reports), len(reports))
    parts = mechanism.tally(reports[:3_000]) + mechanism.tally(reports[3_000:])
    again = blender.blend(head, counts, number, parts, len(reports))
    assert number == 2_000
    assert again.records.blended.frequencies.tolist() == whole.records.blended.frequencies.tolist()
    estimate = Aggregator(mechanism).add(reports).estimate()
    assert estimate.frequencies == pytest.approx(whole.records.clients.frequencies)
    assert whole.queries.names == (*head.queries, OTHER)
    with fails("E101"):
        blender.blend(head, counts, number, parts, 1)


@pytest.mark.parametrize("wrong", [{"discovery_share": 1.0}, {"most": 0}, {"delta": 1.0}, {"epsilon": 0.0}])
def test_wrong_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        Blender(**{"epsilon": 1.0, **wrong})  # type: ignore[arg-type]


def test_metrics() -> None:
    assert l1([0.5, 0.2], [0.4, 0.4]) == pytest.approx(0.3)
    assert ndcg([3, 2, 1], [0.5, 0.3, 0.2]) == 1.0
    ideal = 0.5 + 0.3 / math.log2(3) + 0.2 / 2
    assert ndcg([1, 2, 3], [0.5, 0.3, 0.2]) == pytest.approx((0.2 + 0.3 / math.log2(3) + 0.5 / 2) / ideal)
    assert ndcg([1, 2, 3], [0.5, 0.3, 0.2], k=1) == pytest.approx(0.4)
    for wrong in ([], [0, 0], [1, -1]):
        with pytest.raises(InputDataError):
            ndcg([1, 2][: len(wrong)], wrong)


def test_noise_draws_what_the_threshold_rests_on() -> None:
    """How often noise reaches 3, of 200,000 draws, against its exact tail; at `ERROR`."""
    found, n = Curator(1.0, 1e-5), 200_000
    tail = float(found.noise.tail(3))
    reached = np.count_nonzero(found.noise.draw(n, Randomness.from_seed(2)) >= 3)
    assert abs(reached - n * tail) < stats.norm.isf(ERROR / 2) * math.sqrt(n * tail * (1 - tail))
