"""Methods of continual release: the papers' traces, budgets in every window, decisions, and states."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.domain import Domain
from ldp.estimate import Estimate
from ldp.registry import oracle
from ldp.streams.composition import GRID
from ldp.streams.dissimilarity import dissimilarity, drawing_factor, mean_variance
from ldp.streams.method import MAGIC, Phase, StreamMethod
from ldp.streams.methods import METHODS, restored, stream_method
from link.errors import InputDataError
from tests.errors import fails
from tests.ldp.contract import ERROR

pytestmark = pytest.mark.turn(5)

D = 5
BUDGET = ("lbu", "lsp", "lbd", "lba")
POPULATION = ("lpu", "lpd", "lpa")
MANY = 10**9  # users, whose estimates have next to no error: what is fed decides whether to publish


@pytest.fixture(params=METHODS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def estimate(frequencies: np.ndarray, n: int) -> Estimate:
    return Estimate(Domain(D), n, frequencies * n, np.ones(D))


def step(method: StreamMethod, moved: bool, users: int = MANY) -> list[Phase]:
    """One step in which the stream has moved far from the last release, or has not moved at all."""
    last = method.frequencies
    now = np.roll(np.eye(D)[0], int(last.argmax()) + 1) if moved else last
    phases, phase = [], method.plan(users)
    while phase is not None:
        phases.append(phase)
        phase = method.observe(estimate(now, max(1, int(phase.share * users))))
    return phases


def publications(method: StreamMethod, moves: list[bool], amount: Callable[[Phase], Fraction]) -> list[float]:
    return [
        float(sum(amount(phase) for phase in step(method, moved) if phase.kind == "publication")) for moved in moves
    ]


# -- traces -----------------------------------------------------------------------------------------------------------
def test_budget_distribution_has_the_trace_of_the_paper() -> None:
    found = publications(stream_method("lbd", D, 1.0, 4, "grr"), [True] * 8, lambda phase: phase.epsilon)
    assert found == [0.25, 0.125, 0.0625, 0.03125, 0.140625, 0.1328125, 0.09765625, 0.064453125]


def test_population_distribution_divides_users_alike() -> None:
    found = publications(stream_method("lpd", D, 1.0, 4, "grr"), [True] * 8, lambda phase: phase.share)
    assert found == [0.25, 0.125, 0.0625, 0.03125, 0.140625, 0.1328125, 0.09765625, 0.064453125]


@pytest.mark.parametrize(("name", "part"), [("lba", "epsilon"), ("lpa", "share")])
def test_absorption_has_the_trace_of_the_paper(name: str, part: str) -> None:
    moves = [bool(each) for each in (1, 0, 0, 1, 1, 1, 0, 1)]
    method = stream_method(name, D, 1.0, 4, "grr")
    assert publications(method, moves, lambda phase: getattr(phase, part)) == [0.125, 0, 0, 0.375, 0, 0, 0, 0.25]


def test_absorption_takes_a_window_at_most_and_asks_nobody_while_it_pays_back() -> None:
    method = stream_method("lba", D, 1.0, 4, "grr")
    phases = [step(method, moved) for moved in [False] * 9 + [True] * 5]
    assert [len(each) for each in phases] == [1] * 9 + [2, 0, 0, 0, 2]
    assert [float(phases[at][1].epsilon) for at in (9, 13)] == [0.5, 0.125]


def test_parts_have_the_check_values() -> None:
    """ε = 1, w = 20 and 100,000 users."""
    users = 100_000
    first = {name: step(stream_method(name, D, 1.0, 20, "grr"), True, users) for name in METHODS}
    epsilons = {name: [float(phase.epsilon) for phase in phases] for name, phases in first.items()}
    assert epsilons["lbu"] == pytest.approx([0.05], abs=1e-14)
    assert epsilons["lsp"] == [1]
    assert epsilons["lbd"] == pytest.approx([0.025, 0.25], abs=1e-14)
    assert epsilons["lba"] == pytest.approx([0.025, 0.025], abs=1e-14)
    for name in POPULATION:
        assert set(epsilons[name]) == {1}
    asked = {name: [int(phase.share * users) for phase in phases] for name, phases in first.items()}
    assert [asked[name] for name in POPULATION] == [[5_000], [2_500, 25_000], [2_500, 2_500]]
    assert {share for name in BUDGET for share in asked[name]} == {users}


def test_sampling_releases_once_in_a_window() -> None:
    method = stream_method("lsp", D, 1.0, 4, "grr")
    assert [len(step(method, True)) for _ in range(9)] == [1, 0, 0, 0, 1, 0, 0, 0, 1]
    late = stream_method("lsp", D, 1.0, 4, "grr")
    assert late.plan(0) is None
    assert [len(step(late, True)) for _ in range(5)] == [1, 0, 0, 0, 1]


# -- budgets ----------------------------------------------------------------------------------------------------------
@settings(max_examples=60)
@given(
    st.sampled_from(METHODS),
    st.integers(1, 7),
    st.floats(0.1, 8),
    st.lists(st.tuples(st.sampled_from(["still", "moved", "nobody", "silent", "few"])), min_size=1, max_size=40),
)
def test_every_window_stays_within_its_budget(name: str, w: int, epsilon: float, moves: list[tuple[str]]) -> None:
    """Also when states are written and read in the middle of steps, nobody is there, or nobody answers."""
    method = stream_method(name, D, epsilon, w, "grr")
    amounts: list[Fraction] = []
    for (move,) in moves:
        users = {"nobody": 0, "few": 3}.get(move, MANY)
        phase, amount = method.plan(users), Fraction(0)
        while phase is not None:
            amount += phase.epsilon if name in BUDGET else phase.share
            assert Fraction(float(phase.epsilon)) == phase.epsilon <= Fraction(epsilon)
            assert phase.share <= phase.chance <= 1
            method = restored(method.to_bytes())
            now = np.eye(D)[len(amounts) % D] if move == "moved" else method.frequencies
            told = None if move == "silent" else estimate(now, max(1, int(phase.share * users)))
            phase = method.observe(told)
        amounts.append(amount)
        assert method.release.step == len(amounts) - 1
    total = Fraction(epsilon) if name in BUDGET else Fraction(1)
    for end in range(len(amounts)):
        assert sum(amounts[max(0, end - w + 1) : end + 1]) <= total


def test_chances_reach_everybody_once_in_a_window() -> None:
    """Of users who have not reported yet, each does with the chance: about the stated share of all does."""
    method = stream_method("lpu", D, 1.0, 4, "grr")
    phases = [step(method, True)[0] for _ in range(6)]
    assert [phase.chance for phase in phases] == [Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), 1, 1, 1]
    assert {phase.share for phase in phases} == {Fraction(1, 4)}


def test_states_stay_small(name: str) -> None:
    """Budgets that are halved again and again are rounded down, and do not become ever longer fractions."""
    method = stream_method(name, D, 1.0, 10, "grr")
    sizes = [len(method.to_bytes()) for _ in range(600) if step(method, True) is not None]
    assert max(sizes) < 3_000
    for ledger in (each for each in vars(method).values() if hasattr(each, "spent")):
        assert all(amount.denominator <= 40 * GRID for _, amount in ledger.entries)


# -- decisions --------------------------------------------------------------------------------------------------------
def test_the_mean_variance_has_the_check_values() -> None:
    """Over the domain, direct encoding's second term has the factor 1/d, which the paper leaves out."""
    assert mean_variance(oracle("grr", D, 0.05), 100_000) == pytest.approx(0.0155286, abs=1e-7)
    assert mean_variance(oracle("grr", D, 1.0), 5_000) == pytest.approx(0.000457190, abs=1e-9)
    grown, n = math.exp(1.0), 5_000
    published = (D - 2 + grown) / (n * (grown - 1) ** 2) + (D - 2) / (n * (grown - 1))
    assert published > 1.5 * mean_variance(oracle("grr", D, 1.0), n)
    # It depends on the users' values in no pure protocol.
    rng = np.random.default_rng(1)
    for found in ("grr", "oue", "olh", "ss"):
        mechanism, counts = oracle(found, D, 1.0), rng.multinomial(n, rng.dirichlet(np.ones(D)))
        assert mechanism.variance(counts, n).mean() / n**2 == pytest.approx(mean_variance(mechanism, n), rel=1e-9)


