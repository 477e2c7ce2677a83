"""What every kind of job must do, and what becomes of jobs that are of none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from coordinator.jobs.simulate import simulate_job
from jobs import fitness
from jobs.data import Data
from jobs.kinds import registry
from jobs.kinds.key import Key, Partition, Task
from jobs.kinds.kind import ALL, Kind
from jobs.kinds.registry import kind_of, kinds
from jobs.kinds.tables import said_in_vain
from jobs.loading import job_from_canonical, job_of
from jobs.spec.job import JobSpec
from jobs.spec.privacy import PrivacyModel
from jobs.statement import statement
from link.errors import ConfigurationError
from party.policy.policy import verdicts
from party.policy.policy_input import PolicyInput
from party.policy.rules import PolicySection
from tests.jobs.audit import kinds as examples
from tests.mining.joint import model_jobs_world
from tests.mining.joint.anonymisation import anonymisation_jobs_world
from tests.mining.joint.hybrid import hybrid_world

LOCAL: Final = {"model": "local", "epsilon": "2"}
BLENDED: Final = {"model": "blended", "epsilon": "2", "delta": "1e-6", "opted_in": ["north"]}


def _perturbed() -> tuple[JobSpec, Mapping[str, Data]]:
    return hybrid_world.job(privacy=LOCAL), {}


def _blended() -> tuple[JobSpec, Mapping[str, Data]]:
    return hybrid_world.job(privacy=BLENDED, itemsets={"max_length": 1}), {}


JOBS: Final = {
    **{name: made for name, (made, _) in examples.JOBS.items()},
    "perturbed": _perturbed,
    "blended": _blended,
}
TABLES: Final[dict[str, Any]] = {
    "itemsets": {"min_support": 2},
    "rules": {"min_confidence": "0.5"},
    "union": {"bound": 5},
    "align": {"trim": True},
    "privacy": LOCAL,
    "trust": {"helper": "north"},
    "plan": {"rows": 7},
    "k_means": model_jobs_world.job("k-means").model_dump(mode="json")["k_means"],
    "naive_bayes": model_jobs_world.job("naive-bayes").model_dump(mode="json")["naive_bayes"],
    "columns": {"c": {"values": ["a", "b"]}},
    "anonymize": anonymisation_jobs_world.job().model_dump(mode="json", by_alias=True)["anonymize"],
}


def test_each_key_is_of_one_kind() -> None:
    found = [key for kind in kinds() for key in _keys(kind)]
    assert len(found) == len(set(found))
    assert {type(kind_of(made()[0])) for made in JOBS.values()} == {type(kind) for kind in kinds()}


def _keys(kind: Kind) -> list[Key]:
    return [key for key, package in registry._packages().items() if registry._kind(package) is kind]


@pytest.mark.parametrize("key", [*product(get_args(Task), get_args(Partition), get_args(PrivacyModel))], ids="-".join)
def test_what_is_of_no_kind_is_refused_with_a_way_out(key: tuple[Task, Partition, PrivacyModel]) -> None:
    if Key(*key) in registry._packages():
        return
    task, partition, model = key
    budget = {"model": model, "epsilon": "1", "delta": "1e-6", "opted_in": ["b"]}
    contents = {
        "job": {"name": "j", "task": task, "parties": ["a", "b", "c"], "dataset": "d", "partition": partition},
        **({} if model == "exact" else {"privacy": budget}),
    }
    with pytest.raises(ConfigurationError, match=r"needs partition = |means nothing with task = "):
        job_of(contents, "the test", Path())


@pytest.mark.parametrize("name", JOBS)
def test_it_is_read_again_as_it_was(name: str) -> None:
    spec = JOBS[name]()[0]
    assert job_from_canonical(spec.canonical()) == spec


@pytest.mark.parametrize("name", JOBS)
def test_it_refuses_each_table_that_means_nothing_in_it(name: str) -> None:
    spec = JOBS[name]()[0]
    meant = kind_of(spec).tables(spec)
    assert list(said_in_vain(spec, meant)) == []
    for table, contents in TABLES.items():
        if meant.get(table) == ALL:
            continue
        plain = spec.model_dump(mode="json", by_alias=True)
        plain[table] = (plain.get(table) or {}) | contents
        try:
            changed = JobSpec.model_validate(plain)
        except ValueError:
            continue  # it cannot even be written so
        try:
            vain = [*said_in_vain(changed, kind_of(changed).tables(changed))]
        except ConfigurationError:
            vain = ["the model, which makes it another kind of job"]
        if not vain:  # a key that means something there
            assert meant.get(table), table
            continue
        with pytest.raises(ConfigurationError, match=r"means nothing with task = |needs partition = "):
            job_from_canonical(changed.canonical())


@pytest.mark.parametrize("name", JOBS)
def test_its_keys_are_keys_of_its_tables(name: str) -> None:
    spec = JOBS[name]()[0]
    known = {field.alias or key: field for key, field in JobSpec.model_fields.items()}
    for table, keys in kind_of(spec).tables(spec).items():
        assert table in known
        section = getattr(spec, next(key for key, field in JobSpec.model_fields.items() if field is known[table]))
        if keys != ALL and section is not None:
            called = {field.alias or key for key, field in type(section).model_fields.items()}
            assert keys <= called, table


@pytest.mark.parametrize("name", JOBS)
def test_it_says_what_it_discloses(name: str) -> None:
    spec = JOBS[name]()[0]
    kind, stated = kind_of(spec), statement(spec)
    everybody = {"coordinator", *spec.job.parties}
    assert stated.learned[0].kind == "result"
    assert all(line.what and set(line.who) <= everybody for line in stated.learned)
    assert all(line.what and line.recipients <= everybody for line in stated.declared)
    reasons = {reason.key for reason in (*fitness.REASONS, *fitness.LEFT_OUT)}
    assert kind.refusals(spec) <= reasons
    assert kind.unions(spec).merges == 0 or len(spec.job.parties) > 2


@pytest.mark.parametrize("name", JOBS)
def test_it_charges_what_its_model_costs(name: str) -> None:
    spec = JOBS[name]()[0]
    cost = kind_of(spec).charge(spec)
    assert cost.model == spec.privacy.model
    assert (cost.epsilon is None) == (cost.model == "exact") == (not kind_of(spec).estimates)


@pytest.mark.parametrize("name", examples.JOBS)
def test_what_it_finds_is_packed_and_read_again(name: str) -> None:
    spec, data = examples.JOBS[name][0]()
    kind, result = kind_of(spec), asyncio.run(simulate_job(spec, data, seed=examples.SEED))
    if kind.finds is None:
        assert result.finding is None
        with pytest.raises(ValueError, match="nothing but"):
            kind.unpack(b"anything")
        return
    assert result.finding is not None
    packed = result.finding.pack()
    again = kind.unpack(packed)
    assert (again.pack(), again.canonical().pack(), again.n_rows) == (packed, packed, result.n_rows)
    assert again.name == kind.finds
    assert again.fits(spec)
    with pytest.raises(ValueError, match=r"."):
        kind.unpack(packed[: len(packed) // 2])


@pytest.mark.parametrize("facets", [frozenset(), frozenset({"itemsets", "embeddings"})])
def test_a_policy_refuses_what_it_has_no_words_for(facets: frozenset[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = JOBS["supports"]()[0]
    monkeypatch.setattr(type(kind_of(spec)), "facets", lambda self, spec: facets)
    policy = PolicySection.model_validate({"approve": "auto", "tasks": ["itemsets", "rules"]})
    facts = PolicyInput(spec, "analyst", spec.job.parties[0], spec.job.parties, [spec.job.dataset], 0.0)
    (verdict,) = verdicts(policy, facts)
    assert verdict.refusal is not None
    assert "has no rules for what this job opens" in verdict.refusal
