"""Plans of jobs that learn models: sums over rows come to about what is sent, and what is not planned is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

import comine
from jobs.kinds.models.columns import plan as module
from jobs.kinds.models.parameters import columns_of, model_parameters
from jobs.plan.answer import Answer
from jobs.plan.estimate import estimate
from jobs.spec.job import JobSpec
from mining.joint.models.costs import dealt
from mining.models.attributes import Attribute
from protos.v1.plan_pb2 import Speed
from tests.mining.joint.model_jobs_world import PARTIES, TASKS, Task, columns, job, parted, people
from tests.traffic import within

pytestmark = pytest.mark.turn(6)

ROWS = 60


def answers(certificate_bytes: int, told: int | None = ROWS // 3) -> dict[str, Answer]:
    return {name: Answer(name, Speed(), certificate_bytes, told) for name in PARTIES}


@pytest.mark.parametrize("task", ["naive-bayes", "k-means"])
def test_sums_over_rows_cost_what_was_planned(task: Task) -> None:
    iterations = {"max_iterations": 1} if task == "k-means" else {}
    spec = job(task, **iterations)
    result = comine.simulate(spec, parted(people(ROWS, 1), [20, 40], PARTIES), seed=1)
    told = answers(0)
    for party, receipt in result.receipts.items():
        told[party] = replace(told[party], certificate_bytes=len(receipt.certificate))
    plan = estimate(spec, told, 0.001)
    assert plan.n_rows == ROWS
    for party, costs in result.parties.items():
        assert within(plan.parties[party].bytes_sent, costs.bytes_sent, len(PARTIES) - 1)
        assert plan.rounds == costs.rounds


def test_products_of_columns_cost_what_was_planned() -> None:
    spec, rows = job("naive-bayes", partition="vertical"), 2_000
    held = dealt(*_columns(spec), PARTIES)
    result = comine.simulate(spec, columns(people(rows, 1), held, {party: set() for party in PARTIES}), seed=1)
    told = answers(0, rows)
    for party, receipt in result.receipts.items():
        told[party] = replace(told[party], certificate_bytes=len(receipt.certificate))
    plan = estimate(spec, told, 0.001)
    assert plan.n_rows == rows
    for party, costs in result.parties.items():
        assert within(plan.parties[party].bytes_sent, costs.bytes_sent, len(PARTIES) - 1)


def _columns(spec: JobSpec) -> tuple[Attribute, tuple[Attribute, ...]]:
    target, *attributes = columns_of(model_parameters(spec))
    return target, tuple(attributes)


@pytest.mark.parametrize("told", [20, None])
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
@pytest.mark.parametrize("task", TASKS)
def test_a_plan_says_what_it_does_not_reckon(task: Task, partition: str, told: int | None) -> None:
    plan = estimate(job(task, partition=partition), answers(900, told), 0.001)
    said = " ".join(plan.assumptions)
    assert ("the class is taken to be at" in said.lower()) == (partition == "vertical" and task != "k-means")
    assert ("only the first node is counted" in said) == (task == "decision-tree")
    assert ("iterations are counted" in said) == (task == "k-means")
    assert plan.is_least == (partition == "vertical" and (task == "decision-tree" or told is None))
    assert plan.bytes_sent > 0
    assert plan.prose
    assert (plan.n_rows is None) == (told is None)
    names = [each.name for each in plan.alternatives]
    assert names == (["union of rows"] if partition == "vertical" else [])


def test_a_model_of_columns_takes_their_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job("naive-bayes", partition="vertical")
    few, many = (estimate(spec, answers(900, rows), 0.001).parties[PARTIES[0]].memory_bytes for rows in (10**6, 10**7))
    monkeypatch.setattr(module, "code_bytes", lambda _: 0)
    without = estimate(spec, answers(900, 10**7), 0.001).parties[PARTIES[0]].memory_bytes
    assert few < without < many
    assert (many - without) % 10**7 == 0


@pytest.mark.parametrize("mode", ["intersection", "union"])
def test_who_computes_clusters_holds_shares_of_all_rows(mode: str) -> None:
    spec, rows = job("k-means", partition="vertical", align={"mode": mode}), 10**6
    plan = estimate(spec, answers(900, rows), 0.001)
    first, second, third = (plan.parties[name].memory_bytes for name in PARTIES)
    assert first == second
    assert first - third > rows * 8 * 3  # a word for each centroid at least
