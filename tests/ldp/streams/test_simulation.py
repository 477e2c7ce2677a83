"""Methods on streams of users: what each user spends, how exact releases are, and which method is better when."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.streams.dissimilarity import drawing_factor, mean_variance
from ldp.streams.ledger import WindowLedger
from ldp.streams.methods import METHODS, restored, stream_method
from ldp.streams.simulation import Run, simulate
from ldp.streams.synthetic import Step, binary, coming_and_going, drifting, linear, logistic, sine
from link.errors import ConfigurationError, InputDataError
from tests.errors import fails
from tests.examples import examples, in_turn
from tests.ldp.contract import ERROR

pytestmark = pytest.mark.turn(6)

ADAPTIVE = ("lbd", "lba", "lpd", "lpa")


@pytest.fixture(params=METHODS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# -- budgets ----------------------------------------------------------------------------------------------------------
@examples(3, 50)
@given(
    st.sampled_from(METHODS),
    st.integers(1, 6),
    st.floats(0.1, 8),
    st.integers(1, 60),
    st.integers(2, 5),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_no_user_spends_more_than_its_budget_in_any_window(
    name: str, w: int, epsilon: float, users: int, d: int, restless: float, seed: int
) -> None:
    """`simulate` keeps an exact ledger for each user, and a refusal would end it."""
    rng = Randomness.from_seed(seed)
    stream = drifting(d, users, 25, rng, change=restless, drift=1.0)
    if seed % 2:
        stream = coming_and_going(stream, users, rng, leave=restless / 2 + 0.01, arrive=0.3)
    steps = [step for step in stream if len(step.values)]
    if not steps:
        return
    run = simulate(stream_method(name, d, epsilon, w, "grr"), steps, users, rng)
    assert run.peak <= Fraction(epsilon)
    assert run.releases.shape == run.truths.shape == (len(steps), d)


def test_a_wrong_method_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The users' ledgers are the simulation's own, and not those that the method keeps."""
    method = stream_method("lbu", 3, 1.0, 4, "grr")
    monkeypatch.setattr(method, "phase_epsilon", lambda amount: 2 * amount)
    with fails("E300"):
        simulate(method, drifting(3, 10, 10, Randomness.from_seed(1)), 10, Randomness.from_seed(2))


def test_users_are_recycled_as_in_the_paper() -> None:
    users, w, rng = 1_000, 5, Randomness.from_seed(3)
    method = stream_method("lpu", 2, 1.0, w, "grr")
    run = simulate(method, binary(np.full(20, 0.3), users, rng), users, rng)
    assert np.all(run.reports == 1 / w)
    assert run.fresh.all()
    assert run.peak == 1  # who reported comes again after w steps, so that all users are used


def test_clients_can_choose_themselves() -> None:
    """Each client keeps a ledger of its own and reports by the phase's chance; about the asked share of all does."""
    users, w, rng, seen = 1_000, 4, Randomness.from_seed(4), []
    for name in ("lpu", "lpd", "lpa"):
        method, ledgers = stream_method(name, 2, 1.0, w, "grr"), [WindowLedger(w, 1.0) for _ in range(users)]
        for t in range(8):
            phase = method.plan(users)
            while phase is not None:
                chosen = []
                for user, ledger in enumerate(ledgers):
                    if ledger.left(t) >= phase.epsilon and rng.below(phase.chance.denominator) < phase.chance.numerator:
                        ledger.spend(t, phase.epsilon)
                        chosen.append(user)
                expected = float(phase.share) * users
                seen.append((len(chosen) - expected) / math.sqrt(expected))
                values = np.full(len(chosen), t % 2)
                mechanism = method.mechanism(phase.epsilon)
                reports = mechanism.privatise(values, rng)
                phase = method.observe(Aggregator(mechanism).add(reports).estimate())
                method = restored(method.to_bytes())
    # Later groups add up the draws of earlier ones in their window, up to w of them.
    assert np.all(np.abs(seen) < math.sqrt(2 * w) * stats.norm.isf(ERROR / len(seen) / 2))


