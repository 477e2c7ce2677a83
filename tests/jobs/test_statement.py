"""Statements of jobs of all kinds: short lines that a data protection officer can read, each with its exact form."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from jobs.loading import job_of
from jobs.spec.job import JobSpec
from jobs.statement import EXACT_FORM, Statement, statement
from tests.jobs.audit import kinds
from tests.mining.joint import model_jobs_world
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job as release
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as release_of_columns
from tests.mining.joint.hybrid import hybrid_world

pytestmark = pytest.mark.turn(5)

LONGEST: Final = 140
UNPLAIN: Final = r"\btells?\b|whoever|stands? for"  # what no line says
PARTIES: Final = ("north", "south", "east")
SHUFFLE: Final = {"model": "shuffle", "epsilon": "1", "delta": "1e-6", "shufflers": ["south", "east"]}
BLENDED: Final = {"model": "blended", "epsilon": "2", "delta": "1e-6", "opted_in": ["north"]}
NOISE: Final = {"model": "distributed", "epsilon": "2", "delta": "1e-6", "colluding": 1}
ITEMSETS: Final[list[dict[str, Any]]] = [
    {"disclose": "candidates"},
    {"disclose": "frequent", "prefer": "disclosure"},
    {"universe": "hidden", "disclose": "candidates"},
    {"universe": "all-items", "exclude": ["a*", "?" * 200]},
    {"thin": True, "strategy": "level-wise"},
    {"union": "all", "strategy": "one-shot", "top_k": 5},
]
RELEASES: Final[list[dict[str, Any]]] = [
    {"max_suppression": "0.1", "insider_k": 2, "model": {"k": 3, "t": {"distance": "equal", "value": "0.3"}}},
    {"keys": "union"},
    {"disclose": "node", "node_cells": 500, "max_suppression": "0.1"},
    {"algorithm": "mondrian", "insider_k": 2},
    {"insider_k": 2, "insiders": 2},
]
Made = Callable[[], JobSpec]


def _columns(n: int, task: str, **tables: Any) -> JobSpec:
    named = {"name": "j", "task": task, "parties": PARTIES[:n], "dataset": "people", "partition": "vertical"}
    mined = {} if task == "align" else {"itemsets": {"min_support": "0.1", **tables.pop("itemsets", {})}}
    return job_of({"job": named, **mined, **tables}, "the test", Path())


def _jobs() -> dict[str, Made]:
    found: dict[str, Made] = {name: lambda made=made: made()[0] for name, (made, _) in kinds.JOBS.items()}
    for n, settings in product((2, 3), ITEMSETS):
        tables = {"job": {"parties": PARTIES[:n]}, "itemsets": settings}
        found[f"rows of {n}, {settings}"] = lambda tables=tables: kinds.basket_job("itemsets", **tables)
    for n in (2, 3):
        bound = {"job": {"parties": PARTIES[:n]}, "union": {"bound": 100}}
        found[f"rows of {n}, bound"] = lambda bound=bound: kinds.basket_job("itemsets", **bound)
        for engine, mode in product(("ot", "paillier", "replicated"), ("intersection", "union")):
            helper = {"helper": "coordinator" if n == 2 else "east"} if engine == "replicated" else {}
            tables = {"align": {"mode": mode}, "itemsets": {"engine": engine}, "trust": helper}
            found[f"columns of {n}, {engine}, {mode}"] = lambda n=n, tables=tables: _columns(n, "itemsets", **tables)
        for mode in ("intersection", "cardinality", "union"):
            found[f"alignment of {n}, {mode}"] = lambda n=n, mode=mode: _columns(n, "align", align={"mode": mode})
        for task, partition in product(model_jobs_world.MODELS, ("horizontal", "vertical")):
            parties = PARTIES[:n]
            found[f"{task} of {n}, {partition}"] = lambda task=task, partition=partition, parties=parties: (
                model_jobs_world.job(task, parties, partition=partition)
            )
        found[f"noisy of {n}"] = lambda n=n: kinds.basket_job(
            "itemsets", job={"partition": "hybrid", "parties": PARTIES[:n]}, privacy=NOISE
        )
        found[f"release of columns of {n}"] = lambda n=n: release_of_columns(PARTIES[:n], max_suppression="0.1")
        found[f"release of {n}"] = lambda n=n: release(PARTIES[:n], max_suppression="0.1")
        found[f"quantiles of {n}"] = lambda n=n: _columns(n, "itemsets", itemsets={"quantiles": {"age": 4, "stay": 9}})
    found |= {f"release, {changes}": lambda changes=changes: release(**changes) for changes in RELEASES}
    for disclose in ("supports", "frequent"):
        tables = {"itemsets": {"disclose": disclose}, "trust": {"helper": PARTIES[2]}}
        found[f"rows, three compute, {disclose}"] = lambda tables=tables: kinds.basket_job("itemsets", **tables)
    found["rows, three compute, one may deviate"] = lambda: kinds.basket_job(
        "itemsets",
        itemsets={"universe": "the catalogue", "catalogue": ["a", "b"]},
        trust={"helper": PARTIES[2], "security": "malicious"},
    )
    found["columns, three compute, one may deviate"] = lambda: _columns(
        4, "itemsets", trust={"helper": PARTIES[2], "security": "malicious"}
    )
    for n in (2, 3):
        found[f"rows of {n}, two compute, one may deviate"] = lambda n=n: kinds.basket_job(
            "itemsets",
            job={"parties": PARTIES[:n]},
            itemsets={"universe": "the catalogue", "catalogue": ["a", "b"]},
            trust={"security": "malicious"},
        )
    found |= {
        "perturbed": hybrid_world.job,
        "shuffled": lambda: hybrid_world.job(privacy=SHUFFLE),
        "blended": lambda: hybrid_world.job(privacy=BLENDED, itemsets={"max_length": 1}),
    }
    return found


JOBS: Final = _jobs()


@cache
def _stated(name: str) -> Statement:
    return statement(JOBS[name]())


@pytest.mark.parametrize("name", JOBS)
def test_each_line_is_short_and_plain_and_has_its_exact_form(name: str) -> None:
    stated = _stated(name)
    assert not any(re.search(UNPLAIN, line) for line in stated.beyond)
    for line in stated.learned:
        assert len(line.what) <= LONGEST, line.what
        assert not re.search(UNPLAIN + r"|\(|√", line.what), line.what
        assert line.what != line.detail
        assert line.exact == (line.detail or line.what)
        assert "tells" not in line.exact


@pytest.mark.parametrize("name", JOBS)
def test_no_line_is_lost(name: str) -> None:
    stated = _stated(name)
    *short, last = stated.prose()
    exact = stated.exact_prose()
    assert last == EXACT_FORM
    assert len(short) == len(exact) == 1 + len(stated.learned) + len(stated.beyond)
    for line, brief, whole in zip(stated.learned, short[1:], exact[1:], strict=False):
        assert brief.endswith(f" {line.what}.")
        assert whole.endswith(f" {line.exact}.")
    told = [line for line in stated.as_data() if "who" in line]
    assert [(tuple(line["who"]), line["kind"], line["what"], line["detail"]) for line in told] == [
        (line.who, line.kind, line.what, line.detail) for line in stated.learned
    ]


@pytest.mark.parametrize("name", JOBS)
def test_results_come_first_and_ends_last(name: str) -> None:
    """Then what all parties learn, and what some of them do; the coordinator's view; how a job may end."""
    spec = JOBS[name]()
    lines = statement(spec).learned
    watching = next(i for i, line in enumerate(lines) if line.who == ("coordinator",) and "each party's" in line.what)
    of_parties = [(line.kind != "result", not set(spec.job.parties) <= set(line.who)) for line in lines[1:watching]]
    assert lines[0].kind == "result"
    assert of_parties == sorted(of_parties)
    assert "can take part with its data" in lines[watching + 1].what