@pytest.mark.parametrize("found", ["grr", "oue"])
@pytest.mark.parametrize("n", [4_000, 500, 20])
def test_the_dissimilarity_is_unbiased(found: str, n: int) -> None:
    """Over reports and the draw of n users out of 4,000; the test errs with probability `ERROR`."""
    users, runs, rng = 4_000, 600, Randomness.from_seed(n)
    values = np.repeat(np.arange(D), [2500, 900, 400, 150, 50])
    truth, released = np.bincount(values) / users, np.array([0.55, 0.25, 0.1, 0.1, 0.0])
    mechanism, seen = oracle(found, D, 2.0), []
    for _ in range(runs):
        drawn = values[rng.permutation(users)[:n]]
        told = Aggregator(mechanism).add(mechanism.privatise(drawn, rng)).estimate()
        seen.append(dissimilarity(told, released, mechanism, users))
    z = (np.mean(seen) - np.square(truth - released).mean()) / (np.std(seen, ddof=1) / math.sqrt(runs))
    assert abs(z) < stats.norm.isf(ERROR / 2)


def test_drawing_everybody_or_one() -> None:
    assert drawing_factor(10, 10) == drawing_factor(12, 10) == drawing_factor(1, 1) == 0
    assert drawing_factor(1, 10) == 1


