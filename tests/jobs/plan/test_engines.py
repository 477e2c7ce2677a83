"""Plans of vertical jobs compare the engines, and expect what spans parties from what each party tells."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coordinator.cli.jobs.plan import show_plan
from coordinator.jobs.simulation.simulate import simulate_job
from jobs.documents.result import document
from jobs.kinds.columns.parameters import itemisation, vertical_mining
from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.plan import Plan
from jobs.plan.answer import Answer, ColumnSizes, ItemsetSizes, SetSize
from jobs.plan.estimate import estimate
from jobs.plan.predicted import CLASSES
from jobs.proposed import job_from_canonical
from jobs.report.parameters import parameters
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from jobs.statement import statement
from mining.candidates import join
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from mining.miner import frequent_itemsets
from mining.public_sizes import transactions_of
from protos.v1.plan_pb2 import Speed
from tests.errors import fails
from tests.traffic import within

pytestmark = pytest.mark.turn(3)

SPEED = Speed(**{field.name: 1e-6 for field in Speed.DESCRIPTOR.fields})


def job(parties: tuple[str, ...], **tables: Any) -> JobSpec:
    named = {"name": "j", "task": "itemsets", "parties": list(parties), "dataset": "people", "partition": "vertical"}
    return job_of({"job": named, **tables}, "the test", Path())


def table(party: str, n_rows: int, columns: int, seed: int) -> Table:
    """Independent columns of three values each."""
    draw = np.random.default_rng(seed)
    cells: dict[str, list[str]] = {"id": [f"p{row}" for row in range(n_rows)]}
    for column in range(columns):
        cells[f"{party}{column}"] = [f"v{value}" for value in draw.choice(3, n_rows, p=[0.5, 0.3, 0.2])]
    return table_from_arrow(pa.table(cells), ["id"], "the test")


def answers(spec: JobSpec, data: dict[str, Table], result: Result | None = None) -> dict[str, Answer]:
    """Parties that are known to the item, so that what is left to guess is what items of several have in common."""
    found = {}
    for name, own in data.items():
        certificate = b"" if result is None else result.receipts[name].certificate
        found[name] = Answer(name, SPEED, len(certificate), own.n_rows, sizes_of(spec, own))
    return found


def sizes_of(spec: JobSpec, own: Table) -> ItemsetSizes:
    rows = transactions_of(own, itemisation(spec))
    share = float(spec.itemsets.min_support)
    least = math.ceil(share * own.n_rows)
    found = frequent_itemsets(rows, least, max_length=spec.itemsets.max_length)
    by_support = []
    for _, counts in found.levels:
        places = np.minimum(np.log(own.n_rows / counts) / np.log(1 / share) * CLASSES, CLASSES - 1).astype(int)
        by_support.append(tuple(np.bincount(places, minlength=CLASSES).tolist()))
    numbers = [len(sets) for sets, _ in found.levels]
    candidates = (numbers[0], *(len(join(sets, 1 << 20)) for sets, _ in found.levels))[: spec.itemsets.max_length]
    longest = max(len(item.encode()) for item in found.items)
    columns = ColumnSizes(len(own.column_names), max(map(len, own.column_names)), longest, tuple(by_support))
    return ItemsetSizes(tuple(filter(None, candidates)), tuple(numbers), SetSize(numbers[0]), columns=columns)


@pytest.mark.parametrize(("disclose", "n_parties"), [("supports", 3), ("frequent", 2)])
def test_a_job_costs_about_what_was_planned(n_parties: int, disclose: str) -> None:
    parties = ("north", "south", "east")[:n_parties]
    data = {party: table(party, 600, 2, place) for place, party in enumerate(parties)}
    spec = job(parties, itemsets={"min_support": "0.06", "disclose": disclose})
    result = asyncio.run(simulate_job(spec, data, seed=1))
    plan = estimate(spec, answers(spec, data, result), 0.001)
    assert result.finding is not None
    found = [len(sets) for sets, _ in result.finding.itemsets.levels]
    assert plan.batches[0].candidates == found[0] * (found[0] - 1) // 2
    assert len(found) - 1 <= len(plan.batches) <= len(found) + 1
    actual = sum(costs.bytes_sent for costs in result.parties.values())
    assert 0.6 * actual <= plan.bytes_sent <= 2 * actual
    assert plan.compare(result.parties)["north"]["bytes_sent"]["predicted"] == plan.parties["north"].bytes_sent
    assert document(result)["engine_reason"] == kind_of(spec).engine_reason(spec)
    assert any("is a guess" in line for line in plan.assumptions)


def test_pairs_alone_are_planned_closely() -> None:
    """What hangs on a guess is which pairs are frequent; here that costs nothing, since no support is opened."""
    parties = ("north", "south")
    data = {party: table(party, 600, 1, place) for place, party in enumerate(parties)}
    spec = job(parties, itemsets={"min_support": "0.06", "max_length": 2, "disclose": "frequent"})
    result = asyncio.run(simulate_job(spec, data, seed=1))
    plan = estimate(spec, answers(spec, data, result), 0.001)
    for name, costs in result.parties.items():
        assert within(plan.parties[name].bytes_sent, costs.bytes_sent, len(result.parties) - 1)
        assert within(plan.parties[name].bytes_received, costs.bytes_received, len(result.parties) - 1)
    assert plan.rounds >= max(costs.rounds for costs in result.parties.values())


@pytest.mark.parametrize("n_parties", [2, 3])
def test_all_engines_are_compared(n_parties: int, capsys: pytest.CaptureFixture[str]) -> None:
    parties = ("north", "south", "east")[:n_parties]
    data = {party: table(party, 100, 2, place) for place, party in enumerate(parties)}
    spec = job(parties, itemsets={"min_support": "0.1"})
    plan = estimate(spec, answers(spec, data), 0.001)
    helper = "coordinator" if n_parties == 2 else "east"
    by_name = {each.engine: each for each in plan.engines}
    assert set(by_name) == {"paillier", "ot", "replicated"}
    assert [each.engine for each in plan.engines if each.chosen] == [kind_of(spec).engine(spec)] == ["ot"]
    assert (by_name["ot"].seconds, by_name["ot"].bytes_sent) == (plan.seconds, plan.bytes_sent)
    assert by_name["paillier"].allowed
    assert not by_name["replicated"].allowed
    assert by_name["replicated"].change == ['[itemsets] engine = "replicated"', f'[trust] helper = "{helper}"']
    assert helper in by_name["replicated"].trust
    assert plan.engine_reason is not None
    assert plan.engine_reason.startswith('engine = "auto" takes ot')
    show_plan(plan, detail=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert f'For replicated: set [itemsets] engine = "replicated", [trust] helper = "{helper}"' in shown
    assert "not allowed" in shown
    assert Plan.from_data(plan.as_data()) == plan


def test_a_helper_that_the_job_allows_is_made_use_of() -> None:
    data = {party: table(party, 100, 2, place) for place, party in enumerate(("north", "south"))}
    spec = job(tuple(data), itemsets={"min_support": "0.1"}, trust={"helper": "coordinator"})
    plan = estimate(spec, answers(spec, data), 0.001)
    assert kind_of(spec).engine(spec) == "replicated"
    assert plan.strategy == "level-wise, replicated"
    assert all(each.allowed for each in plan.engines)
    ot = next(each for each in plan.engines if each.engine == "ot")
    assert ot.change == ['[itemsets] engine = "ot"', '[trust] helper = "none"']


THREE = ("north", "south", "east")


@pytest.mark.parametrize("compute", [None, ["south", "east"]])
@pytest.mark.parametrize("security", ["semi-honest", "malicious"])
def test_the_first_party_that_does_not_compute_helps_where_the_job_leaves_it_open(
    security: str, compute: list[str] | None
) -> None:
    """As if the job named it; the statement, the plan and the parameters of the result say so."""
    others = {"security": security} | ({} if compute is None else {"compute": compute})
    third = "east" if compute is None else "north"
    spec, named = (
        job(THREE, itemsets={"min_support": "0.1"}, trust={"helper": helper, **others}) for helper in ("auto", third)
    )
    kind = kind_of(spec)
    assert job_from_canonical(spec.canonical()) == spec
    assert (kind.engine(spec), kind.helper(spec)) == ("replicated", third)
    assert vertical_mining(spec) == vertical_mining(named)
    assert statement(spec) == statement(named)
    assert third in str(statement(spec).collusion)
    assert parameters(spec) == parameters(named)
    data = {party: table(party, 100, 2, place) for place, party in enumerate(THREE)}
    plan, other = (estimate(each, answers(each, data), 0.001) for each in (spec, named))
    assert (plan.bytes_sent, plan.rounds) == (other.bytes_sent, other.rounds)
    said = f' helper = "auto" takes {third}, whose help replicated needs.'
    assert plan.engine_reason == f"{other.engine_reason}{said}"


def test_nobody_helps_where_that_is_not_quicker_or_no_third_party_is_there() -> None:
    pair, data = ("north", "south"), {party: table(party, 100, 2, place) for place, party in enumerate(THREE)}
    slow = {"bandwidth": "100 kbit/s", "rows": 20, "items": 1}
    for parties, contents in (
        (THREE, {"itemsets": {"min_support": "0.1", "engine": "ot"}}),
        (pair, {"itemsets": {"min_support": "0.1"}}),
        (pair, {"itemsets": {"min_support": "0.1"}, "plan": slow}),
    ):
        spec, none = (job(parties, **contents, trust={"helper": helper}) for helper in ("auto", "none"))
        assert kind_of(spec).helper(spec) is None
        assert statement(spec) == statement(none)
        assert parameters(spec) == parameters(none)
        plan = estimate(spec, answers(spec, {name: data[name] for name in parties}), 0.001)
        assert f'helper = "auto" takes nobody: {kind_of(spec).engine(spec)} needs no help' in str(plan.engine_reason)
    dealt = job(pair, itemsets={"min_support": "0.1", "engine": "replicated"}, trust={"helper": "auto"})
    assert kind_of(dealt).helper(dealt) == "coordinator"  # as the engine implies it


def test_engines_beside_one_that_a_third_party_helps_leave_the_helper_open() -> None:
    spec = job(THREE, itemsets={"min_support": "0.1"}, trust={"helper": "auto"})
    data = {party: table(party, 100, 2, place) for place, party in enumerate(THREE)}
    plan = estimate(spec, answers(spec, data), 0.001)
    assert {each.engine: each.change for each in plan.engines} == {
        "replicated": [],
        **{engine: [f'[itemsets] engine = "{engine}"'] for engine in ("ot", "paillier")},
    }
    assert all(each.allowed for each in plan.engines)


def test_a_narrow_network_changes_the_choice_and_the_seconds() -> None:
    data = {party: table(party, 100, 2, place) for place, party in enumerate(("north", "south"))}
    plain = job(tuple(data), itemsets={"min_support": "0.1"})
    narrow = job(tuple(data), itemsets={"min_support": "0.1"}, plan={"bandwidth": "100 kbit/s"})
    assert (kind_of(plain).engine(plain), kind_of(narrow).engine(narrow)) == ("ot", "paillier")
    plan = estimate(narrow, answers(narrow, data), 0.001)
    assert any("the network carries 100 kbit/s" in line for line in plan.assumptions)
    wide = estimate(
        job(tuple(data), itemsets={"min_support": "0.1", "engine": "paillier"}), answers(plain, data), 0.001
    )
    assert plan.bytes_sent == wide.bytes_sent
    assert plan.seconds > wide.seconds
    assert plan.engine_reason is not None
    assert "0.1 Mbit/s" in plan.engine_reason
    assert "ot would be quicker here" in plan.engine_reason  # so few rows are not what the job takes for granted
    few = job(tuple(data), itemsets={"min_support": "0.1"}, plan={"bandwidth": "100 kbit/s", "rows": 100, "items": 6})
    assert kind_of(few).engine(few) == "ot"


@pytest.mark.parametrize(
    "plan",
    [
        {"bandwidth": "fast"},
        {"bandwidth": "0 Mbit/s"},
        {"density": "1.5"},
        {"rows": 0},
    ],
)
def test_what_is_taken_for_granted_must_make_sense(plan: dict[str, Any]) -> None:
    with fails("E100"):
        job(("north", "south"), itemsets={"min_support": "0.1"}, plan=plan)


def test_jobs_over_rows_take_only_the_network_for_granted() -> None:
    contents = {"name": "j", "task": "itemsets", "parties": ["a", "b"], "dataset": "d"}
    tables = {"job": contents, "itemsets": {"min_support": "0.1"}}
    assert job_of({**tables, "plan": {"bandwidth": "1 Gbit/s"}}, "the test", Path()).plan.bytes_per_s == 1.25e8
    with fails("E100"):
        job_of({**tables, "plan": {"rows": 5}}, "the test", Path())