@pytest.mark.parametrize("recipients", [["coordinator"], ["all"], ["south"]])
@pytest.mark.parametrize("mode", ["intersection", "union"])
def test_quantiles_tell_numbers_of_rows(mode: str, recipients: list[str]) -> None:
    """Their ends are in the names of items, so whoever learns these learns them."""
    spec = _columns(2, "itemsets", itemsets={"quantiles": {"age": 4}}, align={"mode": mode})
    spec = spec.model_copy(update={"job": spec.job.model_copy(update={"recipients": tuple(recipients)})})
    (line,) = [each for each in statement(spec).learned if "quantiles" in each.what]
    assert set(line.who) == {*spec.job.parties, *({"coordinator"} if spec.to_coordinator else ())}
    assert "numbers in single rows" in line.what
    assert "'age'" in line.exact
    assert ("common or not" in line.exact) == (mode == "union")
    cut = _columns(2, "itemsets", itemsets={"cuts": {"age": [4]}}, align={"mode": mode})
    assert not any("quantiles" in each.what for each in statement(cut).learned)


@pytest.mark.parametrize("disclose", ["supports", "frequent"])
@pytest.mark.parametrize("partition", ["rows", "columns"])
def test_what_follows_from_opened_supports_is_not_promised_to_stay_hidden(partition: str, disclose: str) -> None:
    """Of a column with two values, one of them frequent, the other's support is what N leaves."""
    given = {"disclose": disclose}
    spec = (
        kinds.basket_job("itemsets", itemsets=given) if partition == "rows" else _columns(3, "itemsets", itemsets=given)
    )
    (line,) = [each for each in statement(spec).learned if "of a candidate that is not frequent" in each.what]
    opened = disclose == "supports"
    assert ("but what follows from opened ones" in line.what) == opened
    assert ("all of these but one are frequent" in line.exact) == opened


@pytest.mark.parametrize(("universe", "said"), [("hidden", True), ("hidden-all", True), ("all-items", False)])
def test_what_the_coordinator_sees_of_a_hidden_universe_is_said(universe: str, said: bool) -> None:
    spec = kinds.basket_job("itemsets", itemsets={"universe": universe})
    seen = " ".join(line.exact for line in statement(spec).learned if line.who == ("coordinator",))
    assert ("size classes of numbers of items" in seen) == said
    assert "nearly how many elements it has" in seen
