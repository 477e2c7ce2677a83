"""The statement of each kind of job lists whatever about one party's rows may end it, or is left out without a word.

Every place that refuses something is listed here with what it follows from: a new one is an error until it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.fitness import LEFT_OUT, REASONS
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from jobs.statement import statement
from tests.mining.joint.anonymisation import anonymisation_jobs_world
from tests.repository.test_told_errors import ROOT, marked

pytestmark = pytest.mark.turn(3)

KINDS_OF_ERRORS: Final = {"InputDataError", "PolicyDenied", "OverLimit", "ConfigurationError", "ResourceError"}
JOB: Final = "the job, or what is installed, alone"
PROPOSED: Final = "judged before rows are looked at, but for `new rows`"
ROOM: Final = "memory and disk of the node"
CLUSTER: Final = "a fault of the engine that the party runs"
NO_NODE: Final = "no node with a job: simulations, and who looks at a source beforehand"
OTHERS: Final = "told as a peer's fault, and never of own rows"
PLACES: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *(
                "crypto.primitives.paillier.interchange",
                "crypto.primitives.groups.sodium",
                "crypto.protocols.sums.ring_sum",
            ),
            *(
                "crypto.protocols.alignment.alignment",
                "jobs.kinds.release.parameters",
            ),
            *(
                "jobs.kinds.data",
                "jobs.kinds.models.parameters",
                "mining.joint.anonymisation.axes",
            ),
            *("mining.joint.anonymisation.conditions.distance_limits", "mining.joint.anonymisation.conditions.models"),
            *("mining.joint.anonymisation.parameters", "mining.joint.anonymisation.vertical.anonymise"),
            *(
                "mining.joint.vertical.engines.replicated.engine",
                "mining.joint.distributed.budget",
                "mining.joint.models.kmeans",
                "mining.joint.models.shared_kmeans",
                "mining.joint.vertical.engines.registry",
            ),
            *("mining.joint.vertical.parameters", "mining.models.attributes __post_init__"),
            *("mining.models.attributes check_names", "mining.models.decision_tree", "mining.models.kmeans"),
            *("mining.models.naive_bayes", "mining.rules.growth", "mining.rules.association", "mining.thresholds"),
            "mining.data.loading",
        ),
        JOB,
    ),
    **dict.fromkeys(
        (
            *(
                "mining.data.coded_cells",
                "mining.data.formats.csv_text",
                *(
                    f"mining.data.schemes.{each}"
                    for each in ("duckdb_file", "http", "local_files", "mysql", "registry", "s3", "scheme", "sqlite")
                ),
                *("mining.data.copies", "mining.data.formats.parquet_files", "mining.data.formats.workbooks"),
                "mining.data.source_options",
                "mining.data.formats.text_files",
                "mining.data.formats.table_readers",
                "mining.data.formats.table_sources",
            ),
            *(
                "mining.partitioned.blocks",
                "mining.partitioned.stored",
                "mining.partitioned.encoding.encode",
                "mining.partitioned.spark.encoding",
                "mining.partitioned.spark.table_encoding",
                "mining.partitioned.spark.worker",
            ),
            *(
                "mining.data.tables",
                "mining.data.formats.text_sources",
                "mining.data.transactions",
            ),
            *(
                "mining.models.attributes check_column",
                "mining.joint.anonymisation.coding of",
                "mining.joint.vertical.names",
            ),
        ),
        "source",
    ),
    "party.policy.policy": PROPOSED,
    "party.policy.policy_input": PROPOSED,
    "party.policy.judge": PROPOSED,
    "party.jobs.session_host": "how many jobs run",
    "party.jobs.progress _changed": "attempt",
    "mining.data.row_ids": "ids",
    "mining.joint.anonymisation.coding _leaves": "leaves",
    "mining.joint.anonymisation.coding _places": "values",
    "mining.joint.anonymisation.coding _check_lengths": "values",
    "jobs.kinds.release.checks check_persons": "persons",
    "jobs.kinds.release.checks check_insensitive": "unique",
    "mining.models.attributes check_outside": "domains",
    "jobs.run _outward": ROOM,
    "mining.partitioned.workers": ROOM,
    "mining.partitioned.encoding.grouping": ROOM,
    "mining.partitioned.encoding.writing": ROOM,
    "mining.partitioned.spark.cluster": CLUSTER,
    "mining.partitioned.spark.runner": CLUSTER,
    "mining.partitioned.spark.secrecy": JOB,
    "mining.data.frames": NO_NODE,
    "mining.data.source_format": NO_NODE,
    "mining.joint.hybrid.mine": OTHERS,
    "crypto.primitives.scratch_file": ROOM,
}
NODE: Final = (
    "jobs/charging policy/policy_input policy/judge jobs/execution policy/policy policy/privacy_budget "
    "policy/privacy_rules jobs/progress jobs/endings/release policy/release_rules jobs/session_host jobs/transitions "
    "data/sources"
)
OF_JOBS: Final = (
    "data run kinds/data kinds/models/rows/run kinds/models/columns/run kinds/models/model kinds/models/parameters "
    "kinds/release/rows/run kinds/release/columns/run kinds/release/checks kinds/release/parameters "
    "kinds/release/release"
)


def paths() -> Iterator[Path]:
    """What runs while a node has a job."""
    for layer in ("mining", "crypto"):
        yield from (path for path in (ROOT / layer).rglob("*.py") if not {"hiding", "reference"} & set(path.parts))
    yield from (ROOT / "jobs" / f"{name}.py" for name in OF_JOBS.split())
    yield from (ROOT / "party" / f"{name}.py" for name in NODE.split())


def refusals() -> set[tuple[str, str]]:
    """Every module and function that makes an error by which rows may be refused."""
    found = set()
    for path in paths():
        tree = ast.parse(path.read_text())
        within = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS_OF_ERRORS:
                around = [each for each in within if each.lineno <= node.lineno <= (each.end_lineno or 0)]
                module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                found.add((module, max(around, key=lambda each: each.lineno).name if around else "-"))
    return found


def test_every_refusal_is_listed_with_what_it_follows_from() -> None:
    own = refusals() - marked()
    places = {place for module, function in own for place in (module, f"{module} {function}")}
    assert set(PLACES) <= places, "a place that is gone"
    assert {each for each in own if not {each[0], " ".join(each)} & set(PLACES)} == set(), "a place that nobody listed"
    keys = {reason.key for reason in (*REASONS, *LEFT_OUT)}
    assert keys - set(PLACES.values()) == {"new rows", "cells", "names", "strangers"}  # no error of their own


# -- kind by kind -----------------------------------------------------------------------------------------------------
PARTIES: Final = ["north", "south", "east"]
MODEL: Final[dict[str, Any]] = {
    "naive_bayes": {"target": "town", "attributes": ["age"]},
    "columns": {"town": {"values": ["A", "B"]}, "age": {"cuts": ["40"]}},
}
NOISY: Final = {"model": "distributed", "epsilon": "1", "delta": "0.00001"}
CATALOGUE: Final = {"universe": "items.txt", "catalogue": ["a", "b"], "strategy": "level-wise"}
EVERYWHERE: Final = {"source", "new rows", "attempt"}
JOBS: Final[dict[str, tuple[dict[str, Any], set[str], bool]]] = {
    "itemsets": ({"job": {"task": "itemsets"}}, EVERYWHERE, True),
    "models of rows": ({"job": {"task": "naive-bayes"}, **MODEL}, {*EVERYWHERE, "domains"}, False),
    "models of columns": (
        {"job": {"task": "naive-bayes", "partition": "vertical"}, **MODEL},
        {*EVERYWHERE, "domains", "ids"},
        True,
    ),
    "columns": (
        {"job": {"task": "itemsets", "partition": "vertical"}},
        {*EVERYWHERE, "ids", "cells"},
        True,
    ),
    "alignment": ({"job": {"task": "align", "partition": "vertical"}}, {*EVERYWHERE, "ids"}, True),
    "catalogue": ({"job": {"task": "itemsets"}, "itemsets": CATALOGUE}, {*EVERYWHERE, "strangers"}, False),
    "noise": ({"job": {"task": "itemsets"}, "privacy": NOISY}, {*EVERYWHERE, "names"}, False),
    "noise over a catalogue": (
        {"job": {"task": "itemsets"}, "itemsets": {**CATALOGUE, "strategy": "auto"}, "privacy": NOISY},
        {*EVERYWHERE, "strangers"},
        False,
    ),
}


def spec_of(contents: dict[str, Any]) -> JobSpec:
    """A job file's contents with what every kind needs."""
    named = {"name": "test", "parties": PARTIES, "dataset": "people", **contents["job"]}
    whole = {**contents, "job": named}
    if named["task"] == "itemsets":
        whole["itemsets"] = {"min_support": "0.1", **contents.get("itemsets", {})}
    return job_of(whole, "the test", Path())


