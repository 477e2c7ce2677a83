"""Blended mining: what it finds, what it spends, who learns what, and what ends it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from jobs.kinds.charge import charge
from jobs.plan.estimate import estimate
from jobs.run import PartyRun
from jobs.statement import statement
from ldp.accounting.concentrated import gaussian_delta, zcdp_epsilon
from ldp.accounting.discrete_gaussian import DiscreteGaussian
from ldp.bias_aware import NORMAL
from ldp.blending.blender import best_blend
from ldp.blending.curator import Frequencies
from link.errors import InputDataError
from link.session import Session
from link.traffic import TOLERANCE
from mining.data.transactions import Transactions
from mining.joint.blended.budget import MOST, counting, naming, spent
from mining.joint.blended.disclosure import openings
from mining.joint.blended.estimate import blended, from_answers, most_between
from mining.joint.blended.mine import mine, named_items, noisy_counts
from mining.joint.blended.own_records import answers, asked, response, second_half
from mining.joint.blended.parameters import Blending
from mining.joint.distributed.truncation import truncated_item_counts
from mining.joint.estimated import EstimatedOutcome, pack_estimates
from mining.limits import MAX_ITEM_BYTES
from protos.v1.link_pb2 import Frame, Opening
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import run_job
from tests.errors import fails
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, SEEN, baskets, job, outcomes
from tests.mining.joint.hybrid.test_hybrid import altered
from tests.mining.joint.hybrid.test_hybrid_sizes import answers as told_answers
from tests.mining.joint.oracle import Rows
from tests.world import run_parties

pytestmark = pytest.mark.turn(5)

TASK = Blending(epsilon=Decimal(2), delta=Decimal("1e-6"), k=3, opted_in=("south",), analyst="north", learners=PARTIES)
DATA = {"north": baskets(900, 1), "south": baskets(1000, 2), "east": baskets(700, 3)}
PRIVACY = {"model": "blended", "epsilon": "2", "delta": "1e-6", "opted_in": ["south"]}


def run(data: Mapping[str, Rows], task: Blending = TASK, **how: Any) -> dict[str, EstimatedOutcome]:
    return outcomes(mine, openings, data, task, **how)


def names(outcome: EstimatedOutcome) -> list[str]:
    assert outcome.estimated is not None
    return [item for (item,), _ in outcome.estimated.itemsets.rounded().rows()]


# -- what it finds ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("transport", ["memory", "grpc"])
@pytest.mark.parametrize(("opted_in", "analyst"), [(("south",), "north"), (("north", "east"), "east")])
def test_all_learners_get_the_same(transport: str, opted_in: tuple[str, ...], analyst: str) -> None:
    task = replace(TASK, opted_in=opted_in, analyst=analyst, learners=("south", "east"))
    outcomes = run(DATA, task, transport=transport)  # type: ignore[arg-type]
    assert {each.n_rows for each in outcomes.values()} == {2600}
    assert {each.spent for each in outcomes.values()} == {spent(task)}
    learnt = {pack_estimates(outcomes[party].estimated) for party in ("south", "east")}  # type: ignore[arg-type]
    assert len(learnt) == 1
    assert (outcomes["north"].estimated is None) == (analyst != "north")


def test_frequent_items_are_found_and_their_intervals_hold() -> None:
    """Items of 80, 65 and 50 % among 6,000 rows of one population: each estimate is off by 5 deviations or more with a
    probability below 10⁻⁵."""
    data = {party: baskets(2000, 10 + place) for place, party in enumerate(PARTIES)}
    outcome = run(data)["east"]
    assert names(outcome) == ["a", "b", "c"]
    assert outcome.estimated is not None
    ((_, counts, deviations),) = outcome.estimated.itemsets.levels
    true = np.array([sum(item in row for rows in data.values() for row in rows) for item in "abc"])
    assert (np.abs(counts - true) < 5 * deviations).all()
    assert (deviations < 0.05 * 6000).all()


def test_a_catalogue_and_a_least_support() -> None:
    assert names(run(DATA, replace(TASK, catalogue=("a", "c", "x")))["north"]) == ["a", "c"]
    assert names(run(DATA, replace(TASK, min_support=Decimal("0.6")))["north"]) == ["a", "b"]
    assert names(run(DATA, replace(TASK, epsilon=Decimal("0.1")))["north"]) == []  # nothing is named


ragged = st.tuples(*(st.integers(0, 400) for _ in range(4)))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ragged, st.sets(st.sampled_from(["n", "s", "e", "w"]), min_size=1, max_size=3), st.integers(1, 5))
def test_any_sizes_end_in_estimates_or_a_sentence(sizes: tuple[int, ...], opted_in: set[str], k: int) -> None:
    parties = ("n", "s", "e", "w")
    data = {party: baskets(size, place) for place, (party, size) in enumerate(zip(parties, sizes, strict=True))}
    task = replace(TASK, k=k, opted_in=tuple(p for p in parties if p in opted_in), analyst="n", learners=parties)
    few = sum(len(data[p]) for p in opted_in) < 4 or sum(len(data[p]) for p in parties if p not in opted_in) < 4 * k
    with suppress(InputDataError) if few else nullcontext():
        outcomes = run(data, task)
        assert len({pack_estimates(each.estimated) for each in outcomes.values()}) == 1  # type: ignore[arg-type]
        assert len(names(outcomes["w"])) <= k


def test_estimates_are_without_bias_and_vary_as_they_say() -> None:
    """Means of 400 runs, within 5 standard errors, for 4 items by answers and by counts: a false alarm has a
    probability below 10⁻⁵. Variances of 400 runs have a relative deviation of 7 %, and are asked to be within 35 %."""
    head, runs = ("a", "b", "d", "h"), 400
    rows = Transactions.from_rows(baskets(400, 5))
    true = rows.onto(head).item_counts() / rows.n_rows
    oracle, of = response(TASK), asked(rows.n_rows, len(head))
    by_answers, by_counts, told = [], [], []
    for seed in range(runs):
        random = Randomness.from_seed(seed)
        found = from_answers(answers(rows, head, TASK, random.derive("answers")), of, oracle)
        by_answers.append(found.frequencies)
        told.append(found.variances)
        by_counts.append(noisy_counts(rows, head, TASK, random.derive("counts")) / rows.n_rows)
    for estimates in (np.array(by_answers), np.array(by_counts)):
        error = np.sqrt(estimates.var(axis=0, ddof=1) / runs)
        assert (np.abs(estimates.mean(axis=0) - true) < 5 * error).all()
    # Which records are asked is drawn without replacement, so a little below what is told, which is of the population.
    assert np.abs(np.array(by_answers).var(axis=0) / np.mean(told, axis=0) - 1).max() < 0.35
    noise = DiscreteGaussian(counting(TASK, len(head))).variance
    assert np.abs(np.array(by_counts).var(axis=0) * rows.n_rows**2 / noise - 1).max() < 0.35


vectors = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 0.1), st.floats(1e-6, 0.1)), min_size=1, max_size=8
)


@given(vectors, st.floats(0.01, 0.99))
def test_the_blend_is_the_best_of_one_population_and_between_both_of_two(
    drawn: list[tuple[float, float, float, float]], share: float
) -> None:
    one, other, v_one, v_other = (np.array(column) for column in zip(*drawn, strict=True))
    trusted, others = Frequencies(one, v_one), Frequencies(other, v_other)
    both = blended(trusted, others, share)
    weights = best_blend(tuple(map(str, range(len(one)))), trusted, others)
    if np.sum((one - other) ** 2 - v_one - v_other) <= 0:
        assert both.frequencies == pytest.approx(weights.blended.frequencies)
    assert (both.variances >= weights.blended.variances * (1 - 1e-9)).all()
    low, high = np.minimum(one, other) - 1e-12, np.maximum(one, other) + 1e-12
    assert ((low <= both.frequencies) & (both.frequencies <= high)).all()


def test_parties_that_differ_are_not_taken_for_one_population() -> None:
    """Trusted parties with 5 % of the records and other habits: the estimate follows all records, not the few."""
    one = Frequencies(np.array([0.9, 0.1, 0.5, 0.7]), np.full(4, 1e-5))
    other = Frequencies(np.array([0.2, 0.6, 0.1, 0.3]), np.full(4, 1e-3))
    both = blended(one, other, 0.05)
    true = 0.05 * one.frequencies + 0.95 * other.frequencies
    assert np.abs(both.frequencies - true).max() < 0.02


@pytest.mark.parametrize("differ", [0.0, 0.3, 0.9, 2.0])
@pytest.mark.parametrize("share", [0.05, 0.3])
@pytest.mark.parametrize("d", [24, 128])
def test_intervals_cover_whether_or_not_parties_differ(differ: float, share: float, d: int) -> None:
    """Also where noise hides that they do, and where they differ strongly in a few items.

    Intervals that cover .93 fail each case with a probability of 10^-6.
    """
    covered = list[bool]()
    for seed in range(150):
        random = np.random.default_rng(seed)
        common = 1 / np.arange(2, d + 2) ** 0.8
        shares = [np.clip(common * np.exp(differ * random.normal(size=d)), 0, 0.95), common]
        variances = [np.full(d, each) for each in (2e-5 / share, 5e-3)]
        one, other = (Frequencies(random.normal(f, np.sqrt(v)), v) for f, v in zip(shares, variances, strict=True))
        both, true = blended(one, other, share), share * shares[0] + (1 - share) * shares[1]
        largest = np.argsort(-both.frequencies)[: d // 2]
        covered += (np.abs(both.frequencies - true) <= NORMAL * np.sqrt(both.variances))[largest].tolist()
    assert stats.binom.cdf(sum(covered), len(covered), 0.93) > 1e-6, np.mean(covered)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_the_limit_of_how_much_parties_differ_holds_in_19_of_20_cases(ratio: float) -> None:
    random, d, runs = np.random.default_rng(8), 24, 2_000
    variances = random.uniform(1e-5, 3e-5, d)
    weights = random.dirichlet(np.full(d, 3.0))
    true = ratio * float(variances.sum())
    differences = random.normal(np.sqrt(weights * true), np.sqrt(variances), (runs, d))
    excess = (differences**2 - variances).sum(axis=1)
    limits = [most_between(float(each), float(variances @ variances), float(weights @ variances)) for each in excess]
    assert stats.binom.cdf(np.count_nonzero(np.array(limits) >= true), runs, 0.945) > 1e-6


# -- what it spends ---------------------------------------------------------------------------------------------------
items_of = st.lists(st.sets(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=20), min_size=1, max_size=12)


@given(items_of, st.sets(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=20), st.data())
def test_a_record_moves_counts_by_no_more_than_the_noise_is_made_for(
    rows: list[set[str]], other: set[str], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows[:at], other, *rows[at + 1 :]]
    dictionary = tuple("abcdefghijklmnopqrstuvwxyz")
    moved = [truncated_item_counts(Transactions.from_rows(each).onto(dictionary), MOST) for each in (rows, changed)]
    assert np.sum(np.abs(moved[0] - moved[1])) <= 2 * MOST
    assert np.abs(moved[0] - moved[1]).max() <= 1
    plain = [Transactions.from_rows(each).onto(dictionary).item_counts() for each in (rows, changed)]
    assert np.abs(plain[0] - plain[1]).max() <= 1


@pytest.mark.parametrize("epsilon", ["0.5", "2", "6"])
@pytest.mark.parametrize("delta", ["1e-5", "1e-9"])
def test_the_noise_keeps_to_the_budget(epsilon: str, delta: str) -> None:
    task = replace(TASK, epsilon=Decimal(epsilon), delta=Decimal(delta))
    e, d = float(epsilon), float(delta)
    for items in (1, 6, 128):
        variance = float(counting(task, items))
        assert zcdp_epsilon(items / (2 * variance), d) <= e * (1 + 1e-9)
        assert gaussian_delta(e, math.sqrt(variance), math.sqrt(items)) <= d  # by another way, of the continuous one
    chosen = naming(task)
    assert zcdp_epsilon(2 * MOST / (2 * float(chosen.variance)), d / 2) <= e * (1 + 1e-9)
    alone = _tail(float(chosen.variance), chosen.threshold - 1)  # of one item that a single record has
    assert (1 + math.exp(e)) * MOST * alone <= d / 2 * (1 + 1e-6)


def _tail(parameter: float, least: int) -> float:
    """Pr[noise ≥ least] of the discrete Gaussian."""
    reach = int(60 * math.sqrt(parameter)) + 10
    places = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(places**2) / (2 * parameter))
    return float(weights[places >= least].sum() / weights.sum())


@pytest.mark.parametrize("epsilon", ["0.3", "1", "4.7"])
def test_an_answer_has_the_local_epsilon(epsilon: str) -> None:
    oracle = response(replace(TASK, epsilon=Decimal(epsilon)))
    assert oracle.exact_epsilon <= float(epsilon)
    assert oracle.exact_epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert oracle.p + oracle.q == Fraction(1)


def test_a_question_does_not_hang_on_what_a_record_holds() -> None:
    """With the same randomness, to change one record changes at most its own answer."""
    head = ("a", "b", "c")
    rows = baskets(60, 4)
    first = answers(Transactions.from_rows(rows), head, TASK, Randomness.from_seed(3))
    for at in range(0, 60, 7):
        changed = [*rows[:at], ["c"], *rows[at + 1 :]]
        other = answers(Transactions.from_rows(changed), head, TASK, Randomness.from_seed(3))
        assert np.abs(first - other).sum() <= 1


def test_every_record_is_asked_once() -> None:
    for records in range(12):
        for questions in range(1, 6):
            assert asked(records, questions).sum() == records
            assert np.ptp(asked(records, questions)) <= 1
        assert records - second_half(records) == records // 2


def test_items_of_few_records_are_not_named() -> None:
    """Of 200 draws none names an item of one record: one does with a probability below 200 · 10⁻⁷."""
    rows = Transactions.from_rows([["often"]] * 300 + [["once"]])
    chosen = naming(TASK)
    for seed in range(200):
        named = named_items(rows, chosen, None, Randomness.from_seed(seed))
        assert set(named) <= {"often"}
        assert all(count >= chosen.threshold for count in named.values())


def test_items_that_cannot_be_named_are_left_out_without_a_word() -> None:
    """An error would tell of a record, behind no noise at all."""
    longest = "y" * MAX_ITEM_BYTES
    rows = Transactions.from_rows([["a", longest, longest + "z"]] * 300)
    assert set(named_items(rows, naming(TASK), None, Randomness.from_seed(1))) == {"a", longest}


# -- jobs -------------------------------------------------------------------------------------------------------------
def test_a_job_spends_what_ledgers_charge_and_a_plan_tells_it() -> None:
    opened: dict[str, int] = {}

    def observe(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name:
            opening = Opening.FromString(frame.body)
            opened[opening.label] = opening.number

    spec = job(privacy=PRIVACY, itemsets={"top_k": 3, "max_length": 1})
    ends = run_still(run_job(spec, DATA, InlineExecutor(), observe=observe))
    charged = charge(spec)
    for end in ends.values():
        assert isinstance(end, PartyRun), end
        assert end.outcome.spent is not None
        assert end.outcome.finding is not None
        assert (end.outcome.strategy, end.outcome.n_rows) == ("blended", 2600)
        assert charged.epsilon is not None
        assert charged.delta is not None
        assert end.outcome.spent.epsilon <= float(charged.epsilon)
        assert end.outcome.spent.delta <= float(charged.delta)
    assert (opened["records"], opened["estimates"]) == (1, 3)
    assert opened["counts"] == opened["answers"] == min(opened["head"], 6)
    plan = estimate(spec, {name: answer for name, answer in told_answers().items() if name in PARTIES}, 0.001)
    assert plan.privacy is not None
    assert (plan.privacy.model, plan.privacy.epsilon, plan.privacy.local_epsilon) == ("blended", 2.0, 2.0)
    for party, end in ends.items():
        assert isinstance(end, PartyRun)
        assert plan.parties[party].bytes_sent == pytest.approx(end.costs.bytes_sent, rel=TOLERANCE)
        assert plan.rounds == end.costs.rounds


def test_a_statement_says_who_trusts_whom() -> None:
    said = " ".join(statement(job(privacy=PRIVACY, itemsets={"max_length": 1})).exact_prose())
    for words in (
        "the people of south trust their own party",
        "ε = 2 and δ = 1e-06 of a record of theirs",
        "of north and east sums of perturbed answers",
        "the items that seem most frequent with estimated supports",
    ):
        assert words in said, words


@pytest.mark.parametrize(
    "tables",
    [
        {"privacy": {**PRIVACY, "opted_in": list(PARTIES)}},
        {"privacy": {k: v for k, v in PRIVACY.items() if k != "opted_in"}},
        {"itemsets": {"max_length": 2}},
        {"job": {"task": "rules"}, "rules": {"min_confidence": "0.5"}},
        {"itemsets": {"universe": "hidden", "catalogue": None, "max_length": 1}},
        {"privacy": {**PRIVACY, "noise": "skellam"}},
        {"privacy": {**PRIVACY, "epsilon": "40"}},
    ],
)
def test_jobs_that_cannot_be_blended(tables: dict[str, Any]) -> None:
    with fails("E100"):
        job(**{"privacy": PRIVACY, "itemsets": {"max_length": 1}, **tables})


# -- what leaves, and what ends it ------------------------------------------------------------------------------------
def test_the_analyst_alone_gets_counts_and_answers() -> None:
    opened: Counter[tuple[str, str, str]] = Counter()

    def observe(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name:
            opened[Opening.FromString(frame.body).label, frame.sender, frame.receiver] += 1

    run(DATA, observe=observe)
    by_label = {label: {(frm, to) for what, frm, to in opened if what == label} for label, _, _ in opened}
    assert set(by_label) == {line.label for line in openings(TASK, PARTIES)}
    assert by_label["counts"] == {("south", "north")}
    assert by_label["answers"] == {("east", "north")}
    assert by_label["head"] == {("south", "north"), ("south", "east")}
    assert by_label["estimates"] == {("north", "south"), ("north", "east")}


def test_too_few_records_end_it() -> None:
    with fails("E101"):
        run({**DATA, "south": [["a"]] * 2})
    with fails("E101"):
        run({**DATA, "north": [["a"]], "east": [["b"]]})


def test_a_floor_of_a_party_ends_the_job() -> None:
    task = replace(TASK, min_support=Decimal("0.2"))

    async def role(session: Session) -> object:
        least = 900 if session.me == "east" else 1
        return await mine(session.lane("task"), Transactions.from_rows(DATA[session.me]), task, least)

    with fails("E300"):
        run_parties(PARTIES, role, declared=openings(task, PARTIES))


def _words(number: int) -> Callable[[Opening], bytes]:
    return lambda opening: np.full(opening.number, number, np.uint64).tobytes()


@pytest.mark.parametrize(
    ("who", "label", "change", "code"),
    [
        ("south", "records", _words(1 << 50), "E402"),
        ("south", "counts", _words(1 << 50), "E402"),
        ("east", "answers", _words(5000), "E402"),
        ("south", "head", lambda o: b"x" * len(o.values), "E402"),
        ("south", "head", lambda o: o.values.replace(b"a", b"c"), "E402"),
        ("south", "head", lambda o: json.dumps([["a", 1]]).ljust(len(o.values)).encode(), "E402"),
        ("south", "counts", lambda o: o.values[:-1], "E402"),
        ("north", "estimates", lambda o: o.values[:-1] + b"0", "E402"),
        ("north", "estimates", lambda o: o.values.replace(b'"a"', b'"A"'), "E400"),
        ("north", "estimates", lambda o: o.values.replace(b'"n_rows":2600', b'"n_rows":2601'), "E400"),
    ],
)
def test_a_peer_that_sends_nonsense_is_named(who: str, label: str, change: Any, code: str) -> None:
    async def role(session: Session) -> object:
        if session.me == who:
            altered(session, label, change, "")
        return await mine(session.lane("task"), Transactions.from_rows(DATA[session.me]), TASK)

    with fails(code, party=who):
        run_parties(PARTIES, role, declared=openings(TASK, PARTIES))


def test_items_beyond_the_catalogue_are_not_believed() -> None:
    task = replace(TASK, catalogue=ITEMS)
    assert set(names(run(DATA, task)["north"])) <= set(SEEN)

    async def role(session: Session) -> object:
        own = TASK if session.me == "south" else task
        data = DATA[session.me] if session.me != "south" else [["zz", *row] for row in DATA["south"]]
        return await mine(session.lane("task"), Transactions.from_rows(data), own)

    with fails("E402") as error:
        run_parties(PARTIES, role, declared=openings(task, PARTIES))
    assert error.value.party == "south"