def test_it_publishes_where_the_stream_has_moved_by_more_than_a_release_errs() -> None:
    for name in ("lbd", "lba", "lpd", "lpa"):
        method, users = stream_method(name, D, 1.0, 4, "grr"), 100_000
        step(method, True, users)
        base, decided = method.frequencies, []
        for shift in (0.0, 0.9, 1.1):
            again = restored(method.to_bytes())
            while (phase := again.plan(users)) is None:  # while absorption pays back
                pass
            n = int(phase.share * users)
            amount = again.candidate()  # type: ignore[attr-defined]
            size = int(again.phase_share(amount) * users)
            spent = mean_variance(again.mechanism(again.phase_epsilon(amount)), size)
            noise = mean_variance(again.mechanism(phase.epsilon), n)
            # Of a point mass, a draw of users has no error, so that these are all terms.
            moved = base + math.sqrt(shift * spent * D + noise * D) * np.array([0, 1, -1, 0, 0]) / math.sqrt(2)
            decided.append(again.observe(estimate(moved, n)) is not None)
        assert decided[0] is False
        assert decided[2] is True


def test_a_release_tells_how_old_and_how_exact_it_is(name: str) -> None:
    method = stream_method(name, D, 1.0, 4, "grr")
    with fails("E101"):
        _ = method.release
    assert method.plan(0) is None
    assert method.release.published is None
    assert not method.release.fresh
    assert np.isinf(method.release.variances).all()
    assert len(step(method, True)) >= 1
    assert method.release.fresh
    assert method.release.published == method.release.step == 1
    assert np.isfinite(method.release.variances).all()
    assert method.plan(0) is None
    assert (method.release.step, method.release.published, method.release.fresh) == (2, 1, False)


def test_variances_of_releases_count_the_draw_of_users() -> None:
    method, users = stream_method("lpu", D, 1.0, 4, "grr"), 1_000
    method.plan(users)
    method.observe(estimate(np.array([0.5, 0.5, 0, 0, -0.1]), 250))
    rare = 2 / 254 * 252 / 254  # of four more users, two have each value
    expected = 1 / 250**2 + np.array([0.25, 0.25, rare, rare, rare]) * 750 / (250 * 999)
    assert method.release.variances == pytest.approx(expected)


# -- misuse -----------------------------------------------------------------------------------------------------------
def test_steps_out_of_order_are_refused(name: str) -> None:
    method = stream_method(name, D, 1.0, 2, "grr")
    with fails("E101"):
        method.observe(None)
    assert method.plan(10) is not None
    with fails("E101"):
        method.plan(10)
    with fails("E101"):
        _ = method.release
    with fails("E101"):
        method.observe(Estimate(Domain(D + 1), 10, np.ones(D + 1), np.ones(D + 1)))
    assert method.observe(None) is None
    for users in (-1, 1.5, math.nan, None, True):
        with fails("E101"):
            method.plan(users)  # type: ignore[arg-type]


