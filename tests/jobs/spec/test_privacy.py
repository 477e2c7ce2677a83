"""The `[privacy]` table: what it takes, and what is refused, with a sentence that says what to do."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from jobs.kinds.registry import kind_of
from jobs.kinds.reported.parameters import hybrid_mining
from jobs.kinds.rows.parameters import horizontal_mining
from jobs.loading import job_of
from jobs.proposed import job_from_canonical
from jobs.report.job_file import job_file
from link.errors import ConfigurationError
from mining.joint.hybrid.parameters import DEFAULT_K, MOST_LOCAL
from tests.errors import fails
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, job

SHUFFLE = {"model": "shuffle", "epsilon": "1", "delta": "1e-6"}


def test_what_is_not_said_is_taken_from_the_parties() -> None:
    spec = job(privacy=SHUFFLE)
    assert (spec.analyst, spec.shufflers) == ("north", ("east",))
    assert spec.privacy.model in ("local", "shuffle")
    assert kind_of(spec).estimates
    assert job_from_canonical(spec.canonical()) == spec
    task = hybrid_mining(spec)
    assert (task.search, task.k, task.most_local, task.delta) == ("svsm", 3, MOST_LOCAL, 1e-6)
    assert hybrid_mining(job(itemsets={"top_k": None, "min_support": "0.1"})).k == DEFAULT_K
    assert hybrid_mining(job(itemsets={"max_length": 1})).search == "svim"
    assert hybrid_mining(job(itemsets={"exclude": ["[ab]"]})).catalogue == ITEMS[2:]
    local = hybrid_mining(job())
    assert (local.delta, local.shufflers) == (0.0, ())


def test_all_that_can_be_said() -> None:
    privacy = {**SHUFFLE, "analyst": "east", "shufflers": ["south", "north"], "local_epsilon": "2.5", "colluding": 2}
    spec = job(privacy={**privacy, "search": "svim"}, itemsets={"min_support": 7})
    task = hybrid_mining(spec)
    assert (task.analyst, task.shufflers, task.most_local, task.colluding) == ("east", ("south", "north"), 2.5, 1)
    assert (task.min_support, spec.privacy.epsilon) == (7, Decimal(1))


def test_a_job_file_with_a_privacy_table_is_written_again() -> None:
    assert "[privacy]" in job_file(job(privacy=SHUFFLE))


@pytest.mark.parametrize(
    ("privacy", "tables"),
    [
        ({"epsilon": "0"}, {}),
        ({"epsilon": "101"}, {}),
        *(
            (
                {**SHUFFLE, "delta": delta},
                {},
            )
            for delta in ("1", "0.99999", "0.001", "0", "-0.1")
        ),
        *(({**SHUFFLE, key: "NaN"}, {}) for key in ("epsilon", "delta", "local_epsilon")),
        ({"model": "shuffle"}, {}),
        ({"epsilon": None}, {}),
        (
            {"model": "central"},
            {},
        ),
        ({"bogus": 1}, {}),
        ({"analyst": "west"}, {}),
        ({**SHUFFLE, "shufflers": ["west"]}, {}),
        ({**SHUFFLE, "shufflers": ["east", "east"]}, {}),
        ({**SHUFFLE, "shufflers": ["north"]}, {}),
        ({**SHUFFLE, "colluding": 3}, {}),
        ({}, {"job": {"partition": "horizontal"}}),
        (
            {"model": "exact", "epsilon": None},
            {},
        ),
        (
            {},
            {"itemsets": {"top_k": None}},
        ),
        ({}, {"itemsets": {"top_k": 0}}),
    ],
)
def test_what_is_wrong_is_said(privacy: dict[str, Any], tables: dict[str, Any]) -> None:
    with fails("E100"):
        job(privacy=privacy, **tables)


def test_a_budget_without_a_model_is_no_exact_job() -> None:
    contents = {
        "job": {"name": "x", "task": "itemsets", "parties": list(PARTIES), "dataset": "b"},
        "itemsets": {"min_support": 2},
    }
    with fails("E100"):
        job_of({**contents, "privacy": {"epsilon": 1, "delta": "1e-6"}}, "job.toml", Path())
    for key, value in {"epsilon": 1, "delta": "1e-6", "shufflers": ["east"], "colluding": 2}.items():
        with fails("E100"):
            job_of({**contents, "privacy": {"model": "exact", key: value}}, "job.toml", Path())
    assert horizontal_mining(job_of({**contents, "privacy": {"model": "exact"}}, "job.toml", Path()))


@pytest.mark.parametrize("model", ["exact", "distributed"])
def test_no_model_makes_noise_for_a_task_that_does_not_mine(model: str) -> None:
    contents = {
        "job": {"name": "x", "task": "naive-bayes", "parties": list(PARTIES), "dataset": "b"},
        "naive_bayes": {"target": "ill", "attributes": ["sex"]},
        "columns": {"ill": {"values": ["no", "yes"]}, "sex": {"values": ["f", "m"]}},
    }
    assert kind_of(job_of(contents, "job.toml", Path())).finds == "model"
    privacy = {"model": model, "epsilon": 1, "delta": "1e-6"}
    with fails("E100"):
        job_of({**contents, "privacy": privacy}, "job.toml", Path())


def test_a_hybrid_job_needs_a_privacy_table_and_a_task_that_mines() -> None:
    contents = {
        "job": {"name": "x", "task": "itemsets", "parties": list(PARTIES), "dataset": "b", "partition": "hybrid"},
        "itemsets": {"min_support": 2},
    }
    with fails("E100"):
        job_of(contents, "job.toml", Path())
    del contents["itemsets"]
    contents["job"]["task"] = "align"
    with pytest.raises(ConfigurationError):
        job_of({**contents, "privacy": {"model": "local", "epsilon": 1}}, "job.toml", Path())


@pytest.mark.parametrize(
    "tables",
    [
        {"itemsets": {"universe": "auto", "catalogue": None}},
        {"itemsets": {"disclose": "candidates"}},
        {"itemsets": {"lambda": "0.5"}},
        {"union": {"bound": 8}},
        {"trust": {"compute": ["south", "east"]}},
        {"privacy": {"contributions": [3]}},
        {"privacy": {"delta": "1e-6"}},
        {"privacy": {"local_epsilon": 2}},
        {"privacy": {"shufflers": ["east"]}},
        {"privacy": {"colluding": 2}},
        {"privacy": {"epsilon": 50}},
        {"privacy": {**SHUFFLE, "local_epsilon": 50}},
        {"itemsets": {"exclude": ["*"]}},
        {"privacy": {"search": "svsm"}, "itemsets": {"max_length": 1}},
        {"itemsets": {"top_k": 2}},
        {"itemsets": {"exclude": ["[a-f]"]}},
        {"job": {"task": "rules"}, "rules": {"min_confidence": "0.5"}, "itemsets": {"max_length": 1}},
    ],
)
def test_what_reports_cannot_tell_is_refused(tables: dict[str, Any]) -> None:
    with fails("E100"):
        hybrid_mining(job(**tables))
