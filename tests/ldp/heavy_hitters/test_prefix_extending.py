"""PEM: each round keeps the contract of oracles, one report spends ε, and what is frequent is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.bias_aware import NORMAL, selection_factor
from ldp.estimate import Estimate
from ldp.heavy_hitters.bit_strings import Integers, Texts
from ldp.heavy_hitters.prefix_extending import PrefixExtending, PrefixHashing, PrefixServer
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.examples import slowly
from tests.ldp.contract import ERROR, check_estimates, check_privacy, check_reports, chi_square_p

pytestmark = pytest.mark.turn(6)

WORDS = ("bread", "é", "東京", "", "ten bytes!", "bread ", "😀", "zzz")


def planted(n: int, seed: int) -> np.ndarray:
    """Half of n texts are one of WORDS each, as often as the others; the rest are spread over 2^24 texts."""
    rng = Randomness.from_seed(seed)
    which, first, other = rng.integers(2 * len(WORDS), n), rng.integers(1 << 14, n), rng.integers(1 << 10, n)
    rest = [f"{chr(0x5000 + i)}{j:x}" for i, j in zip(first.tolist(), other.tolist(), strict=True)]
    return np.array([WORDS[i] if i < len(WORDS) else rest[row] for row, i in enumerate(which.tolist())])


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 8.0])
def test_no_ratio_of_a_report_exceeds_its_epsilon(epsilon: float) -> None:
    check_privacy(PrefixHashing(Integers(40), epsilon, 3, 5, (0, 2, 7)), tight=1e-5)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_estimates_are_unbiased_with_the_stated_variance(epsilon: float) -> None:
    counts = np.array([700, 0, 150, 90, 30, 20, 10, 0, 5, 1, 0, 0, 0, 0, 0, 4])
    check_estimates(PrefixHashing(Integers(4), epsilon, 0, 4, (0,)), counts, Randomness.from_seed(3))


def test_a_report_supports_what_the_tally_counts() -> None:
    found = PrefixHashing(Integers(16), 1.0, 4, 9, (1, 7, 12))
    reports = found.privatise(np.arange(600) * 97, Randomness.from_seed(9))
    every = np.arange(found.domain.size)
    assert found.supports(reports, every).sum(axis=0).tolist() == found.tally(reports).tolist()


def test_users_of_other_prefixes_do_not_bias() -> None:
    oracle, runs = PrefixHashing(Texts(6), 1.0, 8, 16, tuple(b"bm")), 100
    values, rng = np.array(["ba"] * 300 + ["b"] * 100 + ["xa"] * 500 + ["mil"] * 100), Randomness.from_seed(4)
    counts = np.zeros(oracle.domain.size)
    counts[[ord("a"), 0, 256 + ord("i")]] = 300, 100, 100
    errors = [oracle.unbiased(oracle.tally(oracle.privatise(values, rng)), len(values)) - counts for _ in range(runs)]
    z = np.mean(errors, axis=0) / np.sqrt(oracle.variance(counts, len(values)) / runs)
    assert np.abs(z).max() < stats.norm.isf(ERROR / len(counts) / 2)


def test_reports_and_states_survive_their_bytes() -> None:
    for strings in (Integers(7), Integers(64)):
        check_reports(PrefixHashing(strings, 1.0, 2, 6, (1, 3)), np.arange(100), Randomness.from_seed(1))


def test_lengths_of_the_rounds() -> None:
    assert PrefixExtending(Integers(48), 1.0, 16, groups=4).lengths == (15, 26, 37, 48)
    assert PrefixExtending(Integers(10), 1.0, 9, groups=4).lengths == (6, 7, 9, 10)
    assert PrefixExtending(Integers(8), 1.0, 1, groups=1).lengths == (8,)
    default = PrefixExtending(Texts(8), 1.0, 20)
    assert default.keep == 32
    assert max(np.diff((5, *default.lengths))) <= 9


def test_planted_values_are_found() -> None:
    """The union bound over rounds, planted values and candidates stays below the stated probability of error."""
    plan, n, share, other = PrefixExtending(Texts(10), 3.0, len(WORDS)), 90_000, 1 / 16, 1 / 100
    first = Texts(10).encode(planted(n, 5))[:, 0] >> np.uint64(32 - plan.lengths[0])
    assert np.count_nonzero(np.unique(first, return_counts=True)[1] > other * n) <= len(WORDS)
    users = n / plan.groups - 6 * np.sqrt(n / plan.groups)
    oracle = PrefixServer(plan).oracle
    true = np.zeros(oracle.domain.size)
    true[:2] = share * users, other * users
    # Besides the mechanism's, there is the variance of how many of a group's users have each prefix.
    deviation = np.sqrt(oracle.variance(true, int(users))[:2].sum() + true[:2].sum())
    bound = plan.groups * len(WORDS) * oracle.domain.size * stats.norm.sf((true[0] - true[1]) / deviation)
    assert bound < ERROR
    found = plan.find(planted(n, 5), Randomness.from_seed(6))
    assert {each.value for each in found} == set(WORDS)
    assert [each.frequency for each in found] == sorted((each.frequency for each in found), reverse=True)
    for each in found:
        assert abs(each.frequency - share) < stats.norm.isf(ERROR / 16) * each.deviation


def test_deviations_are_right() -> None:
    plan, runs, z = PrefixExtending(Integers(16), 2.0, 2, groups=3), 100, []
    for run in range(runs):
        rng = Randomness.from_seed(run)
        values = np.where(rng.uint64(4000) >> np.uint64(63), 40_000, 17)
        z += [
            (each.frequency - 0.5) / each.deviation for each in plan.find(values, rng.derive("x")) if each.value == 17
        ]
    assert len(z) == runs
    widened = selection_factor(plan.k, plan.oracle(2, (0, 1)).domain.size)
    assert abs(np.mean(z) * widened) < stats.norm.isf(ERROR / 2) / np.sqrt(runs)
    assert stats.chi2.ppf(ERROR, runs) < np.square(z).sum() * widened**2 < stats.chi2.isf(ERROR, runs)


@pytest.mark.parametrize("epsilon", slowly([0.5, 1.0, 2.0, 4.0], now=[0]))
def test_intervals_of_what_was_told_for_its_estimate_cover(epsilon: float) -> None:
    """A search that covers .95 fails with a probability of `ERROR`."""
    plan, covered, n = PrefixExtending(Integers(12), epsilon, 8), [], 4_000
    for seed in range(12):
        random = np.random.default_rng(seed)
        shares = 1 / np.arange(1, 301) ** 1.2
        values = random.permutation(1 << 12)[random.choice(300, n, p=shares / shares.sum())]
        for each in plan.find(values, Randomness.from_seed(seed)):
            true = np.count_nonzero(values == each.value) / n
            covered.append(abs(each.frequency - true) <= NORMAL * each.deviation)
    assert len(covered) == 8 * 12
    assert stats.binom.cdf(sum(covered), len(covered), 0.95) > ERROR, np.mean(covered)


def test_every_user_reports_once() -> None:
    plan, n = PrefixExtending(Integers(20), 1.0, 4, groups=4), 50_000
    rounds = plan.assign(n, Randomness.from_seed(7))
    assert chi_square_p(np.bincount(rounds, minlength=4), np.full(4, n / 4)) > ERROR
    server, late = PrefixServer(plan), []
    while not server.finished:
        assert server.oracle.epsilon == 1.0
        assert server.oracle.exact_epsilon <= 1.0
        assert plan.oracle(server.round, server.oracle.kept).fingerprint == server.oracle.fingerprint
        late.append(server.oracle.privatise([5, 6], Randomness.from_seed(8)))
        for other in late[:-1]:
            with pytest.raises(InputDataError):
                server.add(other)
        server.add(late[-1])
        server.advance()
    with fails("E101"):
        server.add(late[-1])
    with fails("E101"):
        server.advance()


def test_a_search_goes_on_from_its_state() -> None:
    plan, values = PrefixExtending(Texts(4), 4.0, 3, groups=3), np.array(["tea", "ab", "ü"] * 2000)
    rounds = plan.assign(len(values), Randomness.from_seed(1))
    servers = [PrefixServer(plan), PrefixServer(plan)]
    while not servers[0].finished:
        reports = servers[0].oracle.privatise(values[rounds == servers[0].round], Randomness.from_seed(2))
        servers[0].add(reports)
        servers[1].add(reports[: len(reports) // 2])
        servers[1] = PrefixServer.from_bytes(servers[1].to_bytes(), plan)
        other = Aggregator(servers[1].oracle).add(reports[len(reports) // 2 :])
        servers[1].reports.merge(other)
        assert servers[0].to_bytes() == servers[1].to_bytes()
        with fails("E101"):
            servers[1].found()
        for server in servers:
            server.advance()
    assert servers[0].found() == servers[1].found() == PrefixServer.from_bytes(servers[0].to_bytes(), plan).found()
    assert {each.value for each in servers[0].found()} == {"tea", "ab", "ü"}


def test_wrong_states_are_refused() -> None:
    plan = PrefixExtending(Integers(20), 1.0, 4, groups=4)
    server = PrefixServer(plan)
    server.add(server.oracle.privatise([1, 2, 3], Randomness.from_seed(1)))
    server.advance()
    data = server.to_bytes()
    for wrong in (data[:-1], data[:5], b"", b"X" + data[1:], data[:5] + b"\xff" + data[6:], data[:13] + data[16:]):
        with pytest.raises(InputDataError):
            PrefixServer.from_bytes(wrong, plan)
    for other in (PrefixExtending(Integers(20), 2.0, 4, groups=4), PrefixExtending(Integers(30), 1.0, 4, groups=4)):
        with pytest.raises(InputDataError):
            PrefixServer.from_bytes(data, other)


def test_equal_estimates_go_to_the_lower_string() -> None:
    oracle = PrefixHashing(Integers(3), 1.0, 0, 3, (0,))
    counts = np.array([1.0, 5, 5, 1, 9, 1, 5, 0])
    assert oracle.best(Estimate(oracle.domain, 10, counts, counts), 3) == [4, 1, 2]


def test_what_is_no_text_is_not_kept() -> None:
    oracle = PrefixHashing(Texts(2), 1.0, 0, 8, (0,))
    counts = np.arange(256.0)
    best = oracle.best(Estimate(oracle.domain, 9, counts, counts), 3)
    assert [oracle.prefix(each) for each in best] == [0xDF, 0xDE, 0xDD]  # from 0xE0 on, three bytes are needed


def test_one_value_and_one_user() -> None:
    plan = PrefixExtending(Texts(1), 16.0, 1, groups=1)
    assert [each.value for each in plan.find(["a"] * 20, Randomness.from_seed(1))] == ["a"]
    assert [each.value for each in PrefixExtending(Texts(1), 16.0, 1).find([""] * 20)] == [""]


def test_rounds_without_users_are_refused() -> None:
    with fails("E101"):
        PrefixExtending(Integers(30), 1.0, 1).find([])


@pytest.mark.parametrize(
    "parameters",
    [
        {"k": 0},
        {"k": 1 << 20},
        {"epsilon": 0},
        {"groups": 0},
        {"groups": 19},
        {"keep": 3},
        {"strings": Integers(64), "groups": 1},
        {"strings": Integers(64), "groups": 2},
    ],
)
def test_wrong_plans_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        PrefixExtending(**{"strings": Integers(20), "epsilon": 1.0, "k": 4, **parameters})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("start", "stop", "kept"), [(2, 2, (0,)), (0, 9, (0,)), (2, 4, ()), (2, 4, (2, 1)), (2, 4, (4,))]
)
def test_wrong_rounds_are_refused(start: int, stop: int, kept: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError):
        PrefixHashing(Integers(8), 1.0, start, stop, kept)


@pytest.mark.parametrize(("which", "kept"), [(-1, (0,)), (2, (0,)), (0, (1,)), (1, (1 << 4,))])
def test_a_client_refuses_rounds_that_are_not_planned(which: int, kept: tuple[int, ...]) -> None:
    plan = PrefixExtending(Integers(8), 1.0, 1, groups=2)
    assert plan.oracle(1, (15,)).stop == 8
    with pytest.raises(ConfigurationError):
        plan.oracle(which, kept)