def test_wrong_parameters_are_refused(name: str) -> None:
    for w in (0, -1, 1.5, math.nan, "3", None, True):
        with fails("E100"):
            stream_method(name, D, 1.0, w)  # type: ignore[arg-type]
    for epsilon in (0, -1, math.nan, math.inf, 17, "1", None, True):
        with fails("E100"):
            stream_method(name, D, epsilon, 3)  # type: ignore[arg-type]
    for domain in (0, 1, []):
        with fails("E100"):
            stream_method(name, domain, 1.0, 3)
    with fails("E100"):
        stream_method(name, D, 1.0, 3, "magic")


def test_windows_too_long_for_a_budget_are_refused() -> None:
    for name in ("lbu", "lbd", "lba"):
        with fails("E100"):
            stream_method(name, D, 0.1, 200)
    for name in ("lsp", *POPULATION):
        stream_method(name, D, 0.1, 200)
    with fails("E100"):
        stream_method("magic", D, 1.0, 3)


def test_publications_below_the_least_budget_are_left_out() -> None:
    """LBD halves what is left; at some time no mechanism works with it."""
    method = stream_method("lbd", D, 1.0, 20, "grr")
    phases = [step(method, True) for _ in range(20)]
    assert [len(each) for each in phases] == [2] * 8 + [1] * 12
    tiny = stream_method("lpd", D, 1.0, 20, "grr")
    assert tiny.plan(6) is not None
    phase = tiny.observe(estimate(np.full(D, 100.0), 1))
    assert phase is not None
    assert phase.share * 6 == Fraction(3, 2)
    tiny.observe(estimate(np.full(D, 100.0), 1))
    assert tiny.plan(6) is not None
    assert tiny.observe(estimate(np.full(D, -100.0), 1)) is None  # an eighth of six users is nobody


def test_states_survive_their_bytes(name: str) -> None:
    for domain in (D, list("abcde")):
        method = stream_method(name, domain, 1.0, 3, "oue")
        moves = [True, False, True, True, False, False, True] * 2
        for moved in moves:
            again = restored(method.to_bytes())
            assert repr(again) == repr(method)
            assert again.to_bytes() == method.to_bytes()
            if domain is not D:
                assert again.domain.labels == tuple("abcde")
                break
            assert step(again, moved) == step(method, moved)
            assert again.to_bytes() == method.to_bytes()


def test_wrong_bytes_are_no_state(name: str) -> None:
    method = stream_method(name, D, 1.0, 3, "grr")
    step(method, True)
    while method.plan(MANY) is None:
        pass
    data = method.to_bytes()
    wrong = [data[:-1], data + b"x", b"", b"X" + data[1:], data[:5], data[:5] + b"[]", data[:5] + b"\xff"]
    for part, value in (
        ("step", "x"),
        ("users", None),
        ("spent", "nothing"),
        ("spent", stream_method(name, D, 1.0, 4).spent.to_bytes().decode()),
        ("frequencies", [0.5]),
        ("variances", "x"),
        ("pending", ["magic", "1", "1", "1"]),
        ("pending", ["publication", "1"]),
    ):
        found = json.loads(data[len(MAGIC) :])
        found["state"][part] = value
        wrong.append(MAGIC + json.dumps(found).encode())
    found = json.loads(data[len(MAGIC) :])
    for extra in set(found["state"]) & {"releases", "next"}:
        for value in (None, found["state"]["spent"]):
            wrong.append(MAGIC + json.dumps({**found, "state": {**found["state"], extra: value}}).encode())
    for parameters in ([D, 1.0], [D, 1.0, 0, "grr"], [D, "1", 3, "grr"]):
        wrong.append(MAGIC + json.dumps({**found, "parameters": parameters}).encode())
    for each in wrong:
        with pytest.raises(InputDataError):
            restored(each)
