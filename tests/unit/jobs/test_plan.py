"""Plans: from the parties' answers to figures, and what becomes of them."""

from __future__ import annotations

import json
from decimal import Decimal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.protocols import joint_prf
from jobs.parameters import horizontal_mining
from jobs.plan import Plan
from jobs.plan.estimate import estimate
from jobs.plan.expected import expected, total_rows
from jobs.plan.publication import published_rows, published_sizes, rounded
from jobs.schema import generate
from jobs.statement import statement
from link.costs import Costs
from link.errors import InputDataError
from mining.joint.local_sizes import LocalSizes, SetEstimate
from tests.unit.jobs.plans import PARTIES, SPEED, answer, answers, weekly

LATENCY_S = 0.002


def test_a_plan_survives_json_and_meets_its_schema() -> None:
    plan = estimate(weekly(), answers(south=None), LATENCY_S)
    text = json.dumps(plan.as_data())
    assert Plan.from_data(json.loads(text)) == plan
    jsonschema.validate(json.loads(text), json.loads(generate("plan")))


@pytest.mark.parametrize("contents", [{}, {"schema": "comine.plan/2"}, {"schema": "comine.plan/1", "job": "weekly"}])
def test_what_is_no_plan_is_refused(contents: dict[str, object]) -> None:
    with pytest.raises(InputDataError, match="make a new one"):
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


@given(st.integers(0, 1 << 60))
def test_rounding_keeps_two_digits_and_five_per_cent(count: int) -> None:
    told = rounded(count)
    assert abs(told - count) <= 0.05 * count
    assert len(str(told).rstrip("0")) <= 2


@given(st.integers(0, 1 << 60))
def test_rounded_rows_have_three_digits_and_are_tens(n_rows: int) -> None:
    told = published_rows(n_rows, "rounded")
    assert told is not None
    assert abs(told - n_rows) <= max(9, 0.005 * n_rows)
    assert told % 10 == 0
    assert bool(told) is bool(n_rows)
    assert len(str(told).rstrip("0")) <= 3


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=5), st.integers(0, 1 << 30))
def test_what_is_published(candidates: list[int], elements: int) -> None:
    held = SetEstimate(elements, 2, 0.123456)
    numbers = tuple(candidates)
    sizes = LocalSizes(numbers, numbers, True, held, held, numbers, True, held, held, (held,))
    exact, near = published_sizes(sizes, "exact"), published_sizes(sizes, "rounded")
    for told in (exact.candidates, exact.frequent, exact.rules):
        assert list(told) == candidates
    for told in (near.candidates, near.frequent, near.rules):
        assert list(told) == [rounded(number) for number in candidates]
    for size in (near.items, near.held, near.itemsets, near.closure, near.levels[0]):
        assert (size.elements, size.novelty) == (rounded(elements), 0.12)
    assert joint_prf.capacity(near.held_rung) >= elements
    assert published_sizes(sizes, "hidden").ByteSize() == 0
    assert [published_rows(43_651, how) for how in ("exact", "rounded", "hidden")] == [43_651, 43_700, None]


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
)
def test_limits_are_above_any_expectation(options: dict[str, object]) -> None:
    told = {name: answer(name, 1000, candidates=(40, 780, 4000, 2000), items=40) for name in PARTIES}
    told["east"].ClearField("sizes")
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
    unbounded["north"].sizes.ClearField("itemsets")
    fallen_back = expected(task, unbounded)
    assert fallen_back is not None
    assert (fallen_back.strategy, fallen_back.sizes.tried, fallen_back.beyond) == ("level-wise", True, 2)


def test_no_rows_anywhere_is_told_as_in_the_job() -> None:
    with pytest.raises(InputDataError, match="nothing to mine"):
        estimate(weekly(), answers(north=0, south=0, east=0), LATENCY_S)
    assert estimate(weekly(), answers(north=0, south=None, east=0), LATENCY_S).n_rows is None


def test_too_many_candidates_are_foretold() -> None:
    plan = estimate(weekly(max_candidates=100, strategy="level-wise"), answers(), LATENCY_S)
    assert any("More than 100 candidates of 2 items" in line for line in plan.assumptions)


def test_a_catalogue_needs_no_union() -> None:
    spec = weekly(universe="the catalogue", catalogue=["a", "b", "c"], strategy="level-wise")
    plan = estimate(spec, answers(), LATENCY_S)
    assert plan.batches[0].candidates == 3
    assert plan.rounds < estimate(weekly(strategy="level-wise"), answers(), LATENCY_S).rounds


def test_slower_machines_and_networks_take_longer() -> None:
    spec = weekly()
    base, far = estimate(spec, answers(), LATENCY_S), estimate(spec, answers(), 50 * LATENCY_S)
    slow = answers()
    slow["south"].speed.multiply_s = 10 * SPEED.multiply_s
    assert far.seconds == pytest.approx(base.seconds + 49 * LATENCY_S * base.rounds)
    assert estimate(spec, slow, LATENCY_S).seconds > base.seconds
    assert base.bytes_sent == far.bytes_sent


def test_only_the_computing_parties_pace_comparisons() -> None:
    spec = weekly(strategy="level-wise")
    base = estimate(spec, answers(), LATENCY_S)
    for party, counts in {"north": True, "south": True, "east": False}.items():
        slow = answers()
        slow[party].speed.transfer_s = 100 * SPEED.transfer_s
        plan = estimate(spec, slow, LATENCY_S)
        assert (plan.seconds > base.seconds) is counts
        opened = weekly(strategy="level-wise", disclose="candidates")
        assert estimate(opened, slow, LATENCY_S).seconds == estimate(opened, answers(), LATENCY_S).seconds
    assert base.parties["north"].memory_bytes > base.parties["east"].memory_bytes


def test_rules_on_shares_cost_as_many_comparisons_as_are_examined() -> None:
    spec = weekly(strategy="level-wise", disclose="frequent", rules={"min_confidence": "0.5"})
    few, many = answers(), answers()
    for each in many.values():
        each.sizes.rules[:] = [100_000]
    fewer, more = (estimate(spec, told, LATENCY_S) for told in (few, many))
    assert more.seconds > fewer.seconds
    assert more.bytes_sent > fewer.bytes_sent + 1_000_000
    followed = weekly(strategy="level-wise", rules={"min_confidence": "0.5"})
    assert estimate(followed, few, LATENCY_S).bytes_sent == estimate(followed, many, LATENCY_S).bytes_sent