RELEASES: Final[dict[str, tuple[dict[str, Any], set[str]]]] = {
    "with a unique column": ({"allow_unique": []}, {"leaves", "values", "persons", "unique"}),
    "of a column that may be unique": ({}, {"leaves", "values", "persons"}),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_the_statement_of_a_release_says_what_its_rows_may_end(kind: str) -> None:
    changes, expected = RELEASES[kind]
    spec = anonymisation_jobs_world.job(**changes)
    limited = any(line.label == "size classes" for line in statement(spec).declared)
    check(spec, EVERYWHERE | expected, limited=limited)


@pytest.mark.parametrize("kind", JOBS)
def test_the_statement_of_each_kind_says_what_its_rows_may_end(kind: str) -> None:
    contents, expected, limited = JOBS[kind]
    check(spec_of(contents), expected, limited=limited)


def check(spec: JobSpec, expected: set[str], *, limited: bool) -> None:
    """Holds the statement of a job against what its rows may come to."""
    prose = " ".join(statement(spec).exact_prose())
    said = {reason.key for reason in REASONS if reason.what in prose}
    said |= {reason.key for reason in LEFT_OUT if f"nothing of {reason.what}: their party leaves them out" in prose}
    assert said == expected
    assert prose.count("rule max_failed_jobs") == 1 + limited
    assert ("whether some party, and not which one, has more rows or items" in prose) == limited
    everybody = {"coordinator", *spec.job.parties}
    assert all(set(line.who) == everybody for line in statement(spec).learned if "max_failed_jobs" in line.exact)
