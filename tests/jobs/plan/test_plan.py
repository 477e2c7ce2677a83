"""Plans: from the parties' answers to figures, and what becomes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kinds.rows.parameters import horizontal_mining
from jobs.kinds.rows.plan_sizes import expected, total_rows
from jobs.plan import Plan
from jobs.plan.estimate import estimate
from jobs.schema import generate
from jobs.statement import statement
from link.costs import Costs
from tests.errors import fails
from tests.examples import slowly
from tests.jobs.plan.answers import PARTIES, answer, answers, slower, weekly

pytestmark = pytest.mark.turn(3)

LATENCY_S = 0.002


def test_a_plan_survives_json_and_meets_its_schema() -> None:
    plan = estimate(weekly(), answers(south=None), LATENCY_S)
    text = json.dumps(plan.as_data())
    assert Plan.from_data(json.loads(text)) == plan
    jsonschema.validate(json.loads(text), json.loads(generate("plan")))


@pytest.mark.parametrize("contents", [{}, {"schema": "comine.plan/2"}, {"schema": "comine.plan/1", "job": "weekly"}])
def test_what_is_no_plan_is_refused(contents: dict[str, object]) -> None:
    with fails("E101"):
        Plan.from_data(contents)


def test_the_statement_is_that_of_the_job() -> None:
    spec = weekly(strategy="one-shot")
    plan = estimate(spec, answers(), LATENCY_S)
    assert (plan.disclosure, plan.prose) == (statement(spec).as_data(), statement(spec).prose())
    assert plan.spec_digest == spec.digest.hex()


def test_predicted_beside_actual() -> None:
    plan = estimate(weekly(), answers(), LATENCY_S)
    compared = plan.compare({name: Costs(plan.parties[name].bytes_sent // 2, 0, 10, 0.5) for name in PARTIES})
    assert set(compared) == set(PARTIES)
    sent, received = compared["north"]["bytes_sent"], compared["north"]["bytes_received"]
    assert sent["predicted"] == plan.parties["north"].bytes_sent
    assert sent["ratio"] == pytest.approx(2, rel=1e-3)
    assert received["ratio"] is None
    assert compared["east"]["rounds"] == {"predicted": plan.rounds, "actual": 10, "ratio": plan.rounds / 10}


def test_hidden_rows_count_as_the_mean_of_the_others() -> None:
    assert total_rows(answers(north=100, south=None, east=300)) == 600
    assert total_rows(answers(north=None, south=None, east=None)) is None


def test_who_hides_its_sizes_is_named_and_bounded_by_the_job() -> None:
    spec = weekly(bound=64, max_length=3)
    open_plan, plan = estimate(spec, answers(), LATENCY_S), estimate(spec, answers(south=None), LATENCY_S)
    assert plan.parties["south"].n_rows is None
    assert any(line.startswith("south hides its sizes") for line in plan.assumptions)
    for party in plan.parties.values():
        assert party.bytes_sent_at_most is not None
        assert party.bytes_received_at_most is not None
        assert party.bytes_sent < party.bytes_sent_at_most
        assert party.bytes_received < party.bytes_received_at_most
    assert all(party.bytes_sent_at_most is None for party in open_plan.parties.values())


def test_where_all_hide_the_plan_is_what_the_job_costs_at_least() -> None:
    spec = weekly(max_length=2)
    hidden = estimate(spec, answers(north=None, south=None, east=None), LATENCY_S)
    known = estimate(spec, answers(), LATENCY_S)
    assert (hidden.n_rows, hidden.batches) == (None, [])
    assert "at least" in hidden.assumptions[0]
    for name in PARTIES:
        assert 0 < hidden.parties[name].bytes_sent < known.parties[name].bytes_sent
        assert hidden.parties[name].bytes_sent_at_most is not None


@pytest.mark.parametrize(
    "options",
    slowly(
        [
            {},
            {"bound": 40},
            {"thin": True, "strategy": "level-wise"},
            {"strategy": "one-shot"},
            {"disclose": "candidates"},
            {"disclose": "frequent", "rules": {"min_confidence": "0.5"}},
            {"universe": "hidden"},
            {"universe": "hidden", "bound": 40},
            {"universe": "all-items"},
        ],
        now=[1, 3, 5, 7],
    ),
)
def test_limits_are_above_any_expectation(options: dict[str, object]) -> None:
    told = {name: answer(name, 1000, candidates=(40, 780, 4000, 2000), items=40) for name in PARTIES}
    told["east"] = replace(told["east"], sizes=None, n_rows=None)
    plan = estimate(weekly(**options), told, LATENCY_S)  # type: ignore[arg-type]
    assert all(party.bytes_sent <= (party.bytes_sent_at_most or 0) for party in plan.parties.values())


@given(st.permutations(PARTIES), st.integers(1, 1000))
def test_few_rows_do_not_decide(order: list[str], odd: int) -> None:
    told = {name: answer(name, 1000) for name in order[:2]}
    told[order[2]] = answer(order[2], 10, candidates=(odd, odd * odd, odd, odd, odd))
    found = expected(horizontal_mining(weekly()), told)
    assert found is not None
    assert found.sizes.candidates == (190, 12)


def test_the_strategy_is_the_one_that_the_parties_will_choose() -> None:
    task = horizontal_mining(weekly(max_candidates=150, min_support=Decimal("0.01")))
    found = expected(task, answers())
    assert found is not None
    assert found.strategy == "one-shot"
    assert found.sizes.one_shot is not None
    unbounded = answers()
    north = unbounded["north"]
    assert north.sizes is not None
    unbounded["north"] = replace(north, sizes=replace(north.sizes, itemsets=None))
    fallen_back = expected(task, unbounded)
    assert fallen_back is not None
    assert (fallen_back.strategy, fallen_back.sizes.tried, fallen_back.beyond) == ("level-wise", True, 2)


def test_too_many_candidates_are_foretold() -> None:
    plan = estimate(weekly(max_candidates=100, strategy="level-wise"), answers(), LATENCY_S)
    said = "More candidates of 2 items are expected than max_candidates = 100 leaves room for"
    assert any(said in line for line in plan.assumptions)


def test_itemsets_found_so_far_leave_less_room_for_candidates() -> None:
    """No level is over the limit by itself, and the job would end all the same."""
    parties = {name: answer(name, candidates=(20, 90, 90), frequent=(20, 80, 5)) for name in PARTIES}
    for most, beyond in ((100, 3), (200, None)):
        found = expected(horizontal_mining(weekly(max_candidates=most, strategy="level-wise")), parties)
        assert found is not None
        assert found.beyond == beyond


def test_a_catalogue_needs_no_union() -> None:
    spec = weekly(universe="the catalogue", catalogue=["a", "b", "c"], strategy="level-wise")
    plan = estimate(spec, answers(), LATENCY_S)
    assert plan.batches[0].candidates == 3
    assert plan.rounds < estimate(weekly(strategy="level-wise"), answers(), LATENCY_S).rounds


def test_slower_machines_and_networks_take_longer() -> None:
    spec = weekly()
    base, far = estimate(spec, answers(), LATENCY_S), estimate(spec, answers(), 50 * LATENCY_S)
    slow = answers()
    slow["south"] = slower(slow["south"], multiply_s=10)
    assert far.seconds == pytest.approx(base.seconds + 49 * LATENCY_S * base.rounds)
    assert estimate(spec, slow, LATENCY_S).seconds > base.seconds
    assert base.bytes_sent == far.bytes_sent


def test_only_the_computing_parties_pace_comparisons() -> None:
    catalogue = {"universe": "the catalogue", "catalogue": ["a", "b"], "strategy": "level-wise"}
    spec = weekly(**catalogue)
    base = estimate(spec, answers(), LATENCY_S)
    for party, counts in {"north": True, "south": True, "east": False}.items():
        slow = answers()
        slow[party] = slower(slow[party], transfer_s=100)
        plan = estimate(spec, slow, LATENCY_S)
        assert (plan.seconds > base.seconds) is counts
        opened = weekly(**catalogue, disclose="candidates")
        assert estimate(opened, slow, LATENCY_S).seconds == estimate(opened, answers(), LATENCY_S).seconds
    assert base.parties["north"].memory_bytes > base.parties["east"].memory_bytes


def test_rules_on_shares_cost_as_many_comparisons_as_are_examined() -> None:
    spec = weekly(strategy="level-wise", disclose="frequent", rules={"min_confidence": "0.5"})
    few, many = answers(), {}
    for name, each in few.items():
        assert each.sizes is not None
        many[name] = replace(each, sizes=replace(each.sizes, rules=(100_000,)))
    fewer, more = (estimate(spec, told, LATENCY_S) for told in (few, many))
    assert more.seconds > fewer.seconds
    assert more.bytes_sent > fewer.bytes_sent + 1_000_000
    followed = weekly(strategy="level-wise", rules={"min_confidence": "0.5"})
    assert estimate(followed, few, LATENCY_S).bytes_sent == estimate(followed, many, LATENCY_S).bytes_sent