def test_newcomers_do_not_outweigh_those_who_are_there() -> None:
    """All newcomers have value 1, the others 0: a release that asked newcomers at once would see ones only."""
    w, steps, first, arriving, rng = 10, 60, 4_000, 40, Randomness.from_seed(5)
    total = first + steps * arriving

    def stream() -> list[Step]:
        values = np.repeat([0, 1], [first, total - first])
        return [Step(values[: first + t * arriving]) for t in range(steps)]

    run = simulate(stream_method("lpu", 2, 4.0, w, "grr"), stream(), total, rng)
    errors = (run.releases - run.truths)[:, 1]
    z = errors.mean() / (math.sqrt(run.variances[:, 1].mean() / steps))
    assert abs(z) < stats.norm.isf(ERROR / 2)
    assert np.isclose(run.reports, 1 / w, atol=0.02).all()


# -- errors -----------------------------------------------------------------------------------------------------------
def squared_errors(run: Run) -> np.ndarray:
    """Of value 1; with two values the other's are the same."""
    return np.square((run.releases - run.truths)[:, 1])


@pytest.mark.parametrize("name", ["lbu", "lpu", "lsp"])
def test_errors_are_those_of_theory(name: str) -> None:
    """MSE: LBU Var(ε/w, N); LPU Var(ε, N/w) and the draw of users; LSP Var(ε, N). It errs with probability `ERROR`."""
    users, w, steps, rng = 4_000, 8, 400, Randomness.from_seed(6)
    share, epsilon = 0.25, 1.0
    values = np.arange(users) % 4 == 0  # nobody changes, so that LSP's repetitions are as exact as its releases
    stream = [Step(values.astype(np.int64))] * steps
    method = stream_method(name, 2, epsilon, w, "grr")
    run = simulate(method, stream, users, rng)
    theory = {
        "lbu": mean_variance(method.mechanism(Fraction(epsilon) / w), users),
        "lsp": mean_variance(method.mechanism(Fraction(epsilon)), users),
        "lpu": mean_variance(method.mechanism(Fraction(epsilon)), users // w)
        + share * (1 - share) * drawing_factor(users // w, users),
    }[name]
    seen = squared_errors(run)[run.fresh]
    if name == "lsp":
        assert len(seen) == steps // w
        assert np.repeat(seen, w) == pytest.approx(squared_errors(run))
    low, high = (stats.chi2.ppf(tail, len(seen)) for tail in (ERROR / 2, 1 - ERROR / 2))
    assert low < seen.sum() / theory < high
    assert run.variances[:, 1].mean() == pytest.approx(theory, rel=0.05)


@pytest.mark.turn(7)
def test_fresh_releases_are_unbiased_with_the_stated_variance(name: str) -> None:
    """Over repeated streams of three values; it errs with probability 2 · `ERROR`.

    Whether a step publishes depends on another estimate than its release, so that releases are not selected by it.
    """
    users, runs, rng = 1_500, 20, Randomness.from_seed(7)
    values = np.repeat([0, 1, 2], [750, 500, 250])
    # Two steps of w, in which users change, make adaptive methods publish.
    stream = [Step((values + (t // 6)) % 3) for t in range(18)]
    scaled = []
    for _ in range(runs):
        run = simulate(stream_method(name, 3, 4.0, 3, "oue"), stream, users, rng)
        z = (run.releases - run.truths) / np.sqrt(run.variances)
        scaled.append(z[run.fresh])
    all_z = np.concatenate(scaled)
    assert len(all_z) > 30
    bound = stats.norm.isf(ERROR / 3 / 2)
    assert np.all(np.abs(all_z.mean(axis=0)) * math.sqrt(len(all_z)) < bound)
    low, high = (stats.chi2.ppf(tail, len(all_z)) / len(all_z) for tail in (ERROR / 6, 1 - ERROR / 6))
    ratio = np.square(all_z).mean(axis=0)
    assert np.all((0.9 * low < ratio) & (ratio < 1.1 * high)), ratio


@pytest.mark.turn(9)
@pytest.mark.parametrize("epsilon", [4.0, 6.0, 8.0])
@pytest.mark.parametrize("method", ["lpu", "lpd", "lpa"])
def test_intervals_of_values_that_few_of_those_drawn_have_cover(method: str, epsilon: float) -> None:
    """Few of some 60 who are drawn have the rarest values, and reports are nearly exact: the draw is what errs.

    With variances of the draw at the estimated shares, some of them 0, .85 to .92 are covered. Intervals that cover
    .93 fail each with a probability of `ERROR`.
    """
    shares = 1 / np.arange(1, 13)
    values = np.repeat(np.arange(12), np.round(300 * shares / shares.sum()).astype(np.int64))
    covered = []
    for seed in range(20):
        run = simulate(
            stream_method(method, 12, epsilon, 5), [Step(values)] * 40, len(values), Randomness.from_seed(seed)
        )
        off = np.abs(run.releases - run.truths) <= stats.norm.isf(0.025) * np.sqrt(run.variances)
        covered += off[run.fresh].ravel().tolist()
    assert stats.binom.cdf(sum(covered), len(covered), 0.93) > ERROR, np.mean(covered)


def better(first: list[float], second: list[float]) -> bool:
    """Whether the first errors are smaller on average, at a level of `ERROR` by Welch's test."""
    return float(stats.ttest_ind(first, second, equal_var=False, alternative="less").pvalue) < ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    in_turn([("lpu", "lbu"), ("lba", "lbu"), ("lpd", "lbu"), ("lpa", "lba"), ("lpa", "lpu")], 5),
)
def test_dividing_users_beats_dividing_the_budget_and_adapting_pays_on_slow_streams(first: str, second: str) -> None:
    """On one slowly moving stream, over repeated runs; each comparison errs with probability `ERROR`."""
    users, steps, w = 4_000, 160, 20
    runs = 10 if first == "lpu" or "lpd" in (first, second) else 20  # where the gap is wide, few are enough
    stream = list(binary(sine(steps), users, Randomness.from_seed(8)))
    errors = {
        name: [
            simulate(stream_method(name, 2, 1.0, w, "grr"), stream, users, Randomness.from_seed(100 + run)).mse
            for run in range(runs)
        ]
        for name in (first, second)
    }
    assert better(errors[first], errors[second])


def test_sampling_misses_what_happens_within_a_window() -> None:
    users, w, rng = 20_000, 10, Randomness.from_seed(9)
    shares = np.where(np.arange(100) % 10 < 5, 0.1, 0.9)
    stream = list(binary(shares, users, rng))
    mse = {name: simulate(stream_method(name, 2, 2.0, w, "grr"), stream, users, rng).mse for name in ("lsp", "lpu")}
    assert mse["lsp"] > 0.2  # half of the steps are off by 0.8
    assert mse["lpu"] < 0.01


def test_at_large_budgets_dividing_the_budget_beats_dividing_users() -> None:
    """Each report is nearly exact, so that it counts how many there are."""
    users, rng = 2_000, Randomness.from_seed(15)
    stream = list(binary(sine(50, level=0.5), users, rng))
    mse = {name: simulate(stream_method(name, 2, 8.0, 2, "grr"), stream, users, rng).mse for name in ("lbu", "lpu")}
    assert mse["lbu"] < mse["lpu"] / 4


@pytest.mark.parametrize("found", ["oue", "olh", "hr", "ss", "auto", "sue"])
def test_any_oracle_serves(found: str) -> None:
    users, rng = 2_000, Randomness.from_seed(10)
    for name in ("lbd", "lpa"):
        run = simulate(stream_method(name, 12, 2.0, 3, found), drifting(12, users, 8, rng), users, rng)
        assert np.isfinite(run.releases[-1]).all()
        assert run.fresh.any()


def test_seeds_repeat() -> None:
    def once() -> Run:
        rng = Randomness.from_seed(11)
        stream = coming_and_going(drifting(4, 500, 12, rng), 500, rng)
        return simulate(stream_method("lpa", 4, 1.0, 3), stream, 500, rng)

    one, two = once(), once()
    assert np.array_equal(one.releases, two.releases)
    assert np.array_equal(one.reports, two.reports)


# -- streams ----------------------------------------------------------------------------------------------------------
def test_binary_streams_follow_their_shares() -> None:
    rng = Randomness.from_seed(12)
    assert sine(800)[[0, 156]] == pytest.approx([0.075 + 0.05 * math.sin(0.01), 0.125], abs=1e-6)
    assert logistic(800)[[0, 799]] == pytest.approx([0.25 / (1 + math.exp(-0.01)), 0.25 / (1 + math.exp(-8))])
    walk = linear(800, rng)
    moves = np.diff(np.concatenate([[0.05], walk]))
    assert ((walk >= 0) & (walk <= 1)).all()
    free = moves[walk > 0]
    assert np.std(free) == pytest.approx(0.0025, rel=0.2)
    users, shares = 20_000, np.array([0.0, 0.3, 1.0])
    seen = [int(step.values.sum()) for step in binary(shares, users, rng)]
    assert seen[0] == 0
    assert seen[2] == users
    assert stats.binomtest(seen[1], users, 0.3).pvalue > ERROR
    for wrong in (-0.1, 1.1, math.nan):
        with fails("E100"):
            binary(np.array([wrong]), 10, rng)


def test_drifting_streams_change_as_many_users_as_they_say() -> None:
    users, rng = 20_000, Randomness.from_seed(13)
    still = list(drifting(5, users, 3, rng, change=0.0))
    assert all(np.array_equal(step.values, still[0].values) for step in still)
    zipf = 1 / np.arange(1, 6)
    counts = np.bincount(still[0].values, minlength=5)
    assert stats.chisquare(counts, users * zipf / zipf.sum()).pvalue > ERROR
    one, two = drifting(100, users, 2, rng, change=0.1)
    changed = np.count_nonzero(one.values != two.values)
    assert 0.08 * users < changed < 0.1 * users + 6 * math.sqrt(0.1 * users)  # some draw their old value


def test_users_come_and_go_at_the_stated_rates() -> None:
    users, rng = 20_000, Randomness.from_seed(14)
    stream = list(coming_and_going(drifting(3, users, 30, rng), users, rng, leave=0.1, arrive=0.3))
    for step in stream:
        assert step.users is not None
        assert len(step.users) == len(step.values)
        assert stats.binomtest(len(step.users), users, 0.75).pvalue > ERROR / 30
    stayed = np.intersect1d(stream[0].users, stream[1].users).size
    assert stats.binomtest(stayed, len(stream[0].values), 0.9).pvalue > ERROR
    for leave, arrive in ((0, 0), (-0.1, 0.5), (0.5, 1.5), (math.nan, 0.1)):
        with pytest.raises(ConfigurationError):
            coming_and_going(stream, users, rng, leave=leave, arrive=arrive)


def test_wrong_streams_are_refused() -> None:
    method = stream_method("lpu", 3, 1.0, 2, "grr")
    good = np.array([0, 1])
    for wrong in (
        Step(np.array([], dtype=np.int64)),
        Step(good, np.array([0, 5])),
        Step(good, np.array([-1, 0])),
        Step(good, np.array([0])),
        Step(good, np.array([1, 1])),
        Step(np.array([0, 3])),
        Step(np.array([0, 1, 2, 0, 1, 2])),
    ):
        with pytest.raises(InputDataError):
            simulate(method, [wrong], 5)
    with fails("E101"):
        simulate(method, [], 5)
    run = simulate(method, [Step(good)], 5)
    for least in (0, -1, math.nan):
        with fails("E100"):
            run.mre(least)
    assert run.mre() > 0
