"""Joint mining of perturbed records: what it finds, who learns it, and what ends it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from jobs.kinds.charge import charge
from jobs.run import PartyRun
from ldp.sets.svim import ItemMining
from link.core import Transport
from link.disclosure import kinds
from link.errors import ComineError, InputDataError
from link.executor import ThreadExecutor
from link.session import Session
from link.transports.faulty import Crashed, FaultyTransport, Schedule
from mining.data.transactions import Transactions
from mining.joint.estimated import pack_estimates
from mining.joint.hybrid import mine as module
from mining.joint.hybrid.disclosure import openings
from mining.joint.hybrid.mine import mine
from mining.joint.hybrid.parameters import HybridMining
from mining.joint.parameters import RuleParameters
from protos.v1 import common_pb2, hybrid_pb2
from protos.v1.link_pb2 import Frame, Opening
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import run_job
from tests.errors import fails
from tests.examples import examples, in_turn, spread
from tests.mining.joint.hybrid.hybrid_world import PARTIES, TASK, baskets, job, run, shuffled
from tests.mining.joint.oracle import Rows
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

MODELS = {"local": TASK, "shuffle": shuffled(), "two shufflers": shuffled(("south", "east"))}
DATA = {"north": baskets(400, 1), "south": baskets(300, 2), "east": baskets(500, 3)}


def names(outcome: module.EstimatedOutcome) -> list[tuple[str, ...]]:
    assert outcome.estimated is not None
    return [itemset for itemset, _ in outcome.estimated.itemsets.rounded().rows()]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("transport", ["memory", "grpc"])
def test_all_learners_get_the_same_estimates(model: str, transport: str) -> None:
    outcomes = run(DATA, replace(MODELS[model], learners=("south", "east")), transport=transport)  # type: ignore[arg-type]
    assert {each.n_rows for each in outcomes.values()} == {1200}
    assert len({each.spent for each in outcomes.values()}) == 1
    learnt = {party: each.estimated for party, each in outcomes.items() if party != "north"}
    assert len({pack_estimates(each) for each in learnt.values() if each is not None}) == 1
    assert None not in learnt.values()


@pytest.mark.costly
def test_frequent_items_are_found_and_their_intervals_hold() -> None:
    """Items of 80, 65 and 50 % are told from one of 10 % with a few hundred reports of ε = 6 nearly always: the third's
    estimate misses by 4 deviations or more with a probability below 10⁻³; intervals are asked to hold within 5."""
    data = {party: baskets(3000, 10 + place) for place, party in enumerate(PARTIES)}
    for task in in_turn((TASK, shuffled(epsilon=2.0)), 2):
        outcome = run(data, task)["north"]
        assert names(outcome) == [("a",), ("b",), ("c",)]
        assert outcome.estimated is not None
        ((_, counts, deviations),) = outcome.estimated.itemsets.levels
        true = np.array([sum(item in row for rows in data.values() for row in rows) for item in "abc"])
        assert (np.abs(counts - true) < 5 * deviations).all()


def test_pairs_and_rules_with_intervals() -> None:
    data = {party: [["a", "b"], ["a", "b"], ["a", "b"], ["c"]] * 2000 for party in PARTIES}
    task = replace(TASK, k=4, search="svsm", epsilon=8.0, rules=RuleParameters(Decimal("0.5")))
    outcome = run(data, task)["east"]
    assert {("a",), ("b",), ("a", "b")} <= set(names(outcome))
    assert outcome.estimated is not None
    assert outcome.estimated.rules is not None
    rules = {(rule.antecedent, rule.consequent): rule for rule in outcome.estimated.rules.rules}
    surest = rules[("a",), ("b",)]
    assert 0 <= surest.low <= surest.confidence <= surest.high <= 1
    assert surest.confidence > 0.8
    single = run(data, replace(task, rules=RuleParameters(Decimal(0), "single")))["east"].estimated
    assert single is not None
    assert single.rules is not None
    assert all(len(rule.consequent) == 1 for rule in single.rules.rules)


def test_a_least_support_and_a_greatest_length() -> None:
    reaching = run(DATA, replace(TASK, k=8, epsilon=8.0, min_support=Decimal("0.3")))["north"]
    assert set(names(reaching)) == {("a",), ("b",), ("c",)}
    task = replace(TASK, k=7, search="svsm", epsilon=8.0, max_length=2)
    assert max(map(len, names(run(DATA, task)["north"]))) <= 2
    for search in ("ldp-miner", "privset", "wheel"):
        assert len(names(run(DATA, replace(TASK, search=search))["north"])) == 3  # type: ignore[arg-type]


ragged = st.tuples(*(st.integers(0, 60) for _ in range(4))).filter(lambda sizes: sum(sizes) > 0)


@examples(2, 12, suppress_health_check=[HealthCheck.too_slow])
@given(
    ragged,
    st.sampled_from(sorted(MODELS)),
    st.sampled_from(["svim", "ldp-miner", "privset", "wheel"]),
    st.integers(0, 2),
)
def test_any_sizes_end_in_estimates_or_a_sentence(
    sizes: tuple[int, ...], model: str, search: str, colluding: int
) -> None:
    parties = ("north", "south", "east", "west")
    data = {party: baskets(size, place) for place, (party, size) in enumerate(zip(parties, sizes, strict=True))}
    task = replace(MODELS[model], search=search, colluding=colluding, learners=parties)  # type: ignore[arg-type]
    if sum(sizes) < 40:
        with suppress(InputDataError):  # a phase may get no record at all
            run(data, task)
        return
    outcomes = run(data, task)
    spent = outcomes["west"].spent
    assert len({pack_estimates(each.estimated) for each in outcomes.values() if each.estimated is not None}) == 1
    assert spent.local_epsilon is not None
    assert (spent.epsilon, spent.delta) <= (task.epsilon, task.delta)
    assert spent.local_epsilon <= task.most_local
    assert len(names(outcomes["north"])) <= task.k


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("holder", PARTIES)
def test_one_party_has_all_rows(model: str, holder: str) -> None:
    """Then nothing hides a row but its own noise."""
    data = {party: baskets(120, 1) if party == holder else [] for party in PARTIES}
    spent = run(data, MODELS[model])["south"].spent
    assert spent.local_epsilon == spent.epsilon == MODELS[model].epsilon


def test_what_was_spent_is_never_more_than_ledgers_charge() -> None:
    for privacy in (
        {"model": "local", "epsilon": "0.7"},
        {"model": "shuffle", "epsilon": "0.5", "delta": "1e-7"},
        {"model": "shuffle", "epsilon": "30", "delta": "1e-7", "local_epsilon": "2.5"},
    ):
        spec = job(privacy={**privacy, "search": "svim"})
        ends = run_still(run_job(spec, DATA, InlineExecutor()))
        for end in ends.values():
            assert isinstance(end, PartyRun), end
            spent, charged = end.outcome.spent, charge(spec)
            assert spent is not None
            assert spent.local_epsilon is not None
            assert charged.local_epsilon is not None
            assert charged.epsilon is not None
            assert charged.delta is not None
            assert spent.local_epsilon <= float(charged.local_epsilon)
            assert (spent.epsilon, spent.delta) <= (float(charged.epsilon), float(charged.delta))


# -- what ends it -----------------------------------------------------------------------------------------------------
def test_too_few_rows_for_all_phases() -> None:
    with fails("E101"):
        run({"north": [["a"]], "south": [], "east": []})


def test_no_rows_anywhere() -> None:
    with fails("E101"):
        run({party: [] for party in PARTIES})


def test_items_outside_the_catalogue_are_left_out_without_a_word() -> None:
    """To end the job would tell of a record, whatever ε is."""
    foreign = {party: [[*row, "unknown", "zz"] for row in rows] for party, rows in DATA.items()}
    assert pack_estimates(run(foreign)["north"].estimated) == pack_estimates(run(DATA)["north"].estimated)  # type: ignore[arg-type]


def test_a_floor_of_a_party_ends_the_job() -> None:
    async def role(session: Session) -> object:
        least = 500 if session.me == "south" else 1
        task = replace(TASK, min_support=Decimal("0.2"))
        return await mine(session.lane("task"), Transactions.from_rows(DATA[session.me]), task, least)

    with fails("E300"):
        run_parties(PARTIES, role, declared=openings(TASK, PARTIES))


def test_a_count_beyond_all_records_is_refused() -> None:
    with fails("E100"):
        run(DATA, replace(TASK, min_support=5000))


class Asks(HybridMining):
    """A task of an analyst whose reports would spend more than agreed."""

    def plan(self, local_epsilon: float, by_phase: tuple[float, ...] = ()) -> ItemMining:
        return ItemMining(len(self.catalogue), 2 * local_epsilon, self.k)


class Levels(HybridMining):
    """A task of an analyst whose phases all spend what the largest may."""

    def plan(self, local_epsilon: float, by_phase: tuple[float, ...] = ()) -> ItemMining:
        return ItemMining(len(self.catalogue), local_epsilon, self.k)


def against(task: HybridMining, others: HybridMining, data: Mapping[str, Rows] = DATA) -> None:
    """The analyst runs another task than the others have agreed on."""

    async def role(session: Session) -> object:
        own = task if session.me == task.analyst else others
        return await mine(session.lane("task"), Transactions.from_rows(data[session.me]), own)

    run_parties(PARTIES, role, declared=openings(task, PARTIES))


def asking(task: HybridMining, how: type[HybridMining] = Asks) -> HybridMining:
    return how(**{name: getattr(task, name) for name in HybridMining.__slots__})


@pytest.mark.parametrize("model", MODELS)
def test_an_analyst_that_asks_for_more_than_agreed_gets_nothing(model: str) -> None:
    with fails("E400") as error:
        against(asking(replace(MODELS[model], most_local=3.0)), replace(MODELS[model], most_local=3.0))
    assert error.value.party == "north"


def test_a_small_phase_may_not_spend_what_a_large_one_may() -> None:
    task = shuffled(epsilon=0.5)
    with fails("E400"):
        against(asking(task, Levels), task)


def test_a_mechanism_that_costs_more_than_agreed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_kept", lambda mechanism, budget: False)
    with fails("E400"):
        run(DATA, shuffled())


@pytest.mark.parametrize(
    ("lane", "label", "change", "code"),
    [
        ("", "records", lambda o: np.array([9, 0, 0], np.uint64).tobytes(), "E402"),
        ("phase-2", "reports", lambda o: bytes([255]) * len(o.values), "E402"),
        ("phase-0", "reports", lambda o: o.values[:-1], "E402"),
        ("phase-0", "reports", lambda o: o.values + b"1", "E402"),
    ],
)
def test_a_peer_that_sends_nonsense_is_named(lane: str, label: str, change, code: str) -> None:  # type: ignore[no-untyped-def]
    async def role(session: Session) -> object:
        if session.me == "south":
            altered(session, label, change, lane)
        return await mine(session.lane("task"), Transactions.from_rows(DATA[session.me]), replace(TASK, epsilon=1.0))

    with fails(code, party="south"):
        run_parties(PARTIES, role, declared=openings(TASK, PARTIES))


def altered(session: Session, label: str, change, lane: str) -> None:  # type: ignore[no-untyped-def]
    """Lets this party open something else under a label."""
    core, post = session.core, session.core.post

    async def altered(to: str, path: str, kind: type, body: bytes, **options: object) -> None:
        if kind is Opening and path.endswith(lane):
            opening = Opening.FromString(body)
            if opening.label == label:
                opening.values = change(opening)
                body = opening.SerializeToString()
        await post(to, path, kind, body, **options)  # type: ignore[arg-type]

    core.post = altered  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(("kind", "code"), [("cut", "E402"), ("another cost", "E400"), ("no estimates", "E402")])
def test_wrong_estimates_name_the_analyst(kind: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = pack_estimates

    def packed(found):  # type: ignore[no-untyped-def]
        match kind:
            case "cut":
                return genuine(found)[:-2]
            case "another cost":
                return genuine(replace(found, spent=replace(found.spent, epsilon=0.5)))
            case _:
                return b"{}"

    monkeypatch.setattr(module, "pack_estimates", packed)
    with fails(code) as error:
        run(DATA)
    assert error.value.party == "north"


@pytest.mark.turn(6)
@pytest.mark.parametrize("dying", PARTIES)
@pytest.mark.parametrize("model", ["local", "shuffle"])
def test_a_crash_of_a_party_ends_the_job_at_all(dying: str, model: str) -> None:
    privacy = {"model": model, "epsilon": 2, "search": "svim"} | ({"delta": "1e-6"} if model == "shuffle" else {})
    spec = job(privacy=privacy, job={"deadline": "1m"})
    small = {party: rows[:60] for party, rows in DATA.items()}
    sent: list[str] = []
    run_still(run_job(spec, small, InlineExecutor(), observe=lambda frame: sent.append(frame.sender)))
    frames = sent.count(dying) - 1  # at the last one, somebody has all that it needs
    for crash_at in spread(frames, 4, frames // 5):

        def wrap(party: str, transport: Transport, at: int = crash_at) -> Transport:
            return FaultyTransport(transport, Schedule(crash_at=at if party == dying else None))

        ends = run_still(run_job(spec, small, InlineExecutor(), wrap=wrap))
        for party, end in ends.items():
            if party == dying:
                assert isinstance(end, Crashed)
            else:
                assert isinstance(end, ComineError), (crash_at, end)


# -- what leaves ------------------------------------------------------------------------------------------------------
def test_what_is_opened_is_declared_and_no_message_of_its_own_opens() -> None:
    for task in MODELS.values():
        labels = {line.label for line in openings(task, PARTIES)}
        assert labels == {"records", "candidates", "reports", "estimates"}
    for name in hybrid_pb2.DESCRIPTOR.message_types_by_name:
        assert common_pb2.OPENED not in kinds(getattr(hybrid_pb2, name))
    alone = openings(replace(TASK, learners=("north",)), PARTIES)
    assert {line.label for line in alone} == {"records", "candidates", "reports"}


def test_a_record_is_reported_once() -> None:
    """In all phases together every party opens as many reports as it has records."""
    opened: Counter[str] = Counter()

    def observe(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name:
            opening = Opening.FromString(frame.body)
            if opening.label == "reports":
                opened[frame.sender] += opening.number

    run(DATA, replace(TASK, search="svsm"), observe=observe)
    assert opened == {"south": 300, "east": 500}


def test_executors_of_threads_give_the_same() -> None:
    """What is drawn does not hang on which thread is quicker."""

    async def threads() -> dict[str, object]:
        executor = ThreadExecutor(2)
        try:
            return await run_job(job(), DATA, executor)  # type: ignore[return-value]
        finally:
            executor.close()

    one, other = asyncio.run(threads()), run_still(run_job(job(), DATA, InlineExecutor()))
    packed = []
    for ends in (one, other):
        end = ends["south"]
        assert isinstance(end, PartyRun), end
        assert end.outcome.finding is not None
        packed.append(end.outcome.finding.estimated.itemsets.to_arrow())
    assert packed[0].equals(packed[1])


@pytest.mark.parametrize("model", ["local", "shuffle"])
def test_frames_that_come_late_twice_or_in_disorder_change_nothing(model: str) -> None:
    spec = job(privacy={"model": model, "epsilon": 2} | ({"delta": "1e-6"} if model == "shuffle" else {}))

    def wrap(party: str, transport: Transport) -> Transport:
        schedule = Schedule(seed=len(party), delay=0.2, delay_s=0.002, duplicate=0.4, reorder=0.4)
        return FaultyTransport(transport, schedule)

    found = []
    for ends in (
        run_still(run_job(spec, DATA, InlineExecutor())),
        run_still(run_job(spec, DATA, InlineExecutor(), wrap=wrap)),
    ):
        for end in ends.values():
            assert isinstance(end, PartyRun), end
            assert end.outcome.finding is not None
            found.append(end.outcome.finding.estimated.itemsets.to_arrow())
    assert all(each.equals(found[0]) for each in found)
