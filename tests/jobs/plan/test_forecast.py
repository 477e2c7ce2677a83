"""From coarse public sizes to ranges: they hold what they stand for, and no plan recommends what a job refuses."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.cli.jobs.plan import show_plan
from jobs.kinds.columns.plan import alignments
from jobs.kinds.columns.plan_engines import engine_variants
from jobs.kinds.rows.plan_alternatives import variants
from jobs.loading import job_of
from jobs.plan import Plan
from jobs.plan.cost import cost
from jobs.plan.forecast import forecast
from jobs.plan.predicted import frequent_at, joined, predicted
from jobs.proposed import job_from_canonical
from jobs.schema import generate
from jobs.spec.job import JobSpec
from mining.public_sizes import LONGEST, MOST, NOTHING, SUPPORTS, PublicSizes
from protos.v1.plan_pb2 import PartyEstimate
from tests.examples import examples
from tests.jobs.plan.answers import PARTIES, told, weekly
from tests.mining.joint import model_jobs_world
from tests.mining.joint.anonymisation import anonymisation_jobs_world, vertical_anonymisation_world

pytestmark = pytest.mark.turn(8)

LATENCY_S = 0.002
SIZES = PublicSizes(20_000, 2_000, ((500, ()), (100, (100,)), (50, (200, 200)), (20, (500, 1000, 500))))


FEW = PublicSizes(20_000, 200, ((500, ()), (100, ()), (50, (50,))))


def sizes_for(spec: JobSpec) -> PublicSizes:
    """Those of a table have fewer items: what spans its parties is told apart one by one."""
    return FEW if spec.is_vertical else SIZES


def publishing(sizes: PublicSizes, **others: PublicSizes) -> dict[str, PartyEstimate]:
    return {name: told(name, others.get(name, sizes)) for name in PARTIES}


@st.composite
def public(draw: st.DrawFn) -> PublicSizes:
    """What somebody may publish: at lower supports there are no fewer itemsets."""
    chosen = sorted(draw(st.sets(st.sampled_from(SUPPORTS), max_size=5)), reverse=True)
    numbers, found = [0, 0, 0], []
    for support in chosen:
        numbers = [number + draw(st.integers(0, 300)) for number in numbers]
        found.append((support, tuple(numbers)))
    rows = draw(st.integers(0, 10**6))
    return PublicSizes(rows, draw(st.none() | st.integers(0, 10**4)), tuple(found)).coarse()


@given(public(), st.floats(0.0002, 1.0))
def test_what_is_likely_is_between_the_ends(sizes: PublicSizes, share: float) -> None:
    least, likely, most = (frequent_at(sizes, share, end) for end in ("least", "likely", "most"))  # type: ignore[arg-type]
    assert (least is None) == (likely is None) == (most is None)
    if least is not None and likely is not None and most is not None:
        assert len(least) == len(likely) == len(most) == LONGEST
        assert all(a <= b <= c for a, b, c in zip(least, likely, most, strict=True))


def test_between_two_supports_and_beyond_them() -> None:
    assert frequent_at(SIZES, 0.005, "likely") == (200, 200, 40, 13, 4, 1, 0, 0, 0, 0)
    found = frequent_at(SIZES, 0.003, "likely")
    assert found is not None
    assert 200 < found[0] < 500
    assert frequent_at(SIZES, 0.0015, "likely") is not None
    assert frequent_at(SIZES, 0.0005, "likely") is None
    assert frequent_at(SIZES, 0.9, "least") == (0,) * LONGEST
    assert frequent_at(NOTHING, 0.1, "likely") is None


@pytest.mark.parametrize("length", [2, 3, 4])
def test_the_most_sets_that_can_be_joined(length: int) -> None:
    """The first m sets in colexicographic order have the most; and no family of as many has more."""
    every = sorted(combinations(range(7), length - 1), key=lambda each: each[::-1])
    for number in range(len(every) + 1):
        family = set(every[:number])
        whole = [s for s in combinations(range(7), length) if all(t in family for t in combinations(s, length - 1))]
        assert joined(number, length) == len(whole)


JOBS: dict[str, JobSpec] = {
    "level-wise": weekly(min_support="0.005", strategy="level-wise"),
    "one-shot": weekly(min_support="0.005", strategy="one-shot"),
    "hidden": weekly(min_support="0.005", universe="hidden"),
    "all hidden": weekly(min_support="0.005", universe="hidden", disclose="frequent"),
    "rules on shares": weekly(min_support="0.005", disclose="frequent", rules={"min_confidence": "0.5"}),
    "a count": weekly(min_support=300, thin=True, strategy="level-wise"),
    "catalogue": weekly(min_support="0.01", universe="the catalogue", catalogue=["a", "b"]),
    "naive Bayes": model_jobs_world.job("naive-bayes", PARTIES),
    "tree over columns": model_jobs_world.job("decision-tree", PARTIES, partition="vertical"),
    "clusters over columns": model_jobs_world.job("k-means", PARTIES, partition="vertical"),
    "release": anonymisation_jobs_world.job(PARTIES),
    "release of columns": vertical_anonymisation_world.job(PARTIES),
}


def over_columns(task: str, **tables: Any) -> JobSpec:
    named = {"name": "j", "task": task, "parties": [*PARTIES], "dataset": "people", "partition": "vertical"}
    return job_of({"job": named, **tables}, "the test", Path())


for mode in ("intersection", "union"):
    JOBS[f"columns, {mode}"] = over_columns("itemsets", itemsets={"min_support": "0.01"}, align={"mode": mode})
for mode in ("intersection", "union", "cardinality"):
    JOBS[f"alignment, {mode}"] = over_columns("align", align={"mode": mode})
for model, more in {
    "distributed": {"epsilon": "2", "delta": "1e-6", "colluding": 1},
    "shuffle": {"epsilon": "2", "delta": "1e-6"},
    "local": {"epsilon": "2"},
}.items():
    JOBS[model] = job_of(
        {
            "job": {
                "name": "j",
                "task": "itemsets",
                "parties": [*PARTIES],
                "dataset": "baskets",
                "partition": "hybrid",
            },
            "itemsets": {"min_support": "0.05", "max_length": 1, "universe": "c.txt", "catalogue": ["a", "b"]},
            "privacy": {"model": model, **more},
        },
        "the test",
        Path(),
    )


def check_ranges(plan: Plan) -> None:
    for part, figures in [
        (plan, ("rounds", "seconds")),
        *((party, ("bytes_sent", "bytes_received")) for party in plan.parties.values()),
    ]:
        for figure in figures:
            least, most = getattr(part, f"{figure}_at_least"), getattr(part, f"{figure}_at_most")
            assert least is None or least <= getattr(part, figure)
            assert most is None or getattr(part, figure) <= most


@cache
def validator() -> Any:
    schema = json.loads(generate("plan"))
    return jsonschema.validators.validator_for(schema)(schema)


@cache
def plan_of(name: str, hides: tuple[str, ...] = ()) -> Plan:
    """The plan of a job of whose parties some publish nothing."""
    spec = JOBS[name]
    return forecast(spec, publishing(sizes_for(spec), **dict.fromkeys(hides, NOTHING)), LATENCY_S)


COSTLY = {"columns, intersection", "columns, union", "distributed", "shuffle"}
"""Jobs whose plan takes a second."""

ONE_HIDES = {"level-wise", "hidden", "release", "naive Bayes"}
"""Jobs that `make test` plans where one party of three publishes nothing, too."""


@pytest.mark.parametrize(
    ("name", "hides"),
    [
        pytest.param(
            name,
            hides,
            marks=[pytest.mark.slow]
            if name == "shuffle" or (hides and (name in COSTLY or (hides != PARTIES and name not in ONE_HIDES)))
            else [],
        )
        for name, hides in product(JOBS, [(), ("east",), PARTIES])
    ],
)
def test_every_job_has_a_plan_with_a_range(name: str, hides: tuple[str, ...]) -> None:
    plan = plan_of(name, hides)
    check_ranges(plan)
    validator().validate(plan.as_data())
    assert Plan.from_data(plan.as_data()) == plan
    first = plan.assumptions[0]
    assert "no row was looked at" in first
    if hides != PARTIES:
        assert plan.parties["north"].n_rows == 20_000
        assert all(party.bytes_sent_at_least is not None for party in plan.parties.values())
    assert re.match("(about|more than) [0-9.,]+ [kMGT]?B", cost(plan))
    show_plan(plan, detail=True)


@examples(3, 15)
@given(st.sampled_from(["level-wise", "one-shot", "hidden", "naive Bayes", "release"]), public(), public())
def test_no_published_size_is_too_odd_for_a_plan(name: str, one: PublicSizes, other: PublicSizes) -> None:
    check_ranges(forecast(JOBS[name], publishing(one, east=other), LATENCY_S))


def test_the_plan_hangs_on_public_sizes_alone() -> None:
    found = predicted(JOBS["level-wise"], publishing(SIZES), "likely")
    assert found["north"] == predicted(JOBS["level-wise"], publishing(SIZES), "likely")["north"]
    assert found["north"].n_rows == 20_000
    narrow = forecast(JOBS["level-wise"], publishing(SIZES), LATENCY_S)
    hidden = forecast(JOBS["level-wise"], publishing(NOTHING), LATENCY_S)
    assert hidden.is_least
    assert (narrow.bytes_sent_at_most or 0) < (hidden.bytes_sent_at_most or 0)


def test_what_a_job_takes_for_granted_stands_for_what_nobody_publishes() -> None:
    stated = over_columns("itemsets", itemsets={"min_support": "0.1"}, plan={"rows": 5000, "items": 30})
    plan = forecast(stated, publishing(NOTHING), LATENCY_S)
    assert plan.batches[0].candidates == 30 * 30 * 3
    assert any("5,000 of [plan] rows" in line for line in plan.assumptions)
    assert all(each.seconds is not None for each in plan.engines)
    silent = forecast(over_columns("itemsets", itemsets={"min_support": "0.1"}), publishing(NOTHING), LATENCY_S)
    assert silent.is_least
    assert any("the job says no [plan] items" in line for line in silent.assumptions)


@pytest.mark.parametrize("name", JOBS)
def test_no_plan_recommends_what_a_job_refuses(name: str) -> None:
    """As if the lines of each alternative had been written into the job file."""
    spec = JOBS[name]
    changed = [way for _, way, _ in alignments(spec)] if spec.is_vertical else []
    changed += [way.spec for way in engine_variants(spec).values()] if spec.is_vertical else []
    if spec.itemsets_ is not None and not spec.is_vertical and spec.privacy.model == "exact":
        changed += [variant.spec for variant in variants(spec)]
    for other in changed:
        assert job_from_canonical(other.canonical()) == other
    plan = plan_of(name)
    named = {each.name for each in plan.alternatives}
    if name == "release of columns":
        assert "union of rows" not in named
    if name == "columns, intersection":
        assert "union of rows" in named


@pytest.mark.parametrize("name", ["level-wise", "one-shot", "all hidden", "rules on shares", "naive Bayes", "release"])
def test_the_largest_sizes_that_a_party_may_claim_make_a_plan_too(name: str) -> None:
    largest = PublicSizes(MOST, MOST, tuple((support, (MOST,) * LONGEST) for support in SUPPORTS))
    check_ranges(forecast(JOBS[name], publishing(largest), LATENCY_S))


# -- rows on clusters --------------------------------------------------------------------------------------------------
def on_cluster(told: PartyEstimate, **seconds: int) -> PartyEstimate:
    """The same party whose rows lie on a cluster."""
    changed = PartyEstimate()
    changed.CopyFrom(told)
    changed.block_bytes, changed.sizes.level_ms = 0, seconds.get("level_ms", 0)
    return changed


@pytest.mark.parametrize(("name", "passes"), [("level-wise", 4), ("one-shot", 6), ("naive Bayes", 1), ("shuffle", 3)])
def test_a_pass_takes_as_long_as_a_cluster_publishes(name: str, passes: int) -> None:
    """And the range of a plan is as wide as what is told so may be."""
    published, spec = publishing(SIZES), JOBS[name]
    plans = []
    for level_ms in (50_000, 500_000):
        told = published | {"south": on_cluster(published["south"], level_ms=level_ms)}
        plans.append(forecast(spec, told, LATENCY_S))
    assert plans[1].seconds - plans[0].seconds == pytest.approx(450 * passes)
    assert plans[1].seconds_at_least is not None
    assert plans[1].seconds_at_most is not None
    assert plans[1].seconds_at_least < plans[1].seconds < plans[1].seconds_at_most
    assert plans[1].seconds_at_most > 700 * passes
    assert any("the cluster of south" in line for line in plans[1].assumptions)
    assert not any("cluster of" in line for line in forecast(spec, published, LATENCY_S).assumptions)


@pytest.mark.parametrize("name", ["level-wise", "shuffle", "columns, union"])
def test_memory_of_rows_on_a_cluster_hardly_grows_with_them(name: str) -> None:
    spec, grown = JOBS[name], []
    for rows in (1_000_000, 2_000_000):
        published = publishing(PublicSizes(rows, 200, SIZES.frequent))
        plan = forecast(spec, published | {"south": on_cluster(published["south"])}, LATENCY_S)
        grown.append([plan.parties[party].memory_bytes for party in ("east", "south")])
    memory, cluster = (grown[1][place] - grown[0][place] for place in (0, 1))
    assert cluster <= memory - 40 * 1_000_000
