"""An engine that another distribution adds: from the job file, the plan, the policy and the statement to the result."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.jobs.simulation.simulate import simulate_job
from jobs.kinds.conformance import CHECKS, Check, Example
from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.plan.forecast import forecast
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from jobs.statement import statement
from link.errors import ConfigurationError
from mining.joint.vertical.choice import allowed_engines, choose_engine
from mining.joint.vertical.engines.names import GROUP, OWN_NAMES, engine_names
from mining.joint.vertical.engines.registry import OWN, engine_named
from mining.joint.vertical.parameters import VerticalMining
from party.policy.policy import decide
from party.policy.policy_input import PolicyInput
from party.policy.rules import PolicySection
from protos.v1.plan_pb2 import PartyEstimate
from tests.brought import bring
from tests.errors import fails
from tests.jobs.audit.kinds import JOBS, PARTIES
from tests.jobs.plan.answers import SPEED

pytestmark = pytest.mark.turn(6)

HOME: Final = "tests.extensions.pooled_engine:Pooled"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring(tmp_path, monkeypatch, "pooled_module", "", {GROUP: {"pooled": HOME}}, "pooled-columns")


def job(engine: str = "pooled", **tables: Any) -> JobSpec:
    spec, _ = JOBS["vertical"][0]()
    contents = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    contents["itemsets"]["engine"] = engine
    return job_of({**contents, **tables}, "the test", Path())


@cache
def example() -> Example:
    return Example(job(), JOBS["vertical"][0]()[1])


def simulated(spec: JobSpec) -> Result:
    return asyncio.run(simulate_job(spec, JOBS["vertical"][0]()[1], seed=1))


@pytest.mark.parametrize("check", CHECKS)
def test_a_job_that_names_it_is_as_every_job_must_be(check: Check) -> None:
    check(example())


@pytest.mark.parametrize("mode", ["intersection", "union"])
def test_it_finds_what_comines_own_engines_find(mode: str) -> None:
    found, own = (simulated(job(engine, align={"mode": mode})) for engine in ("pooled", "ot"))
    assert found.strategy == "level-wise, pooled"
    assert isinstance(found.finding, FoundItemsets)
    assert isinstance(own.finding, FoundItemsets)
    assert list(found.finding.itemsets.rows()) == list(own.finding.itemsets.rows())


def test_the_statement_and_the_plan_say_what_it_needs() -> None:
    spec = job()
    stated = statement(spec)
    assert "north alone can read the columns of all parties" in stated.collusion
    assert any("which rows hold which items of all parties" in line.what for line in stated.learned)
    plan = forecast(spec, {party: PartyEstimate(speed=SPEED, certificate_bytes=800) for party in PARTIES}, 0.001)
    assert [each.engine for each in plan.engines] == [*OWN, "pooled"]
    (taken,) = (each for each in plan.engines if each.chosen)
    assert (taken.engine, taken.trust) == ("pooled", "north, who sees the columns of all parties")


def judged(engines: list[str] | None) -> str:
    rules = {"approve": "auto", "tasks": ["rules"], "compute": list(PARTIES), "engines": engines}
    written = PolicySection.model_validate({key: value for key, value in rules.items() if value is not None})
    return decide(written, PolicyInput(job(), "analyst", "north", PARTIES, ["people"], 0.0))


def test_it_computes_only_where_the_policy_names_it() -> None:
    assert judged(["ot", "pooled"]) == "auto"
    for engines in (None, ["ot"]):
        with fails("E300"):
            judged(engines)


def test_auto_takes_none_of_another_distribution() -> None:
    """Else what a job discloses would depend on what is installed."""
    task = VerticalMining(1, PARTIES, ("north", "south"), "north")
    assert "pooled" in engine_names()
    assert "pooled" not in (*allowed_engines(task), *(cost.engine for cost in choose_engine(task).costs))


def test_without_it_the_job_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(ConfigurationError) as refused:
        job()
    assert "[itemsets] engine: Input should be 'auto', 'paillier', 'ot' or 'replicated'" in refused.value.message
    with pytest.raises(ConfigurationError):
        engine_named("pooled")


@pytest.mark.parametrize(
    "home",
    ["nothing:Wrong", "json:nothing", "json:dumps"],
)
def test_what_is_no_engine_is_one_sentence(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring(tmp_path, monkeypatch, "wrong_module", "", {GROUP: {"wrong": home}}, "wrong")
    with fails("E100"):
        job("wrong")


def test_it_takes_no_name_of_comines_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring(tmp_path, monkeypatch, "twin_module", "", {GROUP: {"ot": HOME, "auto": HOME}}, "twin")
    assert engine_named("ot") is OWN["ot"]
    assert engine_names().count("ot") == 1
    assert tuple(OWN) == OWN_NAMES
    assert kind_of(job("auto")).engine(job("auto")) in OWN
