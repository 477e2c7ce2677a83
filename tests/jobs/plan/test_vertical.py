"""Plans of vertical jobs: alignments, mining as far as it is reckoned, and never a failure."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.kinds.columns.plan_sizes import MOST_ITEMSETS, MOST_ROWS, ExpectedColumns
from jobs.loading import job_of
from jobs.plan import Plan
from jobs.plan.answer import Answer, ItemsetSizes, SetSize
from jobs.plan.estimate import estimate
from jobs.spec.job import JobSpec
from jobs.statement import statement
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from protos.v1.plan_pb2 import Speed
from tests.traffic import within

pytestmark = pytest.mark.turn(6)

PARTIES = ("north", "south", "east")
SPEED = Speed(**{field.name: 1e-6 for field in Speed.DESCRIPTOR.fields})


def job(parties: tuple[str, ...], **tables: Any) -> JobSpec:
    task = "itemsets" if "itemsets" in tables else "align"
    named = {"name": "j", "task": task, "parties": list(parties), "dataset": "people", "partition": "vertical"}
    return job_of({"job": named, **tables}, "the test", Path())


def answers(
    rows: dict[str, int | None], items: dict[str, int] | None = None, certificate_bytes: int = 0
) -> dict[str, Answer]:
    return {
        name: Answer(
            party=name,
            n_rows=number,
            speed=SPEED,
            sizes=None if items is None else ItemsetSizes((), (), SetSize(items[name])),
            certificate_bytes=certificate_bytes,
        )
        for name, number in rows.items()
    }


def table(party: str, n_rows: int) -> Table:
    """Its ids are those of every party with as many rows; of two columns each value is in half of the rows."""
    cells = {"id": [f"p{n}" for n in range(n_rows)]}
    cells |= {f"{party}{k}": [str((n >> k) & 1) for n in range(n_rows)] for k in range(2)}
    return table_from_arrow(pa.table(cells), ["id"], "the test")


@pytest.mark.parametrize("mode", ["intersection", "cardinality", "union"])
@pytest.mark.parametrize(("n_parties", "bound"), [(2, None), (3, None), (2, 20), (3, 20)])
def test_an_alignment_costs_what_was_planned(mode: str, n_parties: int, bound: int | None) -> None:
    rows = dict(zip(PARTIES[:n_parties], (9, 17, 12), strict=False))
    spec = job(tuple(rows), align={"mode": mode} | ({} if bound is None else {"bound": bound}))
    result = asyncio.run(simulate_job(spec, {name: table(name, number) for name, number in rows.items()}, seed=1))
    certificate = len(result.receipts["north"].certificate)
    plan = estimate(spec, answers({**rows}, certificate_bytes=certificate), 0.001)
    assert plan.strategy == mode
    for name, costs in result.parties.items():
        assert within(plan.parties[name].bytes_sent, costs.bytes_sent, n_parties - 1)
        assert within(plan.parties[name].bytes_received, costs.bytes_received, n_parties - 1)
    assert plan.rounds == max(costs.rounds for costs in result.parties.values())
    assert plan.prose == statement(spec).prose()


@pytest.mark.parametrize("engine", ["ot", "paillier", "replicated"])
@pytest.mark.parametrize("mode", ["intersection", "union"])
@pytest.mark.parametrize("n_parties", [2, 3])
def test_mining_has_its_engines_beside_one_another(engine: str, mode: str, n_parties: int) -> None:
    parties = PARTIES[:n_parties]
    spec = job(parties, align={"mode": mode}, itemsets={"min_support": "0.25", "engine": engine})
    plan = estimate(spec, answers(dict.fromkeys(parties, 1000), dict.fromkeys(parties, 5)), 0.001)
    assert plan.strategy == f"level-wise, {engine}"
    assert plan.batches[0].candidates == 25 * n_parties * (n_parties - 1) // 2
    assert {each.name for each in plan.alternatives} == {
        f"{({'intersection', 'union'} - {mode}).pop()} of rows",
        *(f"engine {name}" for name in {"ot", "paillier", "replicated"} - {engine}),
        *(['security = "malicious"'] if n_parties == 3 and mode == "intersection" else []),
    }
    by_name = {each.name: each for each in plan.alternatives}
    assert all(each.bytes_sent and each.seconds and each.change for each in plan.alternatives)
    if engine == "ot":
        assert any("which rows hold which items" in line for line in by_name["engine replicated"].adds)
    assert Plan.from_data(plan.as_data()) == plan


@pytest.mark.parametrize(
    ("tables", "change"),
    [
        ({}, ['[trust] security = "malicious"', '[trust] helper = "east"']),
        ({"trust": {"helper": "auto"}}, ['[trust] security = "malicious"']),
        (
            {"itemsets": {"min_support": "0.25", "engine": "ot"}, "trust": {"compute": ["south", "east"]}},
            ['[trust] security = "malicious"', '[trust] helper = "north"', '[itemsets] engine = "replicated"'],
        ),
    ],
)
def test_what_a_job_costs_where_parties_may_deviate_is_beside_it_and_the_other_way_round(
    tables: dict[str, Any], change: list[str]
) -> None:
    told = answers(dict.fromkeys(PARTIES, 1000), dict.fromkeys(PARTIES, 5))
    spec = job(PARTIES, **({"itemsets": {"min_support": "0.25"}} | tables))
    plan = estimate(spec, told, 0.001)
    (other,) = (each for each in plan.alternatives if each.name == 'security = "malicious"')
    assert other.change == change
    trust = spec.trust.model_copy(update={"security": "malicious", "helper": kept(change, spec.trust.helper)})
    itemsets = spec.itemsets.model_copy(update={"engine": "replicated"})
    checked = estimate(spec.model_copy(update={"trust": trust, "itemsets_": itemsets}), told, 0.001)
    assert (other.rounds, other.bytes_sent) == (checked.rounds, checked.bytes_sent)
    assert (other.bytes_sent or 0) > plan.bytes_sent
    (back,) = (each for each in checked.alternatives if each.name == 'security = "semi-honest"')
    assert back.change == ['[trust] security = "semi-honest"']
    assert (back.bytes_sent or 0) < checked.bytes_sent


def kept(change: list[str], helper: str) -> str:
    """Who helps after these lines."""
    named = [line.split('"')[1] for line in change if "helper" in line]
    return named[0] if named else helper


def test_the_pairs_of_a_job_cost_no_less_than_was_planned() -> None:
    spec = job(("north", "south"), itemsets={"min_support": "0.25", "max_length": 2})
    data = {name: table(name, 64) for name in ("north", "south")}
    result = asyncio.run(simulate_job(spec, data, seed=1))
    plan = estimate(spec, answers(dict.fromkeys(data, 64), dict.fromkeys(data, 4)), 0.001)
    actual = sum(costs.bytes_sent for costs in result.parties.values())
    aligned = estimate(job(("north", "south")), answers(dict.fromkeys(data, 64)), 0.001)
    assert aligned.bytes_sent < plan.bytes_sent <= actual
    assert any("the job costs more" in line for line in plan.assumptions)


@pytest.mark.parametrize(
    ("mode", "mined", "told"), [*product(["intersection", "union"], [True, False], ["none", "some"])]
)
def test_a_plan_never_fails_for_what_is_hidden(mode: str, mined: bool, told: str) -> None:
    spec = job(PARTIES, align={"mode": mode}, **({"itemsets": {"min_support": 5}} if mined else {}))
    rows: dict[str, int | None] = {"north": None, "south": None, "east": None if told == "none" else 700}
    plan = estimate(spec, answers(rows), 0.001)
    assert plan.n_rows == (None if told == "none" else 700)
    assert plan.bytes_sent > 0
    assert any("mining is not among them" in line for line in plan.assumptions) == mined
    lines = " ".join(plan.assumptions)
    assert ("No party publishes" if told == "none" else "north and south hide") in lines
    none = estimate(spec, answers(dict.fromkeys(PARTIES, 0), dict.fromkeys(PARTIES, 0)), 0.001)
    assert none.bytes_sent > 0


def test_more_pairs_than_are_told_apart_are_said_and_not_reckoned() -> None:
    spec = job(("north", "south"), itemsets={"min_support": "0.25", "max_candidates": 1000})
    some, many = (
        estimate(spec, answers(dict.fromkeys(("north", "south"), 100), dict.fromkeys(("north", "south"), n)), 0.001)
        for n in (40, 1000)
    )
    assert any("there the job would end with an error" in line for line in some.assumptions)
    assert any("1,000,000 pairs are too many" in line for line in many.assumptions)
    assert all(each.seconds is None for each in many.alternatives)


@pytest.mark.parametrize("mode", ["intersection", "union"])
@pytest.mark.parametrize("n_parties", [2, 3, 8])
@given(
    rows=st.integers(1, 1 << 41),
    items=st.integers(1, 20_000),
    min_support=st.sampled_from(["0.01", 5, 1 << 40]),
    told=st.booleans(),
)
@settings(max_examples=10)
def test_no_claim_of_a_party_makes_a_plan_work_without_end(
    mode: str, n_parties: int, rows: int, items: int, min_support: str | int, told: bool
) -> None:
    """Whoever plans has little to do, whatever sizes are published: not itemsets times rows of any number."""
    parties = tuple("abcdefgh"[:n_parties])
    plan = {} if told else {"plan": {"rows": min(rows, 10**9)}}
    spec = job(parties, align={"mode": mode}, itemsets={"min_support": min_support, "engine": "ot"}, **plan)
    claimed = answers(dict.fromkeys(parties, rows if told else None), dict.fromkeys(parties, items))
    sizes = ExpectedColumns.of(spec, claimed).sizes
    assert max(*sizes.rows.values(), sizes.common) <= MOST_ROWS
    blocks = sizes.positions >> 18
    first = sum(sizes.numbered.values()) if mode == "union" else 0
    for itemsets in (first, *(sum(map(len, level.batches)) for level in sizes.levels)):
        assert itemsets <= MOST_ITEMSETS
        assert itemsets * blocks <= MOST_ITEMSETS


def test_a_plan_with_more_rows_than_can_be_aligned_says_so() -> None:
    spec = job(("north", "south"), itemsets={"min_support": "0.25", "max_length": 2})
    for rows, said in ((10**8, True), (1 << 24, False)):
        plan = estimate(spec, answers({"north": rows, "south": 1000}, dict.fromkeys(("north", "south"), 3)), 0.001)
        assert any("16,777,216 rows of a party cannot be aligned" in line for line in plan.assumptions) == said


def test_a_plan_of_large_tables_says_what_they_take_in_blocks() -> None:
    spec = job(PARTIES[:2], align={"mode": "intersection"})
    small, large = (estimate(spec, answers(dict.fromkeys(PARTIES[:2], rows)), 0.001) for rows in (10_000, 10_000_000))
    assert not any("blocks" in line for line in small.assumptions)
    (said,) = (line for line in large.assumptions if "blocks" in line)
    assert "north 0.7 GB and south 0.7 GB" in said
    assert not any("Lists of ids" in line for line in small.assumptions)
    (said,) = (line for line in large.assumptions if "Lists of ids" in line)
    assert "256 MiB of memory" in said
    assert "1.0 GB of the disk" in said
    assert large.parties["north"].memory_bytes > 0.9e9  # 0.7 GB in blocks


@pytest.mark.parametrize("mode", ["cardinality", "union"])
def test_a_plan_says_where_long_lists_lie(mode: str) -> None:
    spec = job(PARTIES[:2], align={"mode": mode})
    for rows, said in ((10_000, False), (10_000_000, True)):
        lines = estimate(spec, answers(dict.fromkeys(PARTIES[:2], rows)), 0.001).assumptions
        assert any("256 MiB of memory" in line and "GB of the disk" in line for line in lines) == said
