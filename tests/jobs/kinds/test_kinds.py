"""What every kind of job must do, and what becomes of jobs that are of none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from jobs.data import Data
from jobs.kinds.conformance import CHECKS, Check, Example
from jobs.kinds.key import Key, Partition
from jobs.kinds.packages import BUILT_IN, MODELS, TASKS
from jobs.kinds.registry import kind_of, kinds
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from mining.data.transactions import Transactions
from party.policy.policy import verdicts
from party.policy.policy_input import PolicyInput
from party.policy.rules import PolicySection
from tests.errors import fails
from tests.jobs.audit import kinds as examples
from tests.mining.joint import model_jobs_world
from tests.mining.joint.anonymisation import anonymisation_world, vertical_anonymisation_world
from tests.mining.joint.hybrid import hybrid_world
from tests.mining.joint.vertical.test_vertical_run_sizes import job as vertical_job
from tests.mining.joint.vertical.test_vertical_run_sizes import tables as tables_of

pytestmark = pytest.mark.turn(12)

LOCAL: Final = {"model": "local", "epsilon": "2"}
BLENDED: Final = {"model": "blended", "epsilon": "2", "delta": "1e-6", "opted_in": ["north"]}


def _baskets() -> Mapping[str, Data]:
    numbered = enumerate(hybrid_world.PARTIES)
    return {party: Transactions.from_rows(hybrid_world.baskets(200, seed)) for seed, party in numbered}


def _perturbed() -> tuple[JobSpec, Mapping[str, Data]]:
    return hybrid_world.job(privacy=LOCAL), _baskets()


def _blended() -> tuple[JobSpec, Mapping[str, Data]]:
    return hybrid_world.job(privacy=BLENDED, itemsets={"max_length": 1}), _baskets()


def _model_of_columns() -> tuple[JobSpec, Mapping[str, Data]]:
    _, tables = examples.JOBS["vertical"][0]()
    return model_jobs_world.job("naive-bayes", partition="vertical", attributes=["smoker", "town"]), tables


def _release_of_columns() -> tuple[JobSpec, Mapping[str, Data]]:
    parties = ("north", "south")
    held = {name: parties[place % 2] for place, name in enumerate(vertical_anonymisation_world.COLUMNS)}
    tables = vertical_anonymisation_world.columns_of(anonymisation_world.people(30, 3), held, parties)
    return vertical_anonymisation_world.job(parties), dict(tables)


def _release_of_groups() -> tuple[JobSpec, Mapping[str, Data]]:
    drawn = vertical_anonymisation_world.GroupedPeople.drawn(40, (2, 1), 3)
    return drawn.job(max_suppression="0.1"), dict(drawn.tables())


def _checked_columns() -> tuple[JobSpec, Mapping[str, Data]]:
    parties = ("north", "south", "east")
    trust = {"helper": "east", "security": "malicious"}
    return vertical_job(parties, itemsets={"min_support": "0.4"}, trust=trust), dict(tables_of(parties, 40, 3))


JOBS: Final = {
    **{name: made for name, (made, _) in examples.JOBS.items()},
    "perturbed": _perturbed,
    "blended": _blended,
    "columns, parties may deviate": _checked_columns,
    "model of columns": _model_of_columns,
    "release of columns": _release_of_columns,
    "release of column groups": _release_of_groups,
}


@cache
def _example(name: str) -> Example:
    return Example(*JOBS[name]())


def test_each_key_is_of_one_kind() -> None:
    packages = [package.removesuffix(".kind") for package in (type(kind).__module__ for kind in kinds())]
    assert packages == list(dict.fromkeys(BUILT_IN.values()))
    assert sum(len(import_module(package).KEYS) for package in packages) == len(BUILT_IN)
    assert {type(kind_of(made()[0])) for made in JOBS.values()} == {type(kind) for kind in kinds()}


@pytest.mark.parametrize("key", [*product(TASKS, get_args(Partition), MODELS)], ids="-".join)
def test_what_is_of_no_kind_is_refused_with_a_way_out(key: tuple[str, Partition, str]) -> None:
    if Key(*key) in BUILT_IN:
        return
    task, partition, model = key
    budget = {"model": model, "epsilon": "1", "delta": "1e-6", "opted_in": ["b"]}
    contents = {
        "job": {"name": "j", "task": task, "parties": ["a", "b", "c"], "dataset": "d", "partition": partition},
        **({} if model == "exact" else {"privacy": budget}),
    }
    with fails("E100"):
        job_of(contents, "the test", Path())


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", JOBS)
def test_it_is_as_every_kind_must_be(name: str, check: Check) -> None:
    check(_example(name))


@pytest.mark.parametrize("facets", [frozenset(), frozenset({"itemsets", "embeddings"})])
def test_a_policy_refuses_what_it_has_no_words_for(facets: frozenset[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = JOBS["supports"]()[0]
    monkeypatch.setattr(type(kind_of(spec)), "facets", lambda self, spec: facets)
    policy = PolicySection.model_validate({"approve": "auto", "tasks": ["itemsets", "rules"]})
    facts = PolicyInput(spec, "analyst", spec.job.parties[0], spec.job.parties, [spec.job.dataset], 0.0)
    (verdict,) = verdicts(policy, facts)
    assert verdict.refusal is not None
    assert "has no rules for what this job opens" in verdict.refusal
